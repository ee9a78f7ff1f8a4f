"""One deadline for each request, with one timer for all of them.

All deadlines are equally long, so they come due in the order in which they began: a timer for the oldest is enough, and
a request that goes well costs a dictionary entry. Cancelling works as in `asyncio.timeout`: the task of a due request
is cancelled, and the code that ends the flight takes that back, so that a cancellation from outside at the same moment
counts. Time in which the platform waits for this machine (a slow disk, no room in memory) is added to the deadline.
Source: performance.md (a timer per request costs up to a third of the throughput).
"""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar

from bulk.clock import Clock

EARLY_S = 0.001
"""A timer may ring this much early: loops count in milliseconds."""

FIRST_CONNECTION_S = 2.5
"""How long the very first connection may take, TLS included (seconds): a dead address is not tried for long."""

STILL_OURS_S = 0.05
"""A flight that comes due while it waits for this machine is looked at again after this, at the earliest (seconds)."""


class InFlight:
    """One request on its way.

    Attributes:
        task: the task that sends the request.
        due_at: when the request is given up (monotonic seconds).
        is_written: bytes of the request may have left.
        may_leave: asked at the moment of writing whether the request may leave; None: it may.
        is_overdue: the time is over, and the task was cancelled because of that.
        timer: timer of this request alone, because it was given more time.
    """

    is_written: bool = False
    is_overdue: bool = False
    timer: asyncio.TimerHandle | None = None
    _is_taken_back: bool = False
    _lent_s: float = 0.0
    _ours_since: float | None = None

    def __init__(
        self, task: "asyncio.Task[object]", due_at: float, may_leave: Callable[[], bool] | None = None
    ) -> None:
        self.task, self.due_at, self.may_leave = task, due_at, may_leave
        self._cancelling = task.cancelling()

    def begin_ours(self, now: float) -> None:
        """Note that from `now` on (monotonic seconds) this machine keeps the answer waiting.

        The answer gets that much more time.
        """
        self._ours_since = now

    def end_ours(self, now: float) -> None:
        """Note that it is the platform's turn again."""
        if self._ours_since is not None:
            self._lent_s += now - self._ours_since
            self._ours_since = None

    def lent_s(self, now: float) -> float:
        """Return how much time the flight has gained since the last call (seconds); 0.0: it has come due."""
        lent_s, self._lent_s = self._lent_s, 0.0
        if self._ours_since is not None:
            lent_s = max(STILL_OURS_S, lent_s + now - self._ours_since)
            self._ours_since = now
        return lent_s

    def take_back(self) -> bool:
        """Return whether only the deadline has cancelled the task; then the cancellation is used up."""
        if not self.is_overdue or self._is_taken_back:
            return False
        self._is_taken_back = True
        return self.task.uncancel() <= self._cancelling


CURRENT: ContextVar[InFlight] = ContextVar("flight")
"""The flight of the running task, where aiohttp's session sends its request."""


class Deadlines:
    """The flights of one transport; `begin` and `end` enclose each.

    Args:
        length_s: how long a flight may take (seconds, > 0).
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, length_s: float) -> None:
        self._loop, self._monotonic, self._length_s = loop, clock.monotonic, length_s
        self._flights: dict[InFlight, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._flights)

    def begin(self, may_leave: Callable[[], bool] | None = None) -> InFlight:
        """Return a new flight of the running task, for which `end` must be called."""
        task = asyncio.current_task(self._loop)
        assert task is not None, "requests are sent from tasks"
        flight = InFlight(task, self._monotonic() + self._length_s, may_leave)
        self._flights[flight] = None
        if self._timer is None:
            self._timer = self._loop.call_at(flight.due_at, self._sweep)
        return flight

    def end(self, flight: InFlight) -> None:
        """Note that the answer is there, or never will be."""
        del self._flights[flight]
        if flight.timer is not None:
            flight.timer.cancel()
        if flight.is_overdue:
            # the flight ended on its own in the moment it was given up
            flight.take_back()

    def close(self) -> None:
        """Cancel the timer of all flights."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self) -> None:
        """Give up the flights that are due, and set the timer for the oldest of the others."""
        self._timer = None
        now = self._monotonic() + EARLY_S
        for flight in self._flights:
            if flight.due_at > now:
                self._timer = self._loop.call_at(flight.due_at, self._sweep)
                return
            if not flight.is_overdue and flight.timer is None:
                self._come_due(flight)

    def _come_due(self, flight: InFlight) -> None:
        """Give the flight up, unless this machine has kept it waiting."""
        now = self._monotonic()
        lent_s = flight.lent_s(now)
        if lent_s > 0.0:
            flight.timer = self._loop.call_at(now + lent_s, self._come_due, flight)
            return
        flight.is_overdue = True
        flight.task.cancel()
