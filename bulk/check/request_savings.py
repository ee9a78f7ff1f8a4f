"""Counts items that need no request of their own: copies, superseded items, items that share a request.

Whether content is already as asked for is known only when it is read; an operation's fewest requests count for that.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from bulk.bundle.checked import JobCheck
from bulk.bundle.index import JobCounts, Repeats
from bulk.bundle.links import keyed_jobs
from bulk.capabilities import keeps_only_last
from bulk.manifest.manifest import Job


def kept_together(jobs: Sequence[Job]) -> dict[int, int]:
    """Return the jobs of which only the last item of a lane is sent, each with the number of its group.

    The jobs of a group count as one: they run or are skipped together, with one credential, so that the last item is
    sent whenever the others would be. In jobs at either end of a need by key each item is sent, because the last item
    of a lane may wait for something else.
    """
    keyed = keyed_jobs(jobs)
    numbers: dict[tuple[object, ...], int] = {}
    kept: dict[int, int] = {}
    for job in jobs:
        if keeps_only_last(job.operation) and job.name not in keyed:
            together = (job.operation.name, job.credential, job.needs_policy, *sorted(job.needs))
            kept[job.number] = numbers.setdefault(together, len(numbers))
    return kept


def counted(job: Job, found: JobCheck, indexed: JobCounts) -> JobCheck:
    """Return `found` with its lanes, its savings, and the requests that it costs."""
    found = msgspec.structs.replace(found, **indexed._asdict())
    least, most = found.sent * job.operation.least_requests, found.sent * job.operation.most_requests
    return msgspec.structs.replace(found, least_requests=least, most_requests=most)


def notes_on(jobs: Sequence[Job], checks: Sequence[JobCheck], repeats: Mapping[int, Repeats]) -> Iterator[str]:
    """Yield a sentence for each job with writes that were asked for before, and for each way in which requests are
    saved."""
    for number, (count, earlier, later) in sorted(repeats.items()):
        names = [jobs[job].name for job, _ in (earlier, later)]
        many = "1 item asks" if count == 1 else f"{count:,} items ask"
        where = "" if names[0] == names[1] else f" of {names[0]}"
        first = f"item {later[1]:,} as item {earlier[1]:,}{where}"
        yield f"job {jobs[number].name}: {many} for the same as an earlier one (first: {first}, counted from 0)"
    for job, found in zip(jobs, checks, strict=True):
        yield from note_on_copies(job, found)
        yield from _saved(job, found.superseded, "superseded by a later one and not sent")
        yield from _saved(job, found.joined, "sent together with the one before")


def note_on_copies(job: Job, found: JobCheck) -> Iterator[str]:
    """Yield the sentence on equal reads. It is true if one process does the run; with a store, each read is sent."""
    yield from _saved(job, found.copies, "the same read as an earlier one and not sent; its outcome is that one's")


def _saved(job: Job, count: int, what: str) -> Iterator[str]:
    if count:
        many = "1 item is" if count == 1 else f"{count:,} items are"
        saved = count * job.operation.least_requests
        yield f"job {job.name}: {many} {what}, which saves {saved:,} of its requests"
