"""The place of the control socket of a run, and the user at its other end.

A path of more than `PATH_BYTES` can be neither bound nor connected to: then the path names the directory by a
descriptor, if the system has `/proc`.
"""

import contextlib
import os
import pwd
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

NAME = "control.sock"

PATH_BYTES = 103
"""Longest path of a socket on all systems that Bulk runs on (bytes, without the NUL)."""

_DESCRIPTORS = Path("/proc/self/fd")
_LOCAL_PEERCRED = 1


@contextlib.contextmanager
def reachable(run_dir: Path) -> Iterator[str]:
    """Lend a path of the socket that can be bound and connected to, within the block.

    Raises:
        OSError: there is no such path: it is too long here, or the directory can't be opened.
    """
    path = str(run_dir / NAME)
    if len(os.fsencode(path)) <= PATH_BYTES:
        yield path
        return
    if not _DESCRIPTORS.is_dir():
        raise OSError(f"its path is longer than {PATH_BYTES} bytes")
    fd = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"{_DESCRIPTORS}/{fd}/{NAME}"
    finally:
        os.close(fd)


def peer_uid(connection: socket.socket) -> int:
    """Return the user (number) of the process at the other end.

    Raises:
        OSError: the user can't be known.
    """
    option: int | None = getattr(socket, "SO_PEERCRED", None)
    if option is not None:  # ucred of Linux: process, user, group
        return int(struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, 12))[1])
    # xucred of the BSDs: version, user, groups
    return int(struct.unpack("2I", connection.getsockopt(0, _LOCAL_PEERCRED, 76)[:8])[1])


def user_name(uid: int | None = None) -> str:
    """Return the name of a user, of this process's user where no number is given; the number if it has no name."""
    uid = os.getuid() if uid is None else uid
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
