"""Makes the allocator of this process give large blocks back to the system.

By itself, the allocator of the GNU C library comes to keep free memory of the size of the largest block that was ever
freed, and twice as much in the heap of each thread: some answers of 8 MB make a process 100 MB larger for good. Users
of the library decide for their own process; this module is for that of the command line. Measured:
benchmarks/notes/changes.md.
"""

import sys

LARGE_BYTES = 4 * 1024 * 1024
"""A block of this size or more is memory of its own. Blocks that are written to the results are smaller, and reused."""

KEPT_BYTES = 2 * LARGE_BYTES
"""Most free bytes that are kept at the end of a heap."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


def give_back_large_blocks() -> None:
    """Give large blocks back from now on; with another C library, nothing is done."""
    if sys.platform != "linux":
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
