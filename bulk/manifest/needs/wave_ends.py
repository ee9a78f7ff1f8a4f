"""Where the waves of jobs end, and how many gates that makes. Pure."""

from collections.abc import Sequence

from bulk.manifest.manifest import Job
from bulk.quantities import Share


def wave_ends(sizes: Sequence[Share], items: int) -> list[int]:
    """Return where each wave of a job with `items` items ends; what the sizes leave is one more wave."""
    ends: list[int] = []
    end = 0
    for size in sizes:
        end = min(items, end + max(1, size.of(items)))
        ends.append(end)
        if end >= items:
            return ends
    return [*ends, items]


def inheriting(jobs: Sequence[Job]) -> frozenset[int]:
    """Return the numbers of the jobs that go in the waves of jobs that they need by key. `jobs`: in running order."""
    numbers = {job.name: job.number for job in jobs}
    behind_waves, cut, found = set[int](), set[int](), set[int]()
    for job in jobs:
        is_held_up = any(numbers[name] in behind_waves for name in job.barriers)
        is_fed = any(numbers[need.job] in cut for need in job.by_key)
        if is_fed and not is_held_up and not job.is_free_unmatched:
            found.add(job.number)
        if not job.operation.is_read or job.number in found:
            cut.add(job.number)
        if job.number in cut or any(numbers[name] in behind_waves for name in job.needs):
            behind_waves.add(job.number)
    return frozenset(found)


def gates_ahead(jobs: Sequence[Job], own: Sequence[int]) -> int:
    """Return how many gates lie before the end of these jobs. Jobs that wait for others as a whole pass theirs when
    those are complete; all others pass them together.

    Args:
        jobs: in running order. own: for each of them, the gates between the waves that it has left (count).
    """
    ahead = dict[str, int]()
    for job, gates in zip(jobs, own, strict=True):
        behind = gates + max((ahead[name] for name in job.barriers if name in ahead), default=0)
        ahead[job.name] = max(behind, *(ahead.get(need.job, 0) for need in job.by_key), 0)
    return max(ahead.values(), default=0)
