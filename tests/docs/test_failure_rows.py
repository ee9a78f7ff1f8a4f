"""Every row of the failure matrix has a test that carries its number; this is the one place that checks it."""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MATRIX = ROOT / "docs" / "failures.md"

NAMED = re.compile(r"failures\.md rows? (\d+(?:(?:,| and|-|–) ?\d+)*)")


def rows_of(matrix: str) -> set[int]:
    """The numbers of a table's rows."""
    return {int(number) for number in re.findall(r"^\| (\d+) \|", matrix, re.MULTILINE)}


def named_in(docstring: str) -> Iterator[int]:
    """The rows that a docstring carries: `failures.md row 4`, `failures.md rows 4, 5 and 7-9`."""
    for found in NAMED.finditer(" ".join(docstring.split())):
        for part in re.split(r", ?| and ", found[1]):
            first, _, last = part.replace("–", "-").partition("-")
            yield from range(int(first), int(last or first) + 1)


def carried_by(sources: Iterable[Path]) -> dict[int, list[str]]:
    """The tests that carry each row's number."""
    tests = defaultdict(list)
    for path in sources:
        text = path.read_text()
        if "failures.md" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for row in named_in(ast.get_docstring(node) or ""):
                    tests[row].append(f"{path.name}::{node.name}")
    return dict(tests)


def without_test(matrix: str, sources: Iterable[Path]) -> set[int]:
    """Rows of the matrix that no test carries."""
    return rows_of(matrix) - set(carried_by(sources))


def test_every_row_has_a_test(figure: Callable[[str], None]) -> None:
    """No row of docs/failures.md is without a test, and no test carries a row that is not there."""
    rows, tests = rows_of(MATRIX.read_text()), carried_by((ROOT / "tests").rglob("test_*.py"))
    assert set(tests) == rows
    marks = sum(len(names) for names in tests.values())
    figure(f"{len(rows)} rows: {len(tests)} with a test ({marks} marks)")


def test_a_row_without_a_test_is_found(tmp_path: Path) -> None:
    """The check fails for a row that nothing carries, and reads every way to write several."""
    path = tmp_path / "test_some.py"
    path.write_text('def test_a():\n    """Holds (failures.md rows 1, 2 and 4-5)."""\n')
    matrix = "".join(f"| {row} | fault | behaviour | U |\n" for row in range(1, 8))
    assert without_test(matrix, [path]) == {3, 6, 7}
