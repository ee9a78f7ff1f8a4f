"""The threads that do the work on the disk: never torn, never in the way of the event loop."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import anyio
import anyio.lowlevel
import pytest

from bulk.storage import disk_threads
from bulk.storage.disk_threads import NICENESS, thread_disk


def test_a_commit_is_not_torn() -> None:
    """A commit in a thread is ended when the run is cancelled, not abandoned."""
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def commit() -> None:
        begun.set()
        may_end.wait(60)
        ended.set()

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(thread_disk, commit)
            await anyio.to_thread.run_sync(begun.wait)
            group.cancel_scope.cancel()
            may_end.set()
        assert ended.is_set()

    anyio.run(main)


def test_what_is_cancelled_begins_nothing() -> None:
    """Where a run is cancelled already, its next work on the disk is not begun."""
    done: list[str] = []

    async def main() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await thread_disk(lambda: done.append("begun"))

    anyio.run(main)
    assert done == []


def test_an_error_comes_back() -> None:
    """What the work raises is raised where it is waited for."""

    def fail() -> None:
        raise OSError(28, "no space")

    with pytest.raises(OSError, match="no space"):
        anyio.run(thread_disk, fail)


def test_the_loop_goes_on_while_the_disk_is_slow() -> None:
    """A commit that takes its time holds up no task but the one that waits for it (failures.md row 50)."""
    may_end, ended_in_time = threading.Event(), []

    async def turn() -> None:
        for _ in range(1_000):
            await anyio.lowlevel.checkpoint()
        may_end.set()

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(turn)
            # if the loop stood still meanwhile, nobody would let it end
            await thread_disk(lambda: ended_in_time.append(may_end.wait(60)))

    anyio.run(main)
    assert ended_in_time == [True]


def test_its_threads_are_less_urgent_than_the_loop() -> None:
    """They step back where they want the core of the event loop, which stays as urgent as it was."""

    def urgency() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id() if sys.platform == "linux" else 0)

    found: list[int] = []
    before = urgency()
    anyio.run(thread_disk, lambda: found.append(urgency()))
    assert found == [min(19, before + NICENESS) if sys.platform == "linux" else before]
    assert urgency() == before


def test_where_that_is_forbidden_they_work_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that lets no thread step back gets its work done as well."""

    def refuse(_: int) -> int:
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(os, "nice", refuse)
    with ThreadPoolExecutor(1, "other", disk_threads._step_back) as threads:
        monkeypatch.setattr(disk_threads, "_threads", threads)
        done: list[str] = []
        anyio.run(thread_disk, lambda: done.append("done"))
    assert done == ["done"]
