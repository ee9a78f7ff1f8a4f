"""What the platform's answers mean: limits, dates, waits, and a verdict on every reply. Pure, and never raises.

Names are looked up in lower case. Limits are told from refusals by status, headers, and whole sentences of the platform
(`phrases.py`); where nothing explains a refusal, the verdict is UNEXPLAINED, and the governor asks `GET /rate_limit`.
Source: open-points.md (limits, error body); specification.md, Errors; failures.md rows 5, 9-12, 15, 18-20, 23-26, 31.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec

from bulk.model import Effect, ErrorCode, Media, Reply, Request
from bulk.platform import phrases
from bulk.platform.bodies.body_values import A_PAGE, Unreadable
from bulk.platform.moments import DAY_S, MILLISECONDS_FROM, http_date, wait_s, window_end
from bulk.redaction import redact
from bulk.redaction.printable import printable

MESSAGE_CHARS = 500
MESSAGE_ERRORS = 10
"""Entries of a 422's `errors` that a message names."""

_READ_CHARS, _READ_ERRORS = 20_000, 100
"""Most characters of a message, and most entries of `errors`, that are looked at."""

_COUNT = re.compile(r"[+-]?[0-9]{1,15}")
_CATEGORY = re.compile(r"[a-z0-9_.-]{1,64}")
_PERMISSIONS = re.compile(r"[a-z_]{1,50}=[a-z]{1,10}(?:[,;] ?[a-z_]{1,50}=[a-z]{1,10}){0,9}")
_VENDOR_HEADERS = {"github": "GitHub"}

MOVED = "if it was renamed or moved, name it as it is called now"  # what a user can do about a redirect
REDIRECT_STATUSES = frozenset((301, 302, 303, 307, 308))
ON_THE_WAY = frozenset((407, 511))  # of a proxy that lets nothing pass without a login of its own

_GENERIC = frozenset(
    ("403", "forbidden", "403 forbidden", "error 403", "access denied", "denied", "error", "not allowed")
)
_WORD = re.compile(r"\w+")
_UNSURE = frozenset((408, 421, 425, 444, 449, 460, 499))  # a server or a proxy gave up on what may have been done
_NO_SUCH_PLACE = frozenset((400, 404, 405, 410))  # also of a front end that has lost the way to the platform


class Limits(msgspec.Struct, frozen=True):
    """One rate-limit category as the platform tells it.

    Attributes:
        category: its name in lower case; None where the headers don't name it.
        limit: requests of a window (count, >= 0).
        remaining: requests left in it (count, 0..limit).
        used: requests made in it (count); None where not told.
        reset: when the window ends (UTC epoch seconds, platform time; may lie in the past or far ahead).
    """

    category: str | None
    limit: int
    remaining: int
    used: int | None
    reset: int


class VerdictKind(StrEnum):
    """How a reply is to be treated."""

    ACCEPTED = "accepted"  # the status is one that the operation wants to see
    REFUSED = "refused"  # final for the item, no effect
    UNAUTHORIZED = "unauthorized"  # 401
    LOCKED_OUT = "locked-out"  # credentials are rejected for a while, also valid ones
    LIMITED_PRIMARY = "limited-primary"  # the bucket is empty
    LIMITED_SECONDARY = "limited-secondary"  # too much at once
    THROTTLED = "throttled"  # a 429 without a word, as of a front end: requests come too fast
    UNEXPLAINED = "unexplained"  # a 403 without a reason: limit or permission
    ASTRAY = "astray"  # no such place, without the platform's message: a front end's answer
    BUSY = "busy"  # the request was not carried out, but will be accepted later
    SERVER_ERROR = "server-error"  # a 5xx, or the answer of a proxy that gave up: a write may have happened
    BAD_RESPONSE = "bad-response"  # the answer can't be used; with 2xx a write happened
    REDIRECTED = "redirected"  # a read leads elsewhere


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of `classify` on a reply.

    Attributes:
        code: code of the item's error, should the item end here; None for ACCEPTED and REDIRECTED.
        message: message for people; without secrets, at most 500 characters; empty for ACCEPTED.
        retry_after_s: how long the platform asks to wait (seconds, 0..3700); None if it does not say.
        location: where a read was redirected to, as the platform wrote it; see `urls.within_base`.
    """

    kind: VerdictKind
    code: ErrorCode | None = None
    message: str = ""
    retry_after_s: float | None = None
    location: str | None = None


_ACCEPTED = Verdict(VerdictKind.ACCEPTED)


def limits_from_headers(headers: Mapping[str, str]) -> Limits | None:
    """Return the limits of `X-RateLimit-*`; None if the limit or what remains is missing, no number, or no limit.

    An end of the window that is missing or can't be read does not make the other two untrue.
    """
    limit = _count(headers.get("x-ratelimit-limit"))
    if limit is None or limit < 0:
        return None
    remaining, reset = _count(headers.get("x-ratelimit-remaining")), _count(headers.get("x-ratelimit-reset"))
    if remaining is None:
        return None
    if reset is None or not DAY_S <= reset < MILLISECONDS_FROM:  # seldom: no epoch seconds
        reset = window_end(headers.get("x-ratelimit-reset"), date_from_headers(headers))
    category = headers.get("x-ratelimit-resource")
    return _limits(category and _folded(category), limit, remaining, _count(headers.get("x-ratelimit-used")), reset)


def limits_from_body(body: Any, date: float | None = None) -> dict[str, Limits]:
    """Return the categories of `GET /rate_limit`, by name in lower case; entries that can't be read are left out.

    Args:
        date: when the answer was made (UTC epoch seconds); None: it does not say.
    """
    if not isinstance(body, dict):
        return {}
    resources = body.get("resources")
    if not isinstance(resources, dict):
        resources = {"core": body.get("rate")}
    found = {}
    for name, entry in resources.items():
        category = _folded(name)
        if category is None or not isinstance(entry, dict):
            continue
        limit, remaining = _whole(entry.get("limit")), _whole(entry.get("remaining"))
        reset = window_end(entry.get("reset"), date)
        if limit is not None and limit >= 0 and remaining is not None:
            found[category] = _limits(category, limit, remaining, _whole(entry.get("used")), reset)
    return found


def _limits(category: str | None, limit: int, remaining: int, used: int | None, reset: int) -> Limits:
    remaining = min(limit, max(0, remaining))
    return Limits(category, limit, remaining, None if used is None else max(0, used), max(0, reset))


@lru_cache(maxsize=256)
def _folded(category: str) -> str | None:
    folded = category.strip().lower()
    return folded if _CATEGORY.fullmatch(folded) else None


def _count(text: str | None) -> int | None:
    if text is not None and len(text) < 16 and text.isdigit() and text.isascii():  # the usual case, and quick
        return int(text)
    if text is None:
        return None
    first, *more = (each.strip() for each in text.split(","))  # a proxy may have added the same number once more
    return int(first) if _COUNT.fullmatch(first) and all(each == first for each in more) else None


def _whole(value: Any) -> int | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and abs(value) < 1e15 else None


def date_from_headers(headers: Mapping[str, str]) -> float | None:
    """Return when the platform made this answer (UTC epoch seconds, whole); None where it does not say."""
    date = headers.get("date")
    return None if date is None else http_date(date)


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return how long `Retry-After` asks to wait (seconds, 0..3700); None where it is missing or can't be understood.

    Args:
        now: platform time (UTC epoch seconds), for the form that names a date.
    """
    text = headers.get("retry-after")
    return None if text is None else wait_s(text, now)


def header_name(vendor: str, name: str) -> str:
    """Return the name of a vendor's header, such as `X-Service-Api-Version` or `X-GitHub-Api-Version`."""
    return f"X-{_VENDOR_HEADERS.get(vendor, vendor.title())}-{name}"


def request_headers(request: Request, vendor: str, api_version: str | None, has_body: bool) -> dict[str, str]:
    """Return the headers of a request without its credential, its validators and the client's name."""
    parameter = "" if request.media is Media.JSON else f".{request.media}"
    headers = {"Accept": f"application/vnd.{vendor}{parameter}+json"}
    if api_version is not None:
        headers[header_name(vendor, "Api-Version")] = api_version
    if has_body:
        headers["Content-Type"] = "application/json"
    return headers


def classify(request: Request, reply: Reply, vendor: str) -> Verdict:  # noqa: ARG001 - both vendors speak alike today
    """Return how to treat `reply`.

    Signs that every request must heed (401, lock-out, limits, busy) come before the statuses that it accepts. A final
    refusal gets the code `validation_failed` for 400, 410, 422 and other 4xx (the platform does not take the request as
    it is), `forbidden` for 403 and 451, `not_found` for 404, `conflict` for 409, 412 and 423, `too_large` for 413, or
    where an entry of `errors` says so.
    """
    status = reply.status
    if status < 400 and status in request.accept:
        return _accepted(request, reply)
    match status:
        case 401:
            return _said(reply, VerdictKind.UNAUTHORIZED, ErrorCode.UNAUTHORIZED)
        case 403 | 429:
            limited = _limited(reply)
            if limited is not None:
                return limited
        case 422 if _is_busy(reply.body):
            return _said(reply, VerdictKind.BUSY, ErrorCode.VALIDATION_FAILED)
    is_lost = status in _NO_SUCH_PLACE and not _message_of(reply.body)  # the platform gives a message
    if status in request.accept and not (is_lost and request.effect is Effect.READ):
        return _ACCEPTED
    if status in ON_THE_WAY:
        return _bad(f"a proxy on the way wants a login of its own (status {status}), and the platform was not asked")
    if status in _UNSURE:
        return _said(reply, VerdictKind.SERVER_ERROR, ErrorCode.SERVER_ERROR)
    if 400 <= status < 500:
        needed = accepted_permissions(reply.headers) if status == 403 else ""
        remark = ", or something before it did" if is_lost else f" (it takes {needed})" if needed else ""
        kind = VerdictKind.ASTRAY if is_lost else VerdictKind.REFUSED
        return _said(reply, kind, _refusal_code(reply), remark)
    if 500 <= status < 600:
        kind = VerdictKind.BUSY if status == 503 and "retry-after" in reply.headers else VerdictKind.SERVER_ERROR
        return _said(reply, kind, ErrorCode.SERVER_ERROR)
    if status in REDIRECT_STATUSES:
        return _redirected(request, reply)
    return _bad(f"the platform answered with the unexpected status {status}")


def _redirected(request: Request, reply: Reply) -> Verdict:
    """Return the verdict on a redirect: a read follows it, unless it leads away, and no write does."""
    status, location = reply.status, reply.headers.get("location")
    if reply.body is A_PAGE:
        return _bad(f"redirected away from the platform (status {status}), as to a page to log in; not followed")
    if request.effect is not Effect.READ:
        return _bad(f"the platform redirects (status {status}), and a write is never sent elsewhere; {MOVED}")
    if not location:
        return _bad(f"the platform redirects (status {status}), without saying where to")
    return Verdict(VerdictKind.REDIRECTED, location=location)


def _accepted(request: Request, reply: Reply) -> Verdict:
    """Return the verdict on a status that the operation wants to see; the body of a success must be usable."""
    body = reply.body
    if not 200 <= reply.status < 300:
        return _ACCEPTED
    if reply.is_truncated:
        coding = printable(reply.headers.get("content-encoding", ""), 40)
        coded = f", or its bytes are not in the coding ({coding})" if coding else ""
        return _bad(f"the answer (status {reply.status}) broke off{coded}")
    if isinstance(body, Unreadable):
        if body.is_too_large and request.effect is Effect.READ:
            # a repeat brings the same answer, so the refusal is final
            is_file = request.media in (Media.RAW, Media.HTML)
            code = ErrorCode.TOO_LARGE if is_file else ErrorCode.BAD_RESPONSE
            return Verdict(VerdictKind.REFUSED, code, f"the answer can't be used: {printable(body.why)}")
        return _bad(f"the answer (status {reply.status}) can't be used: {printable(body.why)}")
    if body is None and reply.status == 200 and request.method == "GET":
        return _bad("the answer (status 200) is empty")
    if request.proof is not None and not reply.is_unchanged:  # the answer that a 304 confirms was checked when kept
        flaw = request.proof.flaw(reply)
        if flaw:
            return _bad(f"the answer (status {reply.status}) does not show what was asked for: {flaw}")
    return _ACCEPTED


def _limited(reply: Reply) -> Verdict | None:
    """Return the verdict on a 403 or 429 for a limit or a lock-out; None: it refuses the request for another reason."""
    said = _message_of(reply.body)
    headers = reply.headers
    if reply.status == 403 and phrases.is_suspended(said):
        return _said(reply, VerdictKind.UNAUTHORIZED, ErrorCode.UNAUTHORIZED)
    if reply.status == 403 and phrases.is_lock_out(said):
        return _said(reply, VerdictKind.LOCKED_OUT, ErrorCode.UNAUTHORIZED)
    if phrases.is_secondary_limit(said):
        return _said(reply, VerdictKind.LIMITED_SECONDARY, ErrorCode.RATE_LIMITED)
    remaining = _count(headers.get("x-ratelimit-remaining"))
    if phrases.is_primary_limit(said) or (remaining is not None and remaining <= 0):
        return _said(reply, VerdictKind.LIMITED_PRIMARY, ErrorCode.RATE_LIMITED)
    if reply.status == 429 or "retry-after" in headers:
        if "retry-after" not in headers and remaining is None and not isinstance(reply.body, dict):
            # the platform's own limits speak JSON, and name a time or what is left
            return _said(reply, VerdictKind.THROTTLED, ErrorCode.RATE_LIMITED)
        return _said(reply, VerdictKind.LIMITED_SECONDARY, ErrorCode.RATE_LIMITED)
    return None if _is_explained(reply.body) else _said(reply, VerdictKind.UNEXPLAINED, ErrorCode.FORBIDDEN)


def _is_explained(body: Any) -> bool:
    """Return whether a 403 gives a reason: its message is more than the status, or points into the documentation."""
    if not isinstance(body, dict):
        return False
    plain = " ".join(_WORD.findall(_message_of(body))).lower()
    return bool(plain) and (plain not in _GENERIC or bool(body.get("documentation_url")))


def _is_busy(body: Any) -> bool:
    """Return whether a 422 means that it will be taken later: something is in progress, or the endpoint was spammed."""
    if not isinstance(body, dict):
        return False
    message, entries = _message_of(body), body.get("errors")
    entries = entries[:_READ_ERRORS] if isinstance(entries, list) else []
    said = [entry.get("message") if isinstance(entry, dict) else entry for entry in entries]
    if any(isinstance(each, str) and phrases.is_in_progress(each) for each in (message, *said)):
        return True
    return not entries and phrases.is_spammed(message)


def _refusal_code(reply: Reply) -> ErrorCode:
    body = reply.body
    entries = body.get("errors") if isinstance(body, dict) else None
    if isinstance(entries, list) and any(
        isinstance(each, dict) and each.get("code") == "too_large" for each in entries
    ):
        return ErrorCode.TOO_LARGE
    match reply.status:
        case 403 | 451:
            return ErrorCode.FORBIDDEN
        case 404:
            return ErrorCode.NOT_FOUND
        case 409 | 412 | 423:
            return ErrorCode.CONFLICT
        case 413:
            return ErrorCode.TOO_LARGE
        case _:
            return ErrorCode.VALIDATION_FAILED


def _bad(message: str) -> Verdict:
    return Verdict(VerdictKind.BAD_RESPONSE, ErrorCode.BAD_RESPONSE, message)


def accepted_permissions(headers: Mapping[str, str]) -> str:
    """Return the permissions that the platform says a fine-grained or App token needs (`contents=read`); empty: none.

    Source: Troubleshooting the REST API, docs.github.com.
    """
    text = headers.get("x-accepted-github-permissions", "").strip()
    return text if _PERMISSIONS.fullmatch(text) else ""


def _said(reply: Reply, kind: VerdictKind, code: ErrorCode, remark: str = "") -> Verdict:
    """Return a verdict with the platform's own words and a remark, and with the wait that the platform asks for."""
    date = date_from_headers(reply.headers)
    # a date to wait for is measured on the clock that wrote it
    wait_s = retry_after_s(reply.headers, math.nan if date is None else date)
    return Verdict(kind, code, _words(reply, remark), wait_s)


def _words(reply: Reply, remark: str) -> str:
    message = _message_of(reply.body)
    errors = _errors_of(reply.body)
    if len(errors) > MESSAGE_ERRORS:
        errors[MESSAGE_ERRORS:] = [f"and {len(errors) - MESSAGE_ERRORS} more"]
    if errors:
        message = f"{message}: {'; '.join(errors)}" if message else "; ".join(errors)
    # `printable` first: without hidden characters a secret may be complete; one that was cut must not be shown
    is_cut = len(message) >= _READ_CHARS
    message = redact(printable(message)).strip()
    if not message or (is_cut and len(message) <= MESSAGE_CHARS):
        return f"the platform answered with status {reply.status} and no message{remark}"
    message += remark
    return message if len(message) <= MESSAGE_CHARS else message[: MESSAGE_CHARS - 1] + "…"


def _message_of(body: Any) -> str:
    message = body.get("message") if isinstance(body, dict) else None
    return message[:_READ_CHARS] if isinstance(message, str) else ""


def _errors_of(body: Any) -> list[str]:
    """Return the entries of a 422's `errors` as people read them: `Hook.config.url: missing_field`."""
    entries = body.get("errors") if isinstance(body, dict) else None
    if not isinstance(entries, list):  # some refusals have one text there, or one object
        entries = [entries]
    return [line for entry in entries[:_READ_ERRORS] if (line := _error_line(entry))]


def _error_line(entry: Any) -> str:
    if isinstance(entry, str):
        return entry[:_READ_CHARS]
    if not isinstance(entry, dict):
        return ""
    place = ".".join(part for name in ("resource", "field") if isinstance(part := entry.get(name), str) and part)
    why = next((text for name in ("message", "code") if isinstance(text := entry.get(name), str) and text), "")
    return ": ".join(part for part in (place, why) if part)
