"""All ways to be wrong, by family. A few of each stand for it in `make test`; the command and `make soak` try all."""

import gzip
import random
import zlib
from collections.abc import Iterator
from typing import Any, Literal

from tests.hostile.http import refusing, sequences, twists
from tests.hostile.http.limits import Answers, Headers
from tests.hostile.http.turn import BASE_URL
from tests.hostile.store.normal import HABITS
from tests.hostile.wrong import EMPTY_BODIES, End, Way

SOME = 6
HeaderList = tuple[tuple[str, str], ...]
STATUSES = (408, 425, 429, 499, 421, 500, 502, 503, 504, 520, 524, 303)
GATEWAY_BODIES = {
    "{}": b"{}",
    "ok": b'{"status":"ok"}',
    "[]": b"[]",
    "page": b"<html><body>Welcome</body></html>",
    "accepted": b'{"message":"Accepted"}',
    "nothing": b"",
}
LATE_S = (0.5, 2.0, 5.0, 12.0)
LAGS_S = (0.5, 5.0, 12.0, 20.0)


def _forms() -> Iterator[Way]:
    for habit in HABITS:
        yield Way(f"form: {habit}", habits=frozenset({habit}))


def _stale() -> Iterator[Way]:
    for lag_s in LAGS_S:
        yield Way(f"stale: {lag_s} s", "stale", None, on="read", seconds=lag_s)
        yield Way(f"stale: {lag_s} s, answer lost", "lost", end="close", lag_s=lag_s)
        yield Way(f"stale: {lag_s} s, 502 after", "status", status=502, lag_s=lag_s)
    yield Way("stale: 5.0 s, request lost", "lost", has_effect=False, end="close", lag_s=5.0)


def _foreign() -> Iterator[Way]:
    yield Way("foreign: write, applied", "foreign")
    yield Way("foreign: write, not applied", "foreign", has_effect=False)
    yield Way("foreign: first read", "foreign", on="read")
    yield Way("foreign: every read", "foreign", None, on="read")


def _empty() -> Iterator[Way]:
    for name, body in EMPTY_BODIES.items():
        yield Way(f"empty: write, applied, {name}", "body", body=body)
        yield Way(f"empty: write, not applied, {name}", "body", body=body, has_effect=False)
        yield Way(f"empty: first read {name}", "body", on="read", body=body)
        yield Way(f"empty: every read {name}", "body", None, on="read", body=body)


def _normalised() -> Iterator[Way]:
    ends: tuple[End, ...] = ("close", "half")
    for habit in HABITS:
        for end in ends:
            yield Way(f"normalised: {habit}, answer {end}", "lost", end=end, habits=frozenset({habit}))
        yield Way(
            f"normalised: {habit}, request lost", "lost", has_effect=False, end="close", habits=frozenset({habit})
        )
        yield Way(f"normalised: {habit}, answer {{}}", "body", body=b"{}", habits=frozenset({habit}))
    every = frozenset(HABITS) - {"a slash less", "names in upper case"}
    yield Way("normalised: all of it, answer lost", "lost", end="close", habits=every)
    yield Way("normalised: all of it, reads stale, answer lost", "lost", end="close", habits=every, lag_s=5.0)


def _late() -> Iterator[Way]:
    for seconds in LATE_S:
        yield Way(f"late: {seconds} s, answer lost", "late", seconds=seconds, end="close")
        yield Way(f"late: {seconds} s, 504", "late", seconds=seconds, status=504)
        yield Way(f"late: {seconds} s, answered right", "late", seconds=seconds)
        yield Way(
            f"late: {seconds} s, 202 accepted", "late", seconds=seconds, status=202, body=GATEWAY_BODIES["accepted"]
        )


def _lost() -> Iterator[Way]:
    ends: tuple[End, ...] = ("close", "reset", "half")
    for end in ends:
        yield Way(f"lost: after, {end}", "lost", end=end)
        if end != "half":
            yield Way(f"lost: before, {end}", "lost", has_effect=False, end=end)
            yield Way(f"lost: before, {end}, three times", "lost", has_effect=False, end=end, times=3)
        yield Way(f"lost: reads, {end}", "lost", on="read", end=end)
    yield Way("lost: after, twice", "lost", end="close", times=2)
    yield Way("lost: after, never answered", "lost", end="mute")
    yield Way("lost: before, never answered", "lost", has_effect=False, end="mute")


def _statuses() -> Iterator[Way]:
    for status in STATUSES:
        to: HeaderList = (("location", "https://git.example.test/api/v3/"),) if status == 303 else ()
        yield Way(f"status: {status} after", "status", status=status, headers=to)
        yield Way(f"status: {status} before", "status", status=status, headers=to, has_effect=False)
        times = SOME if status == 429 else None  # an endless one is given up after half a day
        yield Way(f"status: {status} again and again", "status", times, status=status, headers=to, has_effect=False)
        yield Way(f"status: {status} to a read", "status", on="read", status=status, headers=to)
    waits = (("retry-after", "7"),)
    yield Way("status: 429 after, with Retry-After", "status", status=429, headers=waits)
    yield Way("status: 429 before, with Retry-After", "status", status=429, headers=waits, has_effect=False)
    yield Way("status: 503 after, with Retry-After", "status", status=503, headers=waits)
    yield Way("status: 429 to a read, with Retry-After", "status", on="read", status=429, headers=waits)


def _gateways() -> Iterator[Way]:
    for status in (200, 201, 202, 203, 204):
        for name, body in GATEWAY_BODIES.items():
            if status != 204 or not body:
                told = f"gateway: {status} {name}"
                yield Way(told, "status", status=status, body=body, has_effect=False)
                yield Way(f"{told}, always", "status", None, status=status, body=body, has_effect=False)
                yield Way(f"{told}, after", "status", status=status, body=body)
                yield Way(f"{told} to a read", "status", on="read", status=status, body=body)


def _truncated() -> Iterator[Way]:
    yield Way("truncated: write, applied, half a body", "truncated")
    yield Way("truncated: write, not applied, half a body", "truncated", has_effect=False)
    yield Way("truncated: first read, half a body", "truncated", on="read")
    yield Way("truncated: every read, half a body", "truncated", None, on="read")
    yield Way("truncated: write, applied, connection ends", "truncated", end="half")
    yield Way("truncated: first read, connection ends", "truncated", on="read", end="half")


def _meddled() -> Iterator[Way]:
    times: tuple[Literal["before", "after"], ...] = ("before", "after")
    for when in times:
        yield Way(f"meddled: {when}, answered right", "meddled", meddles=when)
        yield Way(f"meddled: {when}, answer lost", "meddled", end="close", meddles=when)
        yield Way(f"meddled: {when}, 502", "meddled", status=502, meddles=when)
        yield Way(f"meddled: {when}, request lost", "meddled", end="close", has_effect=False, meddles=when)
        yield Way(f"meddled: {when}, 408", "meddled", status=408, meddles=when)


def _ids() -> Iterator[Way]:
    yield Way("ids: one row of numbers for each kind, answer lost", "lost", end="close", has_equal_ids=True)
    yield Way("ids: one row of numbers for each kind, 502", "status", status=502, has_equal_ids=True)


def _limits() -> Iterator[Way]:
    some = (Answers.RIGHT, Answers.FROZEN, Answers.NOT_FOUND, Answers.MISSING)
    for headers in Headers:
        for answers in Answers if headers is Headers.ABSENT else some:
            yield Way(f"limits: headers {headers}, /rate_limit {answers}", limits=(headers, answers))


PAGE = b"<!DOCTYPE html><html><body>Please log in</body></html>"
_BUSY = b'{"message":"Another operation is already in progress"}'
_SPAMMED = b'{"message":"Validation failed, or the endpoint has been spammed."}'
_LOCKED = b'{"message":"Maximum number of login attempts exceeded. Please try again later."}'
REFUSALS = {
    "304": twists.instead(304),
    "403 page": twists.instead(403, PAGE),
    "403 forbidden": twists.instead(403, b'{"message":"Forbidden"}'),
    "422 in progress": twists.instead(422, _BUSY),
    "422 spammed": twists.instead(422, _SPAMMED),
    "403 locked out": twists.instead(403, _LOCKED),
}
"""After these a write is sent again."""


def _more_fields(name: str, value: Any) -> Any:
    return {**value, "a_new_field": {"of": [1, None]}, "another": None} if isinstance(value, dict) else value


def _other_zone(name: str, value: Any) -> Any:
    return value.replace("Z", ".25+00:00") if name.endswith("_at") and isinstance(value, str) else value


def _stated(limit: str, remaining: str, reset: str) -> twists.Twist:
    """Limits in numbers of another kind."""
    told = (("x-ratelimit-limit", limit), ("x-ratelimit-remaining", remaining), ("x-ratelimit-reset", reset))
    return twists.headers(
        *told, without=tuple(f"x-ratelimit-{name}" for name in ("limit", "used", "remaining", "reset"))
    )


OTHER_LIMITS = {
    "an end in milliseconds": _stated("5000", "0", "4000000000000"),
    "an end in seconds from now": _stated("5000", "0", "37"),
    "limits with fractions": _stated("5000.0", "4999.5", "4000000000.25"),
    "limits below zero": _stated("-1", "-1", "-1"),
    "limits of nothing": _stated("0", "0", "0"),
}
PUT_OTHERWISE = {
    "Base64 in lines": twists.in_lines("\n"),
    "Base64 in lines with CRLF": twists.in_lines("\r\n"),
    "new fields": twists.each(_more_fields),
    "moments with fractions": twists.each(_other_zone),
    "byte order mark": twists.raw(lambda body: b"\xef\xbb\xbf" + body),
    "blanks around": twists.raw(lambda body: b"\r\n " + body + b"\n\n"),
    "no content type": twists.headers(without=("content-type",)),
    "Retry-After beside a success": twists.headers(("retry-after", "30")),
    "limits of another category": twists.headers(
        ("x-ratelimit-resource", "search"),
        ("x-ratelimit-limit", "3"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "4000000000"),
        without=tuple(f"x-ratelimit-{name}" for name in ("limit", "used", "remaining", "reset")),
    ),
    **OTHER_LIMITS,
    "gzip": twists.coded("GZIP", gzip.compress),
    "gzip of two members": twists.coded("x-gzip", lambda body: gzip.compress(body[:9]) + gzip.compress(body[9:])),
    "HTTP/2 offered": twists.headers(("connection", "Upgrade"), ("upgrade", "h2,h2c")),
    "two dates": twists.headers(("date", "Thu, 21 Oct 2100 07:28:00 GMT")),
    "lines without CR": twists.framed(lambda lines, body: b"\n".join(twists.sized(lines, body).split(b"\r\n"))),
    "lines of 60 kB": twists.headers(("etag", f'"{"e" * 60_000}"'), ("x-service-request-id", "i" * 60_000)),
    "deflate": twists.coded("deflate", zlib.compress),
    "chunks with trailers": twists.framed(lambda lines, body: twists.chunked(lines, body, b"0\r\nx-a: 1\r\n\r\n")),
    "interim answers before": twists.framed(
        lambda lines, body: b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" * 2 + twists.sized(lines, body)
    ),
    "HTTP/1.0": twists.framed(twists.sized, "1.0"),
    "connection: close": twists.framed(lambda lines, body: twists.sized([*lines, "connection: close"], body)),
    "300 cookies": twists.framed(
        lambda lines, body: twists.sized([*lines, *(f"set-cookie: a{n}=1" for n in range(300))], body)
    ),
    "an answer more": twists.framed(
        lambda lines, body: twists.sized(lines, body) + b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
    ),
}
"""What has to be understood all the same."""

BROKEN = {
    "gzip cut": twists.coded("gzip", lambda body: gzip.compress(body)[:-9]),
    "gzip that is none": twists.coded("gzip", bytes),
    "unknown coding": twists.coded("br", bytes),
    "length too long": twists.framed(lambda lines, body: twists.sized(lines, body, 10)),
    "length too short": twists.framed(lambda lines, body: twists.sized(lines, body, -5)),
    "two lengths": twists.framed(lambda lines, body: twists.sized([*lines, "content-length: 7"], body)),
    "length and chunks": twists.framed(lambda lines, body: twists.chunked([*lines, "content-length: 7"], body)),
    "chunks without end": twists.framed(lambda lines, body: twists.chunked(lines, body, b"")),
    "no colon": twists.framed(lambda lines, body: twists.sized([*lines, "what"], body)),
    "status 999": twists.framed(lambda lines, body: twists.sized(["HTTP/1.1 999 What", *lines[1:]], body)),
    "101": twists.instead(101),
    "text before": twists.raw(lambda body: b")]}',\n" + body),
    "garbage behind": twists.raw(lambda body: body + b"<!-- by a proxy -->"),
    "UTF-16": twists.raw(lambda body: body.decode().encode("utf-16")),
    "nested too deep": twists.raw(lambda body: b"[" * 100_000),
}
WAITS = ("0", "-1", "0.5", "2", "Wed, 21 Oct 2015 07:28:00 GMT", "5, 7", "soon")
LINKS = {
    "to the first page": lambda ask: f"{BASE_URL}{ask.path}?page=1&per_page=100",
    "to another host": lambda ask: f"https://other.example.test/api/v3{ask.path}?page=2",
    "always one more": lambda ask: f"{BASE_URL}{ask.path}?page={int(ask.one('page', '1')) + 1}",
    "to an empty page": lambda ask: f"{BASE_URL}{ask.path}?page=99" if ask.one("page", "1") != "99" else "",
}


def _twisted() -> Iterator[Way]:
    for name, twist in PUT_OTHERWISE.items():
        yield Way(f"otherwise: {name}", "twisted", None, on="both", twist=twist, is_harmless=True)
    for name, twist in BROKEN.items():
        yield Way(f"broken: {name}, twice", "twisted", 2, on="both", twist=twist)
        yield Way(f"broken: {name}, to a write", "twisted", twist=twist)
    for name, twist in REFUSALS.items():
        yield Way(f"refused: {name}, after", "twisted", twist=twist)
        yield Way(f"refused: {name}, before", "twisted", twist=twist, has_effect=False, is_harmless=name[:3] != "304")
    for name, body in {"message": b'{"message":"Not Found"}', "page": PAGE, "nothing": b""}.items():
        yield Way(f"absent: 404 {name} to a read", "twisted", on="read", twist=twists.instead(404, body))
    for times in (1, None):
        name = f"lists: an entry twice on a page{', always' if times is None else ''}"
        yield Way(name, "twisted", times, on="read", twist=twists.doubled)
    for name, target in LINKS.items():
        yield Way(f"links: {name}", "twisted", None, on="read", twist=twists.linked(target))
    for wait in (*WAITS, "9" * 20, "Thu, 21 Oct 2100 07:28:00 GMT", "Thu, 01 Jan 2026 07:28:00 +0900", "1e3", ""):
        for status in (403, 429, 503):
            twist = twists.instead(status, b'{"message":"slow down"}', ("retry-after", wait))
            name = f"waits: {status} for 40 s, Retry-After {wait}"
            yield Way(name, "twisted", None, "both", False, twist=twist, lasts_s=40.0, is_harmless=True)


WAYS: tuple[Way, ...] = (
    Way("plain"),
    *_forms(),
    *_stale(),
    *_foreign(),
    *_empty(),
    *_normalised(),
    *_late(),
    *_lost(),
    *_statuses(),
    *_gateways(),
    *_truncated(),
    *_meddled(),
    *_ids(),
    *_limits(),
    *_twisted(),
    *refusing.ways(),
    *sequences.ways(),
)
FEW = (
    "plain",
    "form: one event more",
    "stale: 5.0 s, answer lost",
    "foreign: write, not applied",
    "foreign: first read",
    "empty: write, not applied, {}",
    "empty: first read ok",
    "normalised: all of it, answer lost",
    "late: 5.0 s, answer lost",
    "late: 2.0 s, answered right",
    "lost: after, close",
    "lost: before, reset",
    "status: 408 after",
    "status: 425 before",
    "status: 303 to a read",
    "gateway: 200 ok",
    "gateway: 201 page",
    "truncated: write, applied, half a body",
    "meddled: after, answer lost",
    "limits: headers late, /rate_limit 404",
    "limits: headers absent, /rate_limit frozen",
    "otherwise: Base64 in lines with CRLF",
    "otherwise: an answer more",
    "broken: two lengths, twice",
    "refused: 304, after",
    "refused: 403 page, after",
    "refused: 422 in progress, after",
    "refused: 403 locked out, after",
    "absent: 404 page to a read",
    "links: always one more",
    "waits: 429 for 40 s, Retry-After 0",
    "desync: every answer is the one before",
    "desync: each connection is one answer behind from its answer 2 on",
    "pages: the last entry twice",
    "pages: an entry is missed",
    "clock: 2100 always",
    "copies: lost, then one behind and one not",
    "looked: never came, then 404",
    "second: never came, then 409, done",
    "odd: 307 to a write, done",
    "lied: 400, after",
    "lied: 404, after",
    "lied: 409, after",
    "lied: 422 exists already, after",
    "lied: 403 without a reason, always, after",
    "lists: an entry twice on a page, always",
    "denied: 404 after, then 404",
    "gateway: 200 nothing to a read",
    "front end: its own page for what is not there",
    "front end: its own page for each thing",
    "for a while: all is done and answered an empty list",
    "for a while: all is done and answered 403 with a reason",
    "for a while: nothing is done, and all is answered 200",
    "half wrong: every second answer is a 404",
    "half wrong: the first and every second one is a 404",
    "front end: never came, then its own page for each thing",
)
"""One or two of each family."""


def named(name: str) -> Way:
    """The way of that name, which may be that of a pair: `FIRST + SECOND`.

    Raises:
        KeyError: there is none.
    """
    found = {way.name: way for way in WAYS}
    parts = name.split(" + ")
    return found[name] if len(parts) == 1 else pair_of(*(found[part] for part in parts))


def pair_of(first: Way, second: Way) -> Way:
    """Both ways in one run: the second befalls what the first leaves."""
    return Way(
        f"{first.name} + {second.name}",
        "pair",
        None,
        "both",
        habits=first.habits | second.habits,
        lag_s=max(first.lag_s, second.lag_s),
        is_denied=first.is_denied or second.is_denied,
        is_lasting=first.is_lasting or second.is_lasting,
        parts=(first, second),
    )


def pairs(dice: random.Random) -> Iterator[Way]:
    """Pairs of ways, without end; each family is as likely as any other.

    Ways that do not go together are left out: those that concern a whole connection, the budget, or what others do.
    """
    families: dict[str, list[Way]] = {}
    for way in WAYS:
        is_alone = way.limits is not None or way.repeats_at or way.shows_none or way.has_equal_ids
        if way.kind not in ("plain", "meddled") and not is_alone:
            families.setdefault(way.name.partition(":")[0], []).append(way)
    while True:
        first, second = (dice.choice(families[dice.choice(list(families))]) for _ in range(2))
        yield pair_of(first, second)
