"""All ways to be wrong, by family. A few of each stand for it in `make test`; the command and `make soak` try all."""

from collections.abc import Iterator
from typing import Literal

from tests.hostile.http.limits import Answers, Headers
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
LAGS_S = (0.5, 5.0, 12.0)


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
)
"""One or two of each family."""


def named(name: str) -> Way:
    """The way of that name.

    Raises:
        KeyError: there is none.
    """
    return {way.name: way for way in WAYS}[name]
