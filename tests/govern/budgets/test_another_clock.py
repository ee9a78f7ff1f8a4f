"""A clock of the platform by which a used-up window is over is tried by the request that leaves, not by a question."""

from bulk.govern.budgets.buckets import Bucket
from bulk.govern.governor import Governor
from bulk.govern.user_limits import UserLimits
from tests.govern.counting import Source
from tests.virtual_time import VirtualClock, run_virtual

NOW = 1_700_000_000.0


def test_a_faster_clock_is_tried_when_a_permit_is_given() -> None:
    """As long as there is no room for a request, the clock stays as it is, however often somebody asks."""

    async def asked() -> None:
        clock = VirtualClock()
        governor = Governor(UserLimits(1, lambda limit: 0, False, 30.0), clock, lambda *_: 100, lambda _: None)
        account = governor.open_account(Source("token-one"), ["core"])
        account.prove(0.0)
        account.was_asked = account.is_known = True
        queue, now, time = account.queues["core"], clock.monotonic(), governor.time
        time.low, time.high, time.is_known, time.is_guess = NOW - now - 0.5, NOW - now + 0.5, True, False
        time.others = [(time.low + 100.0, time.high + 100.0)]
        queue.bucket = Bucket(10, 0, NOW + 60.0, 60.0)
        before = time.low, time.high
        governor.concurrency.in_flight = 1
        for _ in range(3):
            assert governor.permit_nowait(queue) is None
        assert ((time.low, time.high), time.untried) == (before, None)
        governor.concurrency.in_flight = 0
        permit = governor.permit_nowait(queue)
        assert permit is not None
        assert time.untried == before

    run_virtual(asked)
