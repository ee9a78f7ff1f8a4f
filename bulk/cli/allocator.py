"""How this process's allocator treats large blocks: it gives them back to the system.

By itself that of the GNU C library comes to keep what is as large as the largest block that was ever freed, and twice
as much in the heap of each thread: some answers of 8 MB make a process 100 MB larger for good. A library's user decides
for their own process; this is for the command line's. Measured: benchmarks/notes/changes.md.
"""

import sys

LARGE_BYTES = 4 * 1024 * 1024
"""A block from this size on is memory of its own. What is written at once to the results is smaller, and used again."""

KEPT_BYTES = 2 * LARGE_BYTES
"""Most free bytes that are kept at the end of a heap."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


def give_back_large_blocks() -> None:
    """Have large blocks given back from now on; where there is another C library, nothing is done."""
    if sys.platform != "linux":
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
