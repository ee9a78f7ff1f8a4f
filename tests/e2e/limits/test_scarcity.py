"""A machine that gives little, or lacks what others have: few open files, little memory, no streams, no folders.

Every command is a process of its own with real limits. None shows a traceback, or calls a bug what the machine lacks.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.support.platform import BULK, Home, Ran
from tests.e2e.support.programs import canned

COMMAND = ("run", "manifest.yaml", "--run-dir", "run", "--cache", "kept")
COUNT = 30


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    """A platform that answers quickly."""
    with canned() as url:
        yield url


@pytest.fixture
def home(base_url: str, tmp_path: Path) -> Home:
    """A home with a manifest of some reads that are saved."""
    made = Home(tmp_path)
    items = [{"owner": "acme", "repo": f"repo-{number}"} for number in range(COUNT)]
    made.manifest(base_url, {"readmes": {"operation": "readme.get", "items": items, "save": "{repo}.md"}})
    return made


def run(home: Home, shell: str, *arguments: str) -> Ran:
    """A command after some words of the shell, which may end with redirections: they are for all that follows."""
    ran = home.run_any(["/bin/sh", "-c", f'{shell}\nexec "$@"', "sh", *BULK, *(arguments or COMMAND)])
    assert "Traceback" not in ran.err
    assert "bug" not in ran.err
    return ran


@pytest.mark.parametrize("files", [6, 24, 39])
def test_too_few_open_files_are_told_before_anything_is_sent(home: Home, files: int) -> None:
    """Exit 2 with the limit, what is needed and the way out; no run directory is begun (failures.md row 51)."""
    ran = run(home, f"ulimit -n {files}")
    assert ran.exit_code == 2, ran.err
    assert f"only {files} files may be open at once, and 40 are needed" in ran.err
    assert "ulimit -n" in ran.err
    assert not (home.folder / "run" / "ledger.db").exists()


@pytest.mark.parametrize("shell", ["ulimit -n 40", "ulimit -S -n 16"], ids=["just enough", "may be raised"])
def test_the_fewest_open_files_are_enough(home: Home, shell: str) -> None:
    """With 40 open files, or a lower limit that may be raised, all items are read, kept and saved."""
    ran = run(home, shell)
    assert ran.exit_code == 0, ran.err
    assert len(home.results("run")) == COUNT


@pytest.mark.parametrize("kib", [70_000, 100_000])
def test_little_memory_ends_a_run_that_can_go_on(home: Home, kib: int) -> None:
    """Where memory runs out, exit 3 says so, and with more of it the same command completes the run."""
    # a tracer of its coverage would meet the limit as well
    ran = run(home, f"unset COVERAGE_PROCESS_CONFIG; ulimit -v {kib}")
    assert ran.exit_code in (0, 3), ran.err
    if ran.exit_code == 3:
        assert "memory" in ran.err
        # what ran out before there was a run is begun again
        assert ran.err.splitlines()[-1].startswith(("bulk resume run", "bulk run manifest.yaml"))
        ran = run(home, ":")
    assert ran.exit_code == 0, ran.err
    assert len(home.results("run")) == COUNT


@pytest.mark.parametrize(
    "shell",
    [
        "exec <&-",
        "exec >&-",
        "exec <&- >&- 2>&-",
        "unset HOME XDG_CACHE_HOME; TMPDIR=/nonexistent; export TMPDIR",
        "HOME=/dev/null; XDG_CACHE_HOME=/dev/null/x; export HOME XDG_CACHE_HOME",
        "LC_ALL=nonsense; PYTHONIOENCODING=ascii; export LC_ALL PYTHONIOENCODING",
    ],
)
def test_what_is_missing_around_a_command_costs_nothing(home: Home, shell: str) -> None:
    """Without streams, home, folders or a locale the run completes all the same."""
    ran = run(home, shell, *COMMAND[:4])
    assert ran.exit_code == 0, ran.err
    assert len(home.results("run")) == COUNT


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_folder_that_is_gone_stops_nothing_that_does_not_need_it(home: Home, command: str) -> None:
    """A current folder that was deleted: what is named with its whole path works."""
    where = ("--run-dir", str(home.folder / "run")) if command == "run" else ()
    shell = f"mkdir {home.folder}/gone && cd {home.folder}/gone && rmdir {home.folder}/gone"
    ran = run(home, shell, command, str(home.folder / "manifest.yaml"), *where)
    assert ran.exit_code == 0, ran.err


def test_items_from_a_closed_stream_are_told(home: Home) -> None:
    """`items: -` with a standard input that is closed: exit 2, and why."""
    home.manifest("http://127.0.0.1:9/api/v3", {"readmes": {"operation": "readme.get", "items": "-"}})
    ran = run(home, "exec <&-", "check", "manifest.yaml")
    assert ran.exit_code == 2
    assert "there is no standard input" in ran.err
