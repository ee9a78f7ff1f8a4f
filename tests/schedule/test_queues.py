"""What is handed over, who is woken, and how far a stream is looked ahead."""

from typing import Any

import anyio

from bulk.manifest.manifest import Entry
from bulk.operation import Item
from bulk.schedule.job_progress import JobProgress
from bulk.schedule.queues import Feed, Queue, Work


class FarStream:
    """Its first look finds nothing near, nor does the second; then one item comes, then the end."""

    def __init__(self) -> None:
        self.found: list[Any] = [None, None, [Entry(0, 7, Item())], []]

    def take(self, *_: Any, **__: Any) -> Any:
        return self.found.pop(0)


def test_a_stream_is_looked_at_further_only_when_asked() -> None:
    """What is far ends nothing; it is far as long as nothing was found, and at its end when there is nothing."""
    feed = Feed(0, FarStream(), JobProgress(9, bytearray(2)).next_offered)
    assert (feed.next(), feed.is_far, feed.is_at_end) == (None, True, False)
    feed.look_far()
    assert (feed.is_far, feed.is_at_end) == (True, False)
    feed.look_far()
    assert (feed.is_far, feed.is_at_end) == (False, False)
    assert feed.next() == Entry(0, 7, Item())
    assert (feed.next(), feed.is_at_end) == (None, True)


def test_no_more_are_woken_than_wait() -> None:
    """The first who came, as many as there is work for."""
    queue = Queue("default", "core")
    events = [anyio.Event() for _ in range(3)]
    queue.idle.extend(events)
    queue.wake(2)
    assert [event.is_set() for event in events] == [True, True, False]
    queue.wake(5)
    assert events[2].is_set()


def test_what_a_worker_holds() -> None:
    """Its item and those behind it, in their order."""
    first, second = Entry(0, 1, Item()), Entry(0, 2, Item())
    assert (Work(first).items, Work(first).entries) == (1, (first,))
    work = Work(first, behind=(second,))
    assert (work.items, work.entries) == (2, (first, second))
