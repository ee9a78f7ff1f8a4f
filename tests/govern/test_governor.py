"""Permits in virtual time, against a platform that counts."""

import anyio
import pytest

from bulk.errors import BulkError, CredentialRefused
from bulk.govern.governor import Governor
from bulk.govern.rate_limit_poller import RateLimitPoller
from bulk.govern.user_limits import Draining, UserLimits
from bulk.model import ErrorCode, Failure, FailureKind, Reply
from bulk.platform.classification import Verdict, VerdictKind
from tests.govern.counting import LATENCY_S, Platform, Source
from tests.virtual_time import VirtualClock, run_virtual


class Bench:
    """A governor, its tasks, and workers that send as fast as permits allow."""

    def __init__(
        self, clock: VirtualClock, platform: Platform, user_limits: UserLimits, source: Source, work: int
    ) -> None:
        self.clock, self.platform, self.work = clock, platform, work
        self.stops: list[BulkError] = []
        self.governor = Governor(user_limits, clock, lambda credential, category: self.work, self.stops.append)
        self.account = self.governor.open_account(source, ["core"])
        self.queue = self.governor.queue("default", "core")
        self.refusals = 0
        self.done = 0

    async def worker(self) -> None:
        """Send while there is work."""
        while self.work > 0:
            self.work -= 1
            try:
                permit = self.governor.permit_nowait(self.queue) or await self.governor.permit(self.queue)
            except (CredentialRefused, Draining):
                self.refusals += 1
                return
            reply, verdict = await self.platform.request(permit.token)
            self.governor.answered(permit, reply, verdict)
            if verdict.kind is VerdictKind.ACCEPTED:
                self.done += 1
            else:
                self.work += 1

    async def run(self, workers: int = 16) -> float:
        """Do all the work; the time that it took (seconds)."""
        started = self.clock.monotonic()
        async with anyio.create_task_group() as services:
            services.start_soon(RateLimitPoller(self.governor, self.account, self.platform.ask).run)
            services.start_soon(self.governor.attend, self.queue)
            async with anyio.create_task_group() as group:
                for _ in range(workers):
                    group.start_soon(self.worker)
            services.cancel_scope.cancel()
        return self.clock.monotonic() - started


def user_limits(reserve: int = 0, *, is_even: bool = True, unexplained_s: float = 60.0) -> UserLimits:
    return UserLimits(16, lambda limit: reserve, is_even, unreachable_s=30.0, unexplained_s=unexplained_s)


@pytest.mark.parametrize("is_even", [True, False])
@pytest.mark.parametrize("skew_s", [0.0, 0.7, -86_400.0])
def test_whole_windows_are_used_and_none_is_exceeded(is_even: bool, skew_s: float) -> None:
    """Six windows of work: nothing beyond the budget, at least 99% of each full window, in the best possible time."""

    async def main() -> None:
        clock = VirtualClock()
        platform = Platform(clock, limit=200, window_s=10, skew_s=skew_s)
        bench = Bench(clock, platform, user_limits(is_even=is_even), Source("token-one"), work=1_200)
        took = await bench.run()
        full = list(platform.used.values())[:-1]
        assert bench.done == 1_200
        assert not [entry for entry in platform.log if entry[2] == 403]
        assert all(used >= 198 for used in full[1:])
        assert took <= 60.5

    run_virtual(main)


def test_even_pace_is_even() -> None:
    """Where the work exceeds the bucket, requests are spread over the window: no second has more than its share."""

    async def main() -> None:
        clock = VirtualClock()
        platform = Platform(clock, limit=200, window_s=20)
        bench = Bench(clock, platform, user_limits(), Source("token-one"), work=1_000)
        await bench.run()
        per_second: dict[int, int] = {}
        for at, _, _ in platform.log:
            per_second[int(at)] = per_second.get(int(at), 0) + 1
        busy = [count for second, count in per_second.items() if 20 < second < 60]
        assert max(busy) <= 10 * 1.5 + 2

    run_virtual(main)


def test_the_reserve_stays_untouched() -> None:
    """What is reserved for other users of the token is there for them at every moment."""

    async def main() -> None:
        clock = VirtualClock()
        platform = Platform(clock, limit=100, window_s=10)
        bench = Bench(clock, platform, user_limits(reserve=30), Source("token-one"), work=210)
        await bench.run()
        assert max(platform.used.values()) == 70

    run_virtual(main)


def test_a_rival_is_seen() -> None:
    """failures.md row 32: somebody else spends from the same budget in bursts, and no answer names a limit: one request
    at most runs into it, and all that was left is used."""

    async def main() -> None:
        clock = VirtualClock()
        platform = Platform(clock, limit=200, window_s=20)
        bench = Bench(clock, platform, user_limits(), Source("token-one"), work=900)

        async def rival() -> None:
            while True:
                for _ in range(10):
                    platform._roll()
                    if platform.used[platform.window_end] < platform.limit:
                        platform.used[platform.window_end] += 1
                await anyio.sleep(3.0)

        async with anyio.create_task_group() as group:
            group.start_soon(rival)
            await bench.run()
            group.cancel_scope.cancel()
        assert bench.done == 900
        assert len([entry for entry in platform.log if entry[2] == 403]) <= 1
        assert all(used == 200 for used in list(platform.used.values())[:-1])

    run_virtual(main)


def test_limits_that_are_off_govern_nothing() -> None:
    """`/rate_limit` is 404: the run is not held up."""

    async def main() -> None:
        clock = VirtualClock()
        platform = Platform(clock)
        platform.is_off = True
        bench = Bench(clock, platform, user_limits(), Source("token-one"), work=1_000)
        assert await bench.run() < 5.0
        assert bench.done == 1_000

    run_virtual(main)


def test_a_wrong_token_costs_one_request() -> None:
    """failures.md row 17: after the first 401 nothing more leaves with that credential, and everybody is told."""

    async def main() -> None:
        clock = VirtualClock()
        platform = Platform(clock)
        bench = Bench(clock, platform, user_limits(), Source("token-bad"), work=100)
        await bench.run()
        assert len(platform.log) == 1
        assert bench.refusals == 16

    run_virtual(main)


def test_a_token_that_ends_midway_is_renewed_once_and_tried_alone() -> None:
    """failures.md row 16: frozen at the first 401, renewed by one task, and one request goes first on the new token."""

    async def main() -> None:
        clock = VirtualClock()
        platform = Platform(clock, limit=10_000, window_s=60)
        bench = Bench(clock, platform, user_limits(), Source("token-one", "token-two"), work=600)

        async def end_token() -> None:
            await anyio.sleep(0.3)
            platform.good_tokens = {"token-two"}

        async with anyio.create_task_group() as group:
            group.start_soon(end_token)
            await bench.run()
        refused = [entry for entry in platform.log if entry[2] == 401]
        assert bench.done == 600
        assert len(refused) <= 16
        first_refusal = refused[0][0]
        assert not [at for at, token, _ in platform.log if token == "token-one" and at > first_refusal + LATENCY_S]

    run_virtual(main)


@pytest.mark.parametrize(
    ("came", "served"),
    [
        (VerdictKind.ACCEPTED, (1, 0)),
        (VerdictKind.REFUSED, (1, 0)),
        ("truncated", (0, 1)),
        (VerdictKind.SERVER_ERROR, (0, 1)),
        (VerdictKind.BAD_RESPONSE, (0, 1)),
        (VerdictKind.BUSY, (0, 1)),
        (FailureKind.LOST, (0, 1)),
        (FailureKind.NOT_SENT, (0, 0)),
        (VerdictKind.LIMITED_SECONDARY, (0, 0)),
        (VerdictKind.UNAUTHORIZED, (0, 0)),
        (VerdictKind.REDIRECTED, (0, 0)),
    ],
)
def test_who_is_served(came: object, served: tuple[int, int]) -> None:
    """failures.md row 25: good answers, and failures; limits, tokens and what never left are neither."""

    async def main() -> None:
        clock = VirtualClock()
        platform = Platform(clock)
        platform.is_off = True
        bench = Bench(clock, platform, user_limits(), Source("token-one"), work=1)
        async with anyio.create_task_group() as services:
            services.start_soon(RateLimitPoller(bench.governor, bench.account, platform.ask).run)
            services.start_soon(bench.governor.attend, bench.queue)
            permit = await bench.governor.permit(bench.queue)
            if isinstance(came, FailureKind):
                bench.governor.failed(permit, Failure(kind=came, code=ErrorCode.CONNECTION, message="why"))
            else:
                kind = came if isinstance(came, VerdictKind) else VerdictKind.ACCEPTED
                reply = Reply(status=200, headers={}, is_truncated=came == "truncated")
                bench.governor.answered(permit, reply, Verdict(kind))
            services.cancel_scope.cancel()
        assert bench.governor.served == served

    run_virtual(main)


def test_a_limit_without_a_time_asks_first_and_then_waits_longer_each_time() -> None:
    """failures.md row 19: no time given: `/rate_limit` is asked, nothing explains it, so 60 s, then 120 s."""

    async def main() -> None:
        clock = VirtualClock()
        platform = Platform(clock, limit=10_000, window_s=3_600)
        bench = Bench(clock, platform, user_limits(), Source("token-one"), work=0)
        waits: list[float] = []

        async def refuse_twice() -> None:
            for _ in range(2):
                permit = await bench.governor.permit(bench.queue)
                asked, began = len(platform.asked), clock.monotonic()
                bench.governor.answered(permit, Reply(status=429, headers={}), Verdict(VerdictKind.LIMITED_SECONDARY))
                await anyio.sleep(0.5)
                assert len(platform.asked) > asked
                bench.governor.return_unused(await bench.governor.permit(bench.queue))
                waits.append(clock.monotonic() - began)

        async with anyio.create_task_group() as services:
            services.start_soon(RateLimitPoller(bench.governor, bench.account, platform.ask).run)
            services.start_soon(bench.governor.attend, bench.queue)
            await refuse_twice()
            services.cancel_scope.cancel()
        assert waits == pytest.approx([60.0, 120.0], abs=0.1)

    run_virtual(main)


def test_an_empty_bucket_explains_a_refusal() -> None:
    """failures.md row 19: the bucket turns out to be at 0: the wait ends at its reset, not after a minute."""

    async def main() -> None:
        clock = VirtualClock()
        platform = Platform(clock, limit=50, window_s=10)
        bench = Bench(clock, platform, user_limits(), Source("token-one"), work=0)
        async with anyio.create_task_group() as services:
            services.start_soon(RateLimitPoller(bench.governor, bench.account, platform.ask).run)
            services.start_soon(bench.governor.attend, bench.queue)
            permit = await bench.governor.permit(bench.queue)
            platform._roll()
            platform.used[platform.window_end] = 50
            bench.governor.answered(permit, Reply(status=403, headers={}), Verdict(VerdictKind.UNEXPLAINED))
            began = clock.monotonic()
            await bench.governor.permit(bench.queue)
            assert clock.monotonic() - began < 10.5
            services.cancel_scope.cancel()

    run_virtual(main)


def test_a_silent_platform_is_asked_by_one_and_then_the_run_stops() -> None:
    """failures.md rows 1, 2: out of reach: one request at a time, growing pauses, and the reason after the limit."""

    async def main() -> None:
        clock = VirtualClock()
        platform = Platform(clock)
        platform.is_off = True
        bench = Bench(clock, platform, user_limits(), Source("token-one"), work=100)
        sent: list[float] = []

        async def failing() -> None:
            while not bench.stops:
                permit = await bench.governor.permit(bench.queue)
                sent.append(clock.monotonic())
                await anyio.sleep(LATENCY_S)
                failure = Failure(kind=FailureKind.NOT_SENT, code=ErrorCode.CONNECTION, message="refused")
                bench.governor.failed(permit, failure)

        async with anyio.create_task_group() as services:
            services.start_soon(RateLimitPoller(bench.governor, bench.account, platform.ask).run)
            services.start_soon(bench.governor.attend, bench.queue)
            async with anyio.create_task_group() as group:
                for _ in range(16):
                    group.start_soon(failing)
                while not bench.stops:
                    await anyio.sleep(0.1)
                group.cancel_scope.cancel()
            services.cancel_scope.cancel()
        assert "out of reach for 30 s" in str(bench.stops[0])
        assert len([at for at in sent if at > 2.0]) < 15

    run_virtual(main)


def test_answers_that_cant_be_used_stop_nothing() -> None:
    """Each concerns its own request: all go on at full width for longer than `unreachable` (failures.md row 28)."""

    async def main() -> None:
        clock = VirtualClock()
        platform = Platform(clock)
        bench = Bench(clock, platform, user_limits(), Source("token-one"), work=100)
        failure = Failure(kind=FailureKind.LOST, code=ErrorCode.BAD_RESPONSE, message="head", is_answer=True)
        async with anyio.create_task_group() as services:
            services.start_soon(RateLimitPoller(bench.governor, bench.account, platform.ask).run)
            services.start_soon(bench.governor.attend, bench.queue)
            width = bench.governor.concurrency.limit
            for _ in range(60):
                permit = await bench.governor.permit(bench.queue)
                await anyio.sleep(1.0)
                bench.governor.failed(permit, failure)
            services.cancel_scope.cancel()
        assert bench.stops == []
        assert bench.governor.concurrency.limit >= width

    run_virtual(main)


def test_draining_turns_away_who_waits() -> None:
    """When the run ends, who waits for a permit is told instead of waiting for a reset."""

    async def main() -> None:
        clock = VirtualClock()
        platform = Platform(clock, limit=20, window_s=3_600)
        bench = Bench(clock, platform, user_limits(is_even=False), Source("token-one"), work=1_000)
        async with anyio.create_task_group() as group:
            group.start_soon(bench.run)
            await anyio.sleep(5.0)
            bench.governor.drain()
        assert bench.done == 20
        assert bench.refusals == 16

    run_virtual(main)
