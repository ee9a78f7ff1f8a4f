"""A status in words, the same on every face: names of buckets, reasons of waits, and the order in which they come."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bulk.report.render.formatting import counted, moment
from bulk.report.render.terminal import safe
from bulk.report.run_state import sum_known
from bulk.status import BucketStatus, JobStatus, RunStatus, Wait

if TYPE_CHECKING:
    from bulk.check.plan import BucketPlan
    from bulk.report.record import BucketReport


def totals(status: RunStatus) -> tuple[int, int | None, dict[str, int]]:
    """Return the number of ended items, of all items (None where a job's are not known), and the counts by outcome."""
    counts: dict[str, int] = {}
    for job in status.jobs:
        for kind, number in job.outcomes.items():
            counts[kind] = counts.get(kind, 0) + number
    return sum(counts.values()), sum_known(job.items for job in status.jobs), counts


def scarce_first(buckets: Sequence[BucketStatus]) -> list[BucketStatus]:
    """Return the buckets with a limit: closed ones first, then awaited ones, then by the share that is left."""
    limited = [bucket for bucket in buckets if bucket.limit is not None and bucket.remaining is not None]
    return sorted(limited, key=lambda each: (not each.closed_because, not each.waiting, _share(each), each.category))


def _share(bucket: BucketStatus) -> float:
    return (bucket.remaining or 0) / bucket.limit if bucket.limit else 0.0


def most_first(waits: Sequence[Wait]) -> list[Wait]:
    """Return `waits`, the one of the most items first."""
    return sorted(waits, key=lambda wait: -wait.count)


def waited_for(wait: Wait, now: float) -> str:
    """Return `bucket core until 14:05`, or `platform unreachable (12 times): can't connect to …`; safe to print."""
    until = f" until {moment(wait.until, now)}" if wait.until is not None else ""
    times = f" ({counted(wait.errors, 'time')})" if wait.error and wait.errors > 1 else ""
    error = f": {safe(wait.error, 200)}" if wait.error else ""
    return f"{safe(wait.what, 60)}{until}{times}{error}"


def failing(jobs: Sequence[JobStatus]) -> list[tuple[str, list[str], int]]:
    """Return the most frequent failure of each job, equal failures once: `not_found: Not Found`, in which jobs, how
    often.

    The most frequent failure comes first; safe to print.
    """
    found: dict[str, tuple[list[str], int]] = {}
    for job in jobs:
        if job.failure:
            names, number = found.get(job.failure, ([], 0))
            found[job.failure] = ([*names, safe(job.name, 60)], number + job.failures)
    ordered = sorted(found.items(), key=lambda each: -each[1][1])
    return [(safe(why, 200), names, number) for why, (names, number) in ordered]


def bucket_name(bucket: "BucketStatus | BucketReport | BucketPlan", *, several: bool) -> str:
    """Return `core`, or `admin/core` where several credentials are used; safe to print."""
    return f"{safe(bucket.credential, 30)}/{safe(bucket.category, 40)}" if several else safe(bucket.category, 40)


def closed(bucket: BucketStatus, now: float) -> str:
    """Return why a bucket is closed and until when: `used up until 14:05`; empty while it is open. Safe to print."""
    if not bucket.closed_because:
        return ""
    why = "used up" if bucket.closed_because == f"bucket {bucket.category}" else safe(bucket.closed_because, 80)
    return why + (f" until {moment(bucket.opens_at, now)}" if bucket.opens_at is not None else "")
