"""Who asks `/rate_limit` goes on, however long nothing useful comes back."""

import anyio

from bulk.govern.governor import Governor
from bulk.govern.rate_limit_poller import RateLimitPoller
from bulk.govern.user_limits import UserLimits
from bulk.model import ErrorCode, Failure, FailureKind, Reply
from bulk.platform.auth.secrets import Secret
from bulk.platform.classification import Verdict
from tests.govern.counting import Platform, Source
from tests.virtual_time import VirtualClock, run_virtual

OUTAGE_S = 3 * 3_600.0


def test_an_outage_of_hours_is_waited_out() -> None:
    """failures.md row 1: where the user lets it last so long, no number of failures ends the run; then it goes on."""

    async def scene() -> None:
        clock = VirtualClock()
        platform = Platform(clock, limit=100, window_s=3_600)
        governor = Governor(UserLimits(4, lambda limit: 0, False, 2 * OUTAGE_S), clock, lambda *_: 1, lambda _: None)
        account = governor.open_account(Source("token-one"), ["core"])

        async def ask(token: Secret) -> tuple[Reply, Verdict] | Failure:
            if clock.monotonic() < OUTAGE_S:
                return Failure(kind=FailureKind.NOT_SENT, code=ErrorCode.CONNECTION, message="refused")
            return await platform.ask(token)

        queue = governor.queue("default", "core")
        async with anyio.create_task_group() as group:
            group.start_soon(RateLimitPoller(governor, account, ask).run)
            group.start_soon(governor.attend, queue)
            await governor.permit(queue)
            assert OUTAGE_S <= clock.monotonic() <= OUTAGE_S + 60.0
            group.cancel_scope.cancel()

    run_virtual(scene)
