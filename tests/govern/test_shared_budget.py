"""Budgets that several workers spend from, in virtual time: real governors, and a store that is a row some way off."""

import json
import random
from functools import partial
from itertools import pairwise

import anyio
import anyio.abc
import pytest

from bulk.govern.budgets import shared_bucket
from bulk.govern.budgets.buckets import Bucket
from bulk.govern.budgets.shared_bucket import HOLD_S, UNLIMITED_TRIPS, SharedBucket, Wish
from bulk.govern.governor import Governor
from bulk.govern.leased_tokens import LeasedTokens
from bulk.govern.peers import SendDeadline
from bulk.govern.permits.accounts import PermitQueue
from bulk.govern.rate_limit_poller import RateLimitPoller
from bulk.govern.user_limits import UserLimits
from bulk.model import ErrorCode, Failure, FailureKind, Reply
from bulk.platform.auth.secrets import Secret
from bulk.platform.classification import Verdict, VerdictKind
from tests.govern.counting import LATENCY_S, Platform, Source
from tests.govern.shared_budget import Member, Sharing, Store, shared_run
from tests.virtual_time import VirtualClock, run_alone, run_virtual

SEEDS = (1, 2, 5, 6, 13, 20)
"""With 2, 8 and 32 workers at both paces, with and without answers that cost nothing."""
AFTER_DEATHS = 2
"""Windows from this one on know of the deaths."""


def used_by(seed: int, member: type[Member] = Member) -> list[float]:
    """What a run with that seed used of each window (share)."""
    dice = random.Random(-seed)
    workers, is_even = dice.choice((2, 2, 8, 8, 8, 32)), dice.random() < 0.5
    not_modified = dice.choice((0.0, 0.3))
    return run_alone(partial(shared_run, seed, workers, is_even=is_even, not_modified=not_modified, member=member))


def holds(used: list[float]) -> bool:
    """Whether no window was exceeded, and those after the deaths were used."""
    return max(used) <= 1.0 and min(used[AFTER_DEATHS:]) >= 0.99


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_beyond_and_nearly_all_used(seed: int) -> None:
    """2 to 32 workers, a quarter of which is killed: no window is exceeded, and 99% of the later ones is used."""
    used = used_by(seed)
    assert holds(used), used


@pytest.mark.soak
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("part", range(10))
def test_a_thousand_seeds(part: int) -> None:
    """The same, a hundred times in each of ten parts."""
    bad = {seed: used for seed in range(part * 100, part * 100 + 100) if not holds(used := used_by(seed))}
    assert not bad


class Mute(Platform):
    """Serves everything but `/rate_limit`, which loses its connection or is answered 502."""

    is_lost = False

    async def ask(self, token: Secret) -> tuple[Reply, Verdict] | Failure:
        """Nothing is told."""
        await anyio.sleep(LATENCY_S)
        if self.is_lost:
            return Failure(kind=FailureKind.LOST, code=ErrorCode.CONNECTION, message="lost")
        return Reply(status=502, headers={}), Verdict(VerdictKind.SERVER_ERROR)


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_budget_that_nobody_tells_holds_up_no_worker(is_lost: bool) -> None:
    """After five vain questions two workers go on as if limits were off. They waited for ever."""

    async def main() -> int:
        clock, dice = VirtualClock(), random.Random(1)
        platform = Mute(clock, limit=1_000_000)
        platform.is_lost = is_lost
        await Sharing(clock, platform, Store(clock, dice), dice, is_even=False).run(2, 20.0)
        return len(platform.log)

    assert run_virtual(main) > 500


class Hoarding(Member):
    """Planted: what dead workers held is never written off."""

    def write_off(self, shared: SharedBucket, at: float) -> None:
        """Nothing."""


def test_planted_no_write_off_is_seen() -> None:
    """Without rule B6 every later window lacks what the dead held."""
    assert not holds(used_by(1, Hoarding))


@pytest.mark.parametrize(("window_s", "pause_s"), [(3, 4.0), (60, HOLD_S + 0.5)])
def test_a_worker_that_was_suspended_uses_nothing_of_before(window_s: int, pause_s: float) -> None:
    """Tokens of a window that has ended meanwhile are not used, and none is after `HOLD_S`."""

    async def main() -> int:
        clock, dice = VirtualClock(), random.Random(1)
        platform = Platform(clock, limit=100, window_s=window_s)
        store = Store(clock, dice)
        governor = Governor(
            UserLimits(40, lambda _: 0, False, 60.0), clock, lambda *_: 1_000, lambda _: None, Member(store, 1)
        )
        account = governor.open_account(Source("token-one"), ["core"])
        queue = account.queues["core"]
        async with anyio.create_task_group() as group:
            group.start_soon(RateLimitPoller(governor, account, platform.ask).run)
            group.start_soon(governor.attend, queue)
            assert queue.tokens is not None
            group.start_soon(queue.tokens.run)
            permit = await governor.permit(queue)
            governor.answered(permit, *await platform.request(permit.token))
            held = await governor.permit(queue)  # stands, and so do the tokens
            assert queue.tokens.ready_at(clock.monotonic()) <= clock.monotonic()
            group.cancel_scope.cancel()
        await anyio.sleep(pause_s)
        sent = int(pause_s > HOLD_S and governor.may_leave(held))
        while (late := governor.permit_nowait(queue)) is not None:
            sent += governor.may_leave(late)
        return sent

    assert run_virtual(main) == 0


@pytest.mark.parametrize("is_planted", [False, pytest.param(True, marks=pytest.mark.interpreted)])
def test_nothing_leaves_after_the_deadline(is_planted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has a permit does not send, who waits gets none and does not spin; planted: without the deadline both do."""
    if is_planted:
        monkeypatch.setattr(SendDeadline, "has_passed", lambda *_: False)

    async def main() -> tuple[bool, bool, bool]:
        clock, dice = VirtualClock(), random.Random(3)
        platform, member = Platform(clock, limit=10_000, window_s=60), Member(Store(clock, dice), 1)
        governor = Governor(UserLimits(8, lambda _: 0, False, 60.0), clock, lambda *_: 1_000, lambda _: None, member)
        account = governor.open_account(Source("token-one"), ["core"])
        queue = account.queues["core"]
        async with anyio.create_task_group() as group:
            group.start_soon(RateLimitPoller(governor, account, platform.ask).run)
            group.start_soon(governor.attend, queue)
            assert queue.tokens is not None
            group.start_soon(queue.tokens.run)
            permit = await governor.permit(queue)
            governor.answered(permit, *await platform.request(permit.token))
            permit = await governor.permit(queue)
            member.deadline.at = clock.elapsed() + 0.5
            could_leave = governor.may_leave(permit)
            await anyio.sleep(0.6)
            leaves = governor.may_leave(permit)
            with anyio.move_on_after(5.0) as waited:
                await governor.permit(queue, is_settling=True)
            member.deadline.at = clock.elapsed() + 30.0
            governor.wake()
            governor.return_unused(await governor.permit(queue))
            group.cancel_scope.cancel()
        return could_leave, leaves, not waited.cancelled_caught

    assert run_virtual(main) == (True, is_planted, is_planted)


def test_who_gets_work_after_the_end_of_a_window_asks_at_once() -> None:
    """A worker had nothing to do while the one that asked `/rate_limit` died: once it has work it does not sleep on
    until the next time that an idle worker asks."""

    async def main() -> float:
        clock, dice = VirtualClock(), random.Random(4)
        platform, store = Platform(clock, limit=100, window_s=10), Store(clock, dice)

        def opened(number: int, group: anyio.abc.TaskGroup) -> tuple[Governor, PermitQueue]:
            user_limits = UserLimits(8, lambda _: 0, False, 60.0)
            governor = Governor(user_limits, clock, lambda *_: 1_000, lambda _: None, Member(store, number))
            account = governor.open_account(Source("token-one"), ["core"])
            queue = account.queues["core"]
            assert queue.tokens is not None
            group.start_soon(RateLimitPoller(governor, account, platform.ask).run)
            group.start_soon(governor.attend, queue)
            group.start_soon(queue.tokens.run)
            return governor, queue

        async with anyio.create_task_group() as group:
            async with anyio.create_task_group() as dying:
                first, queue = opened(1, dying)
                permit = await first.permit(queue)
                first.answered(permit, *await platform.request(permit.token))
                second, idle = opened(2, group)
                await anyio.sleep(1.0)
                dying.cancel_scope.cancel()
            await anyio.sleep(12.0)
            began = clock.monotonic()
            second.return_unused(await second.permit(idle))
            group.cancel_scope.cancel()
        return clock.monotonic() - began

    assert run_virtual(main) < 1.0


def shared(limit: int = 100, free: int = 100) -> SharedBucket:
    """A budget with a window of 60 s that ends at 1,060."""
    return SharedBucket(Bucket(limit, free, 1_060.0, 60.0), 1_000.0)


def wish(most: int = 50, *, is_even: bool = False, held: dict[int, int] | None = None, unused: int = 0) -> Wish:
    """One of a worker whose hold is the first of its row."""
    return Wish(most, 5_000, 8, is_even=is_even, held=held or {}, unused={0: unused} if unused else {})


def test_an_account_that_is_given_twice_counts_once() -> None:
    """Where the answer to a question got lost, what was lent meanwhile counts as used: nothing is given back twice."""
    row = shared()
    first = row.lease(1, wish(), 1_000.0, 1_000.0, 0.0)
    assert (first.tokens, first.hold, row.bucket.in_flight) == (25, 0, 25)
    row.lease(1, wish(held={0: 5}, unused=10), 1_001.0, 1_001.0, 1.0)  # and its answer is lost
    row.lease(1, wish(0, held={0: 5}), 1_002.0, 1_002.0, 2.0)
    assert row.bucket.in_flight == 5
    assert row.bucket.available < 100 - 15


def test_of_a_worker_that_was_taken_for_dead_nothing_is_taken_back() -> None:
    """What was written off stays used, also when the worker speaks again; what it leases then is a new hold."""
    row = shared()
    lent = row.lease(1, wish(), 1_000.0, 1_000.0, 0.0).tokens
    row.write_off(3.0, 1.0)
    assert row.bucket.in_flight == lent
    row.write_off(HOLD_S + HOLD_S + 1.1, 1.0)
    assert (row.bucket.in_flight, row.bucket.available) == (0, 100 - lent)
    again = row.lease(1, wish(held={0: 3}, unused=4), 1_012.0, 1_012.0, 12.0)
    assert again.hold == lent
    assert row.bucket.in_flight == again.tokens
    assert row.bucket.available == 100 - lent - again.tokens


def test_tokens_of_a_dead_worker_are_written_off_though_the_store_s_clock_was_set_back() -> None:
    """They count as used as long after that as they would have been waited for; nor does the dead one get a share
    (failures.md row 96)."""
    row = shared()
    row.lease(1, wish(), 1_000.0, 1_000.0, 10_000.0)
    row.write_off(100.0, 1.0)
    assert row.bucket.in_flight > 0
    row = SharedBucket.of_data(row.data())
    row.write_off(100.0 + HOLD_S + 1.1, 1.0)
    assert row.bucket.in_flight == 0
    row.write_off(200.0, 1.0)
    assert row.seen == {}


def test_a_window_of_which_nobody_said_that_anything_was_spent_is_followed_by_another() -> None:
    """Where windows begin with their first request, `/rate_limit` names an end that moves on. A worker that was asked
    last before it spent, and was killed, leaves such a word behind: the next full one opens a window, unless something
    is still under way that may be in it."""
    row = SharedBucket(Bucket(40, 40, 1_003.0, 3.0), 1_000.0)

    def told(now: float, reset: int) -> None:
        row.told(40, 40, reset, row.bucket.mark, now, now, lambda _: 0)

    row.lease(1, wish(), 1_000.0, 1_000.0, 0.0)
    row.lease(1, wish(0), 1_001.0, 1_001.0, 1.0)
    told(1_003.5, 1_006)
    lent = row.lease(1, wish(), 1_003.6, 1_003.6, 3.6)
    assert lent.tokens > 0
    told(1_010.0, 1_013)
    assert row.lease(2, wish(), 1_010.0, 1_010.0, 10.0).tokens == 0
    row.lease(1, wish(0), 1_010.1, 1_010.1, 10.1)
    told(1_012.0, 1_015)
    assert row.lease(2, wish(), 1_012.0, 1_012.0, 12.0).tokens > 0
    assert row.bucket.available <= 40 - row.bucket.in_flight


def test_slots_lie_one_behind_the_other() -> None:
    """An even pace is one time line: two workers get slots that follow each other, none too far ahead."""
    row, slots = shared(1_000, 1_000), []
    for number in range(400):
        lease = row.lease(number % 2, wish(is_even=True), 1_000.0, 1_000.0, 0.0)
        if lease.again_at is not None:
            assert 1_000.0 <= lease.again_at <= 1_000.0 + shared_bucket.SLOT_S
            break
        assert lease.slot_at is not None
        slots.append((lease.slot_at, lease.tokens, lease.per_second))
    assert 1_000.0 + HOLD_S - 2 * shared_bucket.SLOT_S < slots[-1][0] <= 1_000.0 + HOLD_S
    for (at, tokens, per_second), (then, _, _) in pairwise(slots):
        assert then == pytest.approx(at + tokens / per_second)


def test_a_row_comes_back_as_it_was() -> None:
    """What is stored of a budget is all of it."""
    row = shared()
    row.lease(1, wish(), 1_000.0, 1_000.0, 0.0)
    row.told(100, 60, 1_060, 0, 1_001.0, 1_001.5, lambda limit: limit // 10)
    assert SharedBucket.of_data(json.loads(json.dumps(row.data()))) == row


@pytest.mark.parametrize("is_unlimited", [True, False])
def test_what_was_lent_without_a_limit_ends_where_there_is_one(is_unlimited: bool) -> None:
    """A worker holds leave for many requests of a category without a limit, and gives it back once somebody has told
    of limits; where nobody has, it keeps it."""

    async def main() -> tuple[int, int]:
        clock = VirtualClock()
        platform, member = Platform(clock), Member(Store(clock, random.Random(1)), 1)
        platform.is_off = True
        governor = Governor(UserLimits(8, lambda _: 0, False, 60.0), clock, lambda *_: 1_000, lambda _: None, member)
        account = governor.open_account(Source("token-one"), ["core"])
        queue = account.queues["core"]
        tokens = queue.tokens
        assert isinstance(tokens, LeasedTokens)
        async with anyio.create_task_group() as group:
            group.start_soon(RateLimitPoller(governor, account, platform.ask).run)
            group.start_soon(governor.attend, queue)
            group.start_soon(tokens.run)
            with anyio.fail_after(30.0):
                permit = await governor.permit(queue)
            governor.answered(permit, *await platform.request(permit.token))
            before = tokens.left
            tokens.look(is_unlimited=True if is_unlimited else None)
            after = tokens.left
            group.cancel_scope.cancel()
        return before, after

    before, after = run_virtual(main)
    assert before == UNLIMITED_TRIPS * 8 - 1
    assert after == (before if is_unlimited else 0)
