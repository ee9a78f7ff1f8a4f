"""The plan of a run: its costs and its end, computed from the check and the buckets. Pure.

Requests are counted as a span: the fewest if everything is already as asked, the most if everything is sent. The model
of `forecast` predicts the end for both, and for the case that some answers are lost besides.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from bulk.bundle.checked import Checked, JobCheck
from bulk.check.plan_forecast import LOST_SHARE, item_s, lane_units, length_of, predict
from bulk.forecast import Key
from bulk.manifest.manifest import Job, Limits
from bulk.status import BucketStatus

LATENCY_S = 0.1
"""Time from a request to its answer if it was not measured (seconds)."""


class Savings(msgspec.Struct, frozen=True, kw_only=True):
    """Items and requests that need not be sent.

    Attributes:
        duplicates: reads that ask for exactly what an earlier item of their job asks for, and get its outcome (count).
        superseded: items whose place a later item takes (count).
        combined: items that share the request of an item before them (count).
        requests: fewest requests that all these items would have cost (count).
        already_so: most requests that are saved besides if things are already as asked for, because they are only
            looked at then (count).
    """

    duplicates: int = 0
    superseded: int = 0
    combined: int = 0
    requests: int = 0
    already_so: int = 0


class JobPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One job.

    Attributes:
        least_requests, most_requests: requests of all items if no answer is lost (counts).
        lanes: lanes that begin in the job (count); 0 for reads.
        longest_lane, longest_lane_items: name of the longest of these lanes, and the items in it (count).
        superseded: items that are not sent, because a later item takes their place (count); as in `saved`.
        is_irreversible: the effect of the operation can't be undone.
        save: template of the names of the files that are written; None: no files.
        by_key: names among `needs` of the jobs that are needed by key: an item waits only for the items with its key.
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
    by_key: tuple[str, ...] = ()


class BucketPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The requests that the run takes from one bucket.

    Attributes:
        limit, remaining, reserve: requests of a window, left in this one, kept for others (counts); None: no limit.
        reset_at: end of this window (UTC epoch seconds); None where unknown.
        least_requests, most_requests: requests of all jobs together (counts).
        least_windows, most_windows: windows from which these requests are spent, with this one (counts); None: the
            bucket never suffices.
        least_done_at, most_done_at: when the last request could be sent (UTC epoch seconds); None: never.
        window_s: length of a window (seconds); None: no limit.
        is_window_seen: that length was seen; otherwise it is an estimate.
        is_known: the platform has said what the limit is, or that there is none; otherwise none is counted with.
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
    window_s: float | None = None
    is_window_seen: bool = True
    is_known: bool = True

    @property
    def is_judged(self) -> bool:
        """Whether the end depends on the length of a window that was not seen."""
        return not self.is_window_seen and (self.most_windows or 0) > 2


class PayerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One of several payers of a credential: a member of a pool, or an installation of an App.

    Attributes:
        payer: the member's name, or the account in which the App is installed.
        requests: requests that it pays for (count); None: any member of the pool that has requests left pays.
        limit, remaining: requests of a window, left in this one (count).
        reset_at: end of this window (UTC epoch seconds); None where unknown.
        hourly: requests that its limit allows in an hour (count).
    """

    credential: str
    payer: str
    category: str
    requests: int | None
    limit: int
    remaining: int | None
    reset_at: float | None
    hourly: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a whole run.

    Attributes:
        at: when the plan was made (UTC epoch seconds).
        longest_lane, longest_lane_items, longest_lane_s: the lane that takes longest, its items, its time (seconds).
        least_finish_at, most_finish_at: predicted end if all is already as asked, and if everything is sent (UTC epoch
            seconds); None: a bucket never suffices.
        lossy_finish_at: predicted latest end if `lossy_share` of all answers is lost; None as above.
        latency_s: time from a request to its answer on which the prediction is based (seconds).
        notes: sentences to read before the run.
        saved: savings of all jobs together.
        payers: payers of the credentials that have several, in the order of the manifest.
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
    lossy_finish_at: float | None = None
    lossy_share: float = 0.0
    latency_s: float = 0.0
    payers: tuple[PayerPlan, ...] = ()


def plan(
    checked: Checked,
    buckets: Sequence[BucketStatus],
    now: float,
    *,
    latency_s: float = LATENCY_S,
    unknown: Collection[Key] = (),
) -> Plan:
    """Return the plan of a run of `checked`.

    Args:
        buckets: the buckets in use, as `GET /rate_limit` tells of them; one that is missing has no limit.
        now: UTC epoch seconds, from the same clock as `reset_at` of the buckets.
        latency_s: measured time from a request to its answer (seconds).
        unknown: credentials and categories whose limit the platform did not tell.
    """
    manifest = checked.manifest
    pairs = list(zip(manifest.jobs, checked.jobs, strict=True))
    jobs = tuple(_job(job, found) for job, found in pairs)
    known = {(bucket.credential, bucket.category): bucket for bucket in buckets}
    used = _buckets(jobs, known, manifest.limits, now, unknown)
    least_at, most_at, lossy_at = predict(manifest.jobs, checked.jobs, known, manifest.limits, latency_s, now)
    lanes = [(lane_units(found) * item_s(job, found, found.most_requests, latency_s), found) for job, found in pairs]
    longest_s, longest = max(lanes, key=lambda lane: lane[0], default=(0.0, None))
    lane = longest.longest_lane if longest is not None else None
    return Plan(
        name=manifest.name,
        base_url=manifest.platform.base_url,
        at=now,
        jobs=jobs,
        buckets=used,
        items=sum(job.items for job in jobs),
        least_requests=sum(job.least_requests for job in jobs),
        most_requests=sum(job.most_requests for job in jobs),
        longest_lane=lane[0] if lane is not None else None,
        longest_lane_items=lane[1] if lane is not None else 0,
        longest_lane_s=longest_s,
        least_finish_at=least_at,
        most_finish_at=most_at,
        lossy_finish_at=lossy_at,
        lossy_share=LOST_SHARE,
        latency_s=latency_s,
        notes=tuple(_notes(checked, jobs, used)),
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
        by_key=tuple(need.job for need in job.by_key),
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


def _buckets(
    jobs: Sequence[JobPlan], known: Mapping[Key, BucketStatus], limits: Limits, now: float, unknown: Collection[Key]
) -> tuple[BucketPlan, ...]:
    wanted: dict[Key, list[int]] = {}
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
        window_s = length_of(bucket, now) if bucket.limit is not None else None
        ends = [_end(bucket, requests, reserve, now, window_s or 0.0) for requests in (least, most)]
        found.append(
            BucketPlan(
                credential=credential,
                category=category,
                limit=bucket.limit,
                remaining=bucket.remaining,
                reserve=reserve,
                reset_at=bucket.reset_at,
                window_s=window_s,
                is_window_seen=bucket.limit is None or bucket.window_s is not None,
                is_known=(credential, category) not in unknown,
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
    """Return (windows from which `requests` are spent, when the last of them may be sent); (None, None) if the reserve
    leaves nothing.
    """
    if bucket.limit is None or not requests:
        return (1 if requests else 0), now
    of_a_window = bucket.limit - reserve
    remaining = bucket.limit if bucket.remaining is None else bucket.remaining
    reset_at = bucket.reset_at
    if reset_at is not None and reset_at <= now:  # that window is over
        remaining, reset_at = bucket.limit, None
    if reset_at is None:  # a window begins with the first request, or has just begun as far as is known
        reset_at = now + window_s
    left = requests - max(0, remaining - reserve)
    if left <= 0:
        return 1, now
    if of_a_window <= 0:
        return None, None
    more = math.ceil(left / of_a_window)
    return more + (remaining > reserve), reset_at + (more - 1) * window_s


def _notes(checked: Checked, jobs: Sequence[JobPlan], used: Sequence[BucketPlan]) -> Iterator[str]:
    """Yield sentences to read before the run."""
    for job in jobs:
        if job.is_irreversible and job.items:
            items = "item" if job.items == 1 else "items"
            yield f"job {job.name}: {job.operation} cannot be undone ({job.items:,} {items})"
    for job in jobs:
        if job.save is not None:
            yield f"job {job.name}: each result is saved to saved/{job.save}"
    for each in checked.manifest.jobs:
        if each.derivation is not None:
            source = each.derivation.job
            yield (
                f"job {each.name}: its items come from {source}; how many is not known yet, and what they cost is not "
                "in this plan"
            )
    for bucket in used:
        if bucket.is_judged:
            length = f"{bucket.window_s:,.0f} seconds are assumed"
            yield f"the length of the windows of {bucket.category} has not been seen yet: {length}"
    if checked.manifest.limits.gate == "manual":
        yield "its waves are opened by hand (limits.gate): the time until somebody does that is in no end of this plan"
    yield from checked.notes
