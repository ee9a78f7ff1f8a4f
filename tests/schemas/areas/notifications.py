"""Notifications: threads, and what marking them as read answers."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from tests.schemas.areas.repositories import Repository
from tests.schemas.words import Shape, Text, Timestamp, Url


class Subject(Shape, kw_only=True):
    """What a thread is about."""

    title: Text
    url: Url
    latest_comment_url: Url
    type: Text


class Thread(Shape, kw_only=True):
    """A thread. One that was never read has no last_read_at."""

    id: Annotated[str, Meta(pattern=r"^[0-9]+$")]
    repository: Repository
    subject: Subject
    reason: Literal[
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
    unread: bool
    updated_at: Timestamp
    last_read_at: Timestamp | None
    url: Url
    subscription_url: Url


class Accepted(Shape, kw_only=True):
    """It goes on in the background."""

    message: Text
