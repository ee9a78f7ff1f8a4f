"""The time in which a run was at work, without the pauses between its epochs, and ended items over that time. Pure."""

import math
from bisect import bisect_right
from collections.abc import Sequence

from bulk.report.record import OUTCOMES

MOST_BINS = 120
FINEST_S = 0.05
"""Length of the timeline's bins at first (seconds). It doubles whenever there are four times `MOST_BINS` of them."""


class ActiveTime:
    """Converts moments to seconds of activity: the pauses between the epochs of a run are cut out.

    Args:
        spans: start and end of each epoch in order (UTC epoch seconds). Where the clock jumped and two epochs
            overlap, the second one counts from the end of the first.
    """

    def __init__(self, spans: Sequence[tuple[float, float]]) -> None:
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._offsets: list[float] = []
        total = 0.0
        for start, end in spans:
            if self._ends:
                start = max(start, self._ends[-1])
            end = max(start, end)
            self._starts.append(start)
            self._ends.append(end)
            self._offsets.append(total)
            total += end - start
        self.total_s = total

    def of(self, at: float) -> float:
        """Return the seconds of activity before `at` (UTC epoch seconds)."""
        place = bisect_right(self._starts, at) - 1
        if place < 0:
            return 0.0
        return self._offsets[place] + (min(at, self._ends[place]) - self._starts[place])

    @property
    def breaks_s(self) -> tuple[float, ...]:
        """The moments at which the run was resumed (seconds of activity)."""
        return tuple(self._offsets[1:])


class Bins:
    """Counts of items that ended over active time, by outcome. Bins are few: their length doubles as time goes by."""

    def __init__(self) -> None:
        self.length_s = FINEST_S
        self.counts: list[list[int]] = []

    def row(self, at_s: float) -> list[int]:
        """Return the counts of the bin that the moment `at_s` falls into (seconds of active time)."""
        place = int(at_s / self.length_s)
        if place < len(self.counts):  # as nearly always
            return self.counts[place]
        while place >= 4 * MOST_BINS:
            self._double()
            place = int(at_s / self.length_s)
        while place >= len(self.counts):
            self.counts.append([0] * len(OUTCOMES))
        return self.counts[place]

    def _double(self) -> None:
        self.length_s *= 2
        self.counts = self._merged(2)

    def _merged(self, several: int) -> list[list[int]]:
        starts = range(0, len(self.counts), several)
        return [[sum(each) for each in zip(*self.counts[at : at + several], strict=True)] for at in starts]

    def shown(self, total_s: float) -> tuple[float, list[list[int]]]:
        """Return the length (seconds) and the counts of at most `MOST_BINS` bins, up to the end of the run."""
        self.row(max(0.0, total_s - self.length_s / 2))
        several = math.ceil(len(self.counts) / MOST_BINS)
        return self.length_s * several, self._merged(several)
