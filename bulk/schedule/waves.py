"""Waves: a job's items in portions, in the order of the manifest; the next portion begins when the last is judged.

A portion is a prefix of what is left, so that it is closed under lanes. Which wave is next follows from what has
ended: nothing else has to be remembered, and a run that was killed goes on in the wave that it was in.

An item that waits by key is in the latest wave of the items that it needs, so that it is done with that wave. A job of
such items is not cut itself: its items open with those that they need. That holds them back only if each of them needs
an item, and if nothing else holds the whole job up meanwhile. Pure.
"""

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from bulk.bundle.links import Links
from bulk.manifest.needs.wave_ends import wave_ends
from bulk.quantities import Share

NEVER: Final = 2**61
"""More items than any job has; compiled code holds it without a box."""


@dataclass(frozen=True, slots=True)
class Wave:
    """A portion of a job's items.

    Attributes:
        number: number of the wave, from 1. of: how many waves there are.
        start: its first item. end: the place behind its last item (places in the job, from 0).
    """

    number: int
    of: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Waves:
    """How the items of a job are cut.

    Attributes:
        sizes: the share of each wave in all items of the job; the items that they leave are one more wave.
        opened: the last wave that may begin (number). after_s: pause before each but the first (seconds).
    """

    sizes: tuple[Share, ...]
    opened: int = NEVER
    after_s: float = 0.0

    def ends(self, items: int) -> list[int]:
        """Return where each wave of a job with `items` items ends; the last wave ends with the job."""
        return wave_ends(self.sizes, items)

    def at(self, items: int, first_left: int) -> Wave | None:
        """Return the wave in which the first item stands that has no outcome; None where all have one."""
        if first_left >= items:
            return None
        return _wave(self.ends(items), first_left)

    def until(self, items: int, first_left: int) -> list[Wave]:
        """Return the waves that have begun, in order; the last one holds the first item that has no outcome."""
        ends = self.ends(items)
        spans = zip([0, *ends], ends, strict=False)
        waves = (Wave(number, len(ends), *span) for number, span in enumerate(spans, 1))
        return [wave for wave in waves if wave.start <= first_left and wave.start < wave.end]

    def offered_until(self, items: int, first_left: int) -> int:
        """Return the index from which on no item may be offered now."""
        wave = self.at(items, first_left)
        if wave is None:
            return NEVER
        return wave.end if wave.number <= self.opened else wave.start


def _wave(ends: Sequence[int], first_left: int) -> Wave:
    number = next(place for place, end in enumerate(ends) if first_left < end)
    return Wave(number + 1, len(ends), ends[number - 1] if number else 0, ends[number])


def wave_numbers(
    links: Sequence[Links], inherit: AbstractSet[int], ends: Mapping[int, Sequence[int]], items: Mapping[int, int]
) -> dict[int, "array[int]"]:
    """Return the number of the wave of each item of the jobs that inherit theirs, from 1.

    Args:
        links: in running order. ends: where each wave of a job ends that is cut itself, by the number of the job; all
            items of other jobs are in the first wave. items: items of each job (count).
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
        for key, index in each.waiting():
            waiting[index] = max(waiting[index], latest[key])
    return found
