"""Locks on files. The system frees a lock when the process that holds it ends, however it ends."""

import fcntl


def try_lock(fd: int, how: int = fcntl.LOCK_EX) -> bool:
    """Lock the file of a descriptor and return True; return False if a lock of another process is in the way.

    Args:
        how: `fcntl.LOCK_EX`, or `fcntl.LOCK_SH`.
    """
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
