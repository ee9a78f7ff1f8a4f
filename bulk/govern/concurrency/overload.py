"""Finds shares of bad answers that mean that fewer requests in flight would be better. Pure.

A few bad answers among many good ones are everyday life. If there are more, the limit is halved as an experiment. If
the share of bad answers falls with it, too many requests were in flight. If the share stays, the bad answers have
another cause (one server of ten is broken), and that share is put up with from then on. A share of more than a half is
never put up with.
"""

from dataclasses import dataclass

USUAL = 0.05
"""Share of bad answers that is put up with at first."""
MOST = 0.5
"""Largest share of bad answers that is ever put up with: a platform that answers worse is down."""
ALARM, WAVE = 3.0, 2.0
"""It takes ALARM bad answers beyond what is put up with to be a sign, and WAVE times what is put up with of all
requests in flight, as bad answers are quick and come before the good ones."""
ALIKE = 0.4
"""If halving leaves at least this part of the share of bad answers, the number in flight is not their cause."""
ROOM, LEAST_ROOM = 2.0, 0.02
"""ROOM times the share that was seen is put up with, and LEAST_ROOM more: the next answers may be worse by chance."""
EVIDENCE = 12.0
"""An experiment runs until this many bad answers would have come, had it changed nothing (count)."""
MEMORY = 4.0
"""The share of bad answers is that of the last 4 to 8 times as many answers as an experiment takes."""


@dataclass(slots=True)
class Overload:
    """Judges whether the platform has too much to do, and whether fewer requests in flight help.

    Attributes:
        tolerated: share of bad answers that is put up with.
        excess: bad answers beyond that share, lately (count).
        seen, bad: answers, and bad ones, since the limit fell (counts; those of long ago count half).
        skip: answers still to come to requests that left before the limit fell (count).
        before: share of bad answers when the limit fell; 0: no experiment is under way.
        is_calm: none of the answers seen was bad, and no experiment is under way: a good answer only has to be counted.
    """

    tolerated: float = USUAL
    excess: float = 0.0
    seen: float = 0.0
    bad: float = 0.0
    skip: int = 0
    before: float = 0.0
    is_calm: bool = True

    @property
    def share(self) -> float:
        """Share of bad answers among those seen."""
        return self.bad / self.seen if self.seen else 0.0

    def was_good(self, limit: float) -> bool:
        """Take in a good answer; return whether the experiment that is under way has ended."""
        if self.skip > 0:
            self.skip -= 1
            return False
        self.seen += 1.0
        if self.is_calm:
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
        self.is_calm = False
        alarm = ALARM + WAVE * self.tolerated * limit
        return self.excess > (2.0 * alarm if self.before else alarm)

    def pass_by(self) -> None:
        """Note an answer to a request that left before the limit fell, if any are still to come."""
        if self.skip > 0:
            self.skip -= 1

    def is_alike(self) -> bool:
        """Return whether the share of bad answers is as large as before the experiment, and can be put up with."""
        return 0.0 < ALIKE * self.before <= self.share < MOST

    def fell(self, in_flight: int) -> None:
        """Begin an experiment, as the limit was halved with `in_flight` requests under way (count)."""
        self.before = max(self.share, self.tolerated)
        self._begin(in_flight, is_calm=False)

    def conclude(self) -> bool:
        """End the experiment; return whether fewer in flight were better."""
        is_alike = self.is_alike()
        if is_alike:
            self.tolerated = min(MOST, max(self.tolerated, ROOM * self.share + LEAST_ROOM))
        self.before = 0.0
        self._begin(0, is_calm=True)
        return not is_alike

    def _begin(self, skip: int, *, is_calm: bool) -> None:
        self.seen = self.bad = self.excess = 0.0
        self.skip, self.is_calm = skip, is_calm
