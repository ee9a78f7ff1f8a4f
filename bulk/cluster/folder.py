"""The folder of a worker: a lock that ends with the worker's process keeps another worker out."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from bulk.errors import RunDirectoryError
from bulk.storage.foreign_names import OF_FILE_SYSTEM, foreign_names
from bulk.storage.locks import try_lock
from bulk.storage.private_files import DIRECTORY_MODE, open_private

LOCK = "worker.lock"


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
        if not try_lock(lock):
            raise RunDirectoryError(f"--dir: another worker has {folder}; give each a folder of its own")
        yield
    finally:
        os.close(lock)


def _refuse_foreign(folder: Path) -> None:
    foreign = foreign_names(folder, OF_FILE_SYSTEM)
    if foreign:
        raise RunDirectoryError(
            f"--dir: {folder} is not a worker's: it holds {foreign} and no {LOCK}; name an empty or a new folder"
        )
