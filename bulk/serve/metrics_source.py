"""The figures of runs from their ledgers and processes. Blocking."""

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path

from bulk.errors import BulkError
from bulk.govern.concurrency.adaptive_limit import LATENCIES_S
from bulk.ledger.records import Minute
from bulk.redaction import redact
from bulk.report.run_state import Standing
from bulk.report.timeline import read_minutes
from bulk.serve import metrics
from bulk.serve.fleet import Fleet
from bulk.serve.metrics import Figures
from bulk.serve.run_data import RunData

_CLASSES = len(LATENCIES_S) + 1
_MOST_RUNS = 100


class Latencies:
    """Answers by how long they took, of each run; whole minutes are read once."""

    def __init__(self) -> None:
        self._seen: OrderedDict[Path, tuple[int, list[int]]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, view: RunData) -> list[int]:
        """Return the sums of all samples of a run, in the classes of `LATENCIES_S` (counts)."""
        with self._lock:
            return self._of(view)

    def _of(self, view: RunData) -> list[int]:
        minute, sums = self._seen.get(view.run_dir, (0, [0] * _CLASSES))
        minutes = view.timeline(since=minute)
        counts = [_summed(each) for each in minutes]
        for found in counts[:-1]:
            sums = _added(sums, found)
        if minutes:
            self._seen[view.run_dir] = minutes[-1].minute, sums
            self._seen.move_to_end(view.run_dir)
        while len(self._seen) > _MOST_RUNS:
            self._seen.popitem(last=False)
        return _added(sums, counts[-1]) if counts else sums


def _summed(minute: Minute) -> list[int]:
    sums = [0] * _CLASSES
    for sample in read_minutes([minute]):
        if len(sample.latencies) == _CLASSES:
            sums = _added(sums, sample.latencies)
    return sums


def _added(one: Iterable[int], other: Iterable[int]) -> list[int]:
    return [a + b for a, b in zip(one, other, strict=True)]


def figures(name: str, standing: Standing, view: RunData, latencies: Latencies) -> Figures:
    """Return the figures of one run.

    Raises:
        RunDirectoryError: its ledger can't be read.
    """
    sums = latencies.of(view)
    return Figures(name, standing, view.error_counts(), sums if any(sums) else ())


def fleet_text(fleet: Fleet, now: float, latencies: Latencies) -> str:
    """Return the figures of all runs that go on or have just ended, as OpenMetrics; of one that can't be read there are
    none."""
    return redact(metrics.text(_told(fleet, now, latencies)))


def _told(fleet: Fleet, now: float, latencies: Latencies) -> Iterator[Figures]:
    for run in fleet.runs():
        if run.look is not None and metrics.is_told(run.look.standing, now):
            with contextlib.suppress(BulkError):
                opened = fleet.opened(run.name)
                if opened is not None:
                    yield figures(run.name, run.look.standing, opened.view, latencies)
