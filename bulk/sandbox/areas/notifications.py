"""Notifications: a user's own threads, listed, and marked as read one by one or all up to a moment; for classic tokens.

The list is made for polling. `Last-Modified` changes with every change of the user's threads; sent back in
`If-Modified-Since`, that very value gives 304 as long as there was no further change. Within the second of a change the
value is that of the second before, and nothing gives 304, so that no later change of that second is missed.
`X-Poll-Interval` grows with the polls of the last minute; the pages of one listing are one poll.

More than `AT_ONCE` threads are marked in the background: 202, done `READ_S` later; a further request meanwhile joins
it. An accepted request survives a restart. Source: specification, Notifications and Events.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from typing import Final

from bulk.sandbox.areas.shared.organization_repositories import by_ids
from bulk.sandbox.areas.shared.repository_objects import repository_object
from bulk.sandbox.clock import http_date, iso, parse_iso
from bulk.sandbox.http import paging
from bulk.sandbox.http.access import Access
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.context import Context
from bulk.sandbox.http.refusals import invalid, not_found, problem
from bulk.sandbox.http.routes import Area, Route
from bulk.sandbox.store.records import User
from bulk.sandbox.store.state import State

AT_ONCE: Final = 50
READ_S: Final = 0.5
PER_PAGE: Final = 50
POLL_S: Final = 60
MOST_POLL_S: Final = 600
POLLS_WITHOUT_LOAD: Final = 10
"""How many polls of all users in a minute leave the interval as it is (count); each further as many add `POLL_S`."""
FAR: Final = 2.0**52
NOT_PARTICIPATING: Final = ("subscribed", "manual", "ci_activity", "member_feature_requested", "security_alert")
BACKGROUND = (
    "Unread notifications couldn't be marked in a single request. "
    "Notifications are being marked as read in the background."
)


class Polls:
    """The times of recent polls of the lists."""

    def __init__(self) -> None:
        self._instants: deque[float] = deque(maxlen=POLLS_WITHOUT_LOAD * MOST_POLL_S // POLL_S)

    def note(self, now: float) -> None:
        """Note a poll."""
        self._instants.append(now)

    def interval_s(self, now: float) -> int:
        """Return how long a client shall wait before its next poll (whole seconds)."""
        while self._instants and self._instants[0] <= now - 60:
            self._instants.popleft()
        return min(MOST_POLL_S, POLL_S * max(1, -(-len(self._instants) // POLLS_WITHOUT_LOAD)))


async def list_notifications(call: Call) -> Answer:
    """GET /notifications: threads, the last updated first.

    Raises:
        Refused: 422, `since` or `before` is not a timestamp.
    """
    user = call.caller
    since, before = _instant(call.query.get("since"), "since"), _instant(call.query.get("before"), "before")
    rows = call.context.state.db.execute(
        "SELECT * FROM threads WHERE user_id = ? AND (unread OR ?) AND CAST(updated_at AS INTEGER) >= ? "
        "AND CAST(updated_at AS INTEGER) < ? ORDER BY updated_at DESC, id DESC",
        (
            user.id,
            _flag(call, "all"),
            0.0 if since is None else since,
            FAR if before is None else before,
        ),
    ).fetchall()
    if _flag(call, "participating"):
        rows = [row for row in rows if row["reason"] not in NOT_PARTICIPATING]
    page, headers = paging.cut(call, rows, default=PER_PAGE, most=PER_PAGE)
    polls = call.context.get(Polls)
    if (call.query.get("page") or "1") == "1":
        polls.note(call.now)
    headers["X-Poll-Interval"] = str(polls.interval_s(call.now))
    return _validated(call, user, Answer(body=[_shown(call, row) for row in page], headers=headers))


async def mark_all_read(call: Call) -> Answer:
    """PUT /notifications: 205, or 202 where there are too many threads; 304 where there is nothing to mark.

    Raises:
        Refused: 422, the body is wrong.
    """
    user = call.caller
    body = call.json_object()
    until = call.now
    if body.get("last_read_at") is not None:
        until = _instant(body["last_read_at"], "last_read_at") or 0.0
    read = body.get("read")
    if read is not None and not isinstance(read, bool):
        raise invalid(problem("Notification", "read", "invalid", "read must be true or false"))
    context = call.context
    db = context.state.db
    unread = db.execute(
        "SELECT count(*) FROM threads WHERE user_id = ? AND unread AND CAST(updated_at AS INTEGER) <= ?",
        (user.id, until),
    ).fetchone()[0]
    if read is False or not unread:
        return Answer(304)
    effect = f"notifications of {user.login} up to {iso(until)} read"
    pending = db.execute("SELECT last_read_at FROM notification_reads WHERE user_id = ?", (user.id,)).fetchone()
    if pending is not None:
        with context.state.transaction():
            db.execute(
                "UPDATE notification_reads SET last_read_at = max(last_read_at, ?) WHERE user_id = ?", (until, user.id)
            )
        return Answer(202, {"message": BACKGROUND}, effect=effect if until > pending["last_read_at"] else None)
    if unread > AT_ONCE:
        due_at = context.clock.now() + READ_S
        with context.state.transaction():
            db.execute("INSERT INTO notification_reads VALUES (?, ?, ?)", (user.id, until, due_at))
        _finish_later(context, user.id, due_at)
        return Answer(202, {"message": BACKGROUND}, effect=effect)
    with context.state.transaction():
        _mark(context, user.id, until)
    return Answer(205, effect=effect)


async def get_thread(call: Call) -> Answer:
    """GET /notifications/threads/{thread_id}."""
    row = _thread(call, call.caller)
    return Answer(body=_shown(call, row))


async def mark_thread_read(call: Call) -> Answer:
    """PATCH /notifications/threads/{thread_id}: 205, or 304 where the thread is read already."""
    user = call.caller
    row = _thread(call, user)
    if not row["unread"]:
        return Answer(304)
    now = call.context.clock.now()
    with call.context.state.transaction() as db:
        db.execute("UPDATE threads SET unread = 0, last_read_at = ? WHERE id = ?", (now, row["id"]))
        note_change(call.context.state, user.id, now)
    return Answer(205, effect=f"thread {row['id']} of {user.login} read")


async def begin_notifications(context: Context) -> None:
    """Go on with requests that were accepted before a restart."""
    context.put(Polls())
    for row in context.state.db.execute("SELECT user_id, due_at FROM notification_reads").fetchall():
        _finish_later(context, row["user_id"], row["due_at"])


def note_change(state: State, user_id: int, now: float) -> None:
    """Remember that a user's threads have changed; part of a transaction that is open."""
    state.db.execute("INSERT OR REPLACE INTO inboxes VALUES (?, ?)", (user_id, now))


def _finish_later(context: Context, user_id: int, due_at: float) -> None:
    async def finish() -> None:
        await context.clock.sleep(min(max(due_at - context.clock.now(), 0.0), READ_S))
        with context.state.transaction() as db:
            row = db.execute(
                "DELETE FROM notification_reads WHERE user_id = ? RETURNING last_read_at", (user_id,)
            ).fetchone()
            _mark(context, user_id, row["last_read_at"])

    context.background.start("marking notifications as read", finish)


def _mark(context: Context, user_id: int, until: float) -> None:
    now = context.clock.now()
    context.state.db.execute(
        "UPDATE threads SET unread = 0, last_read_at = ? "
        "WHERE user_id = ? AND unread AND CAST(updated_at AS INTEGER) <= ?",
        (now, user_id, until),
    )
    note_change(context.state, user_id, now)


def _validated(call: Call, user: User, answer: Answer) -> Answer:
    """Return the answer with its `Last-Modified`, which gives 304 where the caller sends back exactly that."""
    row = call.context.state.db.execute(
        "SELECT max(coalesce((SELECT changed_at FROM inboxes WHERE user_id = ?), 0), "
        "coalesce((SELECT max(updated_at) FROM threads WHERE user_id = ?), 0))",
        (user.id, user.id),
    ).fetchone()
    changed_at, now = int(row[0]), int(call.context.clock.now())
    is_settled = now > changed_at
    shown = changed_at if is_settled else now - 1
    if is_settled and call.headers.get("If-Modified-Since") == http_date(shown):
        answer.last_modified = shown
    else:
        answer.headers["Last-Modified"] = http_date(shown)
    return answer


def _thread(call: Call, user: User) -> sqlite3.Row:
    number = call.params["thread_id"]
    row = None
    if number.isascii() and number.isdigit() and len(number) <= 18:
        row = call.context.state.db.execute(
            "SELECT * FROM threads WHERE id = ? AND user_id = ?", (int(number), user.id)
        ).fetchone()
    if row is None:
        raise not_found()
    return row  # type: ignore[no-any-return]


def _flag(call: Call, name: str) -> bool:
    return (call.query.get(name) or "").lower() in ("true", "1")


def _instant(value: object, field: str) -> float | None:
    if value is None:
        return None
    try:
        return parse_iso(str(value))
    except ValueError:
        raise invalid(
            problem("Notification", field, "invalid", f"{field} must be an ISO 8601 timestamp: YYYY-MM-DDTHH:MM:SSZ")
        ) from None


def _shown(call: Call, row: sqlite3.Row) -> dict[str, object]:
    state = call.context.state
    found = state.db.execute(
        "SELECT organization_id FROM repositories WHERE id = :id "
        "UNION SELECT organization_id FROM fleets WHERE :id >= first_id AND :id < first_id + count",
        {"id": row["repository_id"]},
    ).fetchone()
    (repository,) = by_ids(state, found["organization_id"], [row["repository_id"]])
    owner = state.organization_by_id(repository.organization_id)
    subject = f"{call.base_url}/repos/{owner.login}/{repository.name}/{row['subject_path']}"
    url = f"{call.base_url}/notifications/threads/{row['id']}"
    return {
        "id": str(row["id"]),
        "repository": repository_object(call, owner, repository),
        "subject": {
            "title": row["subject_title"],
            "url": subject,
            "latest_comment_url": subject,
            "type": row["subject_type"],
        },
        "reason": row["reason"],
        "unread": bool(row["unread"]),
        "updated_at": iso(row["updated_at"]),
        "last_read_at": None if row["last_read_at"] is None else iso(row["last_read_at"]),
        "url": url,
        "subscription_url": f"{url}/subscription",
    }


ACCESS = Access(scopes=("notifications", "repo"), oauth_tokens=False)
THREAD = "/notifications/threads/{thread_id}"
AREA = Area(
    "Notifications",
    (
        Route("GET", "/notifications", list_notifications, access=ACCESS),
        Route("PUT", "/notifications", mark_all_read, access=ACCESS),
        Route("GET", THREAD, get_thread, access=ACCESS),
        Route("PATCH", THREAD, mark_thread_read, access=ACCESS),
    ),
    start=begin_notifications,
)
