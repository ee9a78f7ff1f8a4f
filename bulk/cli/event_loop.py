"""The one place where an event loop starts: uvloop where it is installed, asyncio's own elsewhere."""

import importlib.util
import resource
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")

_LARGE_BYTES = 4 * 1024 * 1024
"""A block of this size or more is memory of its own. Blocks that are written to the results are smaller, and reused."""

_KEPT_BYTES = 2 * _LARGE_BYTES
"""Most free bytes that are kept at the end of a heap."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


def run(function: Callable[[], Awaitable[T]]) -> T:
    """Run `function` in an event loop of its own and return its result.

    Raises:
        UsageError: the limit of open files is too low.
    """
    from bulk.platform.environment import require_open_files

    _give_back_large_blocks()
    require_open_files()
    use_uvloop = not _is_memory_limited() and importlib.util.find_spec("uvloop") is not None
    return anyio.run(function, backend_options={"use_uvloop": use_uvloop})


def _is_memory_limited() -> bool:
    """Return whether memory can run out as an error (`ulimit -v`): uvloop aborts the process then, asyncio raises."""
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _give_back_large_blocks() -> None:
    """Have the allocator of this process give large blocks back to the system; only that of the GNU C library is told.

    By itself it comes to keep free memory of the size of the largest block that was ever freed, and twice as much in
    the heap of each thread: some answers of 8 MB make a process 100 MB larger for good. Users of the library decide for
    their own process. Measured: benchmarks/notes/changes.md.
    """
    if sys.platform != "linux":
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
