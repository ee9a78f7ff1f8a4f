"""The table: every operation in every way to be wrong, run by the real engine, judged by the list of effects.

All cells of one way are one run, whose jobs have nothing in common but the process.
"""

import math
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.judging import ROWS, Cell, exit_code, why_not
from tests.hostile.rows import Row
from tests.hostile.virtual import AFTERWARDS_S, AT_MOST_S, run_jobs
from tests.hostile.wrong import Way
from tests.virtual_time import START

KILLED_S = (0.02, 90.0)
"""Soonest and latest moment, from its beginning on, in which a run is killed: most has been asked for within a second,
and then only settle times pass (virtual seconds)."""

NARROW_S = 86_400.0
"""Where the process was killed, and both witnesses of a budget of three requests err, an item that has to look first is
refused again and again, for hours: then a run may take that long (virtual seconds)."""


@dataclass(slots=True)
class Tried:
    """What became of all operations in one way.

    Attributes:
        cells: those that were tried. left_out: why others were not. took_s: virtual seconds.
        broken: what does not hold of the run as a whole. kills: see `run_jobs`.
    """

    way: Way
    cells: Sequence[Cell]
    left_out: Counter[str]
    took_s: float
    broken: Sequence[str]
    kills: Sequence[float] = ()

    def wrong(self) -> Iterator[str]:
        """All that does not hold, a line each, with the command that tries it alone, or when the run was killed."""
        for cell in self.cells:
            for what in cell.broken:
                yield f"{self.way.name} | {cell.row.name} | {what} | {self._again(cell.row)}"
        for what in self.broken:
            yield f"{self.way.name} | the run | {what} | {self._again(None)}"

    def held(self) -> int:
        """How many cells hold."""
        return sum(not cell.broken for cell in self.cells)

    def outcomes(self) -> Counter[str]:
        """How their items ended."""
        return Counter(outcome for cell in self.cells for outcome in cell.outcomes)

    def _again(self, row: Row | None) -> str:
        if self.kills:  # a run of one operation alone would be somewhere else at these moments
            return f"killed after {', '.join(f'{after_s:.2f}' for after_s in self.kills)} s"
        return f'python -m tests.hostile "{self.way.name}"' + ("" if row is None else f' "{row.name}"')


def random_kills(way: Way, seed: int) -> list[float]:
    """One to three moments, for `run_jobs`, that a seed chooses."""
    dice = random.Random(f"kills {seed} {way.name}")
    first, last = map(math.log, KILLED_S)
    return [math.exp(dice.uniform(first, last)) for _ in range(dice.choice((1, 1, 2, 3)))]


def try_way(way: Way, rows: Sequence[Row] = ROWS, *, is_retried: bool = False, kills: Sequence[float] = ()) -> Tried:
    """Run all operations in one way; `is_retried`, `kills`: see `run_jobs`."""
    cells = [Cell.of(row, way, number, len(kills)) for number, row in enumerate(rows) if not why_not(row, way)]
    left_out = Counter(why for row in rows if (why := why_not(row, way)))
    if not cells:
        return Tried(way, cells, left_out, 0.0, ())
    most_s = NARROW_S if kills and way.limits is not None else AT_MOST_S
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        told = run_jobs(
            Path(folder),
            {cell.name: cell.job() for cell in cells},
            {cell.name: cell.guest for cell in cells},
            at_most_s=most_s,
            is_retried=is_retried,
            kills=kills,
        )
    for cell in cells:
        undone = told.undone.get(cell.name)
        over_at = START + (most_s + AFTERWARDS_S) * (1 + is_retried)
        cell.classify(told.lines.get(cell.name, ()), over_at, undone)
    broken = [told.trouble] if told.trouble else []
    if told.report is not None:
        wanted = exit_code([outcome for cell in cells for outcome in cell.outcomes])
        if told.report.exit_code != wanted:
            broken.append(f"exit code {told.report.exit_code} ({told.report.why or 'no reason'}), not {wanted}")
    return Tried(way, cells, left_out, told.took_s, broken, kills)
