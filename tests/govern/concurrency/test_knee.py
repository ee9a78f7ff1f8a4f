"""Adaptive concurrency finds what a platform can do: on simulated platforms, and through the real governor."""

import heapq
import random
from dataclasses import replace

import anyio
import pytest

from benchmarks.knee import scenarios
from benchmarks.knee.platforms import Scenario
from benchmarks.knee.simulation import Simulation
from bulk.govern.concurrency.adaptive_limit import AdaptiveLimit
from bulk.govern.governor import Governor
from bulk.govern.permits.accounts import Trust
from bulk.govern.user_limits import UserLimits
from bulk.model import ErrorCode, Failure, FailureKind, Reply
from bulk.platform.classification import Verdict, VerdictKind
from tests.govern.counting import Source
from tests.virtual_time import VirtualClock, run_virtual

NAMED = {each.name: each for each in (*scenarios.named(), *scenarios.more())}


def shortened(name: str, until: float, since: float) -> Scenario:
    return replace(NAMED[name], until=until, steady=(since, until))


@pytest.mark.parametrize(
    "scenario",
    [
        scenarios.thrashing(until=30.0),
        scenarios.unlimited(0.05, 4.0, most=500),
        scenarios.unlimited(0.05, 4.0, most=500, wrong=0.01),
        scenarios.unlimited(0.05, 4.0, most=500, lost=0.01),
        NAMED["reads and writes, 16 workers"],
        shortened("503s beyond 12", 50.0, 15.0),
        shortened("16 workers that stop for a second", 60.0, 20.0),
        shortened("an outage of 10 s, afterwards", 60.0, 45.0),
        shortened("half of the workers, for a minute", 100.0, 20.0),
    ],
    ids=lambda scenario: scenario.name,
)
def test_most_of_what_a_platform_can_do_at_little_latency(scenario: Scenario) -> None:
    """At least nine tenths of the goodput that is possible, at no more than three times the unloaded latency."""
    found = Simulation(scenario, AdaptiveLimit, 7).run()
    assert found.share >= 0.9
    assert found.slowness <= 3.0


def test_most_platforms_at_random() -> None:
    """Whatever workers, times, distances, slowdowns and queues they have: 9 of 10."""
    chosen = [each for each in scenarios.at_random(4711) if each.until * each.best(0.0) < 12_001][:10]
    found = [Simulation(each, AdaptiveLimit, 4711).run() for each in chosen]
    assert len(found) == 10
    assert sum(each.is_good for each in found) >= 9


def test_what_is_limited_by_a_budget_is_no_suffering() -> None:
    """A platform that serves 100 a second, and answers 429 with Retry-After beyond, gets its 100."""
    scenario = NAMED["100 a second, else 429"]
    found = Simulation(replace(scenario, until=20.0, steady=(5.0, 20.0)), AdaptiveLimit, 3).run()
    assert found.share >= 0.99


class Server:
    """A platform in virtual time: workers that become slower with what it holds, or any number; some answers are bad.

    Attributes:
        held: requests there now; `most_held`: at most so far (counts).
    """

    def __init__(self, clock: VirtualClock, *, workers: int | None, service_s: float, slope: float = 0.0) -> None:
        self._clock, self._rng, self._service_s, self._slope = clock, random.Random(5), service_s, slope
        self._workers = workers
        self._free_at = [0.0] * (workers or 0)
        self.held = self.most_held = 0

    async def request(self) -> None:
        """Wait for a worker, and for its work."""
        now = self._clock.monotonic()
        self.held += 1
        self.most_held = max(self.most_held, self.held)
        took_s = self._service_s * (0.9 + 0.2 * self._rng.random())
        if self._workers is not None:
            began = max(now, heapq.heappop(self._free_at))
            took_s = began - now + took_s * (1.0 + self._slope * max(0, self.held - 24))
            heapq.heappush(self._free_at, now + took_s)
        await anyio.sleep(took_s)
        self.held -= 1


class Client:
    """As many workers as the user allows, each with one request after the other, through a real governor."""

    def __init__(
        self, clock: VirtualClock, server: Server, most: int, bad: float = 0.0, kind: VerdictKind | None = None
    ) -> None:
        self.clock, self.server, self.most, self._bad, self._kind = clock, server, most, bad, kind
        user_limits = UserLimits(most, lambda limit: 0, is_even=False, unreachable_s=30.0, unexplained_s=60.0)
        self.governor = Governor(user_limits, clock, lambda credential, category: 1, lambda reason: None)
        account = self.governor.open_account(Source("token-one"), ["core"])
        account.trust, account.was_asked = Trust.PROVEN, True
        self.queue = self.governor.queue("default", "core")
        self.good_at = list[float]()
        self._rng = random.Random(5)

    async def worker(self) -> None:
        """One request after the other."""
        governor = self.governor
        while True:
            permit = governor.permit_nowait(self.queue) or await governor.permit(self.queue)
            if self._rng.random() >= self._bad:
                await self.server.request()
                governor.answered(permit, Reply(status=200, headers={}), Verdict(VerdictKind.ACCEPTED))
                self.good_at.append(self.clock.monotonic())
            elif self._kind is None:
                await anyio.sleep(0.002)
                governor.failed(permit, Failure(kind=FailureKind.LOST, code=ErrorCode.CONNECTION, message="reset"))
            else:
                await anyio.sleep(0.002)
                verdict = Verdict(self._kind, ErrorCode.SERVER_ERROR, "m")
                governor.answered(permit, Reply(status=500, headers={}), verdict)

    async def run(self, seconds: float) -> None:
        """All of them, for `seconds`."""
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as group:
                group.start_soon(self.governor.attend, self.queue)
                for _ in range(self.most):
                    group.start_soon(self.worker)

    def rate(self, since: float, until: float) -> float:
        """Good answers a second."""
        return sum(since <= moment < until for moment in self.good_at) / (until - since)


def test_the_governor_finds_the_knee() -> None:
    """T13: 4 workers of 20 ms that slow down by 3% for each request beyond 24 do nine tenths of what they can."""

    async def main() -> None:
        clock = VirtualClock()
        client = Client(clock, Server(clock, workers=4, service_s=0.02, slope=0.03), most=200)
        await client.run(20.0)
        assert client.rate(8.0, 20.0) >= 0.9 * 200
        assert client.governor.concurrency.whole <= 3 * 4

    run_virtual(main)


def test_a_thousand_are_in_flight_within_three_seconds() -> None:
    """Where the platform serves any number in 50 ms, all that the user allows is used at once."""

    async def main() -> None:
        clock = VirtualClock()
        server = Server(clock, workers=None, service_s=0.05)
        await Client(clock, server, most=1_000).run(0.8)
        assert server.most_held == 1_000

    run_virtual(main)


@pytest.mark.parametrize("kind", [VerdictKind.SERVER_ERROR, None])
def test_one_bad_answer_of_a_hundred_costs_hardly_anything(kind: VerdictKind | None) -> None:
    """5xx and lost answers that come by chance leave more than nine tenths of the throughput."""

    async def main() -> None:
        clock = VirtualClock()
        client = Client(clock, Server(clock, workers=None, service_s=0.05), most=100, bad=0.01, kind=kind)
        await client.run(4.0)
        assert client.rate(1.0, 4.0) >= 0.9 * 100 / 0.05

    run_virtual(main)


@pytest.mark.parametrize("kind", [VerdictKind.SERVER_ERROR, VerdictKind.BUSY])
def test_a_platform_that_is_down_is_asked_by_few(kind: VerdictKind) -> None:
    """failures.md row 25: nothing but errors, and one in flight is left within two seconds."""

    async def main() -> None:
        clock = VirtualClock()
        client = Client(clock, Server(clock, workers=None, service_s=0.05), most=200, bad=1.0, kind=kind)
        await client.run(2.0)
        assert client.governor.concurrency.allowed == 1

    run_virtual(main)
