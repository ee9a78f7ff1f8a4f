"""Files and directories that only their owner may read, whatever the umask: how they are opened, written and synced.

A disk that refuses becomes an error for the user (`stopped`). No function here follows a symbolic link in the last part
of a name, but `read_regular` and `read_secret`, and `open_regular` where it is told to. None waits for a FIFO or reads
a device: this is the only place that looks for them. Source: failures.md rows 49, 59, 64.
"""

import contextlib
import errno
import fcntl
import os
import shlex
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from bulk.errors import RunStopped

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700


class NotRegular(OSError):
    """There is a folder, a FIFO or a device in the place of a file."""


class NoSecret(Exception):
    """A file can't be read as a secret; the message names the file, says why, and the way out."""


def open_private(name: str | Path, flags: int, dir_fd: int | None = None) -> int:
    """Return a file descriptor of a file that exists, or is made, with mode 0600.

    Args:
        flags: `os.O_WRONLY` and the like, with O_CREAT if the file may be made.
        dir_fd: the directory that `name` is looked up in.
    """
    fd = open_regular(name, flags, dir_fd)
    try:
        os.fchmod(fd, FILE_MODE)
    except BaseException:
        os.close(fd)
        raise
    return fd


def open_regular(
    name: str | Path, flags: int = os.O_RDONLY, dir_fd: int | None = None, *, follows: bool = False
) -> int:
    """Return a file descriptor of a regular file.

    Args:
        flags, dir_fd: as for `open_private`. follows: the last part of the name may be a symbolic link.

    Raises:
        NotRegular: the file is not a regular file: a FIFO or a device is neither waited for nor read.
        OSError: the file can't be opened.
    """
    flags |= os.O_CLOEXEC | os.O_NONBLOCK | (0 if follows else os.O_NOFOLLOW)
    fd = os.open(name, flags, FILE_MODE, dir_fd=dir_fd)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotRegular(errno.EINVAL, "it is not a regular file", str(name))
    return fd


def read_regular(path: Path, most: int = -1) -> bytes:
    """Return the content of a regular file, at most `most` bytes of it (-1: all); `path` may be a symbolic link.

    Raises:
        OSError: see `open_regular`.
    """
    with open(open_regular(path, follows=True), "rb") as file:
        return file.read(most)


def read_secret(path: Path, most: int) -> bytes:
    """Return the content of a file that belongs to this user and is closed to others, at most `most` bytes of it.

    Raises:
        NoSecret: the file can't be read, is not a regular file, belongs to another user, or is open to others.
    """
    try:
        with open(open_regular(path, follows=True), "rb", buffering=0) as file:
            about = os.fstat(file.fileno())
            if about.st_uid != os.geteuid():
                raise NoSecret(f"{path} belongs to another user; copy it and run chmod 600 on the copy")
            if stat.S_IMODE(about.st_mode) & 0o077:
                raise NoSecret(f"{path} is open to others; run: chmod 600 {shlex.quote(str(path))}")
            return file.read(most)
    except NotRegular:
        raise NoSecret(f"{path} is not a regular file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a file name"
        raise NoSecret(f"{path} can't be read: {reason}") from None


def kept_content(path: Path, make: Callable[[], bytes], most: int = -1) -> bytes:
    """Return the content of a file; where there is none, make it for good, whole, and the same for all processes.

    Args:
        make: returns the content of a new file. most: as for `read_regular`.

    Raises:
        OSError: the file can be neither read nor made.
    """
    with contextlib.suppress(FileNotFoundError):
        return read_regular(path, most)
    with replacing(path) as file:
        try:
            content = read_regular(path)  # another process has been sooner
        except FileNotFoundError:
            content = make()
        file.write(content)
    return content


@contextlib.contextmanager
def replacing(path: Path, *, is_private: bool = True) -> Iterator[BinaryIO]:
    """Lend a new file, to be written and read, that takes the place of `path` when the block ends.

    If the block raises, the file is removed and `path` stays. A link in the place of `path` is replaced, and a file
    that a killed process left half-written is removed; another process that writes the same one is waited for.

    Args:
        is_private: whether others may not read it, whatever the umask.
    """
    part = path.with_name(path.name + ".part")
    with open(_new_part(part, is_private=is_private), "w+b") as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def reserve(file: BinaryIO, size: int) -> None:
    """Take room on the disk for `size` bytes of a new file; what is written then, from the beginning, has its place.

    Raises:
        OSError: the disk has no room.
    """
    file.write(bytes(size))
    file.flush()
    os.fsync(file.fileno())
    file.seek(0)


def write_whole(path: Path, content: bytes, *, is_private: bool = True) -> None:
    """Write a file, whole or not at all: see `replacing`.

    Raises:
        OSError: the disk refused; `path` is as it was.
    """
    with replacing(path, is_private=is_private) as file:
        file.write(content)


def _new_part(part: Path, *, is_private: bool = True) -> int:
    """Return a descriptor of a new file at `part`, which other processes leave alone as long as it is open."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    while True:
        try:
            made = open_private(part, flags) if is_private else os.open(part, flags | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            remove_left(part)
            continue
        _lock(made)
        if _is_at(made, part):
            return made
        os.close(made)  # another process took it for left before it was locked


def remove_left(part: Path) -> None:
    """Remove what a killed process has left at `part`; wait for a process that is at work on it."""
    try:
        left = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError:  # a link, or nothing that can be opened: no process here has made it
        part.unlink(missing_ok=True)
        return
    try:
        _lock(left)
        if _is_at(left, part):
            part.unlink(missing_ok=True)
    finally:
        os.close(left)


def _lock(fd: int) -> None:
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(fd, fcntl.LOCK_EX)


def _is_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False


def try_replacing(path: Path) -> None:
    """Try whether `replacing` could make its file, before long work is done for it; nothing is left.

    Raises:
        OSError: it could not.
    """
    part = path.with_name(path.name + ".part")
    with open(_new_part(part), "wb"):
        part.unlink()


def open_directory(name: str | Path, dir_fd: int | None = None) -> int:
    """Return a file descriptor of a directory."""
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)


def write_all(fd: int, data: bytes | bytearray) -> None:
    """Write all of `data` at the position of the file, however often the system takes only a part."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_directory(path: Path) -> None:
    """Make new and changed names in `path` durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def stopped(error: OSError, path: Path) -> RunStopped:
    """Return the RunStopped that explains an error of the file system at a file of the run directory."""
    return RunStopped(
        f"{path}: {error.strerror or error}; correct that or free some space, then give the same command again: "
        "nothing recorded is lost"
    )
