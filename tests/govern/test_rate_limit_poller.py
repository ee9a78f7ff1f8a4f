"""Who asks `/rate_limit` goes on, however long nothing useful comes back."""

import itertools

import anyio
import pytest

from bulk.errors import BulkError, RunStopped
from bulk.govern.governor import Governor
from bulk.govern.policy import Policy
from bulk.govern.rate_limit_poller import ASK_LIMITS, RateLimitPoller
from bulk.model import ErrorCode, Failure, FailureKind, Media, Reply
from bulk.platform.auth.secrets import Secret
from bulk.platform.bodies.body_values import read_body
from bulk.platform.classification import Verdict, classify
from tests.govern.counting import Platform, Source
from tests.virtual_time import VirtualClock, run_virtual

OUTAGE_S = 3 * 3_600.0


def test_an_outage_of_hours_is_waited_out() -> None:
    """failures.md row 1: where the user lets it last so long, no number of failures ends the run; then it goes on."""

    async def scene() -> None:
        clock = VirtualClock()
        platform = Platform(clock, limit=100, window_s=3_600)
        governor = Governor(Policy(4, lambda limit: 0, False, 2 * OUTAGE_S), clock, lambda *_: 1, lambda _: None)
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


@pytest.mark.parametrize(("pages", "is_stopped"), [(1, False), (1_000_000, True)])
def test_a_server_of_web_pages_is_no_platform(pages: int, is_stopped: bool) -> None:
    """failures.md row 2: pages with status 200 from the first answer on end the run, before an item is lost to them;
    a single one does not."""
    stops: list[BulkError] = []

    async def scene() -> None:
        clock = VirtualClock()
        platform = Platform(clock, limit=100, window_s=3_600)
        governor = Governor(Policy(4, lambda limit: 0, False, 300.0), clock, lambda *_: 1, stops.append)
        account = governor.open_account(Source("token-one"), ["core"])
        asked = itertools.count(1)

        async def ask(token: Secret) -> tuple[Reply, Verdict] | Failure:
            if next(asked) > pages:
                return await platform.ask(token)
            kind = {"content-type": "text/html"}
            reply = Reply(status=200, headers=kind, body=read_body(Media.JSON, 200, kind, b"<html>Log in</html>"))
            return reply, classify(ASK_LIMITS, reply, "service")

        queue = governor.queue("default", "core")
        async with anyio.create_task_group() as group:
            group.start_soon(RateLimitPoller(governor, account, ask).run)
            group.start_soon(governor.attend, queue)
            with anyio.move_on_after(2.0):
                await governor.permit(queue)
            group.cancel_scope.cancel()

    run_virtual(scene)
    assert [type(stop) for stop in stops[:1]] == [RunStopped] * is_stopped
    assert all("a web page" in str(stop) for stop in stops)
