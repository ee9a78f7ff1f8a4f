"""This process as a limit: turns of its event loop that take too long have fewer requests in flight."""

import anyio
import anyio.lowlevel
import pytest

from bulk.clock import Clock
from bulk.govern.concurrency.adaptive_limit import BUSY_SHARE, LONG_TURN_S, START, AdaptiveLimit
from bulk.govern.concurrency.loop_load import EVERY
from bulk.govern.governor import Governor
from bulk.govern.user_limits import UserLimits
from bulk.model import Reply

BUSY = 0.9


def grown(one: AdaptiveLimit | None = None) -> AdaptiveLimit:
    """All that the user allows is allowed and used."""
    one = one or AdaptiveLimit(64)
    while one.allowed < one.most or one.is_starting:
        answer(one)
    return one


def answer(one: AdaptiveLimit) -> None:
    """A good answer while all that is allowed is in flight."""
    one.in_flight = one.allowed - 1
    one.answered(0.02)


def test_a_long_turn_of_a_busy_loop_shortens_the_next() -> None:
    """By what it was too long, at most to a half; then no answer adds to it any more."""
    one = grown()
    one.turned(LONG_TURN_S * 1.25, BUSY)
    assert one.limit == pytest.approx(64 / 1.25)
    one.limit = 64.0
    one.turned(LONG_TURN_S * 10, BUSY)
    assert one.limit == 32.0
    answer(one)
    assert one.limit == 32.0


def test_what_this_process_can_serve_is_tried_in_small_steps() -> None:
    """After a while a fifth more, where the platform could do more: turns tell whether that was too much."""
    one = grown(AdaptiveLimit(1_000))
    one.turned(1.0, BUSY)
    seen = {one.whole}
    while one.whole < 800.0:
        answer(one)
        seen.add(one.whole)
    steps = sorted(seen)
    assert steps[:3] == pytest.approx([500.0, 600.0, 720.0])


def test_an_experiment_is_not_disturbed() -> None:
    """While a part of what is allowed is in flight, turns that are still long are what is left of the whole."""
    one = grown(AdaptiveLimit(1_000))
    one.turned(1.0, BUSY)
    while not one.is_part:
        answer(one)
    limit = one.limit
    one.turned(1.0, BUSY)
    assert (one.limit, one.whole) == (limit, 500.0)


@pytest.mark.parametrize(("turn_s", "busy"), [(LONG_TURN_S, BUSY), (1.0, BUSY_SHARE), (0.0, 1.0)])
def test_a_short_turn_or_one_of_a_loop_that_mostly_waits_changes_nothing(turn_s: float, busy: float) -> None:
    """A page of progress that is drawn now and then must not slow down a run that waits for a far platform."""
    one = grown()
    one.turned(turn_s, busy)
    assert one.limit == 64.0
    assert one.obstacle == "concurrency"


@pytest.mark.parametrize("limit", [1.0, 2.5, float(START)])
def test_it_never_falls_below_the_start(limit: float) -> None:
    """And what is lower already, for the platform's sake, is neither raised nor lowered."""
    one = grown()
    for _ in range(10):
        one.turned(1.0, BUSY)
    assert one.limit == START
    one = AdaptiveLimit(64)
    one.limit = limit
    one.turned(1.0, BUSY)
    assert (one.limit, one.is_starting, one.obstacle) == (limit, True, "concurrency")


def test_who_waits_is_told_that_this_process_is_busy() -> None:
    """Until all that the user allows is allowed again, or the platform is the reason."""
    one = grown()
    one.turned(1.0, BUSY)
    assert one.obstacle == "concurrency, as this process is busy"
    for _ in range(32 * 64):
        answer(one)
    assert one.allowed == 64
    assert one.obstacle == "concurrency"
    one.turned(1.0, BUSY)
    for _ in range(10):
        one.suffered(10.0)
    assert one.obstacle == "concurrency"


class Laden(Clock):
    """A clock that a test turns: each turn of the loop takes `turn_s` of processor time and `wall_s` of time."""

    def __init__(self, turn_s: float, wall_s: float) -> None:
        self.turn_s, self.wall_s, self.turns = turn_s, wall_s, 0

    def monotonic(self) -> float:
        return self.turns * self.wall_s

    def processor(self) -> float:
        return self.turns * self.turn_s

    async def turn(self) -> None:
        """What the loop has to do in each turn."""
        while True:
            self.turns += 1
            await anyio.lowlevel.checkpoint()


def after(clock: Laden, answers: int) -> AdaptiveLimit:
    """What is allowed after `answers` answers in as many turns, and some more turns."""
    governor = Governor(UserLimits(64, lambda _: 0, False, 30.0), clock, lambda *_: 1, lambda _: None)
    one = grown(governor.concurrency)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(clock.turn)
            group.start_soon(governor.loop_load.run)
            await anyio.lowlevel.checkpoint()
            for _ in range(answers):
                governor.heard(Reply(200, {}), clock.monotonic(), clock.monotonic())
                await anyio.lowlevel.checkpoint()
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    anyio.run(main)
    return one


def test_one_turn_is_measured_for_so_many_answers() -> None:
    """Exactly one: of 10 ms, where 8 are right."""
    assert after(Laden(0.01, 0.011), EVERY).limit == pytest.approx(64 * 8 / 10)
    assert after(Laden(0.01, 0.011), EVERY - 1).limit == 64.0
    assert after(Laden(0.01, 0.011), 2 * EVERY).limit == pytest.approx(64 * 8 / 10 * 8 / 10)


@pytest.mark.parametrize(("turn_s", "wall_s"), [(0.01, 0.025), (0.007, 0.007)])
def test_turns_that_are_short_or_few_are_right(turn_s: float, wall_s: float) -> None:
    """A loop that is busy for two fifths of the time, and one whose turns are short."""
    assert after(Laden(turn_s, wall_s), 4 * EVERY).limit == 64.0


def test_a_process_that_works_for_others_is_measured_by_its_own_clock() -> None:
    """The real clock: processor time passes while we compute, and hardly while we sleep."""
    clock = Clock()
    before = clock.processor()
    anyio.run(clock.sleep, 0.05)
    slept_s = clock.processor() - before
    before = clock.processor()
    sum(range(1_000_000))
    assert slept_s < 0.04
    assert clock.processor() - before > 0.0
