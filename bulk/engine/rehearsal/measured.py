"""Measures a platform by earlier runs: how long an answer takes, for each operation, and how many were lost."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path

import orjson

from bulk.engine.rehearsal.model_platform import COMMIT_S
from bulk.ledger.database import reading
from bulk.ledger.directory import RESULTS
from bulk.ledger.view import LedgerView
from bulk.operation import UnknownOperation, find
from bulk.report.fold import fold

MOST_LINES = 20_000
"""At most this many items of a job are looked at (count): more tell nothing new."""
LEAST_S = 0.0005
OPENING_S = 0.5
"""For this long after the first item of a job, items still wait for connections to be made (seconds)."""
ENOUGH = 10
"""If there are at least this many later items, those first ones are left out (count)."""
EXTREME = 0.1
"""Share of the items at either end that is left out: their times show a wait for a budget, or a busy machine."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was learnt.

    Attributes:
        request_s: how long an answer takes, by operation (seconds, mean).
        spread: the standard deviation of that (share of the mean).
        per_second: requests of the fastest job (count a second); None: none was seen.
        lost: share of the requests whose answer was lost.
        items, runs: items and runs that were measured (counts).
    """

    request_s: dict[str, float] = field(default_factory=dict)
    spread: dict[str, float] = field(default_factory=dict)
    per_second: float | None = None
    lost: float = 0.0
    items: int = 0
    runs: int = 0


def measured(run_dirs: Sequence[Path]) -> Measured:
    """Return what the runs in these directories tell of the platform.

    Raises:
        RunDirectoryError: a run can't be read.
    """
    request_s: dict[str, list[float]] = {}
    spreads: dict[str, list[float]] = {}
    items = requests = lost = 0
    fastest = 0.0
    for run_dir in run_dirs:
        view = LedgerView(run_dir)
        report = fold(view)
        requests += report.requests
        lost += report.settled
        for job in report.jobs:
            try:
                most = find(job.operation).most_requests
            except UnknownOperation:
                continue
            fastest = max(fastest, job.per_second * most)
            with reading(run_dir / RESULTS):
                rows = map(orjson.loads, islice(view.lines(job=job.name), MOST_LINES))
                good = (row for row in rows if row["attempts"] == 1 and row["outcome"] == "succeeded")
                took = [(row["started_at"], row["elapsed_ms"] / 1_000.0) for row in good]
            items += len(took)
            if took:
                mean_s, spread_s = _usual(took)
                mean_s -= 0.0 if find(job.operation).is_read else COMMIT_S
                request_s.setdefault(job.operation, []).append(max(LEAST_S, mean_s / most))
                spreads.setdefault(job.operation, []).append(spread_s / max(LEAST_S, mean_s) * most**0.5)
    return Measured(
        {name: statistics.median(each) for name, each in request_s.items()},
        {name: statistics.median(each) for name, each in spreads.items()},
        fastest or None,
        lost / requests if requests else 0.0,
        items,
        len(run_dirs),
    )


def _usual(took: Iterable[tuple[str, float]]) -> tuple[float, float]:
    """Return how long items took (seconds, mean and standard deviation), without items that waited for connections and
    without the fastest and slowest ones. `took`: when each item began, and its time."""
    rows = sorted((datetime.fromisoformat(began).timestamp(), seconds) for began, seconds in took)
    later = [seconds for began, seconds in rows if began > rows[0][0] + OPENING_S]
    found = sorted(later if len(later) >= ENOUGH else [seconds for _, seconds in rows])
    out = int(len(found) * EXTREME)
    kept = found[out : len(found) - out]
    return statistics.fmean(kept), statistics.pstdev(kept)
