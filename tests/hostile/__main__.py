"""`python -m tests.hostile [KIND] [WAY [OPERATION]]`: print the table; exit 1 where anything does not hold.

WAY is the beginning of the names of ways, OPERATION of the names of rows; without them everything is tried.
`FIRST + SECOND` is a pair of ways, by their whole names; `pairs [COUNT [SEED]]` tries pairs that a seed chooses.
`kills SEED [WAY [OPERATION]]` kills each run at one to three moments that the seed chooses, and begins it again.
KIND is one of the other commands, such as `undo` or `verify`: `commands/telling.py` has them all.
"""

import os
import random
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import islice, repeat
from typing import NamedTuple

from tests.hostile.commands.telling import KINDS, try_kind, ways_of
from tests.hostile.judging import ROWS
from tests.hostile.table import random_kills, try_way
from tests.hostile.ways import WAYS, named, pairs

DEFAULT = ("300", "1")
"""How many pairs of ways `pairs` tries, and the seed that chooses them, where it is not told."""


class Summary(NamedTuple):
    """What one process tells another of a way."""

    way: str
    cases: int
    held: int
    outcomes: Counter[str]
    took_s: float
    wrong: list[str]


def _summary(way: str, operation: str, seed: int | None) -> Summary:
    rows = [row for row in ROWS if row.name.startswith(operation)]
    tried = try_way(named(way), rows, kills=() if seed is None else random_kills(named(way), seed))
    return Summary(way, len(tried.cells), tried.held(), tried.outcomes(), tried.took_s, list(tried.wrong()))


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _tell_kind(kind: str, way: str, row: str) -> int:
    names = [each.name for each in ways_of(kind) if each.name.startswith(way)]
    cases, wrong = 0, list[str]()
    with ProcessPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for found in pool.map(try_kind, [kind] * len(names), names, [row] * len(names)):
            cases, wrong = cases + found.cases, [*wrong, *found.wrong]
            ended = "  ".join(f"{outcome} {count}" for outcome, count in sorted(found.outcomes.items()))
            _tell(f"{found.way:<55}{found.cases:>6}  {ended}")
    _tell("\n".join((f"\n{len(names)} ways, {cases} cases, {len(wrong)} broken", *wrong)))
    return 1 if wrong else 0


def main(arguments: list[str]) -> int:
    """Try, print, count."""
    if arguments and arguments[0] in KINDS:
        return _tell_kind(*[*arguments, "", ""][:3])
    seed, given = None, arguments
    if arguments[:1] == ["kills"] and arguments[1:]:
        seed, given = int(arguments[1]), arguments[2:]
    way, operation = [*given, "", ""][:2]
    if way == "pairs":
        count, chosen_by = map(int, [*given[1:], *DEFAULT[len(given) - 1 :]])
        names, operation = [each.name for each in islice(pairs(random.Random(chosen_by)), count)], ""
    else:
        names = [each.name for each in WAYS if each.name.startswith(way)] or ([way] if " + " in way else [])
    if not names:
        _tell((__doc__ or "") + "\nWays:\n" + "\n".join(each.name for each in WAYS))
        return 0 if way in ("-h", "--help") else 2
    began, cases, held = time.perf_counter(), 0, 0
    wrong: list[str] = []
    _tell(f"{'way':<55}{'cases':>6}{'held':>6}{'ok':>5}{'fail':>5}{'skip':>5}{'unkn':>5}{'virtual':>9}")
    with ProcessPoolExecutor(max_workers=min(len(names), os.cpu_count() or 1)) as pool:
        for found in pool.map(_summary, names, repeat(operation), repeat(seed)):
            cases, held, wrong = cases + found.cases, held + found.held, [*wrong, *found.wrong]
            ended = found.outcomes
            done = ended["succeeded"] + ended["unchanged"]
            _tell(
                f"{found.way:<55}{found.cases:>6}{found.held:>6}{done:>5}{ended['failed']:>5}{ended['skipped']:>5}"
                f"{ended['unknown']:>5}{found.took_s:>7.0f} s"
            )
    _tell(f"\n{len(names)} ways, {cases} cases, {held} held, {len(wrong)} broken; {time.perf_counter() - began:.0f} s")
    _tell("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
