"""The one place where an event loop starts: uvloop where it is installed, asyncio's own elsewhere."""

import importlib.util
import resource
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from bulk.cli import allocator

T = TypeVar("T")


def run(function: Callable[[], Awaitable[T]]) -> T:
    """Run `function` in an event loop of its own and return its result.

    Raises:
        UsageError: the limit of open files is too low.
    """
    from bulk.platform.environment import require_open_files

    allocator.give_back_large_blocks()
    require_open_files()
    use_uvloop = not _is_memory_limited() and importlib.util.find_spec("uvloop") is not None
    return anyio.run(function, backend_options={"use_uvloop": use_uvloop})


def _is_memory_limited() -> bool:
    """Return whether memory can run out as an error (`ulimit -v`): uvloop aborts the process then, asyncio raises."""
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
