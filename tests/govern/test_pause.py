"""While a run is paused nothing leaves but what looks for a lost write; what is set in a running one counts at once."""

import contextlib
from collections.abc import AsyncIterator

import anyio
import pytest

from bulk.govern.governor import Governor
from bulk.govern.permits.accounts import Permit, PermitQueue
from bulk.govern.rate_limit_poller import RateLimitPoller
from bulk.govern.user_limits import UserLimits
from bulk.model import Reply
from bulk.platform.classification import Verdict, VerdictKind
from tests.govern.counting import Platform, Source
from tests.virtual_time import VirtualClock, run_virtual

LIMIT = 1_000


class Served:
    """A governor whose token is proven, and who got a permit in which order."""

    def __init__(self, concurrency: int = 4) -> None:
        clock = VirtualClock()
        self.platform = Platform(clock, limit=LIMIT, window_s=3_600)
        user_limits = UserLimits(concurrency, lambda limit: 0, False, 30.0)
        self.governor = Governor(user_limits, clock, lambda *_: 100, lambda _: None)
        self.account = self.governor.open_account(Source("token-one"), ["core"])
        self.names: list[str] = []

    @property
    def queue(self) -> PermitQueue:
        """The only one."""
        return self.governor.queue("default", "core")

    async def wait(self, name: str, is_settling: bool = False) -> None:
        """Stand in the queue; the permit is kept."""
        await self.governor.permit(self.queue, is_settling=is_settling)
        self.names.append(name)

    def answered(self, permit: Permit) -> None:
        """Its request was answered."""
        self.governor.answered(permit, Reply(status=200, headers={}), Verdict(VerdictKind.ACCEPTED))

    @contextlib.asynccontextmanager
    async def begun(self) -> AsyncIterator[anyio.abc.TaskGroup]:
        """It is attended, the limits are known, the token is proven."""
        async with anyio.create_task_group() as group:
            group.start_soon(RateLimitPoller(self.governor, self.account, self.platform.ask).run)
            group.start_soon(self.governor.attend, self.queue)
            self.answered(await self.governor.permit(self.queue))
            yield group
            group.cancel_scope.cancel()


def test_who_waits_for_a_permit_is_held() -> None:
    """A pause holds who comes then, and who stood in the queue before; afterwards all are served in their order."""

    async def scene() -> None:
        served = Served(concurrency=1)
        async with served.begun() as group:
            taken = await served.governor.permit(served.queue)
            group.start_soon(served.wait, "before")
            await anyio.sleep(1.0)
            served.governor.pause()
            served.answered(taken)
            group.start_soon(served.wait, "then")
            await anyio.sleep(60.0)
            assert (served.names, served.queue.obstacle) == ([], "paused")
            assert served.governor.permit_nowait(served.queue) is None
            served.governor.set_concurrency(4)
            served.governor.go_on()
            await anyio.sleep(1.0)
            assert served.names == ["before"]  # one is all that it was made for
        assert served.governor.concurrency.most == 4

    run_virtual(scene)


def test_a_permit_that_was_given_before_is_not_used() -> None:
    """The last look before sending says no to a permit from before the pause, and yes to one that only looks."""

    async def scene() -> None:
        served = Served()
        async with served.begun():
            given = await served.governor.permit(served.queue)
            assert served.governor.may_leave(given)
            served.governor.pause()
            assert not served.governor.may_leave(given)
            looking = await served.governor.permit(served.queue, is_settling=True)
            assert served.governor.may_leave(looking)
            served.governor.go_on()
            assert served.governor.may_leave(given)

    run_virtual(scene)


def test_who_settles_is_served_first_and_while_it_is_paused() -> None:
    """Who looks for a lost write goes before all others, and is not held by a pause."""

    async def scene() -> None:
        served = Served(concurrency=1)
        async with served.begun() as group:
            taken = await served.governor.permit(served.queue)
            group.start_soon(served.wait, "others")
            await anyio.sleep(1.0)
            group.start_soon(served.wait, "settling", True)
            await anyio.sleep(1.0)
            served.governor.pause()
            served.answered(taken)
            await anyio.sleep(1.0)
            assert served.names == ["settling"]

    run_virtual(scene)


def test_a_reserve_counts_at_once() -> None:
    """A new reserve is that of the open window too; one that would leave nothing is refused, and changes nothing."""

    async def scene() -> None:
        served = Served()
        async with served.begun():
            await anyio.sleep(1.0)
            bucket = served.queue.bucket
            assert bucket is not None
            served.governor.set_reserve(lambda limit: limit - 10)
            assert bucket.reserve == LIMIT - 10
            with pytest.raises(ValueError, match=r"nothing of core \(1,000 requests\)"):
                served.governor.set_reserve(lambda limit: limit)
            assert bucket.reserve == LIMIT - 10
            granted = 0
            while served.governor.permit_nowait(served.queue) is not None:
                granted += 1
            assert granted == 4
            assert served.governor.user_limits.reserve(500) == 490

    run_virtual(scene)


def test_fewer_may_be_in_flight_from_now_on() -> None:
    """A lower limit lets nobody begin until so many have ended; it never exceeds what the machine can hold."""

    async def scene() -> None:
        served = Served(concurrency=16)
        async with served.begun():
            permits = [served.governor.permit_nowait(served.queue) for _ in range(8)]
            served.governor.set_concurrency(2)
            for permit in permits[:6]:
                assert permit is not None
                assert served.governor.permit_nowait(served.queue) is None
                served.answered(permit)
            assert served.governor.permit_nowait(served.queue) is None
            assert permits[6] is not None
            served.answered(permits[6])
            assert served.governor.permit_nowait(served.queue) is not None
            served.governor.concurrency.cap(9)
            served.governor.set_concurrency(16)
            assert served.governor.concurrency.most == 9

    run_virtual(scene)
