"""Notifications: a user's threads, listed, and marked as read, one by one or all up to a moment.

A request to mark threads must not mark threads that came later, and a repeat even less: so the moment up to which
threads are marked is fixed when the run begins, unless the item names it. The list is made for polling: it is asked no
sooner than the platform's
`X-Poll-Interval` allows. Source: specification, Notifications and Events; operations.md, rows of notifications.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from bulk import urls
from bulk.capabilities import PlannedOnce, Returns
from bulk.model import (
    Effect,
    ErrorCode,
    Lost,
    NotApplied,
    Reply,
    Request,
    Undecided,
    failed,
    skipped,
    succeeded,
    unchanged,
    unknown,
)
from bulk.operation import Item, ItemFlaw, Operation, Settling, Steps
from bulk.proof import Proof
from bulk_jobs import accesses
from bulk_jobs.result_types import Marked, MarkedThread, Thread
from bulk_jobs.shared import names, pages, polling, proofs

PER_PAGE = 50
"""The most threads of a page (specification, Limits)."""

READINGS = 2
"""How many readings in a row have to show that none is unread (count): a gateway answers any request with `[]`."""

_LIST = "/notifications"
_THREADS = proofs.listing({"id": proofs.NUMBER})
_ACCEPTED = proofs.entry({"message": str})
_NOT_FIXED = (
    "the clocks of the platform and of this machine are days apart, so that nobody knows up to when to mark: "
    "give last_read_at, or put the clock right"
)
_NOTHING_TO_MARK = "the platform answered that there is nothing to mark (status 304), and none is unread"
_NONE_IS_LEFT = "the answer did not show it; none is unread"
_NOT_SO = "the platform answered that there is nothing to mark (status 304), and it is unread"

Moment = Annotated[
    str, Meta(description="ISO 8601 with a time zone, as YYYY-MM-DDTHH:MM:SSZ", examples=["2026-11-21T08:00:00Z"])
]
ThreadId = Annotated[int, Meta(ge=1, le=2**53, description="id of the thread", examples=[1])]
LastReadAt = Annotated[
    Moment,
    Meta(description="what was updated later stays unread (ISO 8601); not given, it is when the run was begun"),
]


class ListNotificationsItem(Item, frozen=True, kw_only=True):
    """Says which of the threads of the credential's user are meant."""

    all: Annotated[bool, Meta(description="also those that are read")] = False
    participating: Annotated[bool, Meta(description="only those that the user takes part in")] = False
    since: Annotated[Moment, Meta(description="only those updated since then (ISO 8601)")] | None = None
    before: Annotated[Moment, Meta(description="only those updated before then (ISO 8601)")] | None = None


class ListNotifications(Operation[ListNotificationsItem], Returns[list[Thread]]):
    """Read all notifications of the credential's user.

    Requests:  1 for every 50 threads; not before the platform's poll interval is over.
    Category:  core. Lane: none.
    Result:    the threads, as an array.
    Lost answer: a read is repeated.
    Source:    Notifications, GET /notifications.
    """

    name = "notification.list"
    access = accesses.NOTIFICATIONS
    Item = ListNotificationsItem
    is_momentary = True
    example: ClassVar = {"all": True, "since": "2025-01-01T00:00:00Z"}

    def check(self, item: ListNotificationsItem) -> Iterator[ItemFlaw]:
        yield from _flaws_of_moment("since", item.since)
        yield from _flaws_of_moment("before", item.before)

    def steps(self, item: ListNotificationsItem) -> Steps:
        listing = yield from pages.read_all(
            _LIST,
            _THREADS,
            per_page=PER_PAGE,
            is_poll=True,
            all=item.all or None,
            participating=item.participating or None,
            since=item.since,
            before=item.before,
        )
        return pages.outcome_of(listing)


class MarkNotificationsItem(Item, frozen=True, kw_only=True):
    """Up to when the threads of the credential's user are read."""

    last_read_at: LastReadAt | None = None
    read: Annotated[bool, Meta(description="passed on to the platform")] | None = None
    wait: Annotated[
        bool,
        Meta(description="follow it until none is left, for up to 10 minutes; otherwise being accepted is enough"),
    ] = False


class MarkNotifications(PlannedOnce[MarkNotificationsItem], Returns[Marked]):
    """Mark all notifications of the credential's user as read that were not updated later than a moment.

    Requests:  1, 2 after a 304; with `wait` as many more as it takes, no more often than the platform's poll interval
               allows.
    Category:  core. Lane: all notifications.
    Result:    last_read_at, and the platform's message where it goes on in the background.
    Lost answer: the request is repeated with the same last_read_at: marking twice is marking once; after an answer of
               success that proves nothing, unless none is unread.
    Source:    Notifications, PUT /notifications.
    """

    name = "notification.mark-read"
    access = accesses.NOTIFICATIONS
    Item = MarkNotificationsItem
    is_read = False
    settled_by = (
        "The request is sent again with the same last_read_at, which was fixed when the run was begun, so that marking "
        "twice is marking once. Only after an answer of success that proves nothing the unread threads are read first: "
        "where there are none, it was done."
    )
    example: ClassVar = {"last_read_at": "2025-05-15T00:00:00Z", "wait": True}

    def check(self, item: MarkNotificationsItem) -> Iterator[ItemFlaw]:
        return _flaws_of_moment("last_read_at", item.last_read_at)

    def planned(self, item: MarkNotificationsItem, began_at: float) -> MarkNotificationsItem:
        if item.last_read_at is not None:
            return item
        return msgspec.structs.replace(item, last_read_at=_iso(began_at))

    def lanes(self, item: MarkNotificationsItem) -> tuple[str, ...]:
        return ("all",)

    def steps(self, item: MarkNotificationsItem) -> Steps:
        if item.last_read_at is None:
            return failed(ErrorCode.INVALID_ITEM, _NOT_FIXED)
        body: dict[str, Any] = {"last_read_at": item.last_read_at}
        if item.read is not None:
            body["read"] = item.read
        reply = yield Request(
            method="PUT",
            path=_LIST,
            body=body,
            effect=Effect.SET,
            accept=frozenset((202, 205, 304)),
            is_fresh=True,
            proof=_ACCEPTED,
        )
        result = {"last_read_at": item.last_read_at}
        if reply.status == 304:  # there is nothing to mark, if the answer is right
            left = yield _unread(item.last_read_at)
            if _shows_any(left):
                return unknown(_NOT_SO, http_status=304)
            return unchanged(result, note=_NOTHING_TO_MARK)
        if reply.status == 205:
            return succeeded(result)
        result["message"] = reply.body["message"]
        if not item.wait:
            return succeeded(result, note="accepted; the platform marks them in the background")
        return (yield from self._follow(item.last_read_at, result))

    def settle(self, item: MarkNotificationsItem, lost: Lost) -> Settling:
        is_accepted = lost.status is not None and lost.status < 300
        if is_accepted and item.last_read_at is not None and item.read is not False:
            left = yield _unread(item.last_read_at)
            if not _shows_any(left):
                return succeeded({"last_read_at": item.last_read_at}, note=_NONE_IS_LEFT)
        return Undecided("whether the notifications were marked as read is not known")

    def _follow(self, last_read_at: str, result: dict[str, str]) -> Steps:
        waited_s, empty = 0.0, 0
        for pause_s in polling.pauses():
            reply = yield _unread(last_read_at, pause_s)
            empty = 0 if _shows_any(reply) else empty + 1
            if empty == READINGS:
                return succeeded(result)
            # the engine waits that long before the next poll
            waited_s += max(pause_s, _interval_s(reply))
            if waited_s >= polling.MOST_S:
                break
        return unknown(f"the platform accepted it and had not marked all after {polling.MOST_S:.0f} seconds")


class ThreadItem(Item, frozen=True, kw_only=True):
    """Names a thread."""

    thread_id: ThreadId


class GetThread(Operation[ThreadItem], Returns[Thread]):
    """Read one notification thread of the credential's user.

    Requests:  1.
    Category:  core. Lane: none.
    Result:    the thread.
    Lost answer: a read is repeated.
    Source:    Notifications, GET /notifications/threads/{thread_id}.
    """

    name = "thread.get"
    access = accesses.NOTIFICATIONS
    Item = ThreadItem
    is_momentary = True
    example: ClassVar = {"thread_id": 1}

    def steps(self, item: ThreadItem) -> Steps:
        reply = yield Request(method="GET", path=_path(item), proof=_proof(item))
        return unchanged(reply.body) if reply.is_unchanged else succeeded(reply.body)


class MarkThreadItem(ThreadItem, frozen=True, kw_only=True):
    """Names a thread, as it was at a moment."""

    last_read_at: LastReadAt | None = None


class MarkThread(PlannedOnce[MarkThreadItem], Returns[MarkedThread]):
    """Mark one notification thread as read, unless something came later than a moment.

    Requests:  2: a look at the thread, then the mark; 1 where it is read already or has news.
    Category:  core. Lane: the thread.
    Result:    id.
    Lost answer: the thread is read: read already, it was marked; with news, it is left alone, and nobody knows whether
               it was marked before.
    Source:    Notifications, PATCH /notifications/threads/{thread_id}.
    """

    name = "thread.mark-read"
    access = accesses.NOTIFICATIONS
    Item = MarkThreadItem
    is_read = False
    most_requests = 2
    settled_by = (
        "The thread is read. Where it is not unread any more, it was marked. Where it has news from after "
        "last_read_at, once the settle time is over, nobody knows whether it was marked before they came: it is left "
        "unread, and ends as unknown. Otherwise the request is sent again."
    )
    example: ClassVar = {"thread_id": 2}

    def check(self, item: MarkThreadItem) -> Iterator[ItemFlaw]:
        return _flaws_of_moment("last_read_at", item.last_read_at)

    def planned(self, item: MarkThreadItem, began_at: float) -> MarkThreadItem:
        if item.last_read_at is not None:
            return item
        return msgspec.structs.replace(item, last_read_at=_iso(began_at))

    def lanes(self, item: MarkThreadItem) -> tuple[str, ...]:
        return (str(item.thread_id),)

    def steps(self, item: MarkThreadItem) -> Steps:
        if item.last_read_at is None:
            return failed(ErrorCode.INVALID_ITEM, _NOT_FIXED)
        found = yield Request(method="GET", path=_path(item), is_fresh=True, proof=_proof(item))
        result = {"id": str(item.thread_id)}
        if found.body.get("unread") is False:
            return unchanged(result)
        if _has_news(found.body, item.last_read_at):
            return skipped(ErrorCode.SUPERSEDED, _left_alone(found.body))
        reply = yield Request(
            method="PATCH",
            path=_path(item),
            effect=Effect.COMPARE_AND_SWAP,
            accept=frozenset((205, 304)),
            before={"unread": True, "updated_at": found.body.get("updated_at")},
            is_fresh=True,
        )
        if reply.status != 304:
            return succeeded(result)
        found = yield Request(method="GET", path=_path(item), is_fresh=True, proof=_proof(item))
        is_read = found.body.get("unread") is False
        return unchanged(result) if is_read else unknown(_NOT_SO, http_status=304)

    def settle(self, item: MarkThreadItem, lost: Lost) -> Settling:
        found = yield Request(
            method="GET", path=_path(item), accept=frozenset((200, 404)), is_fresh=True, proof=_proof(item)
        )
        if found.status == 404:
            return Undecided("the thread can't be seen any more", is_unseen=True)
        if found.body.get("unread") is False:
            return succeeded({"id": str(item.thread_id)}, note="the answer was lost; the thread is read")
        if item.last_read_at is None:
            return Undecided("up to when the thread was read is not known")
        if _has_news(found.body, item.last_read_at):
            why = "whether it was marked as read before that can't be told"
            return Undecided(f"the answer of the {lost.method} was lost, and {_left_alone(found.body)}; {why}")
        return NotApplied("the thread is unread")


def _unread(before: str, pause_s: float = 0.0) -> Request:
    """Return the request that reads the newest unread notification that was updated before a moment."""
    return Request(
        method="GET",
        path=_LIST,
        query=urls.query(all=False, before=before, per_page=1),
        is_fresh=True,
        pause_s=pause_s,
        is_poll=True,
        proof=_THREADS,
    )


def _shows_any(reply: Reply) -> bool:
    """Return whether an answer to `_unread` shows a thread, or leads on to a page that may."""
    return bool(reply.body) or urls.has_next_link(reply.headers)


def _proof(item: ThreadItem) -> Proof:
    return proofs.entry({"id": proofs.NUMBER, "unread": bool}, proofs.naming(id=item.thread_id))


def _path(item: ThreadItem) -> str:
    return f"{_LIST}/threads/{item.thread_id}"


def _flaws_of_moment(field: str, moment: str | None) -> Iterator[ItemFlaw]:
    flaw = names.flaw_of_timestamp(moment) if moment is not None else ""
    if flaw:
        yield ItemFlaw(field, flaw)


def _has_news(thread: dict[str, Any], last_read_at: str) -> bool:
    """Return whether a thread was updated later than a moment, to the second, as the platform shows it."""
    try:
        updated_at = datetime.fromisoformat(thread["updated_at"])
    except (KeyError, TypeError, ValueError):
        return False
    return int(updated_at.timestamp()) > datetime.fromisoformat(last_read_at).timestamp()


def _interval_s(reply: Reply) -> float:
    text = reply.headers.get("x-poll-interval", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _left_alone(thread: dict[str, Any]) -> str:
    return f"it was updated at {thread['updated_at']}, later than last_read_at: it is left unread"


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
