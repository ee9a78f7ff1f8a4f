"""Items that join a running scheduler, as those of a worker do."""

from array import array

import anyio

from bulk.manifest.manifest import Job
from bulk.model import succeeded
from bulk.schedule.job_progress import JobProgress
from bulk.schedule.queues import Part
from bulk.schedule.remaining import work_left
from bulk.schedule.routed_job import RoutedJob
from bulk.schedule.routed_scheduler import RoutedScheduler
from bulk.schedule.scheduler import Scheduler
from bulk.schedule.tasks import Skip
from tests.schedule.test_scheduler import ListIndex, ListStream, Write, take

DONE = succeeded({})


class SharedBoard:
    """A board of which others write the state."""

    is_shared = expects_more = True
    free = 0

    def __init__(self) -> None:
        self.complete: set[int] = set()
        self.bad: dict[int, int] = {}

    def is_complete(self, job: int) -> bool:
        """As it was said."""
        return job in self.complete

    def unsuccessful(self, job: int) -> int:
        """As it was said."""
        return self.bad.get(job, 0)


def drained(one: Scheduler) -> list[tuple[int, int]]:
    """(job, index) of all that is offered now; each ends at once."""
    found = []
    while (work := take(one)) is not None:
        found.append((work.entry.job, work.entry.index))
        one.ended(work, DONE, 1)
    return found


def test_only_what_joined_is_offered() -> None:
    """A stream is offered part by part, in any order; nothing left is not an end before the board says so."""
    progress, board = [JobProgress(20, bytearray(3))], SharedBoard()
    progress[0].leave_all()
    one = Scheduler([Job(0, "a", Write())], progress, lambda _: ListStream(0, 20), ListIndex([]), 8, board)
    one.begin()
    assert drained(one) == []
    progress[0].take_on(range(12, 16))
    one.join([Part(0, 12, 16)])
    assert progress[0].left == 4
    assert drained(one) == [(0, index) for index in range(12, 16)]
    progress[0].take_on((3, 5))  # the others of its shard had ended before
    one.join([Part(0, 3, 6)])
    assert drained(one) == [(0, 3), (0, 5)]
    assert progress[0].left == 0
    assert not one.is_stopped
    board.expects_more = False
    one.begin()
    assert one.is_stopped


def test_lanes_join_by_their_rank() -> None:
    """Of the lanes those of the part are read, also where they begin in an earlier job; what others do is passed by."""
    rows = [(job, 2 * lane + item, lane) for lane in range(6) for job in range(2) for item in range(2)]
    progress, board = [JobProgress(12, bytearray(2)), JobProgress(12, bytearray(2))], SharedBoard()
    for each in progress:
        each.leave_all()
    jobs = [Job(0, "a", Write()), Job(1, "b", Write(), needs=("a",))]
    one = Scheduler(jobs, progress, lambda _: None, ListIndex(rows), 8, board)
    one.begin()
    board.complete = {0}  # ranks are counted from 1
    mine = [index for lane in (0, 3) for index in (2 * lane, 2 * lane + 1)]
    progress[1].take_on(mine)
    one.join([Part(1, lanes_of=(0, 1), lanes=(3, 1))])
    assert sorted(drained(one)) == [(1, index) for index in mine]


async def test_who_waits_is_woken_by_an_item_of_any_job_of_the_lanes() -> None:
    """Of a part of lanes nothing is left but an item of its second job: a worker that waits gets it."""
    rows = [(job, lane, lane) for lane in range(6) for job in range(2)]
    progress = [JobProgress(6, bytearray(1)), JobProgress(6, bytearray(1))]
    for each in progress:
        each.leave_all()
    one = Scheduler(
        [Job(0, "a", Write()), Job(1, "b", Write())], progress, lambda _: None, ListIndex(rows), 8, SharedBoard()
    )
    one.begin()
    found: list[int] = []

    async def worker() -> None:
        assert await one.wait_work(one.queues[("default", "core")])
        work = take(one)
        assert work is not None
        found.append(work.entry.job)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(worker)
            await anyio.wait_all_tasks_blocked()
            progress[1].take_on([0])
            one.join([Part(0, lanes_of=(0, 1), lanes=(3, 1))])
    assert found == [1]


def test_a_job_whose_needs_failed_is_skipped_for_what_joined() -> None:
    """The board knows what became of the job that it needs."""
    progress, board = [JobProgress(8, bytearray(1)), JobProgress(8, bytearray(1))], SharedBoard()
    for each in progress:
        each.leave_all()
    jobs = [Job(0, "a", Write()), Job(1, "b", Write(), needs=("a",))]
    one = Scheduler(jobs, progress, lambda number: ListStream(number, 8), ListIndex([]), 8, board)
    one.begin()
    board.complete, board.bad = {0}, {0: 1}
    progress[1].take_on(range(4))
    one.join([Part(1, 0, 4)])
    assert drained(one) == []
    task = one.next_task()
    assert isinstance(task, Skip)
    assert task.job.number == 1


def test_what_nobody_works_on_yet_is_no_work_of_the_members_of_a_pool() -> None:
    """It counts for the credential that a job names. A member of a pool that were told of it would be paced, and hold
    up all others, though there is work for it only when it is given an item."""
    board = SharedBoard()
    board.free = 31
    progress = [JobProgress(40, bytearray(5))]
    progress[0].leave_all()
    jobs = [Job(0, "a", Write(), credential="readers")]
    one = RoutedScheduler(jobs, progress, lambda _: ListStream(0, 40), ListIndex([]), 8, board)
    one.begin()
    assert work_left(one, "readers", "core") == 31
    assert work_left(one, "member", "core") == 0


def of_each(one: RoutedScheduler) -> dict[str, list[int]]:
    """By account what is offered now; each ends at once."""
    found: dict[str, list[int]] = {}
    for queue in one.queues.values():
        while (work := one.take(queue)) is not None:
            found.setdefault(queue.credential, []).append(work.entry.index)
            one.ended(work, DONE, 1)
    return found


def test_items_of_an_app_join_by_owner() -> None:
    """What joins goes to its account, of streams in any order and of lanes; an account that had nothing left has."""
    for rows in ([], [(0, index, index) for index in range(12)]):
        progress, board = [JobProgress(12, bytearray(2))], SharedBoard()
        progress[0].leave_all()

        def stream(_: int, is_laned: bool = bool(rows)) -> ListStream | None:
            return None if is_laned else ListStream(0, 12)

        one = RoutedScheduler([Job(0, "a", Write())], progress, stream, ListIndex(rows), 8, board)
        owners = array("I", [index % 2 for index in range(12)])
        one.route(0, RoutedJob(["app@x", "app@y"], owners, lambda: ListStream(0, 12)))
        one.begin()
        assert of_each(one) == {}
        for mine in ([8, 9, 10], [2, 5], [0]):
            progress[0].take_on(mine)
            one.take_on(0, mine)
            event = one.account_ended
            one.join([Part(0, lanes_of=(0,), lanes=(1, 0))] if rows else [Part(0, mine[0], mine[-1] + 1)])
            assert event.is_set()
            wanted = {name: [n for n in mine if n % 2 == odd] for odd, name in enumerate(("app@x", "app@y"))}
            assert of_each(one) == {name: indexes for name, indexes in wanted.items() if indexes}
            assert [one.left_in(queue) for queue in one.own_queues] == [0, 0]
