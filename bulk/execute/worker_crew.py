"""Starts workers where there are many queues: as many as may be of use, not `concurrency` for each queue.

The fewer queues still have work, the more workers each of them gets, so that the last one is as fast as if it were the
only one.
"""

from collections.abc import Callable

from anyio.abc import TaskGroup

from bulk.execute.workers import Workers
from bulk.govern.governor import Governor
from bulk.govern.permits.accounts import PermitQueue
from bulk.govern.pools import Pool
from bulk.schedule.queues import Queue
from bulk.schedule.routed_scheduler import RoutedScheduler
from bulk.schedule.scheduler import Scheduler

FOR_EACH = 3
"""Workers in all for each request that may be in flight (count): most of them wait for a budget."""
FEWEST = 4
"""Fewest workers of a queue (count)."""


def start_workers(
    group: TaskGroup,
    workers: Workers,
    scheduler: Scheduler,
    governor: Governor,
    concurrency: int,
) -> None:
    """Start the workers of all queues: `concurrency` (count) for each, or a crew where there may be many queues."""
    permit_queue = governor.queue
    many = scheduler.own_queues if isinstance(scheduler, RoutedScheduler) else []
    for queue in scheduler.queues.values():
        if queue in many:
            continue
        members = governor.pools.get(queue.credential)
        pool = members and Pool(governor, [permit_queue(name, queue.category) for name in members])
        for _ in range(concurrency):
            group.start_soon(workers.work, queue, permit_queue(queue.credential, queue.category), pool or None)
    if many and isinstance(scheduler, RoutedScheduler):
        crew = WorkerCrew(workers, scheduler, permit_queue, concurrency)
        group.start_soon(crew.run, group, many)


class WorkerCrew:
    """Starts the workers of the queues of a scheduler that keeps items apart by account.

    Args:
        concurrency: most requests in flight (count).
    """

    def __init__(
        self,
        workers: Workers,
        scheduler: RoutedScheduler,
        permit_queue: Callable[[str, str], PermitQueue],
        concurrency: int,
    ) -> None:
        self._workers, self._scheduler, self._permit_queue = workers, scheduler, permit_queue
        self._concurrency = concurrency
        self._started: dict[tuple[str, str], int] = {}

    async def run(self, group: TaskGroup, queues: list[Queue]) -> None:
        """Start workers in `group` as they are of use, until nothing is left."""
        while True:
            left = {queue: self._scheduler.left_in(queue) for queue in queues if not queue.is_closed}
            active = [queue for queue, items in left.items() if items]
            if self._scheduler.is_stopped or not (active or self._scheduler.board.expects_more):
                return
            share = min(self._concurrency, max(FEWEST, FOR_EACH * self._concurrency // max(1, len(active))))
            for queue in active:
                key = (queue.credential, queue.category)
                wanted = 1 if queue.refusal else min(share, left[queue])
                for _ in range(wanted - self._started.get(key, 0)):
                    if queue.refusal:
                        group.start_soon(self._workers.fail, queue)
                    else:
                        group.start_soon(self._workers.work, queue, self._permit_queue(*key))
                self._started[key] = max(wanted, self._started.get(key, 0))
            await self._scheduler.account_ended.wait()
