"""The hunt for mutants can only prove something if it breaks what it says that it breaks."""

import ast
from pathlib import Path

import pytest

from tests.mutation.core import CORE
from tests.mutation.mutants import broken, mutants

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("source", "results"),
    [
        ("def f(a):\n    return a < 2", ["a <= 2", "a < 3", "None"]),
        ("def f(a):\n    return a and not a", ["a or not a", "None"]),
        ("def f(a):\n    return min(a, 1.5)", ["max(a, 1.5)", "min(a, 2.5)", "None"]),
        ("def f(a):\n    return 'x' if a else True", ["'x' if not a else True", "'' if a else True"]),
        ("def f(a):\n    '''Words.'''\n    log.info('x')\n    return f'x {a}'", ["None"]),
    ],
)  # fmt: skip
def test_every_small_change_is_made(source: str, results: list[str]) -> None:
    """Each change stands alone, in the function that holds it; what only people read is left as it is."""
    found = [broken(source, mutant.number) for mutant in mutants(source)]
    assert {mutant.function for mutant in mutants(source)} == {"f"}
    written = [ast.unparse(tree).rpartition("return ")[2] for tree in found]
    assert set(results) <= set(written)
    assert len(set(written)) == len(written)


def test_statements_are_left_out() -> None:
    """Assignments, calls and raised errors, one at a time; what stands outside of functions is told apart."""
    source = "LIMIT = 3\n\ndef f(a):\n    a.x = 1\n    a.go()\n    if a:\n        raise ValueError\n"
    left_out = [ast.unparse(broken(source, each.number)) for each in mutants(source) if each.what == "left out"]
    assert [text.count("pass") for text in left_out] == [1, 1, 1]
    assert mutants(source)[0].function is None


@pytest.mark.parametrize("module", CORE)
def test_the_core_is_there(module: str) -> None:
    """Every module of the core and each of its tests exists, and there is something to break."""
    assert len(mutants((ROOT / module).read_text())) > 5
    assert all((ROOT / tests).is_file() for tests in CORE[module])
