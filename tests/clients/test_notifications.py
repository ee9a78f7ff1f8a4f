"""Notifications, through clients that other people wrote. Each test has a user of its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import github
import pytest
from gidgethub.aiohttp import GitHubAPI

from tests.clients.conftest import READERS, Connect


def test_pygithub_lists_threads(pygithub: Connect) -> None:
    """PyGithub lists the unread threads, the one that was updated last first, and with `all` the read ones too."""
    user = pygithub().get_user()
    assert [thread.id for thread in user.get_notifications()] == ["1", "2", "4"]
    threads = list(user.get_notifications(all=True))
    assert [(thread.id, thread.unread) for thread in threads] == [("1", True), ("2", True), ("3", False), ("4", True)]
    assert [thread.reason for thread in threads if thread.unread] == ["mention", "review_requested", "subscribed"]
    assert {thread.repository.full_name for thread in threads} == {"acme-eng/hello-world"}


def test_pygithub_lists_a_span_of_time(pygithub: Connect) -> None:
    """PyGithub's `since` and `before` are obeyed, and so is `participating`."""
    user = pygithub().get_user()
    before, since = datetime(2024, 6, 1, tzinfo=UTC), datetime(2025, 5, 15, tzinfo=UTC)
    assert [thread.id for thread in user.get_notifications(before=before)] == ["4"]
    assert [thread.id for thread in user.get_notifications(since=since)] == ["1"]
    assert [thread.id for thread in user.get_notifications(participating=True)] == ["1", "2"]


def test_pygithub_marks_a_thread_as_read(pygithub: Connect) -> None:
    """A thread that PyGithub marks as read is unread no more, and the others still are."""
    user = pygithub("sbx-peg").get_user()
    first, *others = list(user.get_notifications())
    thread = user.get_notification(first.id)
    assert thread.unread
    thread.mark_as_read()
    assert [each.id for each in user.get_notifications()] == [each.id for each in others]
    again = user.get_notification(first.id)
    assert not again.raw_data["unread"]
    assert again.last_read_at is not None


def test_pygithub_marks_all_up_to_a_moment(pygithub: Connect) -> None:
    """PyGithub marks as read what was updated up to a moment, and leaves what is newer."""
    user = pygithub("sbx-pam").get_user()
    newest, middle, _ = list(user.get_notifications())
    assert middle.updated_at < newest.updated_at
    user.mark_notifications_as_read(middle.updated_at)
    assert [each.id for each in user.get_notifications()] == [newest.id]


def test_pygithub_marks_many_in_the_background(pygithub: Connect) -> None:
    """More threads than the platform marks at once are accepted, and are read soon after."""
    user = pygithub("sbx-max", per_page=50).get_user()
    assert user.get_notifications().totalCount == 60
    user.mark_notifications_as_read(datetime(2025, 7, 1, tzinfo=UTC))
    while user.get_notifications().totalCount:
        pass
    assert {thread.unread for thread in user.get_notifications(all=True)} == {False}


async def test_githubkit_lists_threads(kit: Callable[..., Any]) -> None:
    """Every thread fits githubkit's model, with a repository that is complete."""
    reply = await (await kit()).rest.activity.async_list_notifications_for_authenticated_user(all_=True)
    assert [(thread.id, thread.unread) for thread in reply.parsed_data] == [
        ("1", True),
        ("2", True),
        ("3", False),
        ("4", True),
    ]
    assert reply.parsed_data[0].repository.owner.login == "acme-eng"
    assert int(reply.headers["x-poll-interval"]) >= 60


async def test_githubkit_marks_a_thread_as_read(kit: Callable[..., Any], githubkit: Any) -> None:
    """githubkit gets 205 for a thread that it marks as read, and 304 when it is read already."""
    activity = (await kit("sbx-kim")).rest.activity
    first, *others = (await activity.async_list_notifications_for_authenticated_user()).parsed_data
    replies = [await activity.async_mark_thread_as_read(int(first.id)) for _ in range(2)]
    assert [reply.status_code for reply in replies] == [205, 304]
    assert not (await activity.async_get_thread(int(first.id))).parsed_data.unread
    left = (await activity.async_list_notifications_for_authenticated_user()).parsed_data
    assert [each.id for each in left] == [each.id for each in others]


async def test_githubkit_marks_all_as_read(kit: Callable[..., Any]) -> None:
    """githubkit marks all up to a moment in one request: 205."""
    activity = (await kit("sbx-ken")).rest.activity
    reply = await activity.async_mark_notifications_as_read(last_read_at=datetime(2025, 7, 1, tzinfo=UTC))
    assert reply.status_code == 205
    assert (await activity.async_list_notifications_for_authenticated_user()).parsed_data == []


async def test_gidgethub_reads_threads(gidget: Callable[..., GitHubAPI]) -> None:
    """gidgethub follows the `url` of a listed thread to the same thread."""
    client = gidget("sbx-gil")
    listed = [thread async for thread in client.getiter("/notifications?per_page=2")]
    assert len(listed) == READERS["gil"]
    assert [await client.getitem(thread["url"]) for thread in listed] == listed


def test_a_thread_of_somebody_else_is_not_there(pygithub: Connect) -> None:
    """A user can't see another user's thread."""
    with pytest.raises(github.UnknownObjectException):
        pygithub("sbx-peg").get_user().get_notification("1")
