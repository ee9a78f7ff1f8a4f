"""Which bad answers mean that fewer in flight would be better. Pure.

A few bad answers among many good ones are everyday life. More than that, and half as many in flight is an experiment:
where the share of bad answers falls with it, there was too much in flight; where it stays, they have another cause (one
server of ten is broken), and that share is put up with from then on. More than a half is never put up with.
"""

from dataclasses import dataclass

USUAL = 0.05
"""Share of bad answers that is put up with at first."""
MOST = 0.5
"""And never more than that: a platform that answers worse is down."""
ALARM, WAVE = 3.0, 2.0
"""So many bad answers beyond what is put up with are a sign; and so many times
what is put up with of all that is in flight, as bad answers are quick and come before the good ones."""
ALIKE = 0.4
"""Where halving leaves so much of the share of bad answers, it is not the number in flight that makes them."""
ROOM, LEAST_ROOM = 2.0, 0.02
"""What is put up with, in parts of the share that was seen, and more than that: the next ones may be more by chance."""
EVIDENCE = 12.0
"""So many bad answers would have come while an experiment runs, had it changed nothing (count)."""
MEMORY = 4.0
"""The share of bad answers is that of the last 4 to 8 times as many answers as an experiment takes."""


@dataclass(slots=True)
class Overload:
    """Judges whether the platform has too much to do, and whether fewer requests in flight help.

    Attributes:
        tolerated: share of bad answers that is put up with.
        excess: bad answers beyond it, lately (count).
        seen, bad: answers, and bad ones, since the limit fell (counts; those of long ago count half).
        skip: answers still to come to what left before that (count).
        before: share of bad answers when the limit fell; 0: no experiment is under way.
    """

    tolerated: float = USUAL
    excess: float = 0.0
    seen: float = 0.0
    bad: float = 0.0
    skip: int = 0
    before: float = 0.0

    @property
    def share(self) -> float:
        """Of the answers seen, those that were bad."""
        return self.bad / self.seen if self.seen else 0.0

    def was_good(self, limit: float) -> bool:
        """Take in a good answer; return whether the experiment that is under way has ended."""
        if self.skip > 0:
            self.skip -= 1
            return False
        self.seen += 1.0
        if self.bad == 0.0 and self.before == 0.0:
            return False
        self.excess = max(0.0, self.excess - self.tolerated)
        enough = max(limit, EVIDENCE / (self.before or self.tolerated))
        if self.before:
            return self.seen >= enough
        if self.seen > 2.0 * MEMORY * enough:
            self.tolerated = max(USUAL, min(self.tolerated, ROOM * self.share + LEAST_ROOM))
            self.seen, self.bad = self.seen / 2.0, self.bad / 2.0
        return False

    def was_bad(self, limit: float) -> bool:
        """Take in a bad answer; return whether it is one too many."""
        self.pass_by()
        self.seen += 1.0
        self.bad += 1.0
        self.excess += 1.0
        alarm = ALARM + WAVE * self.tolerated * limit
        return self.excess > (2.0 * alarm if self.before else alarm)

    def pass_by(self) -> None:
        """Note an answer to what left before the limit fell."""
        if self.skip > 0:
            self.skip -= 1

    def is_alike(self) -> bool:
        """Return whether the experiment shows as large a share of bad answers as before, one that can be put up
        with."""
        return 0.0 < ALIKE * self.before <= self.share < MOST

    def fell(self, in_flight: int) -> None:
        """Let half as many be in flight from now on."""
        self.before = max(self.share, self.tolerated)
        self._begin(in_flight)

    def conclude(self) -> bool:
        """End the experiment; return whether fewer in flight were better."""
        is_alike = self.is_alike()
        if is_alike:
            self.tolerated = min(MOST, max(self.tolerated, ROOM * self.share + LEAST_ROOM))
        self.before = 0.0
        self._begin(0)
        return not is_alike

    def _begin(self, skip: int) -> None:
        self.seen = self.bad = self.excess = 0.0
        self.skip = skip
