"""The permit queues get the room for requests in flight in turns.

The attendant of each queue lets out what obstacles and pacing allow. An answer makes room, and a worker that waits for
room gets it at once. A paced queue comes before the others: they have enough budget for all the work that they have
left, but the paced queue has not, so that budget which it does not spend now ends with its window. Every fifth turn
goes to another queue, so that no queue starves.
Source: design.md §4.
"""

from collections import deque
from collections.abc import Callable

import anyio.lowlevel

from bulk.clock import Clock
from bulk.govern.concurrency.adaptive_limit import AdaptiveLimit
from bulk.govern.obstacles import Obstacles
from bulk.govern.permits import pacing
from bulk.govern.permits.accounts import Permit, PermitQueue
from bulk.status import WaitKind

AHEAD_MOST = 4
"""After this many turns of paced queues, one turn goes to the other queues that want room (count). Otherwise these
would never get any where the paced queues have more work than time."""


class Turns:
    """Hands out permits.

    Args:
        grant: returns a permit for a queue at a moment (monotonic), for settling or not; None: none may be given.
        refresh_pace: decides anew whether a queue is paced, and how fast.

    Attributes:
        queues: all permit queues; they take turns in being the first.
    """

    def __init__(
        self,
        clock: Clock,
        concurrency: AdaptiveLimit,
        obstacles: Obstacles,
        grant: Callable[[PermitQueue, float, bool], Permit | None],
        refresh_pace: Callable[[PermitQueue, float], None],
    ) -> None:
        self._clock, self._concurrency, self._obstacles = clock, concurrency, obstacles
        self._grant, self._refresh_pace = grant, refresh_pace
        self.queues: list[PermitQueue] = []
        self._due: deque[PermitQueue] = deque()
        self._ahead = 0

    async def attend(self, queue: PermitQueue) -> None:
        """Hand out permits to the workers that wait at `queue`, for ever; there is one such task for each queue."""
        while True:
            queue.renew_wake_event()
            now = self._clock.monotonic()
            if not queue.waiting:
                await queue.wake_event.wait()
                continue
            queue.obstacle = self._obstacles.of(queue, now, bool(queue.settlers))
            wants_room = queue.obstacle == self._concurrency.obstacle
            if queue.due or (queue.obstacle and not (wants_room and queue.is_paced)):
                if wants_room:  # answers make room and wake the queue: no timer is set, as this comes at each turn
                    await queue.wake_event.wait()
                    continue
                queue.account.wake()
                with anyio.move_on_after(pacing.seconds_until(queue.obstacle_until, now)):
                    await queue.wake_event.wait()
                continue
            self._refresh_pace(queue, now)
            if queue.rate is None:
                await self._until_fresh(queue)
                self._serve(queue, queue.waiting)
                await anyio.lowlevel.checkpoint()
                continue
            together = pacing.burst(queue.rate)
            await queue.pace(together)
            await self._until_fresh(queue)
            self._serve_due(queue, together)

    async def _until_fresh(self, queue: PermitQueue) -> None:
        """Have the platform asked how many requests are left, if others may have taken them since its last word."""
        while queue.waiting:
            now = self._clock.monotonic()
            if not queue.is_stale(now) or self._obstacles.of(queue, now, bool(queue.settlers)):
                return
            queue.obstacle = f"bucket {queue.category}: what others left is being asked"
            queue.obstacle_kind = WaitKind.BUDGET
            queue.renew_wake_event()
            queue.account.ask_soon()
            await queue.wake_event.wait()

    def _serve_due(self, queue: PermitQueue, most: int) -> None:
        """Serve a paced queue whose time has come.

        Permits without room go before all others that want room, as budget that the queue does not spend now may end
        with its window.
        """
        queue.due = self._serve(queue, most)
        if queue.due:
            self._due.append(queue)
        else:
            queue.wake()

    def _serve(self, queue: PermitQueue, most: int) -> int:
        """Give up to `most` permits; return how many there was no room for (count)."""
        now = self._clock.monotonic()
        while most > 0 and queue.waiting:
            permit = self._grant(queue, now, bool(queue.settlers))
            if permit is None:
                return min(most, queue.waiting) if queue.obstacle == self._concurrency.obstacle else 0
            waiter = queue.next_waiter()
            waiter.permit = permit
            queue.given += 1
            waiter.event.set()
            most -= 1
        return 0

    def pump(self, own: PermitQueue, now: float) -> None:
        """Serve the queues that may be served and wake the attendants of others, because a permit of `own` has ended.

        Newcomers at `own` are left to its attendant: mostly the worker that made the room takes it again at once.
        """
        if self._due:
            self._serve_ahead(AHEAD_MOST)
        queues, is_left, was_asked = self.queues, False, False
        has_room = self._concurrency.has_room
        for queue in queues:
            if not (queue.waiters or queue.settlers):
                if not queue.newcomers:
                    continue
                if queue is own and not queue.is_paced:  # as nearly always
                    if has_room:
                        queue.wake()
                        is_left, self._ahead = True, 0
                    continue
            was_asked = True
            waiting = queue.waiting if has_room or queue.is_paced else 0
            if not waiting or self._obstacles.waits_for_reset(queue, own, now):
                continue  # otherwise each of fifty queues would find that out again for every answer
            if queue.is_paced:
                if queue.obstacle and not queue.due:
                    queue.wake()
            else:
                self._serve(queue, waiting)
                has_room = self._concurrency.has_room
                self._ahead = self._ahead if queue.waiting == waiting else 0
        if was_asked and len(queues) > 1:
            queues.append(queues.pop(0))
        if has_room and self._due and not is_left:  # no other queue takes the room
            self._ahead = 0
            self._serve_ahead(len(self.queues))

    def _serve_ahead(self, most: int) -> None:
        """Serve paced queues that are due, until they have had `most` turns since other queues had theirs (count)."""
        while self._due and self._concurrency.has_room and self._ahead < most:
            self._ahead += 1
            due = self._due.popleft()
            self._serve_due(due, due.due)
