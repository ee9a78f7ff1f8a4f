"""`notification.*` and `thread.*`: nothing that came later is marked as read."""

import pytest

from bulk.model import UNSEEN, Effect, ErrorCode, OutcomeKind
from bulk.operation import find
from bulk_jobs.notifications import GetThread, ListNotifications, MarkNotifications, MarkThread
from bulk_jobs.shared import polling
from tests.jobs.driver import flaws, item_of, reply, run, settle

LIST, MARK = ListNotifications(), MarkNotifications()
GET_THREAD, MARK_THREAD = GetThread(), MarkThread()
WHEN = "2026-11-21T08:00:00Z"
BEGAN_AT = 1_795_248_000.7
ACCEPTED = reply(202, {"message": "in the background"})
PLACE = "/notifications/threads/2"


def thread(*, unread=True, updated_at="2026-11-21T07:59:00Z"):
    """A thread as the platform shows it."""
    return reply(body={"id": "2", "unread": unread, "updated_at": updated_at})


@pytest.mark.parametrize("name", ["notification.list", "notification.mark-read", "thread.get", "thread.mark-read"])
def test_it_is_installed(name):
    """Each operation of the interface is found by its name."""
    assert find(name).name == name


# -- list


def test_the_first_page_is_a_poll():
    """Fifty to a page, all pages, and only the first counts as a poll."""
    link = {"link": '<https://x/notifications?per_page=50&page=2>; rel="next"', "x-poll-interval": "60"}
    driven = run(LIST, {}, reply(body=[{"id": "1"}], headers=link), reply(body=[{"id": "2"}]))
    assert driven.shown() == ["GET /notifications?per_page=50", "GET /notifications?per_page=50&page=2"]
    assert [request.is_poll for request in driven.requests] == [True, False]
    assert not any(request.is_fresh for request in driven.requests)
    assert driven.outcome.result == [{"id": "1"}, {"id": "2"}]


def test_list_sends_what_is_asked_for():
    """Filters are sent where they are not the platform's own."""
    item = {"all": True, "participating": True, "since": WHEN, "before": "2026-11-21T09:00:00+01:00"}
    (shown,) = run(LIST, item, reply(body=[], is_unchanged=True)).shown()
    assert shown == (
        "GET /notifications?all=true&participating=true&since=2026-11-21T08%3A00%3A00Z"
        "&before=2026-11-21T09%3A00%3A00%2B01%3A00&per_page=50"
    )
    assert run(LIST, {"all": False}, reply(body=[])).shown() == ["GET /notifications?per_page=50"]


def test_nothing_new_is_unchanged():
    """A list that the platform confirms is unchanged and has its result."""
    driven = run(LIST, {}, reply(body=[{"id": "1"}], is_unchanged=True))
    assert (driven.outcome.kind, driven.outcome.result) == (OutcomeKind.UNCHANGED, [{"id": "1"}])


def test_list_checks():
    """A moment has a time zone."""
    assert set(flaws(LIST, {"since": "yesterday", "before": "2026-11-21T08:00:00"})) == {"since", "before"}


# -- mark all


def test_the_moment_is_fixed_once():
    """What is not given becomes when the run was begun, in whole seconds; what is given stays."""
    planned = MARK.planned(item_of(MARK), BEGAN_AT)
    assert planned.last_read_at == WHEN
    assert MARK.planned(planned, BEGAN_AT + 100) == planned
    assert MARK_THREAD.planned(item_of(MARK_THREAD, thread_id=2), BEGAN_AT).last_read_at == WHEN
    given = item_of(MARK_THREAD, thread_id=2, last_read_at="2026-01-01T00:00:00Z")
    assert MARK_THREAD.planned(given, BEGAN_AT) == given


def test_without_a_moment_nothing_is_sent():
    """The platform's own `now` is never used."""
    assert run(MARK, {}).error.code is ErrorCode.INVALID_ITEM
    assert run(MARK_THREAD, {"thread_id": 2}).error.code is ErrorCode.INVALID_ITEM


def test_mark_all():
    """One request with the moment in it; a 304 is unchanged, where a look says so too."""
    driven = run(MARK, {"last_read_at": WHEN}, reply(205))
    (put,) = driven.requests
    assert (put.method, put.path, put.body) == ("PUT", "/notifications", {"last_read_at": WHEN})
    assert (put.effect, put.is_fresh) == (Effect.SET, True)
    assert (driven.outcome.kind, driven.outcome.result) == (OutcomeKind.SUCCEEDED, {"last_read_at": WHEN})
    assert run(MARK, {"last_read_at": WHEN}, reply(304), reply(body=[])).outcome.kind is OutcomeKind.UNCHANGED
    denied = run(MARK, {"last_read_at": WHEN}, reply(304), reply(body=[{"id": "2"}]))
    assert denied.outcome.kind is OutcomeKind.UNKNOWN
    assert run(MARK, {"last_read_at": WHEN, "read": True}, reply(205)).requests[0].body["read"] is True


def test_accepted_is_enough_without_wait():
    """The result has the platform's message, and a note that it is not done yet."""
    driven = run(MARK, {"last_read_at": WHEN}, ACCEPTED)
    assert driven.outcome.result["message"] == "in the background"
    assert "accepted" in driven.outcome.result["note"]


def test_wait_follows_until_none_is_left():
    """Polls of one entry of what was updated before the moment, with pauses that grow, until two in a row show none:
    a gateway's `[]` right behind the 202 counted as done."""
    some, none = reply(body=[{"id": "1"}]), reply(body=[])
    looks = [none, some, some, none, none]
    driven = run(MARK, {"last_read_at": WHEN, "wait": True}, ACCEPTED, *looks)
    assert driven.shown()[1] == "GET /notifications?all=false&before=2026-11-21T08%3A00%3A00Z&per_page=1"
    followed = driven.requests[1:]
    assert all(request.is_poll and request.is_fresh for request in followed)
    assert followed[0].pause_s < followed[1].pause_s < followed[2].pause_s
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert "note" not in driven.outcome.result


@pytest.mark.parametrize(("interval", "most_polls"), [("", 60), ("60", 10), ("600", 1)])
def test_wait_ends(interval, most_polls):
    """What is never done is unknown after ten minutes, the poll intervals counted in (failures.md row 14)."""
    steps = MARK.steps(item_of(MARK, last_read_at=WHEN, wait=True))
    next(steps)
    request, polls, outcome = steps.send(ACCEPTED), 0, None
    answer = reply(body=[{"id": "1"}], headers={"x-poll-interval": interval})
    while outcome is None:
        polls += 1
        try:
            request = steps.send(answer)
        except StopIteration as end:
            outcome = end.value
    assert request.is_poll
    assert outcome.kind is OutcomeKind.UNKNOWN
    assert polls <= most_polls
    assert not interval or polls * float(interval) >= polling.MOST_S


def test_mark_all_settled():
    """With its moment fixed, the request is simply repeated. Only after a success that proves nothing, which a gateway
    may give for ever, the unread threads are read: where there are none, it was done."""
    for status in (None, 502, 409):
        settled = settle(MARK, {"last_read_at": WHEN}, UNSEEN, status=status)
        assert (settled.requests, settled.is_undecided) == ([], True)
    settled = settle(MARK, {"last_read_at": WHEN}, UNSEEN, reply(body=[thread().body]), status=202)
    assert (len(settled.requests), settled.is_undecided) == (1, True)
    settled = settle(MARK, {"last_read_at": WHEN}, UNSEEN, reply(body=[]), status=202)
    assert settled.requests[0].is_poll
    assert settled.outcome.result == {"last_read_at": WHEN, "note": "the answer did not show it; none is unread"}
    assert settle(MARK, {"last_read_at": WHEN, "read": False}, UNSEEN, status=202).requests == []


def test_an_empty_page_that_leads_on_is_not_none():
    """A gateway's 201, and twice a page without entries that leads on: it counted as done, and threads were unread."""
    leads_on = reply(body=[], headers={"link": '<https://x/api/v3/notifications?page=2>; rel="next"'})
    assert settle(MARK, {"last_read_at": WHEN}, UNSEEN, leads_on, status=201).is_undecided
    assert run(MARK, {"last_read_at": WHEN}, reply(304), leads_on).outcome.kind is OutcomeKind.UNKNOWN
    driven = run(MARK, {"last_read_at": WHEN, "wait": True}, ACCEPTED, leads_on, reply(body=[]), reply(body=[]))
    assert len(driven.requests) == 4


def test_mark_all_checks():
    """A moment has a time zone; all marking goes one at a time."""
    assert set(flaws(MARK, {"last_read_at": "now"})) == {"last_read_at"}
    assert MARK.lanes(item_of(MARK)) == ("all",)


# -- threads


def test_get_thread():
    """One request brings the thread, and an answer of another shape is not believed."""
    driven = run(GET_THREAD, {"thread_id": 2}, thread())
    assert driven.shown() == [f"GET {PLACE}"]
    assert driven.outcome.result["id"] == "2"
    assert run(GET_THREAD, {"thread_id": 2}, reply(body=[])).is_disbelieved


def test_mark_thread():
    """A look, then the mark; read already is unchanged, by the look, or by a 304 and another look."""
    item = {"thread_id": 2, "last_read_at": WHEN}
    driven = run(MARK_THREAD, item, thread(), reply(205))
    assert driven.shown() == [f"GET {PLACE}", f"PATCH {PLACE}"]
    assert driven.requests[1].effect is Effect.COMPARE_AND_SWAP
    assert driven.requests[1].is_fresh
    assert driven.requests[1].before == {"unread": True, "updated_at": thread().body["updated_at"]}
    assert driven.outcome.result == {"id": "2"}
    assert run(MARK_THREAD, item, thread(unread=False)).outcome.kind is OutcomeKind.UNCHANGED
    again = (thread(), reply(304))
    assert run(MARK_THREAD, item, *again, thread(unread=False)).outcome.kind is OutcomeKind.UNCHANGED
    assert run(MARK_THREAD, item, *again, thread()).outcome.kind is OutcomeKind.UNKNOWN


@pytest.mark.parametrize(
    ("updated_at", "is_left"),
    [("2026-11-21T08:00:01Z", True), ("2026-11-21T08:00:00Z", False), ("2026-11-21T09:30:00+02:00", False)],
)
def test_news_are_left_unread(updated_at, is_left):
    """A thread that was updated later than the moment is skipped before the mark; in doubt nobody knows whether it was
    marked before."""
    item = {"thread_id": 2, "last_read_at": WHEN}
    if is_left:
        driven = run(MARK_THREAD, item, thread(updated_at=updated_at))
        assert (driven.outcome.kind, driven.error.code) == (OutcomeKind.SKIPPED, ErrorCode.SUPERSEDED)
        assert settle(MARK_THREAD, item, UNSEEN, thread(updated_at=updated_at), method="PATCH").is_undecided
    else:
        done = run(MARK_THREAD, item, thread(updated_at=updated_at), reply(205))
        assert done.outcome.kind is OutcomeKind.SUCCEEDED


def test_mark_thread_settled():
    """Read: applied. Unread and no news: not applied. Gone, or no moment known: undecided."""
    item = {"thread_id": 2, "last_read_at": WHEN}
    applied = settle(MARK_THREAD, item, UNSEEN, thread(unread=False), method="PATCH")
    assert (applied.outcome.kind, "lost" in applied.outcome.result["note"]) == (OutcomeKind.SUCCEEDED, True)
    assert settle(MARK_THREAD, item, UNSEEN, thread(), method="PATCH").is_undone
    assert settle(MARK_THREAD, item, UNSEEN, reply(404), method="PATCH").is_undecided
    assert settle(MARK_THREAD, {"thread_id": 2}, UNSEEN, thread(), method="PATCH").is_undecided


def test_thread_checks():
    """A moment has a time zone; a thread is marked by one at a time."""
    assert set(flaws(MARK_THREAD, {"thread_id": 2, "last_read_at": "x"})) == {"last_read_at"}
    assert MARK_THREAD.lanes(item_of(MARK_THREAD, thread_id=2)) == ("2",)
    assert run(MARK_THREAD, {"thread_id": 2, "last_read_at": WHEN}, reply(body=None)).is_disbelieved
