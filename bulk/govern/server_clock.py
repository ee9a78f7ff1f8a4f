"""The platform's time, as an interval that many `Date` headers narrow. Pure; monotonic times come in.

A `Date` of d, received between t0 and t1 on the monotonic clock, says that platform time minus monotonic time lies
between d - t1 and d + 1 - t0. Each answer cuts the interval; when two disagree, a clock was set, and the newer one
counts. Where answers go back to the time before, the platform has several clocks, of which one is chosen. The wall
clock of this machine decides only about a `Date` that is more than a day from it. The other clocks are remembered:
requests are spread as if the fastest of them were right, and where a window is over by one of them, a turn or one
request tells. Source: failures.md rows 33, 34.
"""

import math
from dataclasses import dataclass, field

EARLY_S = 2.0
"""Ends of windows are whole seconds: a window may be over this long before its end (seconds)."""
DRIFT_S = 0.05
"""Two clocks may go apart by this much in a window (seconds)."""
WINDOW_MOST_S = 3_700.0
"""Windows last an hour at most, and clocks differ a little: an end that is further away is nonsense (seconds)."""
PAST_MOST_S = 86_400.0
"""What lies further back is not the end of a window; of two clocks that are further apart, one is wrong (seconds)."""
SET_AFTER = 64
"""Where the platform has several clocks, the chosen one is taken to be gone after this many consecutive answers of
others (count)."""
MOST_CLOCKS = 8
"""The most clocks of one platform that are told apart (count)."""


@dataclass(slots=True)
class ServerClock:
    """Offset of platform time (UTC epoch seconds) over the monotonic clock, as an interval.

    Attributes:
        low, high: bounds of the offset (seconds). Before the first `Date` they hold the local wall clock's, 2 s to
            either side.
        is_guess: only this machine's clock tells the time: no `Date` came, and no window was seen to end.
        is_of_windows: ends of windows have shown that `Date` is of another clock, and tell the time instead.
        is_refused: ends of windows and this machine's clock have shown that `Date` is nonsense.
        least, most: where no `Date` comes, the least offset by the ends of windows that were over, and the greatest by
            the ends of windows that were open (seconds).
        local: the offset of this machine's wall clock when the run began (seconds).
        former: the interval that was believed before a newer answer contradicted it; None: no answer has.
        is_one_of_several: answers went back to a former time, so the platform has several clocks.
        ignored: consecutive answers of another one of these clocks (count).
        others: the intervals of the other clocks. refuted: of those by which a window was over that was not.
        untried: the interval to go back to, while a request finds out about a faster clock; None: none does.
    """

    low: float
    high: float
    is_known: bool = False
    is_guess: bool = True
    is_of_windows: bool = False
    is_refused: bool = False
    least: float = -math.inf
    most: float = math.inf
    local: float = 0.0
    former: tuple[float, float] | None = None
    is_one_of_several: bool = False
    ignored: int = 0
    others: list[tuple[float, float]] = field(default_factory=list)
    refuted: list[tuple[float, float]] = field(default_factory=list)
    untried: tuple[float, float] | None = None

    @classmethod
    def from_local(cls, now: float, monotonic: float) -> "ServerClock":
        """Make the clock from this machine's wall clock, which will do until the platform has answered."""
        return cls(now - monotonic - EARLY_S, now - monotonic + EARLY_S, local=now - monotonic)

    def observe(self, date: float, sent: float, received: float) -> None:
        """Take in a `Date` header (UTC epoch seconds, whole) of an exchange between two monotonic times."""
        if self.is_of_windows or self.is_refused:
            return
        low, high = date - received, date + 1.0 - sent
        if not self.is_known:
            self.low, self.high, self.is_known, self.is_guess = low, high, True, False
            return
        if (low <= self.low and self.high <= high) or self._narrow(low, high):  # nearly every answer says nothing new
            self.ignored = 0
        else:
            self._choose(low, high)

    def _choose(self, low: float, high: float) -> None:
        """Choose between the interval that is believed and another one that contradicts it.

        Of several clocks the slowest one counts. If windows follow a faster one, they end early, which answers show; if
        a faster clock were believed, each look for an end that has not come would spend a request. Of two clocks that
        are more than a day apart, the one that is nearer to this machine's counts.
        """
        believed = self.low, self.high
        if not self.is_one_of_several:
            former = self.former
            self.is_one_of_several = former is not None and max(former[0], low) <= min(former[1], high)
        if self.is_one_of_several:
            is_far = abs(low - self.low) > PAST_MOST_S
            is_better = abs(low - self.local) < abs(self.low - self.local) if is_far else low < self.low
            self.ignored += 1
            self._note_other(low, high)
            if not is_better and self.ignored < SET_AFTER:
                return
            self.is_one_of_several = is_better
            if is_better:
                self._note_other(*believed)
            else:
                self.others.clear()
        self.former, self.ignored = believed, 0
        self.low, self.high = low, high

    def _note_other(self, low: float, high: float) -> None:
        """Note the interval of another clock."""
        for place, (least, most) in enumerate(self.others):
            if max(least, low) <= min(most, high):
                self.others[place] = max(least, low), min(most, high)
                return
        is_new = not any(least <= high and low <= most for least, most in self.refuted)
        if is_new and len(self.others) < MOST_CLOCKS and abs(low - self.low) < WINDOW_MOST_S:
            self.others.append((low, high))

    def latest_before(self, end: float, monotonic: float) -> float:
        """Return the latest that platform time may be by any clock that does not say that the moment `end` is over."""
        latest = self.latest(monotonic)
        return max((monotonic + high for _, high in self.others if latest < monotonic + high < end), default=latest)

    def over_at(self, end: float) -> float:
        """Return when the moment `end` is over by the fastest clock (monotonic); infinity: no clock is faster."""
        return end - max((low for low, _ in self.others if low > self.high), default=-math.inf)

    def over_next(self, end: float, after: float) -> float:
        """Return the first moment after `after` at which the moment `end` is over by one more clock, which may be the
        right one (monotonic); infinity: there is none."""
        return min((end - low for low, _ in self.others if end - low > after), default=math.inf)

    def try_faster(self, end: float, monotonic: float) -> None:
        """Believe the slowest clock by which the moment `end` is over, until `tried`."""
        self.untried, self.is_of_windows = (self.low, self.high), True
        self.low, self.high = min(each for each in self.others if each[0] > self.high and monotonic + each[0] >= end)

    def tried(self, *, is_right: bool | None) -> None:
        """Note what the request has found out that left by a faster clock; None: nothing."""
        assert self.untried is not None, "asked while there is one"
        if is_right:
            self.others.clear()
        else:
            if is_right is False:
                self.refuted.append((self.low, self.high))
                self.others = [each for each in self.others if not (each[0] <= self.high and self.low <= each[1])]
            (self.low, self.high), self.is_of_windows = self.untried, False
        self.untried = None

    def faster(self, low: float) -> float | None:
        """Return the least offset of the slowest clock whose offset may be `low` (seconds) or more; None: there is
        none."""
        return min((least for least, most in self.others if least > self.high and most >= low), default=None)

    def refuse(self, reset_at: float, monotonic: float) -> None:
        """Note that headers or `/rate_limit` name `reset_at` (UTC epoch seconds) for the end of the present window.

        If that is possible by this machine's clock, and `Date` is more than a day from it, `Date` is nonsense, and
        counts no more.
        """
        if not self.is_known or abs(self.low - self.local) <= PAST_MOST_S:
            return
        if -EARLY_S < reset_at - (monotonic + self.local) < WINDOW_MOST_S:
            self.low, self.high = self.local - EARLY_S, self.local + EARLY_S
            self.is_refused, self.is_guess, self.is_known = True, True, False

    def _narrow(self, low: float, high: float) -> bool:
        """Keep the part that both intervals share; return False, and change nothing, if they disagree."""
        shared_low, shared_high = max(self.low, low), min(self.high, high)
        if shared_low > shared_high:
            return False
        self.low, self.high = shared_low, shared_high
        return True

    def names_end(self, reset_at: float, sent: float, *, is_first: bool = False) -> None:
        """Note that a window that ends at `reset_at` (UTC epoch seconds) was open, where no `Date` comes.

        The window was open when a request that was sent at `sent` (monotonic) was answered, so platform time was not
        later than its end. Unless that is the first word of all (`is_first`), moments were already compared with this
        clock, and the clock is set back by no more than it has to.
        """
        most = reset_at - sent
        if self.is_known or not self.least <= most < self.most:
            return  # that a window was over has been seen, and counts for more than a word that one is not
        self.most = most
        if most >= self.low:
            self.high = self.high if self.is_guess else min(self.high, most)
        else:  # this machine's clock is ahead
            width_s = WINDOW_MOST_S if is_first else 2 * EARLY_S
            self.low, self.high = max(self.least, most - width_s), most

    def turned(self, reset_at: float, received: float) -> None:
        """Note that a window that ended at `reset_at` (UTC epoch seconds) was over, where no `Date` comes.

        The window was over when an answer was received (monotonic), so platform time was not earlier than its end.
        """
        if self.is_known:
            return
        least = reset_at - received
        if least > self.most:  # one of the two words was wrong, and the newer one counts
            self.least, self.most = least, least + EARLY_S
        else:
            self.least, self.most = max(self.least - DRIFT_S, least), self.most + DRIFT_S
        if not self._narrow(self.least, self.most):
            self.low, self.high = self.least, self.most
        self.is_guess = False

    def overrule(self, low: float) -> None:
        """Note that windows were over before `Date` said so.

        The offset is at least `low` (seconds), and `Date` does not count any more.
        """
        self.low, self.high, self.is_of_windows = low, low + EARLY_S, True

    @property
    def is_refuted(self) -> bool:
        """Whether this machine's clock is known to be wrong, and the platform's is not known."""
        return self.is_guess and self.high - self.low > WINDOW_MOST_S / 2

    def earliest(self, monotonic: float) -> float:
        """Return the earliest that platform time may be (UTC epoch seconds)."""
        return monotonic + self.low

    def latest(self, monotonic: float) -> float:
        """Return the latest that platform time may be (UTC epoch seconds)."""
        return monotonic + self.high

    def middle(self, monotonic: float) -> float:
        """Return the best guess at platform time (UTC epoch seconds)."""
        return monotonic + (self.low + self.high) / 2
