"""The last line on standard error goes on with what is left, also after a bug and where nothing can be printed."""

import sys

import pytest

from tests.audit.nights import FILES, Nights
from tests.e2e.support.platform import Home, served

BUG = """
import sys
from bulk.cli import main
from bulk.engine import execution

def odd(*_):
    raise ValueError("odd")

execution.perform_waves = odd
sys.exit(main(sys.argv[1:]))
"""
FAILING = [{**FILES[0], "ref": f"none-{number}"} for number in range(20)]


@pytest.fixture
def nights(tmp_path):
    """An audit, and a program that runs a command with a bug that comes when its run has begun."""
    with served(tmp_path / "sandbox") as sandbox:
        found = Nights(Home(tmp_path), sandbox)
        found.home.write("bug.py", BUG)
        found.write()
        yield found


@pytest.mark.parametrize(
    ("command", "last"),
    [
        ("run files.yaml --run-dir run --progress none", "bulk resume run"),
        ("audit files.yaml --progress none", "bulk audit files.yaml --progress none"),
    ],
)
def test_after_a_bug_the_last_line_goes_on(nights, command, last):
    """It is exit 70 with the file that has the traceback; the command of the last line goes on with the same run."""
    ran = nights.home.run_any([sys.executable, "bug.py", *command.split()])
    assert (ran.exit_code, "this is a bug in Bulk: ValueError: odd" in ran.err) == (70, True), ran.err
    assert ran.err.splitlines()[-1] == last
    assert nights.home.run(*last.split()[1:]).exit_code == 0
    assert nights.home.run(*command.split()).exit_code == 0


@pytest.mark.parametrize("out", [["--format", "json"], []])
def test_an_audit_with_work_left_that_can_not_print_says_how_to_go_on(nights, out):
    """Its exit code and its last line are those of the run that was stopped, whatever becomes of what it prints."""
    nights.items = FAILING
    nights.write()
    words = ["audit", "files.yaml", "--progress", "none", "--failures", "2", "--concurrency", "1", *out]
    ran = nights.home.run_any(["sh", "-c", f"{sys.executable} -m bulk {' '.join(words)} > /dev/full"])
    assert (ran.exit_code, "standard output can't be written" in ran.err) == (3, True), ran.err
    assert ran.err.splitlines()[-1] == " ".join(["bulk", *words])
