"""The table of endpoints: it counts what was asked, and a run under it fails where an endpoint has no test."""

import os
import subprocess
import sys
from pathlib import Path

from tests import endpoints
from tests.schemas.asked import key
from tests.schemas.table import ENDPOINTS
from tests.schemas.watch import ROOT

RATE_LIMIT = "GET /rate_limit"
TEST = '''"""Scripts one answer of the platform."""
from tests.schemas.asked import note_scripted


def test_a_script():
    """Answers twice, refuses once, and gives what is not an endpoint."""
    for path, status in (("/rate_limit", 200), ("/rate_limit", 200), ("/notifications", 404), ("/elsewhere", 200)):
        note_scripted("GET", path, status)


def test_that_asks_nothing():
    """Passes always."""
'''
CONFTEST = '''"""What tests/conftest.py does."""
from tests.conftest import *
from tests.conftest import _watched_sandboxes
'''


def test_an_endpoint_needs_tests_of_both_kinds() -> None:
    """One that only the sandbox's tests ask, or only those of operations, counts as empty; a full table has none."""
    names = [key(*name.split(" ", 1)) for name in ENDPOINTS]
    asked = [(f"{folder}/test_x.py::test_x", name) for folder in ("tests/sandbox", "tests/jobs") for name in names]
    assert endpoints.empty(endpoints.rows(asked)) == []
    for number in (0, len(names)):
        lacking = endpoints.rows(asked[:number] + asked[number + 1 :])
        assert endpoints.empty(lacking) == [next(iter(ENDPOINTS))]


def test_a_run_with_an_empty_row_fails(tmp_path: Path) -> None:
    """Every test passes, and still the run ends with 1: the table says why, and what each test asked."""
    (tmp_path / "test_script.py").write_text(TEST)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    options = ("-q", "-p", "no:cacheprovider", "-o", "anyio_mode=auto", "--rootdir=.", "--endpoint-tests")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    shown = done.stdout.splitlines()
    place = shown.index(f"{0:>9} {0:>9} {1:>9}  {RATE_LIMIT}")
    assert shown[place + 1].split() == ["test_script.py::test_a_script"]
    assert sum("test_script.py::" in line for line in shown) == 1
    assert f"FAILED: no test of the sandbox, or none of an operation, for {RATE_LIMIT}" in shown
    assert "45 endpoints, 0 with tests of the sandbox and of an operation" in shown
    assert ("2 passed" in done.stdout, done.returncode) == (True, 1)
