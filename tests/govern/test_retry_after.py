"""How long a limit is waited for that names a time."""

from collections.abc import Callable
from email.utils import formatdate

import anyio
import pytest

from bulk.model import Reply, Request
from bulk.platform.classification import Verdict, VerdictKind, classify
from tests.govern.counting import LATENCY_S, Platform, Source
from tests.govern.test_governor import Bench, user_limits
from tests.virtual_time import VirtualClock, run_virtual


def limited(window_s: int, answer: Callable[[VirtualClock], tuple[Reply, Verdict]]) -> tuple[float, Platform]:
    """Let 300 requests leave, one of which is refused with that answer: when (monotonic), and the platform."""

    async def main() -> tuple[float, Platform]:
        clock = VirtualClock()
        platform = Platform(clock, limit=10_000, window_s=window_s)
        bench = Bench(clock, platform, user_limits(), Source("token-one"), work=300)
        moments: list[float] = []

        async def limit_once() -> None:
            await anyio.sleep(0.1)
            permit = await bench.governor.permit(bench.queue)
            moments.append(clock.monotonic())
            bench.governor.answered(permit, *answer(clock))

        async with anyio.create_task_group() as group:
            group.start_soon(limit_once)
            await bench.run()
        assert bench.done == 300
        return moments[0], platform

    return run_virtual(main)


def test_retry_after_silences_everything() -> None:
    """`Retry-After: 3`: nothing is sent for 3 s, `/rate_limit` neither."""

    def answer(_: VirtualClock) -> tuple[Reply, Verdict]:
        verdict = Verdict(VerdictKind.LIMITED_SECONDARY, retry_after_s=3.0)
        return Reply(status=429, headers={"retry-after": "3"}), verdict

    at, platform = limited(60, answer)
    sent = [when for when, _, _ in platform.log] + platform.asked
    assert not [when for when in sent if at + LATENCY_S < when < at + 3.0]


@pytest.mark.parametrize(
    ("ahead_s", "least_s", "most_s"), [(30.0, 27.0, 32.0), (-3_000.0, 50.0, 70.0), (90_000.0, 50.0, 70.0)]
)
def test_retry_after_names_a_moment_without_date(ahead_s: float, least_s: float, most_s: float) -> None:
    """It counts by what is known of the platform's time; one that is over, or out of reach, is as good as no time."""

    def answer(clock: VirtualClock) -> tuple[Reply, Verdict]:
        reply = Reply(status=429, headers={"retry-after": formatdate(clock.now() + ahead_s, usegmt=True)})
        verdict = classify(Request(method="GET", path="/x"), reply, "service")
        assert verdict.retry_after_s is None
        return reply, verdict

    at, platform = limited(3_600, answer)
    later = [when for when, _, _ in platform.log if when > at + LATENCY_S]
    assert least_s < min(later) - at < most_s
