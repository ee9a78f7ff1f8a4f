"""Notifications of the credential's user. Keys: ("thread", id) -> thread, whose `updated_at` is in epoch seconds."""

from typing import Any

from tests.hostile.http.messages import Answer, nothing, refused, shown
from tests.hostile.http.turn import BASE_URL, Turn, paged, stamp

BACKGROUND_S = 1.2
"""How long marking many takes in the background (seconds)."""


def _shown(thread: dict[str, Any]) -> dict[str, Any]:
    url = f"{BASE_URL}/notifications/threads/{thread['id']}"
    last = thread.get("last_read_at")
    return {
        **thread,
        "updated_at": stamp(thread["updated_at"]),
        "last_read_at": None if last is None else stamp(last),
        "url": url,
        "subscription_url": f"{url}/subscription",
    }


def listed(turn: Turn) -> Answer:
    """Threads, the latest first: unread ones, or all."""
    ask = turn.ask
    threads = [thread for _, thread in turn.all("thread")]
    if ask.one("all", "false") != "true":
        threads = [thread for thread in threads if thread["unread"]]
    if ask.one("participating", "false") == "true":
        threads = [thread for thread in threads if thread["reason"] in ("mention", "assign", "author")]
    if since := ask.one("since"):
        threads = [thread for thread in threads if stamp(thread["updated_at"]) >= since]
    if before := ask.one("before"):
        threads = [thread for thread in threads if stamp(thread["updated_at"]) < before]
    threads.sort(key=lambda thread: -thread["updated_at"])
    answer = paged(turn, [_shown(thread) for thread in threads], default=50, most=50)
    return answer.with_headers(("x-poll-interval", "1"))


def mark_all(turn: Turn) -> Answer:
    """Mark those as read that were not updated after a moment; at once, or in the background where it is told so."""
    until = turn.ask.json().get("last_read_at") or turn.stamp()
    later = BACKGROUND_S if turn.get("marks in the background") else 0.0
    for key, thread in turn.all("thread"):
        if thread["unread"] and turn.coming(*key)["unread"] and stamp(thread["updated_at"]) <= until:
            turn.change("read", key, {**thread, "unread": False, "last_read_at": turn.now}, later)
    if later:
        return shown(202, {"message": "the notifications are marked in the background"})
    return nothing(205)


def _thread(turn: Turn) -> dict[str, Any] | None:
    found: dict[str, Any] | None = turn.get("thread", turn.names["thread_id"])
    return found


def get(turn: Turn) -> Answer:
    """One thread."""
    thread = _thread(turn)
    return refused(404, "no such thread") if thread is None else shown(200, _shown(thread))


def mark(turn: Turn) -> Answer:
    """Mark one as read."""
    thread = _thread(turn)
    if thread is None:
        return refused(404, "no such thread")
    if thread["unread"]:
        turn.change("read", ("thread", thread["id"]), {**thread, "unread": False, "last_read_at": turn.now})
    return nothing(205)
