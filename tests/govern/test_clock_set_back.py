"""A platform that sets its clock back: who was sent to see whether a window is over may have come too early."""

import anyio
import pytest

from bulk.govern.governor import Governor
from bulk.govern.permits.accounts import PermitQueue
from bulk.govern.rate_limit_poller import RateLimitPoller
from bulk.govern.user_limits import UserLimits
from bulk.model import ErrorCode, Failure, FailureKind
from tests.govern.counting import Platform, Source
from tests.virtual_time import VirtualClock, run_virtual

LIMIT, WINDOW_S = 10, 10


async def send(governor: Governor, queue: PermitQueue, platform: Platform, *, arrives: bool = True) -> int:
    """One request with the next permit: the status of its answer; 0: it got lost before it reached the platform."""
    permit = await governor.permit(queue)
    if not arrives:
        governor.failed(permit, Failure(kind=FailureKind.LOST, code=ErrorCode.CONNECTION, message="reset"))
        return 0
    reply, verdict = await platform.request(permit.token)
    governor.answered(permit, reply, verdict)
    return reply.status


def could_leave(governor: Governor, queue: PermitQueue) -> int:
    """How many permits can be had at once (count); none of them is used."""
    permits = []
    while (permit := governor.permit_nowait(queue)) is not None:
        permits.append(permit)
    for permit in permits:
        governor.return_unused(permit)
    return len(permits)


@pytest.mark.parametrize("lost", [0, 1, 3])
def test_a_look_that_came_too_early_opens_no_window(lost: int) -> None:
    """failures.md row 34: a window is empty by what was sent, and some of that never arrived; the platform's clock is
    set back by half a second shortly before the end. Who looks by the clock of before is served out of the old window,
    or refused: that opens none, and one that comes after the end by the date of that answer does."""

    async def main() -> None:
        clock = VirtualClock()
        platform = Platform(clock, LIMIT, WINDOW_S)
        governor = Governor(UserLimits(16, lambda limit: 0, False, 30.0), clock, lambda *_: 1_000, lambda error: None)
        account = governor.open_account(Source("token-one"), ["core"])
        queue = governor.queue("default", "core")
        await RateLimitPoller(governor, account, platform.ask).ask_once()
        async with anyio.create_task_group() as group:
            group.start_soon(governor.attend, queue)
            for number in range(LIMIT):
                assert await send(governor, queue, platform, arrives=number % 3 > 0 or number >= 3 * lost) in (0, 200)
            await anyio.sleep(9.5 - clock.monotonic())
            platform.skew_s = -0.5
            assert await send(governor, queue, platform) == (200 if lost else 403)
            assert platform.now() < platform.window_end
            assert could_leave(governor, queue) == 0
            assert await send(governor, queue, platform) == 200
            assert len(platform.used) == 2
            assert could_leave(governor, queue) == LIMIT - 1
            group.cancel_scope.cancel()
        assert sum(status == 403 for _, _, status in platform.log) == (0 if lost else 1)

    run_virtual(main)
