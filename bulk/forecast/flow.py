"""Moves a job and a budget between two events, evenly. `course.py` says when the next event is."""

import math
from collections.abc import Iterator, Sequence

from bulk.forecast.work import Budget, Work

NONE_LEFT = 1e-6
BEHIND = 0.02
"""A job that has caught up with the jobs that it follows goes at their pace until this share of it may begin."""
TAIL_SHARE, TAIL_S, TAIL_MOST_S = 0.01, 0.02, 1.0
"""The last request of a window that is spread leaves this much before its end, as `govern/pacing.py` has it."""
AMPLE_SHARE = 0.999
"""If less than this share of a window is spent, the budget holds nothing up."""
WINDOWS_TOGETHER = 12
WINDOWS_ALONE = 6
"""If more than WINDOWS_TOGETHER windows are to be spent to the end, all but the last WINDOWS_ALONE are one step."""
UNLIMITED = Budget(limit=math.inf, left=math.inf, window_s=math.inf, is_even=False)


def level(most: Sequence[float], weights: Sequence[float], whole: float) -> list[float]:
    """Return equal shares, at most `most` each, whose weighted sum is `whole`, or all of `most` if that is less."""
    shares = [0.0] * len(most)
    order = sorted(range(len(most)), key=most.__getitem__)
    weight = sum(weights)
    for place in order:
        share = max(0.0, min(most[place], whole / weight)) if weight > 0.0 else most[place]
        shares[place] = share
        whole -= share * weights[place]
        weight -= weights[place]
    return shares


class JobFlow:
    """The remaining items of one job, as they flow.

    Attributes:
        rate: items that begin in a second. begins_at, ends_at: begin and end of the job (seconds from the beginning).
        follows: jobs of which its items need items. fed: items in a second that may begin because of those jobs.
    """

    def __init__(self, work: Work) -> None:
        self.work, self.left = work, float(work.items)
        self.begins_at, self.fed = math.inf, math.inf
        self.follows: list[JobFlow] = []
        self._has_caught_up = False
        self.lane_left = min(max(float(work.longest), self.left / work.lanes), self.left) if work.longest else 0.0
        self.lane_s = work.lane_s or work.item_s
        self.rate = 0.0
        self.ends_at = math.inf
        self._flows_since = -work.item_s if work.is_running else math.inf
        self._used = self._lane_share = 1.0

    @property
    def requests(self) -> float:
        """Requests that the job still takes from its budget (count)."""
        return self.left * self.work.cost

    @property
    def most_in_flight(self) -> float:
        """Items that the lanes of the job let be under way (count)."""
        if not self.lane_left or self._has_others:
            return self.work.lanes
        return self.work.item_s / self.lane_s

    @property
    def _has_others(self) -> bool:
        return self.left > self.lane_left + NONE_LEFT

    @property
    def most_per_s(self) -> float:
        """Items that the lanes of the job, and the jobs that it follows, let begin in a second (count)."""
        if not self.lane_left:
            return min(self.fed, self.work.lanes / self.work.item_s)
        others = (self.work.lanes - 1.0) / self.work.item_s if self._has_others else 0.0
        return min(self.fed, 1.0 / self.lane_s + others)

    @property
    def may_follow_at(self) -> float:
        """When the first items of all jobs that it follows have ended (seconds from the beginning)."""
        firsts = [other.begins_at + other.work.item_s for other in self.follows]
        return 0.0 if self.work.opened else max(firsts, default=0.0)

    @property
    def _opened(self) -> float:
        """Items that may begin, by how far the jobs that they need have got (count)."""
        shares = [1.0 - other.left / other.work.items for other in self.follows]
        opened = min(self.work.opened, self.work.items)
        return opened + (self.work.items - opened) * min(shares, default=1.0) - (self.work.items - self.left)

    @property
    def _opens_per_s(self) -> float:
        """Items that become able to begin in a second (count); infinity: all of them are able."""
        waiting = max(0.0, self.work.items - self.work.opened)
        rates = [waiting * other.rate / other.work.items for other in self.follows if other.left > NONE_LEFT]
        return min(rates, default=math.inf)

    def feed(self) -> None:
        """Take up the rates of the jobs that it follows: its own rate is at most theirs if it has caught up."""
        if not self.follows:
            return
        fed, most = self._opens_per_s, BEHIND * self.work.items if self._has_caught_up else NONE_LEFT
        self._has_caught_up = fed < math.inf and self._opened <= most
        self.fed = math.inf if not self._has_caught_up else fed if self.left > NONE_LEFT else 0.0

    def keep_behind(self) -> None:
        """Keep behind the jobs that it follows, if it has caught up and they go on more slowly than was thought."""
        if self._has_caught_up:
            self.rate = min(self.rate, self._opens_per_s)

    def flows(self, now: float, in_flight: float, *, is_in_bursts: bool = False) -> None:
        """Hold `rate` until the next event.

        Args:
            in_flight: items that its share would allow (count).
            is_in_bursts: the rate is the mean of windows that are spent at full speed, and waited for then, by its
                longest lane too.
        """
        if self.rate <= 0.0:
            self.stop()
            return
        self._flows_since = min(self._flows_since, now)
        possible = min(self.most_per_s, in_flight / self.work.item_s)
        self._used = min(1.0, self.rate / possible) if possible > 0.0 else 1.0
        self._lane_share = self._used if is_in_bursts else 1.0

    def stop(self) -> None:
        """Let no items of the job begin until the next event."""
        self.rate, self._flows_since = 0.0, math.inf

    @property
    def _lane_rate(self) -> float:
        if not self.lane_left:
            return 0.0
        is_like_others = self._ahead <= NONE_LEFT
        return self.rate / self.work.lanes if is_like_others else min(self._lane_share / self.lane_s, self.rate)

    @property
    def _ahead(self) -> float:
        """Items that the longest lane has more than the mean of all (count, >= 0)."""
        return max(0.0, self.lane_left - self.left / self.work.lanes)

    def until_change_s(self) -> float:
        """Return the time until the job changes (seconds).

        It changes when it ends, when only its longest lane is left, when that lane is like the others, or when the job
        catches up with the jobs that it follows or falls behind them.
        """
        lane, ahead = self._lane_rate, self._ahead
        soonest = self.left / self.rate
        gains = self._opens_per_s - self.rate if self.follows else 0.0
        if self._has_caught_up and gains > NONE_LEFT:
            soonest = min(soonest, max(NONE_LEFT, BEHIND * self.work.items - self._opened) / gains + NONE_LEFT)
        elif not self._has_caught_up and gains < -NONE_LEFT:
            soonest = min(soonest, max(0.0, self._opened) / -gains)
        if self.lane_left and self._has_others and ahead > NONE_LEFT:
            if self.rate > lane:
                soonest = min(soonest, (self.left - self.lane_left) / (self.rate - lane))
            if lane > self.rate / self.work.lanes:
                soonest = min(soonest, ahead / (lane - self.rate / self.work.lanes))
        return soonest

    def pass_time(self, seconds: float) -> None:
        """Let `seconds` pass."""
        if self.rate <= 0.0 or seconds <= 0.0:
            return
        lane = self._lane_rate
        self.left = max(0.0, self.left - self.rate * seconds)
        if self.lane_left:
            # another lane may become the longest, which never has fewer items than the mean of all
            self.lane_left = max(self.lane_left - lane * seconds, self.left / self.work.lanes, 0.0)
            self.lane_left = min(self.lane_left, self.left)

    def close(self, now: float) -> None:
        """Close the job, whose last item has begun.

        If there was room for more items, the last ones are still under way.
        """
        item_s = self.lane_s if self.work.longest else self.work.item_s
        last = now + item_s * (1.0 - self._used)
        if self._flows_since < math.inf:
            last = max(last, self._flows_since + item_s)
        last = max([last, *(other.ends_at + item_s for other in self.follows)])
        self.ends_at = last + self.work.tail_s if self.work.items else now


class BudgetFlow:
    """One budget as it is spent; None: there is no limit. `began`: when the forecast begins (UTC epoch seconds)."""

    def __init__(self, budget: Budget | None, began: float) -> None:
        self._budget = budget or UNLIMITED
        self._began = began
        self._left = self._budget.left
        self._reset_at = math.inf if self._budget.reset_at is None else self._budget.reset_at - began
        self._opens_at = self._budget.opens_at - began
        self._together_since = math.inf
        self._per_second = 0.0
        self._is_ample = False

    def _whole_second(self, now: float) -> float:
        """Return when a window begins whose first request leaves at `now`: at a whole second of the wall clock."""
        return math.floor(self._began + now + 0.001) - self._began

    @property
    def is_in_bursts(self) -> bool:
        """Whether several windows are one step, each of which is spent at full speed."""
        return self._together_since < math.inf and not self._budget.is_even

    def is_closed(self, now: float) -> bool:
        """Return whether no request may leave at `now`."""
        return now < self._opens_at or self._left <= NONE_LEFT

    def pace(self, requests: float, now: float) -> float | None:
        """Return the requests in a second to which `requests`, those left, are spread (counts); None: full speed."""
        budget = self._budget
        if self._together_since < math.inf:
            return budget.limit / budget.window_s
        reset_at = self._reset_at if self._reset_at < math.inf else self._whole_second(now) + budget.window_s
        tail_s = min(TAIL_MOST_S, max(TAIL_S, budget.window_s * TAIL_SHARE))
        usable_s = reset_at - now - tail_s
        if not budget.is_even or requests <= self._left + NONE_LEFT or usable_s <= 0.0:
            return None
        return self._left / usable_s

    def spend(self, per_second: float, now: float) -> None:
        """Let `per_second` requests leave in a second until the next event.

        The first request opens a window, at a whole second.
        """
        self._per_second = per_second
        if per_second > 0.0 and self._reset_at == math.inf:
            self._reset_at = self._whole_second(now) + self._budget.window_s
        if self._together_since < math.inf:
            usual = self._budget.limit / self._budget.window_s
            if per_second < usual * 0.999:
                self.part(now)
        # no window is spent to its end at this rate, so their ends are not events: there may be thousands of them
        self._is_ample = (
            0.0 < per_second * self._budget.window_s < self._budget.limit * AMPLE_SHARE
            and per_second * (self._reset_at - now) < self._left - NONE_LEFT
        )

    def moments(self, now: float) -> Iterator[float]:
        """Yield the moments at which the budget may change next (seconds from the beginning)."""
        if now < self._opens_at:
            yield self._opens_at
        if self._is_ample:
            return
        if self._reset_at < math.inf and (self._budget.limit > NONE_LEFT or self._left > NONE_LEFT):
            yield self._reset_at
        if self._per_second > 0.0:
            yield now + self._left / self._per_second

    def pass_time(self, seconds: float, until: float, requests: float, reset_s: float) -> None:
        """Let `seconds` pass, to the moment `until`; `requests` are left of running jobs (count)."""
        budget = self._budget
        self._left = max(0.0, self._left - self._per_second * seconds)
        if until < self._reset_at:
            return
        if self._is_ample:
            began = self._reset_at + (until - self._reset_at) // budget.window_s * budget.window_s
            self._left, self._reset_at = budget.limit - self._per_second * (until - began), began + budget.window_s
            return
        is_spent = self._left <= max(NONE_LEFT, 0.001 * budget.limit)
        self._left, self._reset_at, self._together_since = budget.limit, math.inf, math.inf
        self._opens_at = max(self._opens_at, until + reset_s)
        windows = requests / budget.limit if budget.limit > 0.0 else 0.0
        if is_spent and windows > WINDOWS_TOGETHER:
            several = math.floor(windows) - WINDOWS_ALONE
            self._left = budget.limit * several
            self._reset_at = self._whole_second(until) + budget.window_s * several
            self._together_since = self._whole_second(until)

    def part(self, now: float) -> None:
        """End a step of several windows and go on with the open one, because the next windows are no longer alike."""
        budget = self._budget
        if self._together_since == math.inf:
            return
        over = max(1, math.ceil((now - self._together_since) / budget.window_s))
        self._reset_at = self._together_since + over * budget.window_s
        self._left = budget.limit * max(0.0, min(1.0, (self._reset_at - now) / budget.window_s))
        self._together_since = math.inf
