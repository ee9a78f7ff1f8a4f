"""A reserve is kept at the end of a window too, where a request that goes to see would be served out of it."""

import anyio
import pytest

from bulk.govern.user_limits import UserLimits
from bulk.model import Failure, Reply
from bulk.platform.auth.secrets import Secret
from bulk.platform.classification import Verdict, VerdictKind
from tests.govern.counting import LATENCY_S, Platform, Source
from tests.govern.test_governor import Bench
from tests.virtual_time import VirtualClock, run_virtual

LIMIT, RESERVE, WINDOW_S = 200, 50, 10


class Cut(Platform):
    """Names the ends of windows cut to whole seconds: each goes on for nearly a second more."""

    def __init__(self, clock: VirtualClock, has_headers: bool, is_served: bool) -> None:
        super().__init__(clock, LIMIT, WINDOW_S)
        self.has_headers, self.is_served = has_headers, is_served
        self.began = 0.0

    def _roll(self) -> None:
        if self.now() >= self.began + WINDOW_S:
            self.began = self.now()
            self.window_end = int(self.began + WINDOW_S)
            self.used[self.window_end] = 0

    def now(self) -> float:
        """The platform's own time; a window begins late in a second."""
        return super().now() + 0.97

    def _headers(self) -> dict[str, str]:
        headers = super()._headers()
        if not self.has_headers or not self.window_end:
            return headers
        used = self.used[self.window_end]
        numbers = {"limit": LIMIT, "remaining": LIMIT - used, "used": used, "reset": self.window_end}
        return headers | {f"x-ratelimit-{name}": str(number) for name, number in numbers.items()}

    async def ask(self, token: Secret) -> tuple[Reply, Verdict] | Failure:
        """`GET /rate_limit`: it knows a window as long as that goes on."""
        if not self.is_served:
            return Reply(status=404, headers=self._headers(), body={}), Verdict(VerdictKind.ACCEPTED)
        is_open = self.now() < self.began + WINDOW_S
        used, reset = (self.used[self.window_end], self.window_end) if is_open else (0, int(self.now()) + WINDOW_S)
        core = {"limit": LIMIT, "used": used, "remaining": LIMIT - used, "reset": reset}
        await anyio.sleep(LATENCY_S)
        return Reply(status=200, headers=self._headers(), body={"resources": {"core": core}}), Verdict(
            VerdictKind.ACCEPTED
        )


@pytest.mark.parametrize(("has_headers", "is_served"), [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("is_even", [True, False])
def test_the_reserve_outlasts_the_named_end(has_headers: bool, is_served: bool, is_even: bool) -> None:
    """Where a window ends a little later than it says, nothing but single requests that go to see touch the reserve."""

    async def main() -> None:
        clock = VirtualClock()
        platform = Cut(clock, has_headers, is_served)
        user_limits = UserLimits(16, lambda limit: RESERVE, is_even, unreachable_s=30.0, unexplained_s=60.0)
        bench = Bench(clock, platform, user_limits, Source("token-one"), work=900)
        took = await bench.run()
        assert bench.done == 900
        assert max(platform.used.values()) <= LIMIT - RESERVE + 4
        assert took < 7 * (WINDOW_S + 2.0)

    run_virtual(main)
