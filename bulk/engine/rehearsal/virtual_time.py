"""An event loop whose time jumps: waiting costs nothing, an hour passes at once, and every run is the same.

When nothing is ready, the loop's time moves to the next timer. With no timer left either, it would hang for ever in
real life, so it fails here.
"""

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

from bulk.clock import Clock

T = TypeVar("T")
START = 1_800_000_000.0
"""Wall time at the loop's time 0 (UTC epoch seconds)."""


TURN_S = 1e-8
"""Each turn of the loop takes a little: code that waits for a rounding error to pass would spin for ever otherwise."""


class _JumpingSelector(selectors.DefaultSelector):
    """Attributes:
    is_alone: nothing comes from outside (threads, sockets): the system need not be asked.
    """

    loop: "VirtualLoop"
    is_alone = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = [] if self.is_alone else super().select(0)
        self.loop.now += TURN_S
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise AssertionError("everything waits and nothing is scheduled: a deadlock")
        self.loop.now += max(timeout, 0.0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Asyncio's own loop on jumping time."""

    def __init__(self, *, is_alone: bool = False) -> None:
        selector = _JumpingSelector()
        selector.loop, selector.is_alone = self, is_alone
        self.now = 0.0
        super().__init__(selector)

    def time(self) -> float:
        """Return the seconds since the loop began."""
        return self.now


class VirtualClock(Clock):
    """The clock of such a loop.

    Attributes:
        skew_s: how wrong this machine's wall time is (seconds).
        used_s: processor time, and `each_look_s` how much more each look at it finds (seconds).
    """

    skew_s = used_s = each_look_s = 0.0
    _loop: VirtualLoop | None = None

    def now(self) -> float:
        """Return the wall time of the loop (UTC epoch seconds)."""
        return START + self.monotonic() + self.skew_s

    def monotonic(self) -> float:
        """Return the time of the loop in which it was asked first (seconds)."""
        if self._loop is None:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop), "time jumps nowhere else"
            self._loop = loop
        return self._loop.now

    def elapsed(self) -> float:
        """Return the same."""
        return self.monotonic()

    def processor(self) -> float:
        """Return processor time that was used (seconds): none, unless it is made up."""
        self.used_s += self.each_look_s
        return self.used_s


def run_virtual(function: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Run `function` in virtual time."""
    return anyio.run(function, *args, backend_options={"loop_factory": VirtualLoop})
