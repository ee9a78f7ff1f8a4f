"""Deliberate bugs of the engine, switched on one at a time, to show that the harness sees them.

Each is the smallest change that a tired engineer could make. A harness that can't fail proves nothing.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import aiohttp

from bulk.bundle import index
from bulk.execute import item_run, recorder
from bulk.execute.requests.context import Tried
from bulk.execute.requests.request_sender import RequestSender
from bulk.execute.writes import recent_writes, settle
from bulk.govern.governor import Governor
from bulk.govern.permits.accounts import Account, Permit
from bulk.ledger.ledger import Ledger
from bulk.ledger.records import Intent, Record
from bulk.model import Failure, FailureKind, Request
from bulk.platform import transport
from bulk.platform.deadlines import CURRENT


@contextlib.contextmanager
def _patched(target: Any, name: str, replacement: Any) -> Iterator[None]:
    with mock.patch.object(target, name, replacement):
        yield


def intent_written_late() -> contextlib.AbstractContextManager[None]:
    """A write leaves without waiting until its intent is durable."""

    async def intend(self: recorder.Recorder, intent: Intent) -> None:
        self._group.entries.append(intent)
        self._wanted.set()

    return _patched(recorder.Recorder, "intend", intend)


def no_read_back() -> contextlib.AbstractContextManager[None]:
    """A lost answer counts as not applied, without a look."""

    async def settled(self: settle.Settler, *args: Any, **more: Any) -> None:
        return None

    return _patched(settle.Settler, "settle", settled)


def blind_repeat() -> contextlib.AbstractContextManager[None]:
    """A write whose answer was lost is sent again at once."""
    real = RequestSender.once

    async def once(self: RequestSender, request: Request, *args: Any) -> Tried:
        tried = await real(self, request, *args)
        if tried.failure is not None and tried.failure.kind is FailureKind.LOST:
            return await real(self, request, *args[:2])
        return tried

    return _patched(RequestSender, "once", once)


@contextlib.contextmanager
def hidden_re_send() -> Iterator[None]:
    """aiohttp's own repeat after a dropped connection is left on."""
    real = transport.Transport._new_session

    def new_session(self: transport.Transport, *args: Any) -> aiohttp.ClientSession:
        session = real(self, *args)
        session._retry_connection = True
        return session

    with _patched(transport.Transport, "_new_session", new_session), _by_session():
        yield


@contextlib.contextmanager
def _by_session() -> Iterator[None]:
    """All requests go through aiohttp's session, as through a proxy, without the guard against a second sending."""
    no_pool = _patched(transport, "ConnectionPool", lambda *arguments: None)
    with no_pool, _patched(transport._Request, "send", _send):
        yield


async def _send(self: Any, conn: Any) -> aiohttp.ClientResponse:
    """Without the guard against a second sending."""
    CURRENT.get().is_written = True
    response: aiohttp.ClientResponse = await super(transport._Request, self).send(conn)
    return response


@contextlib.contextmanager
def no_settle_time() -> Iterator[None]:
    """What was not found at once is believed to be gone for good."""
    real = settle.Settler.__init__

    def made(self: settle.Settler, *args: Any) -> None:
        real(self, *args)
        self.settle_s = 0.0

    with _patched(settle.Settler, "__init__", made):
        yield


def lane_not_folded() -> contextlib.AbstractContextManager[None]:
    """`Acme/Api` and `acme/api` are two lanes."""
    return _patched(index, "lane_key", lambda resource, lane: index.hash_63(f"{resource}:{lane}".encode()))


def conditional_read_back() -> contextlib.AbstractContextManager[None]:
    """A read-back takes what the store has for the truth."""
    real = settle.Settler._read_back

    async def read_back(self: settle.Settler, *args: Any) -> Any:
        send = RequestSender.read

        async def read(of: RequestSender, request: Request, *more: Any) -> Any:
            return await send(of, _stale(request), *more)

        with mock.patch.object(RequestSender, "read", read):
            return await real(self, *args)

    return _patched(settle.Settler, "_read_back", read_back)


def _stale(request: Request) -> Request:
    return replace(request, is_fresh=False)


def budget_given_back_when_lost() -> contextlib.AbstractContextManager[None]:
    """A request without an answer costs nothing, it is thought."""
    real = Governor.failed

    def failed(self: Governor, permit: Permit, failure: Failure) -> None:
        kind = FailureKind.NOT_SENT
        real(self, permit, Failure(kind=kind, code=failure.code, message=failure.message))

    return _patched(Governor, "failed", failed)


def epoch_not_checked() -> contextlib.AbstractContextManager[None]:
    """A ledger goes on although another process took the run over."""

    def check_epoch(self: Ledger) -> None:
        self._connection.execute("UPDATE meta SET results_bytes = ?", (self._file.end,))
        self.sealing.count(self._connection)

    return _patched(Ledger, "_check_epoch", check_epoch)


@contextlib.contextmanager
def redirected_write_followed() -> Iterator[None]:
    """aiohttp follows redirects, as it does by default, and nothing guards against a second sending."""
    real = aiohttp.ClientSession.request

    def request(self: aiohttp.ClientSession, *args: Any, **options: Any) -> Any:
        return real(self, *args, **{**options, "allow_redirects": True})

    with _patched(aiohttp.ClientSession, "request", request), _by_session():
        yield


@contextlib.contextmanager
def token_used_after_its_end() -> Iterator[None]:
    """A 401 stops nobody but the request that met it."""
    with (
        _patched(Governor, "may_leave", lambda self, permit: True),
        _patched(Account, "freeze", lambda self, now: None),
    ):
        yield


def told_before_durable() -> contextlib.AbstractContextManager[None]:
    """An outcome is reported when it is known, not when it is on disk."""
    real = recorder.Recorder.record

    def record(self: recorder.Recorder, entry: Record, size_bytes: int, **more: bool) -> None:
        telling = self._hooks.durable([entry])
        with contextlib.suppress(StopIteration):
            telling.send(None)  # type: ignore[attr-defined]
        real(self, entry, size_bytes, **more)

    return _patched(recorder.Recorder, "record", record)


def doubt_forgotten() -> contextlib.AbstractContextManager[None]:
    """A repeat that finds everything as it should be is taken for "nothing had to be done"."""

    async def as_it_is(self: Any, outcome: Any) -> Any:
        return outcome

    return _patched(item_run.ItemRun, "_in_the_light_of_doubt", as_it_is)


def stale_look_believed() -> contextlib.AbstractContextManager[None]:
    """A look is believed although this run has just changed what it shows."""
    return _patched(recent_writes.RecentWrites, "steps", lambda self, operation, item, now: operation.steps(item))


def paused_in_the_scheduler_only() -> contextlib.AbstractContextManager[None]:
    """A pause offers nothing new, and lets who stands in the queue for a permit have it."""
    return _patched(Governor, "pause", lambda self: None)


EVERY: Sequence[Any] = (
    intent_written_late,
    no_read_back,
    blind_repeat,
    hidden_re_send,
    no_settle_time,
    lane_not_folded,
    conditional_read_back,
    budget_given_back_when_lost,
    epoch_not_checked,
    redirected_write_followed,
    token_used_after_its_end,
    told_before_durable,
    doubt_forgotten,
    stale_look_believed,
    paused_in_the_scheduler_only,
)
