"""One deadline for each request, with one timer for all of them.

All deadlines are equally long, so they come due in the order in which they began: a timer for the oldest is enough, and
a request that goes well costs a dictionary entry. Cancelling works as in `asyncio.timeout`: a due request's task is
cancelled, and whoever ends the flight takes that back, so that a cancellation from outside, at the same moment, counts.
Source: performance.md (a timer per request costs up to a third of the throughput).
"""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar

from bulk.clock import Clock

EARLY_S = 0.001
"""A timer may ring this much early: loops count in milliseconds."""


class Flight:
    """One request on its way.

    Attributes:
        task: that sends it.
        due_at: when it is given up (monotonic seconds).
        is_written: bytes of it may have left.
        may_leave: asked at the moment of writing; None: nobody minds.
        is_overdue: its time is over, and its task was cancelled because of that.
    """

    __slots__ = ("_cancelling", "_is_taken_back", "due_at", "is_overdue", "is_written", "may_leave", "task")

    def __init__(
        self, task: "asyncio.Task[object]", due_at: float, may_leave: Callable[[], bool] | None = None
    ) -> None:
        self.task, self.due_at, self.may_leave = task, due_at, may_leave
        self.is_written = self.is_overdue = self._is_taken_back = False
        self._cancelling = task.cancelling()

    def take_back(self) -> bool:
        """After its task was cancelled: was that us alone? Then the cancellation is used up; else it must go on."""
        if not self.is_overdue or self._is_taken_back:
            return False
        self._is_taken_back = True
        return self.task.uncancel() <= self._cancelling


CURRENT: ContextVar[Flight] = ContextVar("flight")
"""The flight of the running task, where aiohttp's session sends its request."""


class Deadlines:
    """The flights of one transport; `begin` and `end` enclose each.

    Args:
        length_s: how long a flight may take (seconds, > 0).
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, length_s: float) -> None:
        self._loop, self._monotonic, self._length_s = loop, clock.monotonic, length_s
        self._flights: dict[Flight, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._flights)

    def begin(self, may_leave: Callable[[], bool] | None = None) -> Flight:
        """A flight of the running task; it must come to its `end`."""
        task = asyncio.current_task(self._loop)
        assert task is not None, "requests are sent from tasks"
        flight = Flight(task, self._monotonic() + self._length_s, may_leave)
        self._flights[flight] = None
        if self._timer is None:
            self._timer = self._loop.call_at(flight.due_at, self._sweep)
        return flight

    def end(self, flight: Flight) -> None:
        """Its answer is there, or never will be."""
        del self._flights[flight]
        if flight.is_overdue:
            # it ended on its own in the moment it was given up
            flight.take_back()

    def close(self) -> None:
        """No timer is left behind."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self) -> None:
        """Give up what is due; ring again when the oldest of the others is."""
        self._timer = None
        now = self._monotonic() + EARLY_S
        for flight in self._flights:
            if flight.due_at > now:
                self._timer = self._loop.call_at(flight.due_at, self._sweep)
                return
            if not flight.is_overdue:
                flight.is_overdue = True
                flight.task.cancel()
