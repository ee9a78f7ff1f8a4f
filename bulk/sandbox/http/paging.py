"""Pages of a list, and the `Link` header that leads through them.

`Link` has prev, next, last and first, keeps every other query parameter as it was given, and is left out when one
page is enough. A `per_page` or `page` that is not a number counts as not given; more than the maximum counts as the
maximum.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlencode

if TYPE_CHECKING:
    from bulk.sandbox.http.call import Call

T = TypeVar("T")
DEFAULT_PER_PAGE: Final = 30
MOST_PER_PAGE: Final = 100
BEYOND: Final = 10**9
"""A number that stands for all larger ones: no list has so many entries or pages."""


def cut(
    call: Call, entries: Sequence[T], *, default: int = DEFAULT_PER_PAGE, most: int = MOST_PER_PAGE
) -> tuple[Sequence[T], dict[str, str]]:
    """Return the page that `per_page` and `page` ask for, and its headers.

    Args:
        call: the request.
        entries: the whole list, in order.
        default: entries on a page where the caller doesn't say (count).
        most: entries on a page at most (count).
    """
    per_page = entries_on_page(call, default, most)
    page = _positive(call.query.get("page"), 1)
    last = max(1, -(-len(entries) // per_page))
    links = {}
    if page > 1:
        links["prev"] = _url(call, page=str(min(page - 1, last)))
    if page < last:
        links["next"] = _url(call, page=str(page + 1))
        links["last"] = _url(call, page=str(last))
    if page > 1:
        links["first"] = _url(call, page="1")
    return entries[(page - 1) * per_page : page * per_page], _header(links)


def cut_by_cursor(
    call: Call,
    entries: Sequence[T],
    key: Callable[[T], int],
    *,
    default: int = DEFAULT_PER_PAGE,
    most: int = MOST_PER_PAGE,
) -> tuple[Sequence[T], dict[str, str]]:
    """Return the page that `per_page` and `after` or `before` ask for, and its headers.

    Args:
        call: the request.
        entries: the whole list, in ascending order of `key`.
        key: the number that orders an entry, and that its cursor stands for.
        default: entries on a page where the caller doesn't say (count).
        most: entries on a page at most (count).
    """
    per_page = entries_on_page(call, default, most)
    after, before = _read_cursor(call.query.get("after")), _read_cursor(call.query.get("before"))
    if before is not None:
        earlier = [entry for entry in entries if key(entry) < before]
        page = earlier[-per_page:]
    else:
        page = [entry for entry in entries if after is None or key(entry) > after][:per_page]
    links = {}
    if page and key(entries[0]) < key(page[0]):
        links["prev"] = _url(call, before=_cursor(key(page[0])))
    if page and key(page[-1]) < key(entries[-1]):
        links["next"] = _url(call, after=_cursor(key(page[-1])))
    return page, _header(links)


def entries_on_page(call: Call, default: int = DEFAULT_PER_PAGE, most: int = MOST_PER_PAGE) -> int:
    """Return how many entries the caller asks for with `per_page` (count, 1..most)."""
    return min(_positive(call.query.get("per_page"), default), most)


def _positive(text: str | None, default: int) -> int:
    if text is None or not text.isascii() or not text.isdigit():
        return default
    digits = text.lstrip("0")
    return min(int(digits[:10] or default), BEYOND)


def _url(call: Call, **changed: str) -> str:
    pairs = call.query.without("page", "after", "before") + list(changed.items())
    return f"{call.base_url}{call.path}?{urlencode(pairs)}"


def _header(links: dict[str, str]) -> dict[str, str]:
    return {"Link": ", ".join(f'<{url}>; rel="{rel}"' for rel, url in links.items())} if links else {}


def _cursor(key: int) -> str:
    return base64.urlsafe_b64encode(f"c:{key}".encode()).decode().rstrip("=")


def _read_cursor(text: str | None) -> int | None:
    try:
        kind, _, key = base64.urlsafe_b64decode((text or "") + "==").decode().partition(":")
        return int(key) if kind == "c" else None
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
