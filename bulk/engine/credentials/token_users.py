"""Asks whose tokens are (`GET /user`): who pays for them, and whose answers they see.

Who pays must not be guessed because of a single lost answer: it is asked for again where something on the way answers,
or a connection is lost. The specification has no such request, so nothing waits for it for long.
"""

from collections.abc import Iterable

import anyio

from bulk.clock import Clock
from bulk.govern.first_contact import ASK_USER, ASKED_IN
from bulk.govern.permits.accounts import Account
from bulk.govern.rate_limit_poller import PATIENCE_S
from bulk.model import ErrorCode, Failure, FailureKind, Reply
from bulk.platform.auth.secrets import Secret
from bulk.platform.wire import Wire

AGAIN_S = 0.5, 1.0
"""Pauses before the same is asked again (seconds)."""


async def users_of(accounts: Iterable[Account], transport: Wire, clock: Clock) -> dict[str, Reply | Failure]:
    """Return what `GET /user` is answered for each account, by its name; all are asked at once."""
    found: dict[str, Reply | Failure] = {}

    async def ask(account: Account) -> None:
        found[account.name] = answer = await asked_user(transport, account.token, clock)
        if isinstance(answer, Reply) and ASKED_IN in account.queues:
            account.queues[ASKED_IN].note_unbudgeted(clock.monotonic())

    async with anyio.create_task_group() as group:
        for account in accounts:
            group.start_soon(ask, account)
    return found


async def asked_user(transport: Wire, token: Secret, clock: Clock) -> Reply | Failure:
    """Return what `GET /user` is answered for one token, at the third try at the latest."""
    for pause_s in AGAIN_S:
        answer = await _asked_once(transport, token)
        if answer.status < 500 if isinstance(answer, Reply) else answer.kind is not FailureKind.LOST:
            return answer
        await clock.sleep(pause_s)
    return await _asked_once(transport, token)


async def _asked_once(transport: Wire, token: Secret) -> Reply | Failure:
    with anyio.move_on_after(PATIENCE_S):
        return await transport.send(ASK_USER, token, None)
    return Failure(kind=FailureKind.NOT_SENT, code=ErrorCode.TIMEOUT, message="GET /user was not answered")
