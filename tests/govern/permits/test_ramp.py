"""After a limit that no budget explains, requests begin with one, and end with what the platform allows at once."""

import math

import anyio
import pytest

from bulk.govern.permits.ramp import GROW_FIRST_S, Ramp, Wordless
from bulk.model import ErrorCode, Reply
from bulk.platform.auth.secrets import Secret
from bulk.platform.classification import Verdict, VerdictKind
from tests.govern.counting import LATENCY_S, Platform, Source
from tests.govern.test_governor import Bench, user_limits
from tests.virtual_time import VirtualClock, run_virtual

PENALTY_S = 2.0


class Strict(Platform):
    """Refuses a credential with more than `at_once` requests in flight, and for as long as it goes on."""

    def __init__(self, clock: VirtualClock, at_once: int, names_time: bool = True) -> None:
        super().__init__(clock)
        self.is_off, self.at_once, self.names_time = True, at_once, names_time
        self.in_flight = self.refused = 0
        self.closed_until = -math.inf

    async def request(self, token: Secret, status: int = 200) -> tuple[Reply, Verdict]:
        """One request."""
        self.in_flight += 1
        try:
            now = self.clock.monotonic()
            if now < self.closed_until or self.in_flight > self.at_once:
                self.refused += 1
                self.closed_until = now + PENALTY_S
                await anyio.sleep(LATENCY_S / 2)
                wait_s = PENALTY_S if self.names_time else None
                kind = VerdictKind.LIMITED_SECONDARY
                return Reply(status=403, headers=self._headers()), Verdict(kind, ErrorCode.RATE_LIMITED, "", wait_s)
            return await super().request(token, status)
        finally:
            self.in_flight -= 1


@pytest.mark.parametrize("at_once", [1, 3, 5, 10, 15])
def test_a_limit_of_requests_at_once_is_found_and_kept(at_once: int) -> None:
    """A platform that refuses more than a few at once, and longer who goes on, serves all, and refuses few."""

    async def main() -> None:
        clock = VirtualClock()
        platform = Strict(clock, at_once)
        bench = Bench(clock, platform, user_limits(), Source("token-one"), work=6_000)
        took = await bench.run()
        assert bench.done == 6_000
        assert platform.refused < 120
        assert took < 30.0 + 3.0 * 6_000 * LATENCY_S / at_once

    run_virtual(main)


def test_a_limit_without_a_time_is_met_few_times() -> None:
    """Where no time is named, each such limit costs a minute or more: the second one is the last for a while."""

    async def main() -> None:
        clock = VirtualClock()
        platform = Strict(clock, 5, names_time=False)
        bench = Bench(clock, platform, user_limits(), Source("token-one"), work=6_000)
        took = await bench.run()
        assert bench.done == 6_000
        assert took < 600.0

    run_virtual(main)


def test_a_budget_leaves_nothing_behind() -> None:
    """A limit that comes when all were in flight for a while is of a budget: nothing is learned of it."""
    ramp = Ramp(since=10.0)
    for _ in range(15):
        ramp.answered(min(15, int(ramp.allowed) - 1), 11.0)
    assert ramp.has_room(15)
    were_over = []
    for _ in range(64):
        were_over.append(ramp.is_over)
        ramp.answered(15, 12.0)
    assert (were_over[0], ramp.is_over) == (False, True)
    ramp.refused(granted=12.0, now=12.1)
    assert (ramp.allowed, ramp.known) == (1.0, math.inf)


def test_what_had_left_before_tells_nothing_new() -> None:
    """Of many requests in flight all are refused by one limit."""
    ramp = Ramp(since=10.0)
    for _ in range(7):
        ramp.answered(int(ramp.allowed) - 1, 13.0)
    ramp.refused(granted=9.0, now=13.1)
    assert (ramp.allowed, ramp.known) == (8.0, math.inf)
    ramp.refused(granted=13.0, now=13.2)
    assert (ramp.allowed, ramp.known) == (1.0, 4.0)
    ramp.refused(granted=13.1, now=13.3)
    assert (ramp.allowed, ramp.known) == (1.0, 4.0)


def test_more_is_tried_later_and_more_seldom_where_that_was_refused() -> None:
    """What is known to be allowed is passed by a little; after a refusal it counts again, and for twice as long."""
    ramp = Ramp(since=0.0, allowed=4.0, known=4.0, grows_at=20.0)
    ramp.answered(3, 19.0)
    assert ramp.allowed == 4.0
    ramp.answered(3, 20.0)
    assert ramp.allowed == 5.0
    ramp.refused(granted=20.5, now=21.0)
    assert (ramp.allowed, ramp.known, ramp.grow_s) == (1.0, 4.0, 2 * GROW_FIRST_S)


def test_one_alone_is_no_sign_of_too_many() -> None:
    """A request that was refused alone had waited too short: nothing is learned of how many may go at once."""
    ramp = Ramp(since=0.0)
    ramp.refused(granted=1.0, now=1.1)
    assert (ramp.allowed, ramp.known) == (1.0, math.inf)


def test_refusals_without_a_reason_in_a_row_are_waited_for_together_for_a_minute() -> None:
    """Not before the fifth in a row, and not for those that had left before the wait; each wait is as long as all that
    came before it, and when they were in vain, there is none any more."""
    wordless = Wordless()
    assert [wordless.pause_s(is_newer=True) for _ in range(4)] == [0.0] * 4
    assert wordless.pause_s(is_newer=True) == 1.0
    assert wordless.pause_s(is_newer=False) == 0.0
    assert [wordless.pause_s(is_newer=True) for _ in range(7)] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 0.0]
    assert (wordless.is_vain, wordless.waited_s) == (True, 64.0)
    wordless.served()
    assert wordless.pause_s(is_newer=True) == 0.0


def test_a_good_answer_ends_the_waits_for_refusals_without_a_reason() -> None:
    """The next time they begin with a second again, after as many in a row."""
    wordless = Wordless(in_row=7, waited_s=4.0)
    wordless.in_row = 0
    wordless.served()
    assert [wordless.pause_s(is_newer=True) for _ in range(6)] == [0.0] * 4 + [1.0, 1.0]


def test_a_front_end_that_leads_to_the_limits_has_not_lost_its_way() -> None:
    """Where `/rate_limit` is answered, 404s of a front end in a row are no reason to wait; refusals of the platform
    without a reason still are."""
    for is_astray in (True, False):
        wordless = Wordless(in_row=4, is_astray=is_astray)
        wordless.limits_told()
        assert wordless.pause_s(is_newer=True) == (0.0 if is_astray else 1.0)
