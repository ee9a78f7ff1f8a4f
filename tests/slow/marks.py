"""The tests that `make test-slow` runs, because `make test` has eight minutes: those that take seconds.

slow_tests.txt lists them as they were measured, a function in each line. To measure them anew on a quiet machine:

    python -m pytest --durations 0 -vv > build/durations.txt
    python -m tests.slow.marks build/durations.txt
"""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("slow_tests.txt")
MOST_S, MOST_TOGETHER_S = 0.5, 5.0
"""What a test takes with its fixtures, the mean of its parameters and all of them together, when it is still in
`make test` (seconds)."""
KEPT = (
    "tests/crash/test_kills.py",
    "tests/docs/test_failure_rows.py",
    "tests/hostile/test_budgets.py::test_every_pair",
    "tests/hostile/test_table.py",
    "tests/simulation/storms/test_storms.py",
    "tests/test_project.py",
)
"""The short forms of the main promises and the checks of the whole project are in `make test`, whatever they take."""
_DURATION = re.compile(r"^([\d.]+)s (setup|call) +(\S+)")


def name_of(nodeid: str) -> str:
    """The file and the function of a test, without its parameters."""
    return nodeid.partition("[")[0]


def mark(items: Iterable[pytest.Item]) -> None:
    """Give the listed tests their marker."""
    names = frozenset(LIST.read_text().split())
    for item in items:
        if name_of(item.nodeid) in names:
            item.add_marker(pytest.mark.slow)


def slow(lines: Iterable[str]) -> list[str]:
    """The names of the tests to list, from what pytest prints with `--durations 0 -vv`."""
    took_s: defaultdict[str, float] = defaultdict(float)
    calls: Counter[str] = Counter()
    for found in filter(None, map(_DURATION.match, lines)):
        took_s[name_of(found[3])] += float(found[1])
        calls[name_of(found[3])] += found[2] == "call"
    long = (name for name, total_s in took_s.items() if total_s > min(MOST_S * calls[name], MOST_TOGETHER_S))
    return sorted(name for name in long if not name.startswith(KEPT))


if __name__ == "__main__":
    with open(sys.argv[1]) as durations:
        LIST.write_text("\n".join((*slow(durations), "")))
