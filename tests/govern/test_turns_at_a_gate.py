"""Who gets the room that an answer makes: items under way, other categories, and then the worker that made it."""

import contextlib
import itertools
from collections.abc import AsyncIterator, Callable

import anyio
import anyio.lowlevel
import pytest

from bulk.govern.governor import Governor
from bulk.govern.permits.accounts import Permit
from bulk.govern.rate_limit_poller import RateLimitPoller
from bulk.govern.user_limits import Draining, UserLimits
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
        self.governor = Governor(UserLimits(1, lambda limit: 0, False, 30.0), clock, lambda *_: 100, lambda _: None)
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


class Crowd:
    """Accounts with platforms of their own, and so many workers each, who want the same room.

    Attributes:
        served: when requests of each account were answered (monotonic seconds).
    """

    def __init__(self, room: int, limits: dict[str, tuple[int, int]], work: dict[str, int]) -> None:
        self.clock = VirtualClock()
        self.platforms = {name: Platform(self.clock, *limit) for name, limit in limits.items()}
        self.work, self.served = work, {name: list[float]() for name in limits}
        self.governor = Governor(UserLimits(room, lambda limit: 0, True, 30.0), self.clock, self._left, lambda _: None)
        self.accounts = {name: self.governor.open_account(named(name), ["core"]) for name in limits}
        self.queues = {name: self.governor.queue(name, "core") for name in limits}
        self.at_work = 0

    def _left(self, name: str, _: str) -> int:
        return self.work[name]

    async def _worker(self, name: str) -> None:
        governor, queue = self.governor, self.queues[name]
        self.at_work += 1
        with contextlib.suppress(Draining):
            while self.work[name] > 0:
                self.work[name] -= 1
                permit = governor.permit_nowait(queue) or await governor.permit(queue)
                while not governor.may_leave(permit):
                    governor.return_unused(permit)
                    permit = await governor.permit(queue)
                governor.answered(permit, *await self.platforms[name].request(permit.token))
                self.served[name].append(self.clock.monotonic())
        self.at_work -= 1

    @contextlib.asynccontextmanager
    async def working(self, workers: int) -> AsyncIterator[None]:
        """All of them at work until the end."""
        async with anyio.create_task_group() as group:
            for name, account in self.accounts.items():
                group.start_soon(RateLimitPoller(self.governor, account, self.platforms[name].ask).run)
                group.start_soon(self.governor.attend, self.queues[name])
                for _ in range(workers):
                    group.start_soon(self._worker, name)
            yield
            group.cancel_scope.cancel()

    async def until_due(self) -> None:
        """Until a paced queue's time has come and there is no room for it."""
        while not any(queue.due for queue in self.queues.values()):
            await anyio.sleep(0.001)

    def longest_s(self, name: str, begin: float, end: float) -> float:
        """The longest time without an answer between two moments (seconds)."""
        moments = [begin, *(at for at in self.served[name] if begin < at < end), end]
        return max(after - before for before, after in itertools.pairwise(moments))

    @property
    def refused(self) -> int:
        """Requests beyond any budget (count)."""
        return sum(status == 403 for each in self.platforms.values() for _, _, status in each.log)


def test_who_is_paced_loses_nothing_of_a_window_to_those_who_are_not() -> None:
    """Others want all the room at every moment, and have budget enough; a budget that is spread over its window is used
    up all the same, as what is left of it ends with the window.
    """

    async def main() -> None:
        crowd = Crowd(4, {"busy": (100_000, 3_600), "paced": (100, 10)}, {"busy": 40_000, "paced": 500})
        async with crowd.working(24):
            await anyio.sleep(45.0)
        full = list(crowd.platforms["paced"].used.values())[1:-1]
        assert len(full) >= 3
        assert min(full) >= 99, full
        assert crowd.longest_s("busy", 1.0, 45.0) < 0.5, "there was no want of room"

    run_virtual(main)


PACED = {"one": (1_000, 10), "two": (1_000, 10), "three": (1_000, 10)}
"""Budgets of 300 requests per second together, where a room of four lets out 200."""


@pytest.mark.parametrize("room", [1, 4])
def test_nobody_starves_where_what_is_paced_takes_all_the_room(room: int) -> None:
    """Three budgets could use more room than there is at every moment: whoever is not paced, and each of the three, is
    served all the time."""

    async def main() -> None:
        names = {**PACED, "calm": (100_000, 3_600)}
        crowd = Crowd(room, names, dict.fromkeys(PACED, 100_000) | {"calm": 50_000})
        async with crowd.working(8):
            await anyio.sleep(30.0)
        assert max(crowd.longest_s(name, 1.0, 30.0) for name in names) < 1.0
        assert crowd.refused == 0
        assert len(crowd.served["calm"]) < min(len(crowd.served[name]) for name in PACED)

    run_virtual(main)


def _pause(crowd: Crowd) -> Callable[[], None]:
    crowd.governor.pause()
    return crowd.governor.go_on


def _less_room(crowd: Crowd) -> Callable[[], None]:
    crowd.governor.set_concurrency(1)
    return lambda: crowd.governor.set_concurrency(4)


def _another_token(crowd: Crowd) -> Callable[[], None]:
    crowd.platforms["one"].good_tokens = {"token-two"}
    return lambda: None


def _no_reserve(crowd: Crowd) -> Callable[[], None]:
    crowd.governor.set_reserve(lambda limit: limit // 2)
    return lambda: crowd.governor.set_reserve(lambda limit: 0)


@pytest.mark.parametrize("change", [_pause, _less_room, _another_token, _no_reserve])
def test_what_is_due_survives_what_comes_between(change: Callable[[Crowd], Callable[[], None]]) -> None:
    """A pause, less room, a token that is not taken any more, a reserve, each while paced queues are due: a second
    after it is over all are served again, and no budget was exceeded."""

    async def main() -> None:
        names = {**PACED, "calm": (100_000, 3_600)}
        crowd = Crowd(4, names, dict.fromkeys(PACED, 100_000) | {"calm": 50_000})
        async with crowd.working(8):
            await anyio.sleep(3.0)
            await crowd.until_due()
            undo = change(crowd)
            await anyio.sleep(2.0)
            undo()
            over = crowd.clock.monotonic()
            await anyio.sleep(24.0)
        assert max(crowd.longest_s(name, over + 1.0, over + 24.0) for name in names) < 1.0
        assert crowd.refused == 0
        assert change is not _pause or max(crowd.longest_s(name, over - 2.0, over) for name in names) > 1.9

    run_virtual(main)


def test_a_run_that_drains_while_something_is_due_ends() -> None:
    """Who waits at a paced queue that is due is turned away, and who has a permit ends."""

    async def main() -> None:
        crowd = Crowd(2, PACED, dict.fromkeys(PACED, 100_000))
        async with crowd.working(8):
            await anyio.sleep(3.0)
            await crowd.until_due()
            crowd.governor.drain()
            await anyio.sleep(0.1)
            assert crowd.at_work == 0
            assert crowd.governor.concurrency.in_flight == 0

    run_virtual(main)


@pytest.mark.parametrize("is_paused", [False, True])
def test_who_settles_a_lost_write_is_not_held_up_by_what_is_due(is_paused: bool) -> None:
    """It gets a permit within a few answers at a queue that is not paced, and at one that is, also in a pause."""

    async def main() -> None:
        names = {**PACED, "calm": (100_000, 3_600)}
        crowd = Crowd(2, names, dict.fromkeys(PACED, 100_000) | {"calm": 50_000})
        async with crowd.working(8):
            await anyio.sleep(3.0)
            await crowd.until_due()
            if is_paused:
                crowd.governor.pause()
            for name in ("calm", "one"):
                began = crowd.clock.monotonic()
                crowd.governor.return_unused(await crowd.governor.permit(crowd.queues[name], is_settling=True))
                assert crowd.clock.monotonic() - began < 0.5

    run_virtual(main)


def named(name: str) -> Source:
    """A credential of that name."""
    source = Source("token-one", "token-two")
    source.name = name
    return source
