"""Poll intervals: what a header says, and that one poll follows another only when it is time."""

import anyio
import pytest

from bulk.govern.poll_intervals import PollIntervals, interval_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60", 60.0),
        (" 5 ", 5.0),
        ("0", 0.0),
        ("", 0.0),
        ("-5", 0.0),
        ("soon", 0.0),
        ("²", 0.0),
        ("3699", 3_699.0),
        ("9" * 400, 3_700.0),
        ("0" * 13 + "60", 60.0),
        ("0" * 14 + "60", 3_700.0),
    ],
)
def test_what_the_header_says(text, seconds):
    """Whole seconds, never nonsense, never for ever."""
    assert interval_s({"x-poll-interval": text}) == seconds
    assert interval_s({}) == 0.0


def test_each_credential_and_list_has_its_own():
    """A poll holds up the same credential at the same list, and nobody else."""
    polls = PollIntervals()
    polls.of("default", "/notifications").answered({"x-poll-interval": "60"}, now=100.0)
    assert polls.of("default", "/notifications").wait_s(101.0) == 59.0
    assert polls.of("default", "/notifications").wait_s(200.0) == 0.0
    assert polls.of("other", "/notifications").wait_s(101.0) == 0.0
    assert polls.of("default", "/events").wait_s(101.0) == 0.0


def test_a_list_that_was_not_polled_waits_for_nothing():
    """Not even where the clock has just begun."""
    assert PollIntervals().of("default", "/notifications").wait_s(0.0) == 0.0


def test_it_grows_and_shrinks():
    """The newest answer alone says how long to wait, whether that is longer or shorter than before."""
    poll = PollIntervals().of("default", "/notifications")
    poll.answered({"x-poll-interval": "600"}, now=0.0)
    poll.answered({"x-poll-interval": "60"}, now=10.0)
    assert poll.wait_s(10.0) == 60.0
    poll.answered({}, now=20.0)
    assert poll.wait_s(20.0) == 0.0


async def test_one_at_a_time():
    """Who comes second waits until the first was answered, because only then it is known how long to wait."""
    poll, order = PollIntervals().of("default", "/notifications"), []

    async def second():
        async with poll.turn:
            order.append("second")

    async with anyio.create_task_group() as group, poll.turn:
        group.start_soon(second)
        await anyio.wait_all_tasks_blocked()
        order.append("first")
    assert order == ["first", "second"]


def test_who_waits_for_an_interval_is_told() -> None:
    """Only lists that somebody wants to poll and whose interval is not over; who leaves is no longer counted."""
    polls = PollIntervals()
    poll = polls.of("default", "/notifications")
    poll.answered({"x-poll-interval": "60"}, 100.0)
    assert polls.waits(100.0) == []
    with poll.counted(), poll.counted():
        assert poll.waiting == 2
        assert polls.waits(159.0) == [("/notifications", poll)]
        assert polls.waits(160.0) == []
    assert (poll.waiting, polls.waits(100.0)) == (0, [])
