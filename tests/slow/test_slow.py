"""Which tests are left to `make test-slow`, and that they are run at all."""

import ast
import re
from pathlib import Path

import pytest

from tests.slow.marks import LIST, slow

ROOT = Path(__file__).parents[2]


def test_a_test_is_slow_by_the_mean_of_its_parameters() -> None:
    """A large sum counts as well. Fixtures count, but not what it takes to take them down, and the short forms of the
    main promises stay."""
    lines = """
0.40s call     tests/a/test_a.py::test_of_two[one case]
0.20s setup    tests/a/test_a.py::test_of_two[one case]
0.30s call     tests/a/test_a.py::test_of_two[other]
0.40s call     tests/a/test_a.py::test_of_one
0.20s setup    tests/a/test_a.py::test_of_one
0.10s call     tests/a/test_a.py::test_quick
9.00s teardown tests/a/test_a.py::test_quick
9.00s call     tests/hostile/test_table.py::test_the_table
"""
    many = [f"0.45s call     tests/a/test_a.py::test_of_many[{number}]" for number in range(12)]
    assert slow(lines.splitlines()) == ["tests/a/test_a.py::test_of_one"]
    assert slow([*lines.splitlines(), *many])[0] == "tests/a/test_a.py::test_of_many"


def test_every_slow_test_is_there() -> None:
    """A test that got another name is in the list by that name, or by none."""
    names = LIST.read_text().split()
    gone = []
    for file in dict.fromkeys(name.partition("::")[0] for name in names):
        defined = {
            node.name
            for node in ast.walk(ast.parse((ROOT / file).read_text()))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        gone += [name for name in names if name.startswith(f"{file}::") and name.rpartition("::")[2] not in defined]
    assert [name for name in gone if not name.endswith("::runTest")] == []  # a state machine's own


@pytest.mark.parametrize("place", [".ci/run", ".github/workflows/ci.yml"])
def test_continuous_integration_runs_both(place: str) -> None:
    """What `make test` leaves out comes behind it."""
    commands = re.findall(r"make (test\S*)$", (ROOT / place).read_text(), re.MULTILINE)
    assert commands == ["test", "test-slow"]
