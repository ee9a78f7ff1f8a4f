"""Workers in virtual time that share one budget: real governors, and a store that is a row in memory, some way off."""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from bulk.govern.budgets.buckets import Bucket
from bulk.govern.budgets.shared_bucket import Lease, SharedBucket, Wish, unlimited
from bulk.govern.governor import Governor
from bulk.govern.peers import SendDeadline
from bulk.govern.permits.accounts import Account
from bulk.govern.rate_limit_poller import RateLimitPoller
from bulk.govern.user_limits import UserLimits
from bulk.platform.classification import Limits
from tests.govern.counting import LATENCY_S, Platform, Source
from tests.virtual_time import VirtualClock

PATIENCE_S = 1.0
"""How long a request may be under way (seconds)."""
POLL_S = 2.0


class Store:
    """The row of one bucket; each question takes `TRIP_S`."""

    def __init__(self, clock: VirtualClock, dice: random.Random, reserve: int = 0) -> None:
        self.clock, self._dice, self.reserve = clock, dice, reserve
        self.row = ""
        self.poller, self.poll_until = -1, 0.0
        self.leases = 0
        self.is_away = False

    async def trip(self) -> None:
        """One way."""
        await anyio.sleep(self._dice.uniform(0.5, 2.0) / 1_000.0)

    def load(self) -> SharedBucket | None:
        """The row."""
        return SharedBucket.of_data(json.loads(self.row)) if self.row else None

    def keep(self, shared: SharedBucket) -> None:
        """Write it."""
        self.row = json.dumps(shared.data())


class Member:
    """One worker's way to the store (`peers.Peers`)."""

    def __init__(self, store: Store, number: int) -> None:
        self.store, self.number = store, number
        self.deadline = SendDeadline(1e18)

    def know(self, accounts: Iterable[Account], payers: Mapping[str, Sequence[Account]]) -> None:
        """See `Peers`: there is one account."""

    async def lease(
        self, account: str, category: str, wish: Wish, now: float, late: float
    ) -> tuple[Lease, Bucket | None] | None:
        """See `Peers`."""
        store = self.store
        await store.trip()
        if store.is_away:
            return None
        shared = store.load()
        if shared is None:
            lease, bucket = unlimited(wish) if wish.is_unlimited else Lease(), None
        else:
            store.leases += 1
            at = store.clock.monotonic()
            self.write_off(shared, at)
            lease = shared.lease(self.number, wish, now, late, at)
            store.keep(shared)
            bucket = SharedBucket.of_data(json.loads(store.row)).bucket
        await store.trip()
        return lease, bucket

    def write_off(self, shared: SharedBucket, at: float) -> None:
        """Rule B6."""
        shared.write_off(at, PATIENCE_S)

    async def marks(self, account: str) -> Mapping[str, int] | None:
        """See `Peers`."""
        store = self.store
        await store.trip()
        if store.is_away or (store.poller != self.number and store.clock.monotonic() < store.poll_until):
            return None
        store.poller, store.poll_until = self.number, store.clock.monotonic() + POLL_S
        shared = store.load()
        await store.trip()
        return {"core": shared.bucket.mark} if shared is not None else {}

    async def told(
        self, account: str, limits: Mapping[str, Limits], marks: Mapping[str, int], now: float, late: float
    ) -> None:
        """See `Peers`."""
        store, one = self.store, limits["core"]
        await store.trip()
        shared = store.load()
        if shared is None:
            shared = SharedBucket.first_told(one.limit, one.remaining, one.reset, now, lambda _: store.reserve)
        else:
            mark = marks.get("core", 0)
            shared.told(one.limit, one.remaining, one.reset, mark, now, late, lambda _: store.reserve)
        if shared is not None:
            store.keep(shared)
        await store.trip()

    def changed(self, account: Account) -> None:
        """See `Peers`."""


@dataclass(slots=True)
class Sharing:
    """Workers that send as long as they may.

    Attributes:
        not_modified: requests whose answer is 304 (share).
        unlucky: the workers that are killed, and when (seconds).
    """

    clock: VirtualClock
    platform: Platform
    store: Store
    dice: random.Random
    is_even: bool
    concurrency: int = 8
    not_modified: float = 0.0
    unlucky: dict[int, float] = field(default_factory=dict)

    async def worker(self, member: Member, until: float) -> None:
        """One worker; what it has begun is lost when it is killed."""
        user_limits = UserLimits(self.concurrency, lambda _: self.store.reserve, self.is_even, unreachable_s=60.0)
        governor = Governor(user_limits, self.clock, lambda *_: 100_000, lambda _: None, member)
        account = governor.open_account(Source("token-one"), ["core"])
        queue = account.queues["core"]

        async def send() -> None:
            while True:
                permit = governor.permit_nowait(queue) or await governor.permit(queue)
                if not governor.may_leave(permit):
                    governor.return_unused(permit)
                    await anyio.lowlevel.checkpoint()
                    continue
                status = 304 if self.dice.random() < self.not_modified else 200
                reply, verdict = await self.platform.request(permit.token, status)
                governor.answered(permit, reply, verdict)

        with anyio.move_on_after(until - self.clock.monotonic()):
            async with anyio.create_task_group() as group:
                group.start_soon(RateLimitPoller(governor, account, self.platform.ask).run)
                group.start_soon(governor.attend, queue)
                assert queue.tokens is not None
                group.start_soon(queue.tokens.run)
                for _ in range(self.concurrency):
                    group.start_soon(send)

    async def run(self, workers: int, seconds: float, member: type[Member] = Member) -> list[int]:
        """Requests that counted in each window."""
        async with anyio.create_task_group() as group:
            for number in range(workers):
                until = self.unlucky.get(number, seconds)
                group.start_soon(self.worker, member(self.store, number), until)
        return list(self.platform.used.values())


async def shared_run(
    seed: int, workers: int, *, is_even: bool, not_modified: float = 0.0, member: type[Member] = Member
) -> list[float]:
    """What was used of each of four windows (share), in the second of which a quarter of the workers is killed."""
    clock, dice = VirtualClock(), random.Random(seed)
    platform = Platform(clock, limit=dice.choice((300, 500)), window_s=10)
    sharing = Sharing(clock, platform, Store(clock, dice), dice, is_even, not_modified=not_modified)
    soonest, latest = (11.0, 13.0) if is_even else (10.0, 10.4)  # a burst is over soon
    sharing.unlucky = {number: dice.uniform(soonest, latest) for number in range(max(1, workers // 4))}
    used = await sharing.run(workers, 40.0 - 10 * LATENCY_S, member)
    return [each / platform.limit for each in used]
