"""Asks for the limits of credentials before a run: for `bulk plan`, `rehearse` and `rate-limit`.

`GET /rate_limit` is free. A question that never leaves is an error, because no platform is in reach. One that leaves
and gets no answer, or one that tells no limits, such as a 5xx, says nothing of the platform, as in a run: who plans
goes on without limits and says so.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import anyio

from bulk.clock import Clock
from bulk.engine.credentials.kept_answers import scopes_told
from bulk.errors import CredentialRefused, RunStopped
from bulk.forecast import window_length
from bulk.govern.first_contact import ASK_USER, fault_of, is_platform
from bulk.govern.permits.accounts import CredentialSource
from bulk.govern.rate_limit_poller import ASK_LIMITS, PATIENCE_S
from bulk.govern.server_clock import ServerClock
from bulk.manifest.manifest import Platform
from bulk.model import ErrorCode, Failure, FailureKind, Reply
from bulk.platform.auth.credentials import Credential
from bulk.platform.auth.secrets import Secret
from bulk.platform.classification import Limits, Verdict, VerdictKind, classify, date_from_headers, limits_from_body
from bulk.platform.transport import Transport
from bulk.platform.wire import Wire
from bulk.status import BucketStatus

NOT_ASKED = Failure(kind=FailureKind.NOT_SENT, code=ErrorCode.CONNECTION, message="not asked")
_FINAL = (VerdictKind.ACCEPTED, VerdictKind.UNAUTHORIZED, VerdictKind.LOCKED_OUT)
"""Other answers tell no limits, and a run goes on without them."""
_OK, _SERVER_ERROR = 200, 500
SILENT_AFTER = 2
"""After this many questions in a row without an answer no further one is asked (count): each may take `PATIENCE_S`."""


@dataclass(frozen=True, slots=True)
class ToldLimits:
    """The limits that the platform reported.

    Attributes:
        latency_s: how long an answer took (seconds); 0.0 where none came.
        silent: credential -> how the question about its limits ended without an answer that tells them.
        unnamed: credentials and categories that were asked about, of which an answer says nothing that can be read.
        scopes: credential -> the scopes of its token; those of which the platform tells none are missing.
    """

    buckets: list[BucketStatus]
    latency_s: float
    silent: Mapping[str, str]
    unnamed: AbstractSet[tuple[str, str]]
    scopes: Mapping[str, frozenset[str]]

    @property
    def notes(self) -> Iterator[str]:
        """What a plan has to say of credentials whose limits are not known."""
        for name, why in self.silent.items():
            yield f"limits not known: GET /rate_limit did not tell those of {name} ({why}); none are counted with"
        for name, category in sorted(self.unnamed):
            yield f"limits not known: GET /rate_limit did not tell that of {name} for {category}; none is counted with"

    def is_unknown(self, name: str, category: str) -> bool:
        """Return whether nobody knows if a credential has a limit."""
        return name in self.silent or (name, category) in self.unnamed


@dataclass(slots=True)
class _Answers:
    """What came: `took_s`: how long each answer took (seconds)."""

    time: ServerClock
    took_s: list[float] = field(default_factory=list)


async def ask_limits(
    platform: Platform,
    sources: Mapping[str, CredentialSource],
    names: Sequence[str],
    clock: Clock,
    *,
    asks: int = 1,
    may_be_silent: bool = False,
    wanted: AbstractSet[tuple[str, str]] = frozenset(),
) -> ToldLimits:
    """Ask for the limits of each credential; of the first one `asks` times, to time all answers but the very first.

    Args:
        may_be_silent: questions that leave and get no answer, or one that tells no limits, are not an error.
        wanted: credentials and categories of which it is noted where no answer tells their limit.

    Raises:
        BulkError: the platform can't be reached, or refuses a credential or the question.
    """
    buckets: list[BucketStatus] = []
    silent: dict[str, str] = {}
    scopes: dict[str, frozenset[str]] = {}
    came = _Answers(ServerClock.from_local(clock.now(), clock.monotonic()))
    for name in names:
        source = sources[name]
        if isinstance(source, Credential):
            await source.opened()
    tokens = {name: sources[name].read() for name in names}
    async with Transport(platform, concurrency=1, request_timeout_s=PATIENCE_S, clock=clock) as transport:
        for name, token in tokens.items():
            answer = await _ask(transport, token, came, clock, asks if name == names[0] else 1)
            if isinstance(answer, Reply):
                verdict = classify(ASK_LIMITS, answer, platform.vendor)
                is_final = verdict.kind in _FINAL or not may_be_silent
                if not is_final and (not fault_of(answer) or await is_there(transport, token)):
                    silent[name] = f"status {answer.status}: {verdict.message}"
                else:
                    buckets += _told(name, answer, verdict, came.time, clock)
                    held = scopes_told(answer)
                    scopes |= {} if held is None else {name: held}
            elif may_be_silent and answer.kind is FailureKind.LOST:
                silent[name] = answer.message
            else:
                raise RunStopped(f"{platform.base_url} can't be reached: {answer.message}")
    latency_s = statistics.median(came.took_s[1:asks] or came.took_s or [0.0])
    known = {(bucket.credential, bucket.category) for bucket in buckets}
    settled = {*silent, *(bucket.credential for bucket in buckets if bucket.limit is None)}  # those are off
    unnamed = {pair for pair in wanted if pair not in known and pair[0] in tokens and pair[0] not in settled}
    return ToldLimits(buckets, latency_s, silent, unnamed, scopes)


async def is_there(transport: Wire, token: Secret) -> bool:
    """Return whether the platform answers when it is asked whose the token is: `/rate_limit` alone may be kept away."""
    with anyio.move_on_after(PATIENCE_S):
        for _ in range(SILENT_AFTER):  # a connection that was kept may be gone
            answer = await transport.send(ASK_USER, token, None)
            if isinstance(answer, Reply):
                return is_platform(answer)
    return False


async def _ask(transport: Transport, token: Secret, came: _Answers, clock: Clock, asks: int) -> Reply | Failure:
    """Ask `asks` times, and return the answer that tells the most limits, of several the newest; a failure where none
    came.

    Where none tells any, it is the newest with the status of the first one that is not a 5xx. So a single answer that
    is wrong, or that names a limit of 0, decides nothing.
    """
    answer: Reply | Failure = NOT_ASKED
    silent = 0
    for _ in range(asks):
        sent = clock.monotonic()
        heard = await transport.send(ASK_LIMITS, token, None)
        if isinstance(answer, Failure) or (isinstance(heard, Reply) and _is_better(heard, answer)):
            answer = heard
        if isinstance(heard, Failure):
            silent += 1
            if silent >= SILENT_AFTER:
                break
            continue
        silent = 0
        came.took_s.append(clock.monotonic() - sent)
        date = date_from_headers(heard.headers)
        if date is not None:
            came.time.observe(date, sent, clock.monotonic())
    return answer


def _is_better(answer: Reply, before: Reply) -> bool:
    """Return whether an answer counts in the place of one that came before it."""
    told, told_before = _limits_in(answer), _limits_in(before)
    if told != told_before:
        return told > told_before
    return answer.status == before.status or before.status >= _SERVER_ERROR


def _limits_in(answer: Reply) -> int:
    """Return of how many categories an answer names a limit (count)."""
    if answer.status != _OK:
        return 0
    return sum(each.limit > 0 for each in limits_from_body(answer.body).values())


def _told(name: str, answer: Reply, verdict: Verdict, time: ServerClock, clock: Clock) -> Iterator[BucketStatus]:
    """Yield the buckets of a credential, as an answer tells of them."""
    if verdict.kind is VerdictKind.UNAUTHORIZED:
        raise CredentialRefused(name, f"the platform refused the credential {name!r} (401): {verdict.message}")
    if verdict.kind is not VerdictKind.ACCEPTED:
        raise RunStopped(f"GET /rate_limit: {verdict.message}")
    if answer.status == 404:
        yield BucketStatus(credential=name, category="core", limit=None, remaining=None)
    ahead_s, date = _ahead_s(time, clock), date_from_headers(answer.headers)
    told_at = clock.now() if date is None else date - ahead_s
    for category, limits in limits_from_body(answer.body, date).items():
        yield _bucket(name, category, limits, ahead_s, told_at)


def _ahead_s(time: ServerClock, clock: Clock) -> float:
    """Return how far the platform's clock is ahead of this machine's (seconds); 0.0 where the two may agree."""
    now, monotonic = clock.now(), clock.monotonic()
    if not time.is_known or time.earliest(monotonic) <= now <= time.latest(monotonic):
        return 0.0
    return time.middle(monotonic) - now


def _bucket(credential: str, category: str, limits: Limits, ahead_s: float, told_at: float) -> BucketStatus:
    """Return the status of one bucket. A bucket that is untouched shows how long its windows are.

    Args:
        told_at: the second in which the platform told of it (UTC epoch seconds); a window begins at a whole second.
    """
    reset_at = float(limits.reset) - ahead_s if limits.reset else None  # 0: none could be read
    window_s = None
    if reset_at is not None and limits.remaining >= limits.limit and reset_at > told_at:
        window_s = window_length(category, limits.limit, limits.remaining, reset_at - told_at)
    return BucketStatus(
        credential=credential,
        category=category,
        limit=limits.limit,
        remaining=limits.remaining,
        reset_at=reset_at,
        window_s=window_s,
    )
