"""Scratch folders in the system's temporary folder, for files that only one process needs.

Each is locked as long as its process lives, so that the next process that needs one deletes those of this user that a
killed process has left behind.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bulk.clock import Clock

PREFIX = "bulk-scratch-"

NEW_S = 60.0
"""The age below which a folder that is not locked is left alone, because its process may be about to lock it
(seconds)."""


@contextlib.contextmanager
def scratch_folder(purpose: str) -> Iterator[Path]:
    """Lend a new folder; it is deleted when the block ends.

    Args:
        purpose: a word for people who look into the temporary folder.
    """
    with held_folder(f"{PREFIX}{purpose}-", swept=PREFIX) as folder:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def held_folder(prefix: str, *, swept: str) -> Iterator[Path]:
    """Make a folder, and hold it locked until the block ends; then it stays.

    Args:
        swept: folders whose names begin so, and that no process holds, are deleted before.
    """
    sweep(Path(tempfile.gettempdir()), swept, Clock().now())
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    held = _opened(folder)
    try:
        with contextlib.suppress(OSError):  # a file system without locks: nobody else can lock it either
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder
    finally:
        os.close(held)


def sweep(parent: Path, prefix: str, now: float) -> int:
    """Delete the folders of this user whose names begin with `prefix` and that no process holds; returns how many.

    Args:
        now: UTC epoch seconds, for `NEW_S`.
    """
    swept = 0
    for folder in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # a process holds it, another user has it, or it was just deleted
            swept += _take_away(folder, now)
    return swept


def _take_away(folder: Path, now: float) -> bool:
    held = _opened(folder)
    try:
        found = os.fstat(held)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077 or abs(now - found.st_mtime) < NEW_S:
            return False
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
        return True
    finally:
        os.close(held)


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
