"""An App at the platform: the requests that it sends for itself, with JSON web tokens and a budget of its own.

A JWT is used for eight minutes. If the platform refuses a JWT, the key is read again (of several keys the next one is
taken) and one more JWT is sent; if that is refused too, the App is refused. After a refusal for the times of a JWT, the
next one is made with the time that the platform's answer names, or, where that was used, by this machine's clock. A
request without an answer is sent again, and so is a request that the App's own limits refuse, when they allow it: no
refusal for a limit says anything about an installation. So is one whose answer is nobody's word: it shows not what was
asked for, or refuses it without the platform's message, as the page of a gateway does.
Source: credentials in docs/how-to/app.md.
"""

import logging
import math
from collections.abc import Awaitable, Callable
from functools import partial

import anyio

from bulk.clock import Clock
from bulk.errors import CredentialMissing, CredentialRefused
from bulk.model import Failure, Reply, Request
from bulk.platform.auth.app_keys import EARLY_S, AppSigner
from bulk.platform.auth.credentials import interruptible
from bulk.platform.auth.secrets import Secret
from bulk.platform.classification import (
    VerdictKind,
    classify,
    date_from_headers,
    limits_from_headers,
    retry_after_s,
)
from bulk.platform.moments import MOST_WAIT_S

log = logging.getLogger("bulk.platform.auth")

USED_S = 480.0
"""How long a JWT is used (seconds)."""
AT_ONCE = 4
"""Requests of one App under way at once (count)."""
AGAIN_S, AGAIN_MOST_S = 0.5, 30.0
"""First pause after a request that brought no answer, and the longest; it doubles (seconds)."""
TRIES, OUTAGE_S = 6, 900.0
"""Useless answers to a request after which it is given up (count), and how long an outage is waited out (seconds)."""

UNTOLD_S, PAST_RESET_S = 60.0, 1.0
"""Pause after a refusal for a limit that names no time, and the extra wait after a named end (seconds)."""
_LIMITED = frozenset(
    (VerdictKind.LIMITED_PRIMARY, VerdictKind.LIMITED_SECONDARY, VerdictKind.THROTTLED, VerdictKind.LOCKED_OUT)
)

_REFUSALS = frozenset((403, 404, 422))
_OUTAGES = frozenset((VerdictKind.BUSY, VerdictKind.SERVER_ERROR))

LIST = "/app/installations"
_UNKNOWN = "Integration not found"
"""The platform's message to a JWT of an App that does not exist."""

Send = Callable[[Request, Secret], Awaitable[Reply | Failure]]
Shows = Callable[[object], bool]
"""Whether the body of a success shows what was asked for."""


class UselessAnswers(CredentialMissing):
    """The platform gave no answer to an App that could be used, for as long as that is waited for."""


class App:
    """One App at the platform. One object serves all of its installations.

    Args:
        send: sends one request with a token, outside of all permits.
        platform_now: platform time (UTC epoch seconds), as far as it is known.

    Attributes:
        name: name of the credential. refused: why the platform does not take the App; empty: it does.
        closed_until: the App's own budget is empty, or it was told to wait: nothing is sent before this (monotonic).
    """

    def __init__(self, signer: AppSigner, send: Send, clock: Clock, platform_now: Callable[[], float]) -> None:
        self.name, self.refused = signer.name, ""
        self._signer, self._send, self._clock, self._platform_now = signer, send, clock, platform_now
        self._jwt: Secret | None = None
        self._newest: Secret | None = None
        self._former: Secret | None = None
        self._made_at, self._which, self._generation, self._tried = -math.inf, 0, 0, 0
        self._skew_s = self.closed_until = 0.0
        self._made_for, self._is_wordless = 0.0, False
        self._making, self._room = anyio.Lock(), anyio.Semaphore(AT_ONCE)

    async def ask(self, request: Request, shows: Shows) -> Reply:
        """Return the platform's answer to `request`: a success that `shows` what was asked for, or 403, 404 or 422.

        Raises:
            CredentialRefused: the platform does not take the App.
            CredentialMissing: the App's key can't be read.
            UselessAnswers: no answer could be used.
        """
        async with self._room:
            pause_s, refusals, useless, since = AGAIN_S, 0, 0, self._clock.monotonic()
            while True:
                await self._opened()
                token, generation = await self._current()
                answer = await self._send(request, token)
                if isinstance(answer, Reply):
                    if self._is_limited(request, answer):
                        since = self._clock.monotonic()
                        continue
                    if answer.status == 401:
                        refusals += 1
                        if refusals > max(2, self._signer.keys):
                            raise self._refuse(answer)
                        await self._turn(answer, generation)
                        continue
                    useless += classify(request, answer, "").kind not in _OUTAGES
                    if self._is_word(answer, shows, useless):
                        self._look_for_app(request, answer)
                        return answer
                if useless >= TRIES or self._clock.monotonic() - since > OUTAGE_S:
                    raise self._useless(answer)
                wait_s = None if isinstance(answer, Failure) else retry_after_s(answer.headers, self.told(answer))
                await self._clock.sleep(wait_s or pause_s)
                pause_s = min(AGAIN_MOST_S, 2 * pause_s)

    def _is_word(self, answer: Reply, shows: Shows, useless: int) -> bool:
        """Return whether an answer is the platform's word.

        A front end may put a page in the place of all refusals: one that is all that comes is believed, and then others
        of that App are at once.
        """
        if answer.status < 300:
            return shows(answer.body)
        if answer.status in _REFUSALS and not _has_message(answer) and useless >= TRIES:
            self._is_wordless = True
        return answer.status in _REFUSALS and (_has_message(answer) or self._is_wordless)

    def _look_for_app(self, request: Request, answer: Reply) -> None:
        """Raise CredentialRefused if an answer says that there is no such App."""
        if answer.status == 404 and (request.path == LIST or _message(answer) == _UNKNOWN):
            raise self._refused(
                f"the platform has no App {self._signer.client_id!r} (credential {self.name!r}, 404: "
                f"{_message(answer)}): look at its client_id, which stands on the page of the App, and at the "
                "base URL."
            )

    def _useless(self, answer: Reply | Failure) -> UselessAnswers:
        said = answer.message if isinstance(answer, Failure) else f"the last one had status {answer.status}"
        return UselessAnswers(
            f"the platform gives the App of credential {self.name!r} no answer that can be used: {said}"
        )

    async def _opened(self) -> None:
        while (left_s := self.closed_until - self._clock.monotonic()) > 0.0:
            await self._clock.sleep(left_s)

    def told(self, answer: Reply) -> float:
        """Return when an answer was made (UTC epoch seconds, platform time)."""
        date = date_from_headers(answer.headers)
        return self._platform_now() + self._skew_s if date is None else date

    def _is_limited(self, request: Request, answer: Reply) -> bool:
        """Return whether limits of the App's own refused a request, and note how long to send nothing more."""
        verdict, wait_s = classify(request, answer, ""), 0.0
        limits = limits_from_headers(answer.headers)
        if (
            limits is not None and limits.remaining <= 0 < limits.reset and answer.status != 401
        ):  # those of a 401 are the address's
            wait_s = min(MOST_WAIT_S, max(0.0, limits.reset - self.told(answer)) + PAST_RESET_S)
        is_limited = verdict.kind in _LIMITED
        if is_limited:
            wait_s = retry_after_s(answer.headers, self.told(answer)) or wait_s or UNTOLD_S
        if wait_s:
            until = self._clock.monotonic() + wait_s
            if until > self.closed_until + PAST_RESET_S:
                log.warning("the App of credential %r has used its own budget up: it waits %.0f s", self.name, wait_s)
            self.closed_until = max(self.closed_until, until)
        return is_limited

    async def _current(self) -> tuple[Secret, int]:
        async with self._making:
            if self.refused:
                raise CredentialRefused(self.name, self.refused)
            now = self._clock.monotonic()
            if self._jwt is None or now - self._made_at > USED_S:
                moment = self._platform_now() + self._skew_s
                if self._former is not None:
                    self._former.forget()
                self._former = self._newest
                self._jwt = self._newest = await interruptible(partial(self._signer.signed, moment, self._which))
                self._made_at, self._made_for = now, moment
            return self._jwt, self._generation

    async def _turn(self, answer: Reply, generation: int) -> None:
        """Let the next JWT be made in another way after one was refused, unless another request has done so already."""
        async with self._making:
            if generation != self._generation:
                return
            if _is_untimely(answer):
                self._skew_s = self._other_time(answer) - self._platform_now()
            elif self._tried >= max(1, self._signer.keys - 1):
                raise self._refuse(answer)
            else:
                self._which += 1
                self._tried += 1
            self._generation += 1
            self._jwt = None

    def _other_time(self, answer: Reply) -> float:
        """Return another time for the next JWT than that of the one that was refused for its times (UTC epoch seconds):
        by the platform's `Date`, and where that is the one which is wrong, by this machine's clock."""
        used = self._made_for + self._clock.monotonic() - self._made_at
        for moment in (date_from_headers(answer.headers), self._clock.now()):
            if moment is not None and abs(moment - used) > EARLY_S:
                return moment
        raise self._refuse(answer)

    def prove(self) -> None:
        """Note that the platform took a JWT."""
        self._tried = 0

    def _refuse(self, answer: Reply) -> CredentialRefused:
        way_out = "Set this machine's clock" if _is_untimely(answer) else "Put its private key where it is read from"
        return self._refused(
            f"the platform refused the App of credential {self.name!r} (401: {_message(answer)}): everything that uses "
            f"it has stopped. {way_out}, and run the same command again."
        )

    def _refused(self, why: str) -> CredentialRefused:
        self.refused = why
        return CredentialRefused(self.name, why)


def _is_untimely(answer: Reply) -> bool:
    """Return whether a JWT was refused for its times."""
    said = _message(answer)
    return "('exp')" in said or "('iat')" in said


def _has_message(answer: Reply) -> bool:
    return isinstance(answer.body, dict) and isinstance(answer.body.get("message"), str)


def _message(answer: Reply) -> str:
    return answer.body["message"][:200] if _has_message(answer) else "no message"
