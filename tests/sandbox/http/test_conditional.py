"""Conditional requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bulk.sandbox.areas.served import AREAS
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.conditional import is_unmodified
from bulk.sandbox.http.routes import Area, Route

if TYPE_CHECKING:
    from tests.sandbox.conftest import Platform

CHANGED_AT = 1_795_248_000.9
CHANGED = "Sat, 21 Nov 2026 08:00:00 GMT"
LATER = "Sat, 21 Nov 2026 08:00:01 GMT"
EARLIER = "Sat, 21 Nov 2026 07:59:59 GMT"


async def dated(call: Call) -> Answer:
    """A read with validators of its own."""
    return Answer(body={"n": 1}, etag='"strong"', last_modified=CHANGED_AT)


async def plain(call: Call) -> Answer:
    """A read without validators."""
    return Answer(body={"q": call.query.get("q")})


async def write(call: Call) -> Answer:
    """A write that has validators."""
    return Answer(body={"n": 1}, etag='"strong"', last_modified=CHANGED_AT)


TEST_AREAS = (
    *AREAS,
    Area(
        "Test",
        (
            Route("GET", "/test/dated", dated),
            Route("GET", "/test/plain", plain),
            Route("PUT", "/test/dated", write),
        ),
    ),
)


async def test_a_validator_for_everything(shared: Platform) -> None:
    """An answer without a validator of its own gets a weak one, which changes when its bytes do."""
    tags = [(await shared.ask("GET", f"/test/plain?q={q}")).headers["ETag"] for q in ("a", "a", "b")]
    assert tags[0] == tags[1] != tags[2]
    assert tags[0].startswith('W/"')


async def test_dates(shared: Platform) -> None:
    """If-Modified-Since with the very Last-Modified gives 304, which carries the validators and no body."""
    first = await shared.ask("GET", "/test/dated")
    assert (first.headers["Last-Modified"], first.headers["ETag"]) == (CHANGED, '"strong"')
    again = await shared.ask("GET", "/test/dated", headers={"If-Modified-Since": CHANGED})
    assert (again.status, again.content, again.headers["ETag"]) == (304, b"", '"strong"')
    assert (await shared.ask("GET", "/test/dated", headers={"If-Modified-Since": EARLIER})).status == 200


async def test_writes_are_never_conditional(shared: Platform) -> None:
    """A write is never answered 304."""
    reply = await shared.ask("PUT", "/test/dated", headers={"If-None-Match": '"strong"', "If-Modified-Since": LATER})
    assert reply.status == 200


@pytest.mark.parametrize(
    ("if_none_match", "if_modified_since", "unmodified"),
    [
        ('"a"', None, True),
        ('W/"a"', None, True),
        ('"x", W/"a"', None, True),
        ("*", None, True),
        ('"b"', None, False),
        ("a", None, False),
        ('"b"', LATER, False),
        (None, CHANGED, True),
        (None, LATER, True),
        (None, EARLIER, False),
        (None, "yesterday", False),
        (None, None, False),
    ],
)
def test_comparison(if_none_match: str | None, if_modified_since: str | None, unmodified: bool) -> None:
    """If-None-Match decides alone where it is sent, by weak comparison; else the date does, to the second."""
    for etag in ('"a"', 'W/"a"'):
        assert is_unmodified(if_none_match, if_modified_since, etag, CHANGED_AT) is unmodified


def test_nothing_to_compare() -> None:
    """An answer without validators is never unmodified."""
    assert not is_unmodified('"a"', None, None, None)
    assert not is_unmodified(None, LATER, None, None)
