"""Predicts when a checked manifest would end: turns its jobs and the buckets into what `forecast` takes. Pure.

Nothing was sent yet, so that the time of an item is estimated from that of `GET /rate_limit`, and the end is a range.
"""

from collections.abc import Mapping, Sequence

from bulk.bundle.checked import JobCheck
from bulk.forecast import WRITE_S, Budget, Capacity, Key, Work, forecast, window_length, with_losses
from bulk.manifest.manifest import Job, Limits
from bulk.manifest.needs.wave_ends import gates_ahead, inheriting, wave_ends
from bulk.status import BucketStatus

RESET_S = 0.03
"""Time from the end of a window until the next one is seen (seconds), besides the way to the platform and back."""
STARTS_WITH = 16
"""Requests in flight that a run begins with (count); they double with each answer."""
LOST_SHARE = 0.02
"""Part of the answers that are lost in the late end of a plan (share)."""
RESEND_S, LOOKS_S = 0.2, 3.0
"""Times until a lost read is sent again, and after `limits.settle` until a lost write counts as not there (seconds)."""


def predict(
    jobs: Sequence[Job],
    checks: Sequence[JobCheck],
    buckets: Mapping[Key, BucketStatus],
    limits: Limits,
    latency_s: float,
    now: float,
) -> tuple[float | None, float | None, float | None]:
    """Return when these jobs would end if all is already as asked, if everything is sent, and if some answers are lost
    besides (UTC epoch seconds); None: never.

    Args:
        buckets: the buckets by payer and category; one that is missing has no limit.
        latency_s: time from a request to its answer (seconds).
        now: UTC epoch seconds, from the same clock as `reset_at` of the buckets.
    """
    capacity = Capacity(
        min(STARTS_WITH, limits.concurrency), limits.concurrency, limits.concurrency, latency_s, reset_s=RESET_S
    )
    pairs = list(zip(jobs, checks, strict=True))
    at_once = {_pays(job) for job in jobs if not job.needs}
    budgets = {
        key: _budget(bucket, bucket.limit, limits, now, is_used_at_once=key in at_once)
        for key, bucket in buckets.items()
        if bucket.limit is not None
    }

    # the limits are asked for first; where there are none, one request goes ahead to show that the token is good
    is_asked_only = all(_pays(job) in budgets for job in jobs)
    begins = now + latency_s * (1.0 if is_asked_only else 2.0)

    gates_s = _gates(jobs, checks, limits) * limits.gate_after_s

    def end(work: Sequence[Work]) -> float | None:
        end_at = forecast(work, budgets, capacity, begins).end_at
        if end_at is None or end_at == begins:
            return None if end_at is None else now
        return end_at + gates_s

    most = [_work(job, found, found.most_requests, latency_s) for job, found in pairs]
    lossy = [
        with_losses(
            each,
            LOST_SHARE,
            RESEND_S if job.operation.is_read else limits.settle_s + LOOKS_S,
            each.cost,
            is_read=job.operation.is_read,
        )
        for job, each in zip(jobs, most, strict=True)
    ]
    least = [_work(job, found, found.least_requests, latency_s) for job, found in pairs]
    return end(least), end(most), end(lossy)


def _gates(jobs: Sequence[Job], checks: Sequence[JobCheck], limits: Limits) -> int:
    """Return how many gates the run passes that open by themselves (count)."""
    inherit = inheriting(jobs)
    own = [
        0 if job.operation.is_read or job.number in inherit else len(wave_ends(limits.waves, found.items)) - 1
        for job, found in zip(jobs, checks, strict=True)
    ]
    return gates_ahead(jobs, own)


def item_s(job: Job, found: JobCheck, requests: int, latency_s: float) -> float:
    """Return the time of an item (seconds) if all items of the job take `requests` requests together."""
    each = requests / max(1, found.sent)
    writes = 0.0 if job.operation.is_read or requests < found.most_requests else WRITE_S
    return max(1e-6, each * latency_s + writes)


def lane_units(found: JobCheck) -> float:
    """Return for how many items of the longest lane something is sent (count)."""
    if found.longest_lane is None:
        return 0.0
    return found.longest_lane[1] * found.sent / max(1, found.items - found.superseded)


def length_of(bucket: BucketStatus, now: float) -> float:
    """Return the length of the windows of a bucket (seconds): as it was seen, or else an estimate."""
    if bucket.window_s is not None:
        return bucket.window_s
    limit, remaining = bucket.limit or 0, bucket.remaining or 0
    if bucket.reset_at is None or bucket.reset_at <= now:
        return window_length(bucket.category, limit, 0, 3_600.0)
    return window_length(bucket.category, limit, remaining, bucket.reset_at - now)


def _pays(job: Job) -> Key:
    return job.credential, job.operation.category


def _work(job: Job, found: JobCheck, requests: int, latency_s: float) -> Work:
    is_laned = not job.operation.is_read and found.lanes > 0 and found.is_laned
    return Work(
        name=job.name,
        pays=_pays(job),
        items=found.sent,
        cost=requests / max(1, found.sent),
        item_s=item_s(job, found, requests, latency_s),
        lanes=found.lanes if is_laned else float("inf"),
        longest=lane_units(found) if is_laned else 0.0,
        needs=job.barriers,
        follows=tuple(need.job for need in job.by_key),
        priority=job.priority,
    )


def _budget(bucket: BucketStatus, limit: int, limits: Limits, now: float, *, is_used_at_once: bool) -> Budget:
    reserve = limits.reserve.of(limit)
    remaining = limit if bucket.remaining is None else bucket.remaining
    reset_at = bucket.reset_at
    if reset_at is not None and reset_at <= now:  # that window is over
        remaining, reset_at = limit, None
    elif remaining >= limit and not is_used_at_once:  # the bucket shows a window that has not begun
        reset_at = None
    elif reset_at is None and remaining < limit:  # nobody said when it ends, so it may have just begun
        reset_at = now + length_of(bucket, now)
    return Budget(
        limit=max(0, limit - reserve),
        left=max(0, remaining - reserve),
        window_s=length_of(bucket, now),
        reset_at=reset_at,
        is_even=limits.pace == "even",
    )
