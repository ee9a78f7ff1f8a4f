"""The figures of runs from their ledgers and processes, and the text file that a run keeps up to date. Blocking."""

import contextlib
import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self

from bulk.clock import Clock
from bulk.errors import BulkError
from bulk.govern.concurrency.adaptive_limit import LATENCIES_S
from bulk.ledger.records import Minute
from bulk.ledger.view import LedgerView
from bulk.redaction import redact
from bulk.report.run_state import Standing, stand
from bulk.report.timeline import read_minutes
from bulk.serve import metrics
from bulk.serve.fleet import FleetRun
from bulk.serve.metrics import Figures
from bulk.status import Display, RunStatus

EVERY_S = 15.0
"""How often the file is written anew (seconds)."""
_CLASSES = len(LATENCIES_S) + 1
_MOST_RUNS = 100


class Latencies:
    """Answers by how long they took, of each run; whole minutes are read once."""

    def __init__(self) -> None:
        self._seen: OrderedDict[Path, tuple[int, list[int]]] = OrderedDict()

    def of(self, view: LedgerView) -> list[int]:
        """Return the sums of all samples of a run, in the classes of `LATENCIES_S` (counts)."""
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


def figures(name: str, standing: Standing, view: LedgerView, latencies: Latencies) -> Figures:
    """Return the figures of one run.

    Raises:
        RunDirectoryError: its ledger can't be read.
    """
    sums = latencies.of(view)
    return Figures(name, standing, view.error_counts(), sums if any(sums) else ())


def fleet_text(runs: Iterable[FleetRun], now: float, latencies: Latencies) -> str:
    """Return the figures of all runs that go on or have just ended, as OpenMetrics; of one that can't be read there are
    none."""
    return redact(metrics.text(_told(runs, now, latencies)))


def _told(runs: Iterable[FleetRun], now: float, latencies: Latencies) -> Iterator[Figures]:
    for run in runs:
        if run.look is not None and metrics.is_told(run.look.standing, now):
            with contextlib.suppress(BulkError):
                yield figures(run.name, run.look.standing, LedgerView(run.run_dir), latencies)


class MetricsFile:
    """A display that also keeps a file of metrics, which is replaced as a whole every `EVERY_S` and at the end.

    It is written in a thread, so that a slow disk does not hold up the run. What can't be written is said once.
    """

    def __init__(self, display: Display, path: Path, run_dir: Path, clock: Clock) -> None:
        self._display, self._path, self._run_dir, self._clock = display, path, run_dir, clock
        self._latencies = Latencies()
        self._worker = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None
        self._due = float("-inf")
        self._is_broken = False

    def __enter__(self) -> Self:
        self._display.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._worker.shutdown(wait=True)
        self._write(None)
        self._display.__exit__(*error)

    def update(self, status: RunStatus) -> None:
        """Show it, and write the file where that is due."""
        self._display.update(status)
        now = self._clock.monotonic()
        if now >= self._due and (self._writing is None or self._writing.done()):
            self._due = now + EVERY_S
            self._writing = self._worker.submit(self._write, status)

    def note(self, text: str) -> None:
        """Say it."""
        self._display.note(text)

    def _write(self, status: RunStatus | None) -> None:
        part = self._path.with_name(f"{self._path.name}.{os.getpid()}.part")
        try:
            view = LedgerView(self._run_dir)
            found = figures(self._run_dir.name, stand(view, self._clock.now(), status), view, self._latencies)
            part.write_text(redact(metrics.text([found], is_classic=True)), encoding="utf-8")
            part.replace(self._path)
        except BulkError:
            return  # the run has no ledger yet
        except OSError as flaw:
            if not self._is_broken:
                self._is_broken = True
                self._display.note(f"--metrics: {self._path} can't be written: {flaw.strerror}")
