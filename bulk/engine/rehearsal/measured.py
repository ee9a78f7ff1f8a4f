"""What earlier runs tell of a platform: how long an answer takes, for each operation, and how much was lost."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import orjson

from bulk.ledger.view import LedgerView
from bulk.operation import UnknownOperation, find
from bulk.report.fold import fold

MOST_LINES = 20_000
"""Items of a job that are looked at (count): more tell nothing new."""
LEAST_S = 0.0005


@dataclass(frozen=True, slots=True)
class Measured:
    """What was learnt.

    Attributes:
        request_s: how long an answer takes, by operation (seconds, median).
        lost: share of the requests whose answer was lost.
        items, runs: what it was learnt from (counts).
    """

    request_s: dict[str, float] = field(default_factory=dict)
    lost: float = 0.0
    items: int = 0
    runs: int = 0


def measured(run_dirs: Sequence[Path]) -> Measured:
    """Return what these runs tell.

    Raises:
        RunDirectoryError: one can't be read.
    """
    request_s: dict[str, list[float]] = {}
    items = requests = lost = 0
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
            took = []
            for line in islice(view.lines(job=job.name), MOST_LINES):
                row = orjson.loads(line)
                if row["attempts"] == 1 and row["outcome"] == "succeeded":
                    took.append(row["elapsed_ms"] / 1_000.0 / most)
            items += len(took)
            if took:
                request_s.setdefault(job.operation, []).append(statistics.median(took))
    learnt = {name: max(LEAST_S, statistics.median(each)) for name, each in request_s.items()}
    return Measured(learnt, lost / requests if requests else 0.0, items, len(run_dirs))
