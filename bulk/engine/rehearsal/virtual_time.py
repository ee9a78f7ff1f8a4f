"""An event loop whose time jumps: waiting costs nothing, an hour passes at once, and every run is the same.

When nothing is ready, the loop's time moves to the next timer. With no timer left either, it would hang for ever in
real life, so it fails here. It makes the same calls as asyncio's own loop, in the same order. asyncio's loop checks at
each step whether it is being debugged, and compares its timers in Python, which is slow where no time is spent waiting.
"""

import asyncio
import heapq
import selectors
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, TypeVarTuple

from bulk.clock import Clock

_Ts = TypeVarTuple("_Ts")
START = 1_800_000_000.0
"""Wall time at the loop's time 0 (UTC epoch seconds)."""


TURN_S = 1e-8
"""Time of each turn of the loop (seconds). Without it, code that waits for a rounding error to pass spins for ever."""
MOST_TIMERS, MOST_CANCELLED = 100, 0.5
"""With more timers than this (count), cancelled timers are dropped if they are more than this share of all."""


class _Call(asyncio.TimerHandle):
    """A callback for the next turn or for a later time. Only the loop makes such objects, without `__init__`."""

    __slots__ = ()
    # asyncio's own, which typeshed leaves out
    _callback: Any
    _args: Any
    _context: Context
    _when: float
    _scheduled: bool
    _loop: "VirtualLoop"
    _repr: str | None
    _source_traceback: None

    def cancel(self) -> None:
        """Cancel the callback."""
        if not self._cancelled:
            self._loop.cancelled_timers += self._scheduled
            self._cancelled = True
            self._callback = self._args = None


_new = _Call.__new__


class VirtualLoop(asyncio.SelectorEventLoop):
    """Asyncio's own loop on jumping time.

    Args:
        is_alone: nothing comes from outside (threads, sockets), so that the loop need not poll the system.

    Attributes:
        cancelled_timers: cancelled timers whose time has not come yet (count).
    """

    # asyncio's own, which typeshed leaves out
    _ready: "deque[_Call]"
    _stopping: bool
    _closed: bool
    _clock_resolution: float
    _selector: selectors.BaseSelector
    _process_events: Callable[[Any], None]
    _check_closed: Callable[[], None]

    def __init__(self, *, is_alone: bool = False) -> None:
        self.now = 0.0
        self._is_alone = is_alone
        self._timers: list[tuple[float, _Call]] = []
        self.cancelled_timers = 0
        super().__init__()

    def time(self) -> float:
        """Return the seconds since the loop began."""
        return self.now

    def call_soon(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Call `callback` in the next turn."""
        call = self._call(callback, args, context)
        self._ready.append(call)
        return call

    def call_later(
        self, delay: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call `callback` after `delay` seconds."""
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call `callback` at the time `when` of the loop."""
        call = self._call(callback, args, context)
        call._when, call._scheduled = when, True
        heapq.heappush(self._timers, (when, call))  # a pair is compared in C
        return call

    def _call(self, callback: Any, args: Any, context: Context | None) -> _Call:
        if self._closed:
            self._check_closed()
        call = _new(_Call)
        call._callback, call._args, call._loop, call._when = callback, args, self, self.now
        call._context = copy_context() if context is None else context
        call._repr = call._source_traceback = None
        call._cancelled = call._scheduled = False
        return call

    def _run_once(self) -> None:
        timers, ready = self._timers, self._ready
        if len(timers) > MOST_TIMERS and self.cancelled_timers > MOST_CANCELLED * len(timers):
            timers[:] = [each for each in timers if not each[1]._cancelled]
            heapq.heapify(timers)
            self.cancelled_timers = 0
        while timers and timers[0][1]._cancelled:
            heapq.heappop(timers)
            self.cancelled_timers -= 1
        before = self.now
        self.now += TURN_S
        if not self._is_alone:
            self._process_events(self._selector.select(0))
        if not ready and not self._stopping:
            if not timers:
                raise AssertionError("everything waits and nothing is scheduled: a deadlock")
            if timers[0][0] > before:
                self.now += timers[0][0] - before
        until = self.now + self._clock_resolution
        while timers and timers[0][0] < until:
            timer = heapq.heappop(timers)[1]
            timer._scheduled = False
            ready.append(timer)
        for _ in range(len(ready)):  # callbacks that are added meanwhile wait for the next turn
            handle = ready.popleft()
            if not handle._cancelled:
                try:  # does as `Handle._run`, without the cost of a call
                    handle._context.run(handle._callback, *handle._args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # noqa: BLE001 - it is handed on
                    message = f"Exception in callback {handle!r}"
                    self.call_exception_handler({"message": message, "exception": error, "handle": handle})


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class VirtualClock(Clock):
    """The clock of a `VirtualLoop`.

    Attributes:
        skew_s: how wrong this machine's wall time is (seconds).
        used_s: processor time used so far (seconds). each_look_s: what each call of `processor` adds to it (seconds).
    """

    skew_s = used_s = each_look_s = 0.0
    _loop: VirtualLoop | None = None

    def now(self) -> float:
        """Return the wall time of the loop (UTC epoch seconds)."""
        return START + self.monotonic() + self.skew_s

    def monotonic(self) -> float:
        """Return the time of the loop in which the clock was first used (seconds)."""
        if self._loop is None:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop), "time jumps nowhere else"
            self._loop = loop
        return self._loop.now

    def elapsed(self) -> float:
        """Return the same as `monotonic`."""
        return self.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds` of the loop; at least one of its turns."""
        if seconds <= 0.0:
            await asyncio.sleep(0)
            return
        self.monotonic()
        loop = self._loop
        assert loop is not None, "it was asked for the time"
        future = loop.create_future()  # as `asyncio.sleep`, which also cancels timers that are over
        timer = loop.call_at(loop.now + seconds, _wake, future)
        try:
            await future
        except BaseException:
            timer.cancel()
            raise

    def processor(self) -> float:
        """Return the processor time that was used (seconds): none, unless `each_look_s` is set."""
        self.used_s += self.each_look_s
        return self.used_s
