"""The figures of runs from their ledgers and processes. Blocking."""

import contextlib
import datetime
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path

from bulk.errors import BulkError
from bulk.govern.concurrency.adaptive_limit import LATENCIES_S
from bulk.ledger.records import Minute
from bulk.redaction import redact
from bulk.report.run_state import RunState
from bulk.report.timeline import read_minutes
from bulk.serve.audits.histories import Audit
from bulk.serve.fleet import Fleet
from bulk.serve.metrics import metrics
from bulk.serve.metrics.metrics import AuditFigures, Figures
from bulk.serve.run_data import RunData

_CLASSES = len(LATENCIES_S) + 1
_MOST_RUNS = 100


class Latencies:
    """The counts of answers by how long they took, for each run; whole minutes are read only once."""

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


def figures(name: str, run_state: RunState, view: RunData, latencies: Latencies) -> Figures:
    """Return the figures of one run.

    Raises:
        RunDirectoryError: the ledger of the run can't be read.
    """
    sums = latencies.of(view)
    return Figures(name, run_state, view.error_counts(), sums if any(sums) else ())


def fleet_text(fleet: Fleet, audits: Iterable[Audit], now: float, latencies: Latencies) -> str:
    """Return the figures of all audits, and of all runs that go on or have just ended, as OpenMetrics.

    Runs and audits that can't be read are left out.
    """
    return redact(metrics.text(_told(fleet, now, latencies), audit_figures(audits)))


def audit_figures(audits: Iterable[Audit]) -> Iterator[AuditFigures]:
    """Yield the figures of each audit that has had a night."""
    for audit in audits:
        if audit.history is None or not audit.history.nights:
            continue
        last, good = audit.history.nights[-1], audit.history.good()
        yield AuditFigures(
            audit=audit.name,
            at=_seconds(last.at),
            good_at=_seconds(good[-1].at) if good else None,
            exit_code=last.exit_code,
            violations={"new": last.new, "known": last.known, "unknown": last.unknown, "waived": last.waived},
            changed=last.drift,
        )


def _seconds(at: str) -> float:
    return datetime.datetime.fromisoformat(at).timestamp()


def _told(fleet: Fleet, now: float, latencies: Latencies) -> Iterator[Figures]:
    for run in fleet.runs():
        if run.look is not None and metrics.is_told(run.look.run_state, now):
            with contextlib.suppress(BulkError):
                opened = fleet.opened(run.name)
                if opened is not None:
                    yield figures(run.name, run.look.run_state, opened.view, latencies)
