"""Lists: all pages of a list, read as one.

The `Link` of a page leads to the next one, but only its query is used and the path stays the same, so that no link can
lead out of the platform. After a full page (`urls.page_size`) without a `Link` that names a next or a last page, the
next one is asked for by its number, also where pages before it had a link; and where a `Link` names the last page
alone, until that one. A list whose links repeat a page or leave one out, or that goes on for ever, is unusable: a part
of a list is never passed off as the whole. While a list is read, others may change it: a new entry moves others to a
later page, where they come once more and are left out, and a deletion moves entries to the page before, so that they
are missed. A last page without entries, to which a link has led, is read twice. Source: specification, Conventions
(pagination); failures.md rows 12, 30.
"""

from collections.abc import Generator
from functools import partial
from typing import Any

import msgspec

from bulk import urls
from bulk.model import ErrorCode, Outcome, Reply, Request, failed, succeeded, unchanged
from bulk.proof import Proof

PER_PAGE = 100
"""The most entries that a page can have unless stated (specification, Limits): this takes the fewest requests."""

MOST_EMPTY = 3
"""After this many pages without entries in a row, each with a link to a next page, the list is unusable (count)."""

MOST_PAGES = 10_000
"""A list that has more pages is given up (count)."""

MOST_BYTES = 256 * 1024 * 1024
"""A list that goes on after pages of this size altogether is given up, because it is in memory as a whole (bytes)."""

_FOUND = frozenset((200,))


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """A list as it was read.

    Attributes:
        entries: objects of all pages, in the platform's order.
        pages: how many were read (count).
        status: the status of the first page: 200, or another accepted one; then there are no entries.
        first: the body of the first page, for fields beside the entries.
        is_unchanged: whether no page has changed since it was last read (304).
        flaw: the outcome to return if the list can't be used; None where it can.
    """

    entries: list[dict[str, Any]] = []
    pages: int = 0
    status: int = 200
    first: Any = None
    is_unchanged: bool = False
    flaw: Outcome | None = None

    @property
    def why(self) -> str:
        """Why the list can't be used, for people; empty where it can."""
        return self.flaw.error.message if self.flaw is not None and self.flaw.error is not None else ""


def read_all(
    path: str,
    proof: Proof,
    *,
    field: str | None = None,
    per_page: int = PER_PAGE,
    accept: frozenset[int] = _FOUND,
    is_fresh: bool = False,
    pause_s: float = 0.0,
    is_poll: bool = False,
    most_pages: int = MOST_PAGES,
    **parameters: str | int | bool | None,
) -> Generator[Request, Reply, Listing]:
    """Read every page of a list: `listing = yield from pages.read_all(path, PROOF, targets="branch")`.

    Args:
        path: the path of the list, percent-encoded.
        proof: the proof of every page, at least that it is a list (`proofs.listing`).
        field: the field of an object that has the entries; None where a page is the array itself.
        per_page: entries asked for in one page (count, 1..100; notifications take 50).
        accept: statuses of the first page that the caller wants to see; later pages must be 200.
        is_fresh: whether to read past the store of kept answers, as read-backs must. What such a list lacks matters, so
            a page without a `Link` counts as cut from 10 entries on.
        pause_s, is_poll: for the first page, see `Request`.
        parameters: further parameters of the query; one that is None is left out.
    """
    asked = urls.query(**parameters, per_page=per_page)
    page = partial(Request, method="GET", path=path, is_fresh=is_fresh, proof=proof)
    request = page(query=asked, accept=accept, pause_s=pause_s, is_poll=is_poll)
    entries, before, known, size_bytes = list[dict[str, Any]](), list[Any](), set[str | int](), 0
    first: Any = None
    seen, is_unchanged, is_cut, empty, is_guess, size, most = {_sorted(asked)}, True, False, 0, False, per_page, 1
    while True:
        reply = yield from _not_vain(request, field, 0 if is_guess or is_fresh else len(seen))
        if reply.status != 200:
            return Listing(status=reply.status, first=reply.body, pages=1)
        found = _entries_of(reply, field)
        is_linked = _tells_what_follows(reply, len(seen))
        new = [] if found == before else _new(found, known)
        if is_guess and not new and not _goes_on(reply, len(seen)):
            found = []  # a platform may show its last page, or its only one, once more
        if found and len(seen) > 1 and (found in (before, entries[: len(found)]) or (not new and len(found) >= most)):
            return _flawed(f"page {len(seen)} repeats one before")
        entries.extend(new)
        before, most, empty = found, max(most, len(found)), 0 if found else empty + 1
        is_unchanged, size_bytes = is_unchanged and reply.is_unchanged, size_bytes + len(reply.raw)
        if len(seen) == 1:
            first, is_cut = reply.body, not is_linked and len(found) < per_page
            size = urls.page_size(len(found), per_page, is_certain=is_fresh)
            asked = asked if is_linked else urls.query(**parameters, per_page=size)
        is_guess = not is_linked and len(found) >= size and _is_numbered(request.query, len(seen))
        if not is_guess and not _goes_on(reply, len(seen)):
            count = len(seen) - (empty if is_cut else 0)  # a page that nothing follows was not cut at all
            return Listing(entries=entries, pages=count, first=first, is_unchanged=is_unchanged)
        following = _query_of_next(reply, path, asked, len(seen) + 1)
        flaw = _flaw_of_next(following, seen, most_pages, empty) or _flaw_of_size(size_bytes)
        if following is None or flaw:
            return _flawed(flaw)
        seen.add(_sorted(following))
        request = page(query=following, accept=_FOUND)


def read_first(path: str, proof: Proof) -> Generator[Request, Reply, tuple[Listing, bool]]:
    """Read the first page of a list, and return it with whether that is the whole list, without a doubt."""
    reply = yield Request(method="GET", path=path, query=urls.query(per_page=PER_PAGE), proof=proof)
    found = _entries_of(reply, None)
    is_whole = 0 < len(found) < urls.LEAST_CUT and not _goes_on(reply, 1)
    return Listing(entries=found, pages=1, is_unchanged=reply.is_unchanged), is_whole


def read_surely(path: str, proof: Proof, *, most_pages: int = MOST_PAGES) -> Generator[Request, Reply, Listing]:
    """Read every page of a list, past the store of kept answers, for a caller to whom it matters what is *not* in it.

    If the list has more than one page, it is read twice, and entries of either reading are returned.
    """
    listing = yield from read_all(path, proof, is_fresh=True, most_pages=most_pages)
    if listing.flaw is not None or listing.pages < 2:
        return listing
    again = yield from read_all(path, proof, is_fresh=True, most_pages=most_pages)
    if again.flaw is not None:
        return again
    known = {number for entry in listing.entries if (number := _id(entry)) is not None}
    return msgspec.structs.replace(listing, entries=[*listing.entries, *_new(again.entries, known)])


def outcome_of(listing: Listing) -> Outcome:
    """Return the outcome of an item whose result is the list itself."""
    if listing.flaw is not None:
        return listing.flaw
    return unchanged(listing.entries) if listing.is_unchanged else succeeded(listing.entries)


def _new(found: list[dict[str, Any]], known: set[str | int]) -> list[dict[str, Any]]:
    """Return the entries whose ids are not in `known`, and add these ids there.

    An entry without an id is always new. So are entries of one page that differ and have one id: nothing moves within a
    page, so that such an id is no entry's own, as where a gateway rounds long numbers.
    """
    numbers, firsts, new = [_id(entry) for entry in found], dict[str | int, Any](), []
    numbered = [*zip(found, numbers, strict=True)]
    shared = {number for entry, number in numbered if number is not None and firsts.setdefault(number, entry) != entry}
    for entry, number in numbered:
        if number is None or number in shared or number not in known:
            new.append(entry)
        if number is not None and number not in shared:
            known.add(number)
    return new


def _id(entry: dict[str, Any]) -> str | int | None:
    for name in ("id", "version_id"):
        if isinstance(number := entry.get(name), str | int) and not isinstance(number, bool):
            return number
    inner = entry.get("repository")
    return _id(inner) if isinstance(inner, dict) else None


def _entries_of(reply: Reply, field: str | None) -> list[Any]:
    found = reply.body if field is None else reply.body[field]
    if not isinstance(found, list):
        raise TypeError(f"expected a list, the platform sent {type(found).__name__}")
    return found


def _flawed(why: str) -> Listing:
    return Listing(flaw=failed(ErrorCode.BAD_RESPONSE, why, http_status=200))


def _sorted(query: str) -> tuple[str, ...]:
    """Return a query in a form to compare, in which the order of its parameters does not matter."""
    return tuple(sorted(query.split("&")))


def _goes_on(reply: Reply, page: int) -> bool:
    """Return whether a list has a page after this one, as far as its links tell."""
    return urls.has_next_link(reply.headers) or urls.has_later_page(reply.headers, page)


def _not_vain(request: Request, field: str | None, page: int) -> Generator[Request, Reply, Reply]:
    """Return the answer to `request`, or to the same once more where it ends the list and has nothing.

    Args:
        page: the number of the page, if a link has led to it or it is the first one; else 0.
    """
    reply = yield request
    if page > 1 and reply.status == 200 and not _entries_of(reply, field) and not _goes_on(reply, page):
        again = Request(method="GET", path=request.path, query=request.query, is_fresh=True, proof=request.proof)
        reply = yield again
    return reply


def _tells_what_follows(reply: Reply, page: int) -> bool:
    """Return whether the links of this page tell what follows it, or that nothing does.

    A page that is as it was when it was read before may have another one behind it since.
    """
    return urls.tells_of_pages(reply.headers) and (not reply.is_unchanged or _goes_on(reply, page))


def _is_numbered(query: str, page: int) -> bool:
    """Return whether a query asks for a page by its number, and not by a cursor."""
    return page == 1 or f"page={page}" in query.split("&")


def _query_of_next(reply: Reply, path: str, asked: str, page: int) -> str | None:
    """Return the query that asks for the next page, by its link, or else by its number; None: the link leads elsewhere.

    It is made from the first query: a place in the list is never inherited from the page before.
    """
    if urls.has_next_link(reply.headers):
        return urls.next_query(reply.headers, path, asked)
    return f"{asked}&page={page}"


def _flaw_of_next(query: str | None, seen: set[tuple[str, ...]], most_pages: int, empty: int) -> str:
    """Return why the list can't be read on with this query, after `empty` pages without entries; empty text: it can."""
    if query is None:
        return "the link to the next page does not lead to a page of this list; not followed"
    if _sorted(query) in seen:
        return f"after {len(seen)} pages the link to the next one leads back to one that was read"
    number = urls.page_number(query)
    if number is not None and number != len(seen) + 1:
        return f"the link to the next page leads from page {len(seen)} to page {number}"
    if empty >= MOST_EMPTY:
        return f"the list goes on after {empty} pages without entries"
    return f"the list goes on after {most_pages:,} pages" if len(seen) >= most_pages else ""


def _flaw_of_size(size_bytes: int) -> str:
    return f"the list goes on after {MOST_BYTES // 2**20} MiB" if size_bytes >= MOST_BYTES else ""
