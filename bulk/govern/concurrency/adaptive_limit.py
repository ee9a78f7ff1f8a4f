"""Finds out how many requests may be in flight; nobody has to configure it. Pure; times come in.

One experiment is made again and again: for a moment only a part of the limit (the whole) is in flight. If answers come
sooner in the same measure, the other requests had only waited in a queue, and the limit falls. If answers take as long
as before, no request waits, and the limit grows. Between the two lies the knee, where the platform does all that it can
and no request waits yet: `in flight × latency of the part ÷ latency of the whole`. A little more than the knee is
allowed, and the experiment is repeated after ever longer times. Throughput needs no clock: it is the number in flight
divided by the mean latency (Little's law). Requests that budgets, pacing or lanes hold back say nothing about the
platform, and change nothing.

Bad answers make the limit fall (see `overload.py`) and never raise it. Where this process is too busy to serve that
many requests in time, the limit falls to what it can serve. Source: design.md §4; failures.md row 25.
"""

import sys
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

from bulk.govern.concurrency.latency_rounds import Round
from bulk.govern.concurrency.overload import Overload

START = 16
GROWTH, GROWTH_MOST = 0.5, 2.0
"""What each answer adds to the limit at first, and the largest factor of one round: the knee must not be passed by far
before answers tell so, as requests that have left cannot be taken back."""
LATE, MUCH = 3.0, 4.0
"""At first, an answer that takes more than LATE times the best mean of a round adds nothing, and a round that takes
more than MUCH times the best need not wait for the slowest answer."""
AIM, SPARE = 1.7, 0.5
"""The limit is AIM times the knee, and SPARE more: so the platform is never idle, and no request waits for long."""
PART, SMALL_PART, SMALL = 1.0 / 3.0, 0.5, 12.0
"""Part of the limit that an experiment leaves; SMALL_PART if the limit is below SMALL or the knee is not known yet."""
FLAT, LINEAR = 1.12, 0.9
"""Latency of the whole by that of the part: below FLAT no request waits, above LINEAR of the ratio in flight, all."""
UNBELIEVED = 0.6
"""If the whole takes less than this share of the part's latency, it is measured again: fewer are hardly slower."""
LONGEST_STRIDE, SHORTEST_STRIDE = 2.0, 1.2
"""Factor of the limit where the knee lies outside of part and whole; its square root after each turn back."""
SOON_S = 0.015
"""Answers within this time never make the limit fall (seconds): fewer in flight would not help, and where this process
and a near platform take turns, as each waits for the other, both would serve fewer."""
SLOW = 2.4
"""The limit never makes an answer take more than this many times the best latency: others may queue there as well."""
FORGET = 0.02
"""How much of the best latency is forgotten with each experiment: a platform may become slower for good."""
PRECISION, LEAST = 48.0, 8
"""A round has PRECISION answers times the square of deviation by mean, and never less than LEAST."""
HOLD, LONGEST = 8, 80
"""Rounds between two experiments once the knee is known: twice as many after each that changed nothing (counts)."""
AFTER, AT_ONE = 16, 32
"""Rounds until the next experiment after the platform suffered with more, and where the limit is one (counts)."""
JUMP, CHANGED = 1.5, 1.2
"""Latencies of two rounds differ by JUMP only if something has changed; below the factor CHANGED no request waits."""
NEAR, BEYOND = 0.95, 1.15
"""The limit goes back to NEAR times the one where the platform suffered; later past it by BEYOND, and by ever more."""

LONG_TURN_S, BUSY_SHARE = 0.008, 0.5
"""A turn of the event loop that takes longer (seconds of processor time), while the loop has been busy for more than
this share of the time, has too much to serve. One long turn in a process that mostly waits has another cause."""

MEMORY = 0.05
"""Weight of the newest latency in the moving mean."""
CALM_S = 0.05
"""The limit falls at most once in the mean latency, or in this time if that is longer (seconds)."""
LATENCIES_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper end of each class of the histogram (seconds); one more class holds all answers that took longer."""
TINY_S = 1e-9
_NONE = float("inf")


@dataclass(slots=True)
class AdaptiveLimit:
    """Bounds the requests in flight, and finds out by experiments how many are worth while.

    Attributes:
        most: the user's limit, or this machine's (count). machine_most: this machine's.
        limit: requests that are allowed now (count, 1..most). in_flight: requests under way (count).
        whole: requests that are allowed outside of experiments (count, 1..most).
        mean_s: moving mean of latency; slow_s: the slowest lately; best_s: the best that was seen (seconds).
        is_busy: the limit fell last because this process had too much to serve.
        is_capped: this machine can't hold as many connections as the user allows.
        is_starting: the limit grows with each answer, as nothing is known yet. is_known: the knee was found.
        is_doubtful: no request has found anything yet, and no budget says that anything is there.
        is_part: an experiment is under way. is_regrowing: the limit grows back to where it was before it fell.
        whole_s, whole_n: mean latency and mean number in flight of the whole, in `rounds` rounds. part_s: mean latency
            of the last part.
        hold: rounds until the next experiment; 0: it follows at once.
        ceiling: the limit where the platform suffered (count), to be passed by the factor `beyond`, first after
            `patience` rounds.
        stride, way: factor of the last step, and whether it went up (1) or down (-1); 0: there was none.
        level: the limit before the fall that is under way; goal: the limit to which it grows back (counts).
        was_starting: whether it was starting before that fall.
        is_doubted: the last experiment was not believed. calm_after: the limit does not fall before this (monotonic).
        round: the round that is being measured. suffering: the judgement on bad answers.
        latencies: good answers so far, in the classes of `LATENCIES_S` (counts).
    """

    most: int
    machine_most: int = sys.maxsize
    limit: float = float(START)
    in_flight: int = 0
    whole: float = float(START)
    mean_s: float = 0.0
    slow_s: float = 0.0
    best_s: float = 0.0
    is_busy: bool = False
    is_capped: bool = False
    is_starting: bool = True
    is_doubtful: bool = False
    is_known: bool = False
    is_part: bool = False
    is_regrowing: bool = False
    whole_s: float = 0.0
    whole_n: float = 0.0
    part_s: float = 0.0
    noise: float = 1.0
    rounds: int = 0
    hold: int = 0
    ceiling: float = _NONE
    beyond: float = BEYOND
    patience: int = AFTER
    stride: float = LONGEST_STRIDE
    way: int = 0
    level: float = 0.0
    goal: float = 0.0
    is_doubted: bool = False
    was_starting: bool = False
    calm_after: float = 0.0
    round: Round = field(init=False)
    suffering: Overload = field(default_factory=Overload)
    latencies: list[int] = field(default_factory=lambda: [0] * (len(LATENCIES_S) + 1))

    def __post_init__(self) -> None:
        self.limit = self.whole = float(min(self.most, START))
        self.round = Round(0, self.limit, self.limit)

    @property
    def allowed(self) -> int:
        """Requests that may be in flight now (count, >= 1)."""
        return int(self.limit + 0.5)

    @property
    def has_room(self) -> bool:
        """Whether one more may leave."""
        return self.in_flight < int(self.limit + 0.5)

    @property
    def obstacle(self) -> str:
        """Why there is no room, for people."""
        if self.is_busy:
            return "concurrency, as this process is busy"
        return "concurrency, as few files may be open" if self.is_capped and self.limit >= self.most else "concurrency"

    def begin_with_one(self) -> None:
        """Allow only one request in flight until one has found something, if none was answered yet.

        To be called where no budget says that anything is there.
        """
        if self.is_starting and not self.mean_s:
            self.is_doubtful = True
            self._begin_at(1.0)

    def _begin_at(self, limit: float) -> None:
        self.limit = self.whole = min(limit, float(self.most))
        self.round = Round(0, self.limit, self.limit)

    def cap(self, most: int) -> None:
        """Note that this machine can't hold more than `most` connections (count)."""
        self.is_capped = self.is_capped or most < self.most
        self.machine_most = min(self.machine_most, most)
        self.most = min(self.most, most)
        self.whole, self.limit = min(self.whole, float(self.most)), min(self.limit, float(self.most))

    def set_most(self, most: int) -> None:
        """Set the user's limit to `most` (count, >= 1). If the old one was reached, the limit grows to `most`."""
        was_all, self.most = self.limit >= self.most, min(most, self.machine_most)
        self.whole, self.limit = min(self.whole, float(self.most)), min(self.limit, float(self.most))
        if was_all and not self.is_starting and self.limit < self.most:
            self.is_regrowing, self.goal = True, float(self.most)

    def answered(self, latency_s: float, *, is_found: bool = True) -> None:
        """Note a good answer that took `latency_s` seconds; `is_found`: the answer is not a refusal."""
        if self.is_doubtful and is_found:
            self.is_doubtful = False
            self._begin_at(max(self.limit, float(START)))
        self.latencies[bisect_left(LATENCIES_S, latency_s)] += 1
        if latency_s < TINY_S:
            latency_s = TINY_S
        in_flight, limit, mean_s, seen = self.in_flight + 1, self.limit, self.mean_s, self.round
        is_used = in_flight >= int(limit + 0.5)
        self.mean_s = mean_s + (latency_s - mean_s) * (MEMORY if mean_s else 1.0)
        self.slow_s *= 1.0 - 0.2 / (limit + 20.0)
        if latency_s > self.slow_s:
            self.slow_s = latency_s
        suffering = self.suffering
        if suffering.is_calm:  # as nearly always
            suffering.seen += 1.0
        elif suffering.was_good(limit):
            self._conclude()
            return
        if is_used and (self.is_starting or self.is_regrowing):
            self._grow(latency_s)
        if seen.skip > 0:
            seen.skip -= 1
            return
        seen.count += 1
        seen.used += is_used
        seen.sum_n += in_flight
        seen.sum_s += latency_s
        seen.sum_ss += latency_s * latency_s
        seen.spent_s += latency_s / in_flight
        if seen.count < seen.least:
            return
        if self.is_starting:
            if seen.spent_s >= self.slow_s or seen.sum_s > MUCH * self.whole_s * seen.least > 0.0:
                self._judge_start(seen)
        elif seen.spent_s >= self.slow_s and seen.count >= PRECISION * seen.noise:
            self.noise += 0.2 * (seen.noise - self.noise)
            self._judge(seen)

    def _grow(self, latency_s: float) -> None:
        """Grow: all that is allowed was in flight, and the answer was good."""
        if self.is_regrowing:
            goal = min(self.goal, float(self.most))
            self.is_regrowing = self.limit + 1.0 < goal
            self._allow(max(self.limit, min(goal, self.limit + 1.0)))
        elif self.whole_s == 0.0 or latency_s <= LATE * self.whole_s:
            self.whole = self.limit = min(float(self.most), GROWTH_MOST * self.round.limit, self.limit + GROWTH)

    def _judge_start(self, seen: Round) -> None:
        """Judge whether the knee is passed, when a round of the start is over."""
        mean_s, is_first = seen.mean_s, self.whole_s == 0.0
        if not seen.is_idle and not is_first:
            doubt = self.noise * (1.0 / seen.count + 1.0 / self.whole_n)
            if mean_s > JUMP * (1.0 + doubt**0.5) * self.whole_s:
                self.is_starting = False
                self._allow(seen.mean_n / 2.0)
                return
        if is_first or mean_s < self.whole_s:
            self.whole_s, self.whole_n = mean_s, float(seen.count)
        self.is_starting = self.limit < self.most
        if self.is_starting:
            self._begin(self.in_flight + 1 if seen.is_idle else 0)
        else:
            self.part_s = self.whole_s
            self._allow(self.whole, skip=0)

    def _judge(self, seen: Round) -> None:
        """Judge a round that is over."""
        if seen.is_idle:
            self._allow(self.whole)
        elif self.is_part:
            self._decide(seen.mean_s, seen.mean_n)
        else:
            if self.rounds and not 1.0 / JUMP < seen.mean_s / self.whole_s < JUMP:
                self.rounds = 0  # something has changed
            self.rounds += 1
            self.whole_s += (seen.mean_s - self.whole_s) / self.rounds
            self.whole_n += (seen.mean_n - self.whole_n) / self.rounds
            if self.whole >= self.most and self.whole_s < CHANGED * self.part_s:
                self.rounds, self.is_busy = 0, False  # all that the user allows, no request waits: nothing to find out
            if not self.rounds or self.rounds < self.hold:
                self._begin(0)
            else:
                self._leave_a_part()

    def _leave_a_part(self) -> None:
        """Begin an experiment. One request in flight has no part, so two are tried instead."""
        self.is_part = self.whole >= 2.0
        self.whole = max(2.0, self.whole)
        if not self.is_part:
            return self._allow(self.whole)
        part = PART if self.is_known and self.whole >= SMALL else SMALL_PART
        self.limit = float(max(1, int(self.whole * part)))
        return self._begin((2 if self.hold else 1) * max(self.in_flight + 1, self.allowed))

    def _decide(self, part_s: float, part_n: float) -> None:
        """Decide after an experiment how many requests in flight are worth while."""
        self.is_doubted = not self.is_doubted and self.whole_s < UNBELIEVED * part_s
        if self.is_doubted:
            self._allow(self.whole)
            return
        if self.is_known and 1.0 / JUMP < part_s / self.part_s < JUMP:
            part_s = (part_s * self.part_s) ** 0.5
        self.part_s = part_s
        was, ratio = self.whole, self.whole_s / part_s
        is_flat = ratio < FLAT
        is_between = not is_flat and ratio <= LINEAR * self.whole_n / part_n
        self._remember_best(part_s, is_flat=is_flat)
        if is_between:
            aim = min(AIM * self.whole_n / ratio + SPARE, float(self.most))
        else:
            self._turn(1 if is_flat else -1)
            aim = was * self.stride if is_flat else was / self.stride
        is_calm = is_between and 0.7 < aim / was < 1.4
        aim = min(aim, max(self.whole_n * SLOW * self.best_s / self.whole_s, was / 2.0))
        soon = min(self.whole_n * SOON_S / self.whole_s, was * LONGEST_STRIDE, float(self.most))
        if aim < soon:
            aim, is_calm = soon, 0.7 < soon / was < 1.4
        if self.is_busy:
            aim = min(aim, was * SHORTEST_STRIDE)
            self.is_busy = was < self.most
        if aim > NEAR * self.ceiling:
            self._pass_ceiling(was)
        else:
            self._settle(was, aim, is_calm=is_calm)

    def _settle(self, was: float, aim: float, *, is_calm: bool) -> None:
        """Allow `aim`, or a part of the way there from `was`; `is_calm`: `was` is near to it already."""
        self.is_known = is_calm or (self.is_known and self.hold > 0)
        if is_calm:
            aim = (aim * was) ** 0.5
        elif self.is_known:  # one experiment that says otherwise is half believed, two in a row are believed
            aim = min(max(aim, was / 2.0**0.5), was * 2.0**0.5)
        again = min(LONGEST, max(HOLD, 2 * self.hold)) if 0.92 < aim / was < 1.08 else HOLD
        self.hold = again if is_calm else AT_ONE if aim < 2.0 else 0
        self._allow(aim)

    def _pass_ceiling(self, was: float) -> None:
        """Go near to the ceiling now, and past it next time, as the aim is more than the platform bore."""
        self.is_known, self.hold = True, self.patience if self.beyond == BEYOND else AFTER
        aim = (NEAR * self.ceiling * was) ** 0.5
        self.beyond, self.ceiling = 2.0 * self.beyond - 1.0, self.ceiling * self.beyond
        if self.beyond > 2.0:
            self.ceiling, self.patience = _NONE, AFTER
        self._allow(aim)

    def _turn(self, way: int) -> None:
        """Take longer strides while the direction stays the same, and shorter ones after a turn."""
        if way == self.way:
            self.stride = min(LONGEST_STRIDE, self.stride**2)
        elif self.way:
            self.stride = max(SHORTEST_STRIDE, self.stride**0.5)
        self.way = way

    def _remember_best(self, part_s: float, *, is_flat: bool) -> None:
        """Remember the latency at which no request waits, as far as it is known."""
        is_trusted = is_flat and (not self.is_known or self.whole_s > 1.5 * SLOW * self.best_s)
        if is_trusted or not 0.0 < self.best_s < part_s:
            self.best_s = min(part_s, self.whole_s)
        self.best_s += FORGET * (part_s - self.best_s)

    def _allow(self, whole: float, skip: int = -1) -> None:
        """Allow `whole` requests from now on; answers to earlier ones don't count (`skip` of them, if known)."""
        self.whole = self.limit = min(float(self.most), max(1.0, whole))
        self.is_part, self.rounds, self.whole_s, self.whole_n = False, 0, 0.0, 0.0
        self._begin(max(self.in_flight + 1, self.allowed) if skip < 0 else skip)

    def _begin(self, skip: int) -> None:
        """Begin a round."""
        least = 1.0 if self.is_starting else max(float(LEAST), PRECISION * self.noise)
        self.round = Round(skip, float(int(max(least, self.limit))), self.limit)

    def turned(self, turn_s: float, busy: float) -> None:
        """Note that a turn of the event loop took `turn_s` seconds of processor time.

        `busy` is the share of time for which the loop was busy lately.
        """
        if turn_s <= LONG_TURN_S or busy <= BUSY_SHARE or self.limit <= START or self.is_part:
            return
        self.is_starting, self.is_regrowing, self.is_busy = False, False, True
        self.hold = max(HOLD, self.hold)
        self._allow(max(float(START), self.limit * max(0.5, LONG_TURN_S / turn_s)))

    def suffered(self, now: float) -> None:
        """Note a bad answer, or none, at monotonic time `now`: the platform may have too much to do."""
        if now < self.calm_after:
            self.suffering.pass_by()
            return
        if not self.suffering.was_bad(self.limit):
            return
        self.is_busy = False
        if self.suffering.is_alike() and self.suffering.seen >= 20:
            self._conclude()
            return
        if self.suffering.before == 0.0:
            self.level, self.was_starting = self.whole, self.is_starting
        self.is_starting = self.is_regrowing = False
        self._allow(min(self.whole / 2.0, self.limit))
        self.suffering.fell(self.in_flight)
        self.calm_after = now + max(self.mean_s, CALM_S)

    def _conclude(self) -> None:
        """Conclude whether it was of use that the limit fell."""
        self.is_regrowing = True
        if self.suffering.conclude():
            self.ceiling = self.level if self.ceiling == _NONE else max(self.level, 0.7 * self.ceiling)
            self.goal, self.beyond = NEAR * self.ceiling, BEYOND
            self.hold = self.patience if self.is_known else 0
            self.patience = min(LONGEST, 2 * self.patience)
        else:
            self.goal, self.is_starting = self.level, self.was_starting
