"""How often one request is tried again, and how long it pauses before."""

import random

from bulk.execute.requests.context import Tried
from bulk.execute.requests.retry_budget import WrongAnswers, is_enough, unexplained_pause_s, weight
from bulk.govern.governor import Governor
from bulk.model import FailureKind
from bulk.platform.classification import VerdictKind

READ_TRIES = 6
UNEXPLAINED_TRIES = 4
"""How often one request may be refused without a reason, after growing pauses, before that counts as the answer.
Whatever comes in between, the count goes on."""
LIMITED_TRIES = 50
"""How often one request may run into a limit before it ends as `rate_limited` (failures.md row 78)."""
TRIES_IN_TROUBLE = 48
"""How often a read is sent while the platform serves nobody: a quarter of an hour of pauses (failures.md row 25)."""
CONDITIONAL_TRIES = 4
"""How often a read may fail with conditions: what lies between may not pass on a 304 as it is, so that the next try has
none (failures.md row 13)."""
PAUSE_FIRST_S, PAUSE_MOST_S = 0.2, 30.0

WITHOUT_REASON = frozenset((VerdictKind.UNEXPLAINED, VerdictKind.ASTRAY))
"""Refusals that are tried again a few times, after growing pauses."""

WAITED_FOR = frozenset(
    (VerdictKind.UNAUTHORIZED, VerdictKind.LOCKED_OUT, VerdictKind.LIMITED_PRIMARY, VerdictKind.LIMITED_SECONDARY)
)
"""Verdicts on requests that had no effect and did not count: the governor holds the next permit back until they may be
sent again."""


class Patience:
    """How often one request is tried again; see `note` for what counts. `now`: monotonic.

    Attributes:
        error: what went wrong last, for people. unexplained: refusals without a reason so far (count).
        is_bare: the newest answer is a 404 without the platform's message.
    """

    def __init__(self, governor: Governor, first: Tried, now: float) -> None:
        self._governor = governor
        self.error = ""
        self._served = governor.served
        self._weights = 0.0
        self._tries = 0
        self.unexplained = 0
        self._limited = 0
        self._wait_reasons = 0
        self._is_last_waited_for = self._is_last_unexplained = self.is_bare = False
        self._wrong = WrongAnswers()
        self.note(first, now, is_first=True)

    def note(self, tried: Tried, now: float, is_first: bool = False) -> None:
        """Count what came of a send."""
        self.error = tried.error
        self._is_last_waited_for, self.is_bare = tried.kind in WAITED_FOR, tried.is_bare
        self._is_last_unexplained = tried.kind in WITHOUT_REASON
        if self._is_last_unexplained:
            self.unexplained += 1
        elif tried.kind in WAITED_FOR or tried.kind is VerdictKind.THROTTLED:
            self._limited += 1
        elif tried.failure is None or tried.failure.kind is FailureKind.LOST:
            self._tries += 1
            self._weights += 1.0 if is_first else weight(self._served, self._governor.served)
            self._served = self._governor.served
            self._wrong.note(tried.kind is VerdictKind.BAD_RESPONSE, now)

    @property
    def is_to_be_fresh(self) -> bool:
        """Whether the next try is to be without conditions."""
        return self._tries >= CONDITIONAL_TRIES

    @property
    def is_over(self) -> bool:
        """Whether the newest answer is the last word."""
        if self.unexplained >= UNEXPLAINED_TRIES or self._limited >= LIMITED_TRIES:
            return True
        is_long_wrong = self._wrong.are_enough(READ_TRIES)
        return is_long_wrong or is_enough(self._weights, READ_TRIES) or self._tries >= TRIES_IN_TROUBLE

    def pause_s(self, dice: random.Random) -> float:
        """Return the pause before the next try (seconds): doubling, capped, then jittered; short where the governor
        does the waiting."""
        if self._is_last_waited_for:
            return 0.01 * dice.random()
        if self._is_last_unexplained:
            return unexplained_pause_s(self.unexplained - 1, dice.random())
        self._wait_reasons += 1
        capped = min(PAUSE_MOST_S, PAUSE_FIRST_S * 2.0 ** min(20, self._wait_reasons - 1))
        return capped * (0.5 + 0.5 * dice.random())
