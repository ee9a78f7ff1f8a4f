"""The search for secrets finds what is there, and fails the session that wrote it."""

import subprocess
import sys
from pathlib import Path

from tests import canaries

ROOT = Path(__file__).parents[1]
OTHER = "a+secret/of this test alone"

LEAKING = f'''"""Each of these passes by itself, and leaks."""
import base64, logging


def test_leaks_into_a_file(tmp_path):
    """Base64, in the middle of a file."""
    (tmp_path / "ledger.db").write_bytes(b"x" + base64.b64encode(b"ab:{canaries.TOKEN}:") + b"x")


def test_leaks_into_a_log():
    """As it is."""
    logging.getLogger("some").warning("with {canaries.TOKEN}")


def test_does_not_leak(tmp_path):
    """What a user owns, and the sandbox, may have it."""
    (tmp_path / "token.txt").write_text("{canaries.TOKEN}")
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "sandbox.db").write_text("{canaries.TOKEN}")
'''
CONFTEST = "from tests.canaries import _no_secret_is_written, pytest_runtest_makereport\n"


def test_every_form_is_found(tmp_path: Path) -> None:
    """A secret is found as it is, in Base64 at any offset, percent-encoded and in JSON, wherever in a file."""
    for place, form in enumerate(canaries.forms(OTHER)):
        (tmp_path / str(place)).write_bytes(b"before " + form + b" behind")
    assert len({line.partition(":")[0] for line in canaries.leaks(tmp_path, [OTHER])}) == len(canaries.forms(OTHER))
    assert len(canaries.forms(OTHER)) >= 6


def test_a_leak_fails_the_session(tmp_path: Path) -> None:
    """A session in which a secret came into a file and into a log ends with both places (failures.md row 62)."""
    (tmp_path / "test_some.py").write_text(LEAKING)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", "state", "test_some.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert "3 passed, 1 error" in done.stdout, done.stdout
    for place in ("test_leaks_into_a_file0/ledger.db", "test_leaks_into_a_log, Captured log call"):
        assert place in done.stdout, done.stdout
    assert "sandbox.db" not in done.stdout
    assert "token.txt" not in done.stdout.partition("short test summary")[2]
