"""Notifications of a seed file: `count` threads of one user about one repository.

The first thread is from `updated_at`, or from when the file was applied; each further one is a second older.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

if TYPE_CHECKING:
    from bulk.sandbox.store.records import Repository, User
    from bulk.sandbox.store.state import State

PLACES = {"Issue": "issues", "PullRequest": "pulls"}

Reason = Literal[
    "approval_requested",
    "assign",
    "author",
    "ci_activity",
    "comment",
    "invitation",
    "manual",
    "member_feature_requested",
    "mention",
    "review_requested",
    "security_advisory_credit",
    "security_alert",
    "state_change",
    "subscribed",
    "team_mention",
]


class NotificationSeed(msgspec.Struct, forbid_unknown_fields=True):
    """Threads of a seed file. `repository` is `organization/name`."""

    user: str
    repository: Annotated[str, msgspec.Meta(pattern=r"^[^/]+/[^/]+$")]
    count: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1
    reason: Reason = "subscribed"
    title: str = "A seeded thread"
    type: Literal["Issue", "PullRequest"] = "Issue"
    unread: bool = True
    updated_at: datetime | None = None


def plant(
    state: State, seed: NotificationSeed, user: User, repository: Repository, updated_at: float | None, now: float
) -> None:
    """Add the threads; part of a transaction that is open.

    Args:
        updated_at: when the newest of them was updated (UTC epoch seconds); None: now.
    """
    newest = now if updated_at is None else updated_at
    first = state.allocate("thread", seed.count)
    state.db.executemany(
        "INSERT INTO threads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
        (
            (
                number,
                user.id,
                repository.id,
                seed.reason,
                seed.unread,
                seed.type,
                seed.title,
                f"{PLACES[seed.type]}/{number}",
                int(newest) - (number - first),
            )
            for number in range(first, first + seed.count)
        ),
    )
    state.db.execute("INSERT OR REPLACE INTO inboxes VALUES (?, ?)", (user.id, now))
