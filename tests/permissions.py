"""Folders that this user may not open. The superuser may open all, so tests give up that right for a while."""

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

VERSION = 0x20080522
"""Of the structures of capget(2) and capset(2): two words of each set."""
OVERRIDES = (1 << 1) | (1 << 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""
EFFECTIVE = 0
"""Place of the first word of the effective set among the six words."""


@contextlib.contextmanager
def closed(folder: Path, mode: int = 0) -> Iterator[None]:
    """In the block, nothing in `folder` can be opened, not even by the superuser (in this thread, and those it starts).

    Args:
        mode: what the folder has in the block; 0o500: it can be read, and nothing in it changed.

    Raises:
        OSError: the right can't be given up here.
    """
    folder.chmod(mode)
    try:
        if os.geteuid() != 0 or sys.platform != "linux":
            yield
            return
        libc, header, words = (
            ctypes.CDLL(None, use_errno=True),
            (ctypes.c_uint32 * 2)(VERSION, 0),
            (ctypes.c_uint32 * 6)(),
        )
        _called(libc.capget(header, words))
        before = words[EFFECTIVE]
        words[EFFECTIVE] = before & ~OVERRIDES
        _called(libc.capset(header, words))
        try:
            yield
        finally:
            words[EFFECTIVE] = before
            _called(libc.capset(header, words))
    finally:
        folder.chmod(0o700)


def _called(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
