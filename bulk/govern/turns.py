"""Who gets the room that there is: those who wait at permit queues, in turns.

The attendant of each queue lets out what obstacles and pacing allow; an answer makes room, and whoever waits for that
gets it at once. A paced queue comes before others: they have budget enough for all that they have left to do, and it
has not, so that what it doesn't spend now ends with its window. Every fifth turn is another's, so that nobody starves.
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
"""After so many turns of paced queues one goes to others that want room (count): where all that is paced takes longer
than there is time, they would never get any."""


class Turns:
    """Hands out permits.

    Args:
        grant: takes one permit for a queue at a moment (monotonic), for settling or not; None where it may not.
        refresh_pace: decides anew whether a queue is paced, and how fast.

    Attributes:
        queues: all permit queues; each is the first one in its turn.
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
        """Hand out permits to those who wait at `queue`, for ever; one task for each permit queue."""
        while True:
            queue.renew_wake_event()
            now = self._clock.monotonic()
            if not queue.waiting:
                await queue.wake_event.wait()
                continue
            queue.obstacle = self._obstacles.of(queue, now, bool(queue.settlers))
            wants_room = queue.obstacle == self._concurrency.obstacle
            if queue.due or (queue.obstacle and not (wants_room and queue.is_paced)):
                if wants_room:  # answers make room, and wake it: this is done at each turn, without a timer
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
        """Have the platform asked what is left, where others may have taken it since its last word."""
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
        """Serve a paced queue whose time has come; what there is no room for goes before all others that want room, as
        what it does not spend now may end with its window."""
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
        """Serve queues that may be served, and wake the attendants of others: something became free at `own`.

        Newcomers at `own` are left to its attendant: mostly the worker that made room takes it again at once.
        """
        if self._due:
            self._serve_ahead(AHEAD_MOST)
        queues, is_left = self.queues, False
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
            waiting = queue.waiting if has_room or queue.is_paced else 0
            if not waiting or self._obstacles.waits_for_reset(queue, own, now):
                continue  # of fifty, each would say so again for every answer
            if queue.is_paced:
                if queue.obstacle and not queue.due:
                    queue.wake()
            else:
                self._serve(queue, waiting)
                has_room = self._concurrency.has_room
                self._ahead = self._ahead if queue.waiting == waiting else 0
        if len(queues) > 1:
            queues.append(queues.pop(0))
        if has_room and self._due and not is_left:  # nobody else takes it
            self._ahead = 0
            self._serve_ahead(len(self.queues))

    def _serve_ahead(self, most: int) -> None:
        """Serve paced queues that are due, until `most` had their turn since others had theirs (count)."""
        while self._due and self._concurrency.has_room and self._ahead < most:
            self._ahead += 1
            due = self._due.popleft()
            self._serve_due(due, due.due)
