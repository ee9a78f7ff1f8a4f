"""The device flow: how a user lets an App act for him without a browser on this machine, and how tokens are refreshed.

Synchronous, with only the standard library: a login is rare, and happens in a thread. No message holds a token.
Source: specification, Authentication (2); open-points.md (device flow).
"""

import http.client
import json
import queue
import re
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from bulk.errors import CredentialMissing
from bulk.platform.classification import date_from_headers
from bulk.redaction.printable import printable

ASK_S = 30.0
"""How long a request may take (seconds)."""
SLOWER_S = 5.0
"""How much longer each pause becomes after the site asked for that, or did not answer (seconds)."""
GRANT = "urn:ietf:params:oauth:grant-type:device_code"
MOST_INTERVAL_S = 600.0
"""A longer pause between two questions than this is a mistake of the site (seconds)."""
MOST_BYTES = 64 * 1024
CODE_S, MOST_CODE_S = 900.0, 86_400.0
"""How long a code may be confirmed if the site does not say, and the longest time that is believed (seconds)."""
MOST_LASTS_S = 10 * 365 * 86_400.0
"""The end of a token that lasts longer than this counts as not known (seconds)."""
LEAST_LASTS_S = 10.0
"""So does that of a token that lasts no longer than this: it could not be used (seconds)."""
_PASSING = frozenset((408, 425, 429, 500, 502, 503, 504))
_PASSING_ERRORS = frozenset(("slow_down", "temporarily_unavailable", "server_error"))
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")

_Answer = tuple[dict[str, Any], float | None]
"""JSON that came back, and its date (UTC epoch seconds) where it has one."""


class NoAnswer(CredentialMissing):
    """The site can't be reached, or gave no usable answer; what it did is not known."""


@dataclass(frozen=True, slots=True)
class Granted:
    """The tokens that a site gave.

    Attributes:
        lasts_s: how long the access token lasts (seconds); None: that is not known.
        date: when the tokens were given (UTC epoch seconds, platform time); None: the site does not say.
    """

    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    lasts_s: float | None
    date: float | None


@dataclass(frozen=True, slots=True)
class Site:
    """Where people log in. `url` has no slash at its end."""

    url: str
    ca_bundle: Path | None = None

    @classmethod
    def of(cls, base_url: str, ca_bundle: Path | None = None) -> "Site":
        """Return the site of a base URL: the same host, for a cloud edition the host without `api.`."""
        parts = urlsplit(base_url)
        host = parts.netloc.removeprefix("api.") if not parts.path else parts.netloc
        return cls(f"{parts.scheme}://{host}", ca_bundle)

    def post(self, path: str, fields: Mapping[str, str]) -> _Answer:
        """Send a form; return the JSON that comes back, and its date (UTC epoch seconds) where it has one.

        An error is JSON as well, with status 200, or with 400 as the standard has it (RFC 8628, 3.5).

        Raises:
            NoAnswer: no usable answer came, or no whole one within `ASK_S`; the site may be asked again.
            CredentialMissing: the site refuses for good, or `ca_bundle` can't be used.
        """
        ended: queue.SimpleQueue[_Answer | BaseException] = queue.SimpleQueue()

        def ask() -> None:
            try:
                ended.put(self._post(path, fields))
            except BaseException as error:  # noqa: BLE001 - raised below, in the thread that waits
                ended.put(error)

        # a thread of its own, as the time of a socket begins anew with each byte; it is not waited for at the end
        threading.Thread(target=ask, name="login", daemon=True).start()
        try:
            found = ended.get(timeout=ASK_S)
        except queue.Empty:
            raise NoAnswer(f"{self.url}{path} gave no whole answer within {ASK_S:g} s") from None
        if isinstance(found, BaseException):
            raise found
        return found

    def _post(self, path: str, fields: Mapping[str, str]) -> _Answer:
        request = urllib.request.Request(
            self.url + path,
            data=urlencode(fields).encode(),
            headers={"Accept": "application/json", "User-Agent": "bulk"},
        )
        try:
            context = ssl.create_default_context(cafile=None if self.ca_bundle is None else str(self.ca_bundle))
        except OSError as error:
            reason = error.strerror or "it holds no certificates"
            raise CredentialMissing(f"ca_bundle {self.ca_bundle} can't be used: {reason}") from None
        handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        try:
            try:
                answer = urllib.request.build_opener(*handlers).open(request, timeout=ASK_S)
            except urllib.error.HTTPError as refusal:
                answer = refusal
            with answer:
                if isinstance(answer, urllib.error.HTTPError) and answer.code != 400:
                    raise answer
                body = json.loads(answer.read(MOST_BYTES))
                date = date_from_headers({"date": answer.headers.get("Date", "")})
        except (OSError, ValueError, RecursionError, http.client.HTTPException) as error:
            is_final = isinstance(error, urllib.error.HTTPError) and error.code not in _PASSING
            raise (CredentialMissing if is_final else NoAnswer)(self._why(path, error)) from None
        if not isinstance(body, dict):
            raise NoAnswer(f"{self.url}{path} gave no usable answer")
        return body, date

    def _why(self, path: str, error: Exception) -> str:
        match error:
            case urllib.error.HTTPError(code=404):
                return (
                    f"{self.url}{path} is not there (404): look at the client id, whether the device flow of the App "
                    "is on, and at the base URL"
                )
            case urllib.error.HTTPError():
                return f"{self.url}{path} gave no usable answer (status {error.code})"
            case urllib.error.URLError():
                reason = error.reason
                told = reason.strerror if isinstance(reason, OSError) and reason.strerror else type(reason).__name__
                return f"{self.url} can't be reached: {told}"
            case _:
                return f"{self.url}{path} gave no usable answer ({type(error).__name__})"


def log_in(site: Site, client_id: str, tell: Callable[[str, str], None], sleep: Callable[[float], None]) -> Granted:
    """Return the tokens that the site gives once the user has confirmed.

    A question without an answer is asked again, with a longer pause: the user may have typed the code already.

    Args:
        tell: called with the page to open and the code to type there.
        sleep: waits the given number of seconds.

    Raises:
        CredentialMissing: the user refused, the code has ended, or the site can't be reached while the code lasts.
    """
    code, _ = site.post("/login/device/code", {"client_id": client_id})
    if any(not isinstance(code.get(field), str) for field in ("device_code", "user_code", "verification_uri")):
        raise CredentialMissing(f"{site.url} begins no login for {client_id}: {_reason(code)}")
    tell(printable(code["verification_uri"]), printable(code["user_code"]))
    interval_s = _seconds(code, "interval", MOST_INTERVAL_S) or 5.0
    left_s = _seconds(code, "expires_in", MOST_CODE_S) or CODE_S
    fields = {"client_id": client_id, "device_code": str(code["device_code"]), "grant_type": GRANT}
    while True:
        sleep(interval_s)
        left_s -= interval_s
        try:
            answer, date = _exchanged(site, fields)
        except NoAnswer:
            interval_s += SLOWER_S
            if left_s <= 0.0:
                raise
            continue
        if "access_token" in answer:
            return _granted(site, answer, date)
        match answer.get("error"):
            case "authorization_pending" if left_s > 0.0:
                pass
            case "slow_down" if left_s > 0.0:
                told_s = _seconds(answer, "interval", MOST_INTERVAL_S) or 0.0
                interval_s = told_s if told_s > interval_s else interval_s + SLOWER_S
            case "authorization_pending" | "slow_down":
                raise CredentialMissing("no login: the code has ended; run the same command again for another one")
            case "access_denied":
                raise CredentialMissing(f"no login: {_reason(answer)}")
            case _:
                raise CredentialMissing(f"no login: {_reason(answer)}; run the same command again for another code")


def _reason(answer: Mapping[str, Any]) -> str:
    """Return the site's reason for an error."""
    told = answer.get("error_description") or answer.get("error")
    return printable(told[:200]).rstrip(".") if isinstance(told, str) else "it gave no reason"


def _seconds(told: Mapping[str, Any], name: str, most: float) -> float | None:
    """Return the duration that the site names (seconds); None if it names none below `most`."""
    try:
        found = float(told.get(name) or 0.0)
    except (TypeError, ValueError):
        return None
    return found if 0.0 < found < most else None


def _granted(site: Site, answer: Mapping[str, Any], date: float | None) -> Granted:
    access, refresh = answer["access_token"], answer.get("refresh_token") or None
    if not isinstance(access, str) or not isinstance(refresh or access, str):
        raise CredentialMissing(f"{site.url} gave something that is not a token")
    if not _TOKEN.fullmatch(access) or not _TOKEN.fullmatch(refresh or access):
        raise CredentialMissing(f"{site.url} gave a token with other characters than printable ASCII without spaces")
    lasts_s = _seconds(answer, "expires_in", MOST_LASTS_S)
    return Granted(access, refresh, lasts_s if lasts_s is not None and lasts_s > LEAST_LASTS_S else None, date)


def refreshed(site: Site, client_id: str, refresh_token: str) -> Granted:
    """Return new tokens for a refresh token, which is worth nothing from then on.

    If no answer comes, the request is sent once more: if the first one did nothing, nothing is lost, and if it did, its
    tokens are lost anyhow. A site that gives no other refresh token lets the present one be used again.

    Raises:
        NoAnswer: neither request was answered.
        CredentialMissing: the site does not take the refresh token any more.
    """
    fields = {"client_id": client_id, "grant_type": "refresh_token", "refresh_token": refresh_token}
    try:
        answer, date = _exchanged(site, fields, _PASSING_ERRORS)
    except NoAnswer:
        answer, date = _exchanged(site, fields, _PASSING_ERRORS)
    if "access_token" not in answer:
        raise CredentialMissing(f"the login has ended ({_reason(answer)})")
    granted = _granted(site, answer, date)
    return granted if granted.refresh_token else replace(granted, refresh_token=refresh_token)


def _exchanged(site: Site, fields: Mapping[str, str], passing: AbstractSet[str] = frozenset()) -> _Answer:
    """Return the tokens that the site gives, or its error; raise NoAnswer for one of the errors `passing`, and for
    anything else, as the page of a gateway."""
    try:
        answer, date = site.post("/login/oauth/access_token", fields)
    except CredentialMissing as refusal:
        raise NoAnswer(str(refusal)) from None
    error = answer.get("error")
    if "access_token" not in answer and (not isinstance(error, str) or error in passing):
        raise NoAnswer(f"{site.url} gave no usable answer ({_reason(answer)})")
    return answer, date
