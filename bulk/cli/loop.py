"""The one place where an event loop starts: uvloop where it is installed, asyncio's own elsewhere."""

import importlib.util
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from bulk.cli import memory

T = TypeVar("T")


def run(function: Callable[[], Awaitable[T]]) -> T:
    """Run `function` in an event loop of its own and give back what it returns."""
    memory.give_back_large_blocks()
    use_uvloop = sys.platform != "win32" and importlib.util.find_spec("uvloop") is not None
    return anyio.run(function, backend_options={"use_uvloop": use_uvloop})
