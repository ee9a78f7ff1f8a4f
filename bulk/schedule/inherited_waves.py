"""Waves of items that wait by key: each is in the latest wave of what it needs, so that it is done with that wave.

Such a job is not cut itself: its items open with those that they need. That holds them back only where each of them
needs something, and where nothing else holds the whole job up meanwhile. Pure.
"""

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from bulk.bundle.links import Links
from bulk.manifest.manifest import Job


def inheriting(jobs: Sequence[Job]) -> frozenset[int]:
    """Return the numbers of the jobs that go in the waves of what they need by key. `jobs`: in running order."""
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


def wave_numbers(
    links: Sequence[Links], inherit: AbstractSet[int], ends: Mapping[int, Sequence[int]], items: Mapping[int, int]
) -> dict[int, "array[int]"]:
    """Return the number of the wave of each item of the jobs that inherit theirs, from 1.

    Args:
        links: in running order. ends: where each wave of a job ends that is cut itself, by its number; of others,
            everything is in the first one. items: of each job (count).
    """
    found = {number: array("I", [1]) * items[number] for number in sorted(inherit)}
    for each in links:
        waiting = found.get(each.edge.waiting)
        if waiting is None:
            continue
        needed, own = found.get(each.edge.needed), ends.get(each.edge.needed, ())
        latest = array("I", bytes(4 * each.keys))
        for index, key in enumerate(each.key_of):
            if key >= 0:
                wave = needed[index] if needed is not None else bisect_right(own, index) + 1
                latest[key] = max(latest[key], wave)
        for key, wave in enumerate(latest):
            for index in each.items[each.starts[key] : each.starts[key + 1]]:
                waiting[index] = max(waiting[index], wave)
    return found
