"""The curves of a run while it goes, in a few hundred points however long it takes. Blocking, and read only.

They are made from the samples of the ledger's timeline. All minutes but those of the last `FINE_S` are merged into one
sample each, which is kept, so that a look costs as much after ten hours as after twenty minutes.
"""

import math
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path

from bulk.ledger.records import Minute
from bulk.report.active_time import ActiveTime
from bulk.report.curves import MOST_POINTS, Curves, curves
from bulk.report.record import OUTCOMES, Timeline
from bulk.report.run_state import RunState
from bulk.report.timeline import MINUTE_S, Sample, outcomes_of, read_minutes
from bulk.serve.run_data import RunData

FINE_S = 1200
MOST_KEPT = 8
"""How many runs' minutes are kept in memory (count)."""


class Plots:
    """The curves of runs; only the new part of a timeline is read each time."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Path, dict[int, list[Sample]]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, view: RunData, run_state: RunState, now: float) -> Curves:
        """Return the curves of the run until `now` (UTC epoch seconds).

        Raises:
            RunDirectoryError: its ledger can't be read.
        """
        with self._lock:
            samples = self._samples(view)
        time = ActiveTime(list(_spans(run_state, samples, now)))
        names = dict(enumerate(job.name for job in run_state.jobs))
        started_at = run_state.epochs[0].started_at if run_state.epochs else now
        return curves(samples, throughput(samples, time, names), time, started_at)

    def _samples(self, view: RunData) -> list[Sample]:
        kept = self._kept.setdefault(view.run_dir, {})
        self._kept.move_to_end(view.run_dir)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        first = max(kept) if kept else 0  # the newest minute may have grown
        for minute in view.timeline(since=first):
            kept[minute.minute] = read_minutes([Minute(*minute)])
        for number in sorted(kept)[: -FINE_S // MINUTE_S]:
            if len(kept[number]) > 1:
                kept[number] = [merged(kept[number])]
        return [sample for number in sorted(kept) for sample in kept[number]]


def _spans(run_state: RunState, samples: Sequence[Sample], now: float) -> Iterator[tuple[float, float]]:
    """Yield the start and the end of each epoch; an epoch that was killed ends with its last sample."""
    starts = [epoch.started_at for epoch in run_state.epochs]
    for epoch, next_at in zip(run_state.epochs, [*starts[1:], math.inf], strict=False):  # there may be none yet
        heard = [sample.at for sample in samples if epoch.started_at <= sample.at < next_at]
        is_over = math.isfinite(next_at) or not run_state.is_live
        yield epoch.started_at, epoch.ended_at or (max(heard, default=epoch.started_at) if is_over else now)


def merged(samples: Sequence[Sample]) -> Sample:
    """Return one sample for several that follow each other.

    Outcomes and latencies are sums, waits are means, concurrency and requests in flight are the highest values, and
    buckets are the last ones.
    """
    outcomes: dict[int, list[int]] = {}
    waits: dict[str, int] = {}
    latencies: list[int] = []
    for sample in samples:
        for job, counts in sample.outcomes.items():
            outcomes[job] = [a + b for a, b in zip(outcomes.get(job, [0] * len(counts)), counts, strict=True)]
        for kind, items in sample.waits.items():
            waits[kind] = waits.get(kind, 0) + items
        if sample.latencies:
            latencies = [a + b for a, b in zip(latencies or [0] * 12, sample.latencies, strict=False)]
    last = samples[-1]
    return Sample(
        at=last.at,
        outcomes=outcomes,
        buckets=last.buckets,
        concurrency=max(sample.concurrency for sample in samples),
        in_flight=max(sample.in_flight for sample in samples),
        waits={kind: round(items / len(samples)) for kind, items in waits.items()},
        latencies=latencies,
    )


def throughput(samples: Sequence[Sample], time: ActiveTime, jobs: dict[int, str]) -> Timeline | None:
    """Return the items that ended in bins of at least a second, or of whole minutes where samples were merged."""
    if not samples:
        return None
    total_s = max(time.total_s, 1.0)
    least_s = 1.0 if total_s <= FINE_S - MINUTE_S else float(MINUTE_S)
    bin_s = least_s * math.ceil(total_s / MOST_POINTS / least_s)
    bins = [[0] * len(OUTCOMES) for _ in range(max(1, math.ceil(total_s / bin_s)))]
    for sample in samples:
        place = min(len(bins) - 1, max(0, math.ceil(time.of(sample.at) / bin_s) - 1))
        bins[place] = [a + b for a, b in zip(bins[place], outcomes_of(sample, jobs), strict=True)]
    return Timeline(bin_s=bin_s, bins=tuple(tuple(each) for each in bins), breaks_s=tuple(time.breaks_s))
