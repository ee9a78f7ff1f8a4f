"""How the sandbox opens files that a user names: nothing waits for a FIFO, nor reads a device to its end.

The sandbox imports nothing of the rest, so that it has its own form of `bulk/storage/private_files.py`.
"""

import errno
import os
import stat
from pathlib import Path


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: the file can't be read, or is not a regular file.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return file.read()


def open_appending(path: Path) -> int:
    """Return a descriptor that appends to a file, which is made if there is none. A device or a pipe will do too.

    Raises:
        OSError: the file can't be opened, or is a pipe that nobody reads.
    """
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "it is a pipe or a device that nobody reads", str(path)) from None
        raise
    os.set_blocking(fd, True)
    return fd
