"""Virtual time for tests: that of the rehearsals."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

from bulk.engine.rehearsal.virtual_time import START, VirtualClock, VirtualLoop

__all__ = ["START", "VirtualClock", "VirtualLoop", "run_alone", "run_virtual"]

T = TypeVar("T")


def run_virtual(function: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Run `function` in virtual time."""
    return anyio.run(function, *args, backend_options={"loop_factory": VirtualLoop})


def run_alone(function: Callable[..., Awaitable[T]], *args: Any) -> T:
    """As `run_virtual`, where nothing comes from outside: the system is not asked at each turn of the loop."""
    return anyio.run(function, *args, backend_options={"loop_factory": lambda: VirtualLoop(is_alone=True)})
