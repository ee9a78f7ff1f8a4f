"""The folder of a worker: a lock that ends with the worker's process shows which folders are left by dead workers."""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bulk.clock import Clock
from bulk.errors import RunDirectoryError
from bulk.storage.foreign_names import OF_FILE_SYSTEM, foreign_names
from bulk.storage.private_files import DIRECTORY_MODE, open_private

LOCK = "worker.lock"
PREFIX = "bulk-worker-"

NEW_S = 60.0
"""The age below which a free lock file is left alone, because its worker may be about to lock it (seconds)."""


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the folder of a worker, because two workers in one folder would delete each other's files.

    Raises:
        RunDirectoryError: another worker has the folder, somebody else's files lie there, or it can't be made.
    """
    try:
        if not (folder / LOCK).exists():
            _refuse_foreign(folder)
        folder.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        lock = open_private(folder / LOCK, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise RunDirectoryError(f"--dir: {error.filename or folder}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunDirectoryError(f"--dir: another worker has {folder}; give each a folder of its own") from None
        yield
    finally:
        os.close(lock)


def _refuse_foreign(folder: Path) -> None:
    foreign = foreign_names(folder, OF_FILE_SYSTEM)
    if foreign:
        raise RunDirectoryError(
            f"--dir: {folder} is not a worker's: it holds {foreign} and no {LOCK}; name an empty or a new folder"
        )


@contextlib.contextmanager
def new_folder() -> Iterator[Path]:
    """Lend a new folder in the system's temporary folder, after deleting the folders of this user's killed workers."""
    sweep(Path(tempfile.gettempdir()), Clock().now())
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        yield Path(folder)


def sweep(parent: Path, now: float) -> int:
    """Delete the folders of this user's workers that have died, which no process holds locked; returns how many.

    Args:
        now: UTC epoch seconds, for `NEW_S`.
    """
    swept = 0
    for folder in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # it has no lock, a worker holds it, or another process is deleting it
            if _is_own(folder):
                swept += _take_away(folder, now)
    return swept


def _is_own(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _take_away(folder: Path, now: float) -> bool:
    """Delete a folder while its lock is held here; returns False where the lock file is too new.

    Raises:
        OSError: the folder has no lock, or a worker holds the lock.
    """
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if now < os.fstat(lock).st_mtime + NEW_S:
            return False
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
        return True
    finally:
        os.close(lock)
