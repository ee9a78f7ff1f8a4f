"""What a manifest costs and when it would end: pure arithmetic over what was checked and what the buckets say.

Three things can decide the end, and the slowest does: a bucket that must be waited for, the platform's own pace, and
the longest lane, whose items go one after the other. Everything is given as a span: fewest and most requests.
"""

import math
from collections.abc import Iterable, Sequence

import msgspec

from bulk.manifest.manifest import Job, Limits
from bulk.manifest.summary import Checked, JobCheck
from bulk.status import BucketStatus

WINDOW_S = 3_600.0
"""Length of a rate-limit window where the platform has not shown it (seconds): its allowance is hourly."""
LATENCY_S = 0.1
"""Assumed time from a request to its answer (seconds)."""


class Savings(msgspec.Struct, frozen=True, kw_only=True):
    """What need not be sent.

    Attributes:
        duplicates: reads that an earlier item of their job asks for in the same words; they get its outcome (count).
        superseded: items whose place a later one takes (count).
        combined: items that share the request of one before them (count).
        requests: fewest requests that all these would have cost (count).
        already_so: most requests that are saved beside, where things are already as asked for: then they are only
            looked at (count).
    """

    duplicates: int = 0
    superseded: int = 0
    combined: int = 0
    requests: int = 0
    already_so: int = 0


class JobPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One job.

    Attributes:
        least_requests, most_requests: of all its items, when no answer is lost (count).
        lanes: lanes that begin in it (count); 0 for reads.
        longest_lane, longest_lane_items: name of the longest of them, and its items (count).
        superseded: items that are not sent, because a later one takes their place (count); as in `saved`.
        is_irreversible: what it does can't be undone.
        save: template of the files that are written; None: none.
    """

    name: str
    operation: str
    credential: str
    category: str
    items: int
    least_requests: int
    most_requests: int
    lanes: int
    longest_lane: str | None
    longest_lane_items: int
    is_irreversible: bool
    needs: tuple[str, ...]
    save: str | None
    superseded: int = 0
    saved: Savings = Savings()


class BucketPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What the run takes from one bucket.

    Attributes:
        limit, remaining, reserve: requests of a window, left in this one, kept for others (count); None: no limit.
        reset_at: end of this window (UTC epoch seconds); None where unknown.
        least_requests, most_requests: wanted by all jobs together (count).
        least_windows, most_windows: windows that are spent from, this one counted (count); None: it never suffices.
        least_done_at, most_done_at: when the last request could leave (UTC epoch seconds); None: never.
    """

    credential: str
    category: str
    limit: int | None
    remaining: int | None
    reserve: int
    reset_at: float | None
    least_requests: int
    most_requests: int
    least_windows: int | None
    most_windows: int | None
    least_done_at: float | None
    most_done_at: float | None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The whole run.

    Attributes:
        at: when it was made (UTC epoch seconds).
        longest_lane, longest_lane_items, longest_lane_s: the lane that takes longest, its items, its time (seconds).
        least_finish_at, most_finish_at: predicted end (UTC epoch seconds); None: a bucket never suffices.
        notes: sentences to read before it is run.
        saved: of all jobs together.
    """

    name: str
    base_url: str
    at: float
    jobs: tuple[JobPlan, ...]
    buckets: tuple[BucketPlan, ...]
    items: int
    least_requests: int
    most_requests: int
    longest_lane: str | None
    longest_lane_items: int
    longest_lane_s: float
    least_finish_at: float | None
    most_finish_at: float | None
    notes: tuple[str, ...]
    saved: Savings = Savings()


def plan(
    checked: Checked,
    buckets: Sequence[BucketStatus],
    now: float,
    *,
    per_second: float | None = None,
    latency_s: float = LATENCY_S,
    window_s: float = WINDOW_S,
) -> Plan:
    """What running `checked` takes.

    Args:
        buckets: what `GET /rate_limit` says, for what is used; one that is missing has no limit.
        now: UTC epoch seconds, from the same clock as `reset_at` of the buckets.
        per_second: requests that the platform answers in a second; None: by `limits.concurrency` and `latency_s`.
        latency_s: from a request to its answer (seconds).
        window_s: length of a window that the platform has not shown (seconds).
    """
    manifest = checked.manifest
    pairs = list(zip(manifest.jobs, checked.jobs, strict=True))
    jobs = tuple(_job(job, found) for job, found in pairs)
    used = _buckets(jobs, buckets, manifest.limits, now, window_s)
    least, most = sum(job.least_requests for job in jobs), sum(job.most_requests for job in jobs)
    rate = per_second or manifest.limits.concurrency / latency_s
    longest = max(jobs, key=lambda job: _lane_requests(job, job.most_requests), default=None)
    longest_s = [0.0, 0.0]
    if longest is not None and longest.longest_lane_items:
        for end, requests in enumerate((longest.least_requests, longest.most_requests)):
            longest_s[end] = _lane_requests(longest, requests) * latency_s
    has_lane = longest is not None and longest.longest_lane_items > 0
    return Plan(
        name=manifest.name,
        base_url=manifest.platform.base_url,
        at=now,
        jobs=jobs,
        buckets=used,
        items=sum(job.items for job in jobs),
        least_requests=least,
        most_requests=most,
        longest_lane=longest.longest_lane if longest is not None and has_lane else None,
        longest_lane_items=longest.longest_lane_items if longest is not None and has_lane else 0,
        longest_lane_s=longest_s[1],
        least_finish_at=_latest([bucket.least_done_at for bucket in used], now, least / rate, longest_s[0]),
        most_finish_at=_latest([bucket.most_done_at for bucket in used], now, most / rate, longest_s[1]),
        notes=(*_notes(jobs), *_unknown(manifest.jobs), *checked.notes),
        saved=_sum([job.saved for job in jobs]),
    )


def _job(job: Job, found: JobCheck) -> JobPlan:
    return JobPlan(
        name=job.name,
        operation=job.operation.name,
        credential=job.credential,
        category=job.operation.category,
        items=found.items,
        least_requests=found.least_requests,
        most_requests=found.most_requests,
        lanes=found.lanes,
        longest_lane=found.longest_lane[0] if found.longest_lane else None,
        longest_lane_items=found.longest_lane[1] if found.longest_lane else 0,
        is_irreversible=job.operation.is_irreversible,
        needs=job.needs,
        save=job.save,
        superseded=found.superseded,
        saved=_savings(job, found),
    )


def _savings(job: Job, found: JobCheck) -> Savings:
    saved = found.copies + found.superseded + found.joined
    return Savings(
        duplicates=found.copies,
        superseded=found.superseded,
        combined=found.joined,
        requests=saved * job.operation.least_requests,
        already_so=0 if job.operation.is_read else found.most_requests - found.least_requests,
    )


def _sum(parts: Sequence[Savings]) -> Savings:
    return Savings(**{name: sum(getattr(part, name) for part in parts) for name in Savings.__struct_fields__})


def _lane_requests(job: JobPlan, requests: int) -> float:
    """Those of a job's longest lane, of all that its items take (count)."""
    return job.longest_lane_items * requests / max(1, job.items - job.superseded)


def _buckets(
    jobs: Sequence[JobPlan], buckets: Sequence[BucketStatus], limits: Limits, now: float, window_s: float
) -> tuple[BucketPlan, ...]:
    known = {(bucket.credential, bucket.category): bucket for bucket in buckets}
    wanted: dict[tuple[str, str], list[int]] = {}
    for job in jobs:
        sums = wanted.setdefault((job.credential, job.category), [0, 0])
        sums[0] += job.least_requests
        sums[1] += job.most_requests
    found: list[BucketPlan] = []
    for (credential, category), (least, most) in wanted.items():
        bucket = known.get((credential, category))
        if bucket is None:
            bucket = BucketStatus(credential=credential, category=category, limit=None, remaining=None)
        reserve = limits.reserve.of(bucket.limit) if bucket.limit is not None else 0
        ends = [_end(bucket, requests, reserve, now, window_s) for requests in (least, most)]
        found.append(
            BucketPlan(
                credential=credential,
                category=category,
                limit=bucket.limit,
                remaining=bucket.remaining,
                reserve=reserve,
                reset_at=bucket.reset_at,
                least_requests=least,
                most_requests=most,
                least_windows=ends[0][0],
                most_windows=ends[1][0],
                least_done_at=ends[0][1],
                most_done_at=ends[1][1],
            )
        )
    return tuple(found)


def _end(
    bucket: BucketStatus, requests: int, reserve: int, now: float, window_s: float
) -> tuple[int | None, float | None]:
    """(windows spent from, when the last of `requests` may leave); (None, None) where the reserve leaves nothing."""
    if bucket.limit is None or not requests:
        return (1 if requests else 0), now
    of_a_window = bucket.limit - reserve
    remaining = bucket.limit if bucket.remaining is None else bucket.remaining
    reset_at = bucket.reset_at if bucket.reset_at is not None and bucket.reset_at > now else None
    if reset_at is None or remaining >= bucket.limit:
        # nothing was spent yet: a window begins with the first request, and what is shown is a whole one
        window_s = min(window_s, reset_at - now) if reset_at is not None else window_s
        remaining, reset_at = bucket.limit, now + window_s
    left = requests - max(0, remaining - reserve)
    if left <= 0:
        return 1, now
    if of_a_window <= 0:
        return None, None
    more = math.ceil(left / of_a_window)
    return more + (remaining > reserve), reset_at + (more - 1) * window_s


def _latest(ends: Iterable[float | None], now: float, busy_s: float, lane_s: float) -> float | None:
    """The predicted end: the last bucket's, or when the work itself is done."""
    latest = now + max(busy_s, lane_s)
    for end in ends:
        if end is None:
            return None
        latest = max(latest, end)
    return latest


def _notes(jobs: Sequence[JobPlan]) -> list[str]:
    notes = [
        f"job {job.name}: {job.operation} cannot be undone ({job.items:,} {_items(job.items)})"
        for job in jobs
        if job.is_irreversible and job.items
    ]
    notes += [f"job {job.name}: each result is saved to saved/{job.save}" for job in jobs if job.save is not None]
    return notes


def _unknown(jobs: Sequence[Job]) -> list[str]:
    return [
        f"job {job.name}: items from {job.derivation.job}, count unknown; what they cost is not in this plan"
        for job in jobs
        if job.derivation is not None
    ]


def _items(count: int) -> str:
    return "item" if count == 1 else "items"
