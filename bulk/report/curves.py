"""The curves of a report's plots, over the time in which the run was at work. Pure.

The throughput is that of the tally, which is finer than a second; the other curves are made from the samples of the
ledger. However long the run was, a curve has a few hundred points.
"""

import itertools
import math
from collections.abc import Iterable, Sequence

import msgspec

from bulk.report.active_time import ActiveTime
from bulk.report.record import OUTCOMES, Timeline
from bulk.report.timeline import BucketSample, Sample
from bulk.status import WaitKind

MOST_POINTS = 240


class BudgetCurve(msgspec.Struct):
    """One bucket: `left` at each point (count; None: not known), and when it was reset (seconds of activity)."""

    name: str
    limit: int
    left: list[int | None]
    resets: list[float]


class Curves(msgspec.Struct):
    """Everything that is plotted.

    Attributes:
        started_at: start of the run (UTC epoch seconds). total_s: how long the run was at work (seconds).
        breaks_s: the moments at which the run was resumed (seconds of activity).
        bin_s, outcomes: length of a bin (seconds), and for each bin the items that ended, in the order of `kinds`
            (counts).
        points_s: the moments of all following curves (seconds of activity).
        waits: kind -> items that waited (counts). Kinds that never occurred are left out.
        latencies: for each point, answers in each class (counts); empty where none came.
    """

    started_at: float
    total_s: float
    breaks_s: list[float]
    kinds: list[str]
    bin_s: float
    outcomes: list[list[int]]
    points_s: list[float]
    budgets: list[BudgetCurve]
    concurrency: list[int]
    in_flight: list[int]
    waits: dict[str, list[int]]
    latencies: list[list[int]]


def curves(samples: Sequence[Sample], timeline: Timeline | None, time: ActiveTime, started_at: float) -> Curves:
    """Return the curves of a run.

    Args:
        samples: samples of the run in the order of time; empty for a run that kept none.
        timeline: timeline of the run's report.
        time: active time of the run.
        started_at: start of the run (UTC epoch seconds).
    """
    groups = list(_grouped(samples, time))
    names = dict.fromkeys(bucket.name for sample in samples for bucket in sample.buckets)
    points = [point_s for point_s, _ in groups]
    every = [group for _, group in groups]
    return Curves(
        started_at=started_at,
        total_s=time.total_s,
        breaks_s=list(timeline.breaks_s) if timeline is not None else [],
        kinds=list(OUTCOMES),
        bin_s=timeline.bin_s if timeline is not None else 1.0,
        outcomes=[list(each) for each in timeline.bins] if timeline is not None else [],
        points_s=points,
        budgets=[_budget(name, every, samples, time) for name in names],
        concurrency=[max(sample.concurrency for sample in group) for group in every],
        in_flight=[max(sample.in_flight for sample in group) for group in every],
        waits={
            kind.value: waited
            for kind in WaitKind
            if any(waited := [round(_mean(sample.waits.get(kind.value, 0) for sample in group)) for group in every])
        },
        latencies=[_summed(sample.latencies for sample in group) for group in every],
    )


def _grouped(samples: Sequence[Sample], time: ActiveTime) -> Iterable[tuple[float, list[Sample]]]:
    """Yield at most `MOST_POINTS` groups of neighbouring samples, each with the moment of its last sample (seconds
    of activity).
    """
    size = max(1, math.ceil(len(samples) / MOST_POINTS))
    for first in range(0, len(samples), size):
        group = list(samples[first : first + size])
        yield round(time.of(group[-1].at), 1), group


def _budget(name: str, groups: Sequence[Sequence[Sample]], samples: Sequence[Sample], time: ActiveTime) -> BudgetCurve:
    seen = [(sample.at, bucket) for sample in samples if (bucket := _bucket(sample, name)) is not None]
    lasts = [_bucket(group[-1], name) for group in groups]
    resets = []
    for (_, before), (at, after) in itertools.pairwise(seen):
        is_new = before.reset_at is not None and after.reset_at is not None and after.reset_at > before.reset_at + 1
        if is_new and before.reset_at is not None and before.reset_at <= at + 1:
            resets.append(round(time.of(before.reset_at), 1))
    return BudgetCurve(
        name=name,
        limit=max((bucket.limit or 0 for _, bucket in seen), default=0),
        left=[bucket.left if bucket is not None else None for bucket in lasts],
        resets=resets[-MOST_POINTS:],
    )


def _bucket(sample: Sample, name: str) -> BucketSample | None:
    return next((bucket for bucket in sample.buckets if bucket.name == name), None)


def _mean(counts: Iterable[int]) -> float:
    found = list(counts)
    return sum(found) / len(found) if found else 0.0


def _summed(several: Iterable[Sequence[int]]) -> list[int]:
    return [sum(each) for each in zip(*(counts for counts in several if counts), strict=False)]
