"""Who gets the room that an answer makes: items under way, other categories, and then the worker that made it."""

import contextlib
from collections.abc import AsyncIterator

import anyio
import anyio.lowlevel
import pytest

from bulk.govern.governor import Governor
from bulk.govern.permits.accounts import Permit
from bulk.govern.policy import Policy
from bulk.govern.rate_limit_poller import RateLimitPoller
from bulk.model import Reply
from bulk.platform.classification import Verdict, VerdictKind
from tests.govern.counting import Platform, Source
from tests.virtual_time import VirtualClock, run_virtual

ACCEPTED = Verdict(VerdictKind.ACCEPTED)


class Gates:
    """A governor with two permit queues, room for one request, and a record of who got a permit in which order."""

    def __init__(self) -> None:
        clock = VirtualClock()
        self.platform = Platform(clock, limit=10_000, window_s=3_600)
        self.governor = Governor(Policy(1, lambda limit: 0, False, 30.0), clock, lambda *_: 100, lambda _: None)
        self.account = self.governor.open_account(Source("token-one"), ["core", "search"])
        self.served: list[str] = []

    async def wait(self, name: str, category: str, is_new: bool) -> None:
        """Stand at a permit queue; the permit is kept."""
        await self.governor.permit(self.governor.queue("default", category), is_new=is_new)
        self.served.append(name)

    def answered(self, permit: Permit) -> None:
        """Its request was answered: there is room for another one."""
        self.governor.answered(permit, Reply(status=200, headers={}), ACCEPTED)

    @contextlib.asynccontextmanager
    async def taken(self, *waiting: tuple[str, str, bool]) -> AsyncIterator[Permit]:
        """A permit at `core` that takes all the room, while others wait: (name, category, is_new) of each."""
        governor = self.governor
        async with anyio.create_task_group() as group:
            group.start_soon(RateLimitPoller(governor, self.account, self.platform.ask).run)
            for queue in self.account.queues.values():
                group.start_soon(governor.attend, queue)
            queue = governor.queue("default", "core")
            self.answered(await governor.permit(queue))  # proves the token
            permit = await governor.permit(queue)
            for each in waiting:
                group.start_soon(self.wait, *each)
                await turns()
            assert not self.served
            yield permit
            group.cancel_scope.cancel()


async def turns(count: int = 5) -> None:
    """Some turns of the event loop."""
    for _ in range(count):
        await anyio.lowlevel.checkpoint()


def test_the_worker_that_made_room_goes_on_before_others_that_have_no_item() -> None:
    """They would do the same, and to wake them costs more."""

    async def main() -> None:
        queues = Gates()
        async with queues.taken(("idle", "core", True)) as permit:
            for _ in range(3):
                queues.answered(permit)
                again = queues.governor.permit_nowait(permit.queue)
                assert again is not None
                permit = again
                await turns()
            assert queues.served == []
            assert permit.queue.waiting == 1

    run_virtual(main)


def test_room_that_it_does_not_take_is_not_lost() -> None:
    """It waits for something else now: the next one has the room a turn later; also room that was never used."""

    async def main() -> None:
        queues = Gates()
        async with queues.taken(("first", "core", True), ("second", "core", True)) as permit:
            queues.answered(permit)
            await turns()
            assert queues.served == ["first"]
        queues = Gates()
        async with queues.taken(("first", "core", True)) as permit:
            queues.governor.return_unused(permit)
            await turns()
            assert queues.served == ["first"]

    run_virtual(main)


@pytest.mark.parametrize("first", [("under way", "core", False), ("other", "search", True)])
def test_others_go_before_the_worker_that_made_room(first: tuple[str, str, bool]) -> None:
    """An item under way, and another category, which one that has all the room would keep out; at once."""

    async def main() -> None:
        queues = Gates()
        async with queues.taken(("idle", "core", True), first) as permit:
            queues.answered(permit)
            assert queues.governor.permit_nowait(permit.queue) is None
            await turns()
            assert queues.served == [first[0]]

    run_virtual(main)


def test_who_gives_up_waiting_leaves_the_gate() -> None:
    """Cancelled while it waits, as one without an item or with one: nothing is handed to it later."""

    async def main() -> None:
        queues = Gates()
        async with queues.taken() as permit:
            for is_new in (True, False):
                with anyio.move_on_after(0.1):
                    await queues.wait("cancelled", "core", is_new)
                assert permit.queue.waiting == 0
            queues.answered(permit)
            assert queues.governor.permit_nowait(permit.queue) is not None
            assert queues.served == []

    run_virtual(main)


def test_who_is_paced_loses_nothing_of_a_window_to_those_who_are_not() -> None:
    """Others want all the room at every moment, and have budget enough; a budget that is spread over its window is used
    up all the same, as what is left of it ends with the window.
    """

    async def main() -> None:
        clock = VirtualClock()
        busy, paced = Platform(clock, limit=100_000, window_s=3_600), Platform(clock, limit=100, window_s=10)
        work = {"busy": 40_000, "paced": 500}
        governor = Governor(Policy(4, lambda limit: 0, True, 30.0), clock, lambda name, _: work[name], lambda _: None)
        accounts = {name: governor.open_account(named(name), ["core"]) for name in work}
        platforms = {"busy": busy, "paced": paced}

        async def worker(name: str) -> None:
            queue = governor.queue(name, "core")
            while work["paced"] > 0 and work[name] > 0:
                work[name] -= 1
                permit = governor.permit_nowait(queue) or await governor.permit(queue)
                governor.answered(permit, *await platforms[name].request(permit.token))

        async with anyio.create_task_group() as services:
            for name, account in accounts.items():
                services.start_soon(RateLimitPoller(governor, account, platforms[name].ask).run)
                services.start_soon(governor.attend, governor.queue(name, "core"))
            async with anyio.create_task_group() as group:
                for name in [*["busy"] * 40, *["paced"] * 8]:
                    group.start_soon(worker, name)
            services.cancel_scope.cancel()
        full = list(paced.used.values())[1:-1]
        assert len(full) >= 3
        assert min(full) >= 99, full
        assert work["busy"] > 0, "there was no want of room"

    run_virtual(main)


def named(name: str) -> Source:
    """A credential of that name."""
    source = Source("token-one")
    source.name = name
    return source
