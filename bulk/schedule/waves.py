"""Waves: a job's items in portions, in the order of the manifest, of which the next begins when the last is judged.

A portion is a prefix of what is left, so that it is closed under lanes. Which wave is next follows from what has
ended: nothing else has to be remembered, and a run that was killed goes on in the wave that it was in. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bulk.quantities import Share

NEVER: Final = 2**61
"""More items than any job has; compiled code holds it without a box."""


@dataclass(frozen=True, slots=True)
class Wave:
    """A portion of a job's items.

    Attributes:
        number: from 1, of so many (`of`).
        start: its first item; end: behind its last (places in the job, from 0).
    """

    number: int
    of: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Waves:
    """How the items of a job are cut.

    Attributes:
        sizes: of each wave, of all items of the job; what they leave is one more.
        opened: the last wave that may begin (number).
    """

    sizes: tuple[Share, ...]
    opened: int = NEVER

    def ends(self, items: int) -> list[int]:
        """Return where each wave of a job with so many items ends; the last one ends with the job."""
        ends: list[int] = []
        end = 0
        for size in self.sizes:
            end = min(items, end + max(1, size.of(items)))
            ends.append(end)
            if end >= items:
                return ends
        return [*ends, items]

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
        """Return behind which item nothing may be offered now."""
        wave = self.at(items, first_left)
        if wave is None:
            return NEVER
        return wave.end if wave.number <= self.opened else wave.start


def _wave(ends: Sequence[int], first_left: int) -> Wave:
    number = next(place for place, end in enumerate(ends) if first_left < end)
    return Wave(number + 1, len(ends), ends[number - 1] if number else 0, ends[number])
