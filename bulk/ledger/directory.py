"""The run directory as a place: made and kept private, refused if it is foreign, held by one process at a time.

A claim is taken before anything is written into the directory, so that a second process never disturbs the first and no
foreign directory is ever touched. Source: interface.md §5; failures.md rows 45, 46, 64.
"""

import contextlib
import errno
import fcntl
import itertools
import os
import re
import shlex
import socket
import stat
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NoReturn

import msgspec

from bulk.clock import iso_utc
from bulk.errors import ANOTHER_RUN, UNDECODABLE, BulkError, RunDirectoryError, RunStopped
from bulk.ledger.database import LEDGER, refuse_foreign
from bulk.ledger.saved_files import SAVED
from bulk.storage.foreign_names import foreign_names
from bulk.storage.locks import try_lock
from bulk.storage.private_files import (
    DIRECTORY_MODE,
    FILE_MODE,
    open_private,
    open_regular,
    remove_left,
    sync_directory,
)

RUNS = Path("runs")
"""The folder of runs for which no directory was named."""
LOCK = "run.lock"
RESULTS = "results.jsonl"
ORIGIN = "origin.json"

BEFORE_LEDGER = (
    "manifest.yaml*",
    f"{ORIGIN}*",
    "plan.json*",
    "control.sock",
    "index.db*",
    "copies.db*",
    "check.json*",
    "stdin-*.jsonl*",
    "items-*.jsonl*",
    LOCK,
    "ledger.db.new*",
)
"""Names of files that a run makes before its ledger exists: a run that was stopped that early starts again."""

LOOKS_MOST = 500
"""How often a lock is tried that other processes hold for a moment, to look whether it is held (count)."""

FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
"""Errors that say that the disk, the quota or the limit for files is used up."""


def safe_name(name: str) -> str:
    """Return a name of a run as the name of a folder."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run"


def names_at(name: str, at: float) -> Iterator[str]:
    """Yield names for a run that begins at `at` (UTC epoch seconds), each for where those before are taken: NAME-TIME,
    NAME-TIME-2 and so on. The time is UTC, so that runs sort by time.
    """
    first = f"{name}-{iso_utc(at)[:19].replace('-', '').replace(':', '')}"
    yield first
    yield from (f"{first}-{number}" for number in itertools.count(2))


def new_below(folder: Path, name: str, at: float) -> Path:
    """Make a new run directory in `folder`, which is made where it is not there; `name`, `at`: see `names_at`.

    Raises:
        OSError: it can't be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = map(folder.joinpath, names_at(safe_name(name), at))
    while True:
        path = next(paths)
        with contextlib.suppress(FileExistsError):  # another run was started in the same second
            path.mkdir(mode=DIRECTORY_MODE)
            return path


class Holder(msgspec.Struct, frozen=True):
    """The process that holds a run directory, as its lock file names it."""

    pid: int
    host: str


class Claim:
    """A run directory that this process holds until `release`. A context manager.

    Attributes:
        path: of the directory.
        is_new: whether the directory was made for this claim.
        fd: descriptor of the directory, for names that must not be reached through links.
    """

    def __init__(self, path: Path, fd: int, lock_fd: int, *, is_new: bool = False) -> None:
        self.path, self.fd, self.is_new = path, fd, is_new
        self._lock_fd = lock_fd

    @classmethod
    def take(cls, run_dir: Path) -> "Claim":
        """Make the directory if there is none, and hold it.

        Raises:
            RunDirectoryError: the directory is foreign, in use (names pid and host), newer, or can't be written.
            RunStopped: the disk is full.
        """
        with refusing(run_dir), contextlib.ExitStack() as undo:
            is_new = _make(run_dir)
            _refuse_foreign(run_dir)
            fd = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            claim = cls(run_dir, fd, -1, is_new=is_new)
            undo.callback(claim.release)
            claim._lock_fd = _lock(run_dir, claim.fd)
            _make_private(run_dir)
            for part in filter(Path.is_file, run_dir.glob("*.part")):  # of a file that a killed process was writing
                remove_left(part)
            undo.pop_all()
            return claim

    @property
    def has_ledger(self) -> bool:
        """Whether a run was begun here."""
        return (self.path / LEDGER).exists()

    def undo(self) -> None:
        """Remove the files that a run made before its ledger, because the run can't begin, and the directory if it is
        new. Where there is a ledger, everything stays.
        """
        if self.has_ledger:
            return
        with contextlib.suppress(OSError):
            for path in self.path.iterdir():
                if any(fnmatch(path.name, pattern) for pattern in BEFORE_LEDGER):
                    path.unlink()
            if self.is_new:
                self.path.rmdir()

    def release(self) -> None:
        """Let the next process in; may be called twice."""
        if self._lock_fd >= 0:
            with contextlib.suppress(OSError):  # a failing disk: the next process writes its own name anyway
                os.ftruncate(self._lock_fd, 0)
            os.close(self._lock_fd)
        if self.fd >= 0:
            os.close(self.fd)
        self._lock_fd = self.fd = -1

    def __enter__(self) -> "Claim":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@contextlib.contextmanager
def refusing(path: Path, way_out: str = ANOTHER_RUN) -> Iterator[None]:
    """Turn errors of the system into errors for the user, while the run directory is made or opened."""
    try:
        yield
    except OSError as error:
        raise unusable(path, error, way_out) from error


def unusable(path: Path, error: OSError, way_out: str = ANOTHER_RUN) -> BulkError:
    """Return the error to raise when the run directory, or another folder, can't be opened or made."""
    reason = error.strerror or str(error)
    if error.errno in FULL:
        return RunStopped(f"{path}: {reason}; free some space, then give the same command again")
    if error.errno == errno.ELOOP:
        reason = "there is a symbolic link where a file of the run belongs; remove the link"
    named = Path(error.filename or path)
    is_in_it = (
        str(named) == named.name != path.name and named not in path.parents
    )  # its name was opened in the directory
    where = path / named if is_in_it else named
    return RunDirectoryError(f"{where} can't be used: {reason}; correct that, or {way_out}")


def read_holder(run_dir: Path) -> Holder | None:
    """Return the process that the lock file names; None where it names none.

    A process that was killed stays named: `is_held` tells whether one is still there.
    """
    try:
        fd = open_regular(run_dir / LOCK)
    except OSError:
        return None
    try:
        return msgspec.json.decode(os.read(fd, 4096), type=Holder)
    except (OSError, *UNDECODABLE):
        return None
    finally:
        os.close(fd)


def is_held(run_dir: Path) -> bool:
    """Return whether a process of this machine holds the directory; exact, however the last process ended."""
    try:
        fd = open_regular(run_dir / LOCK)
    except OSError:
        return False
    try:
        return not try_lock(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


def no_ledger(run_dir: Path, error: OSError) -> RunDirectoryError:
    """Return the error for a directory whose ledger can't be opened: it says what is there instead, and the way out."""
    if isinstance(error, PermissionError) or (run_dir / LEDGER).exists():
        return RunDirectoryError(f"{run_dir} is not a run directory: {LEDGER} can't be read: {error.strerror}")
    if (run_dir / ORIGIN).is_file():
        return not_begun(run_dir)
    there = f"it has no {LEDGER}" if run_dir.is_dir() else "it is a file"
    there = there if run_dir.exists() else "there is no such folder"
    return RunDirectoryError(f"{run_dir} is not a run directory: {there}; `bulk runs` lists the runs below a folder")


def not_begun(run_dir: Path) -> RunDirectoryError:
    """Return the error for a run without a ledger: its check goes on, or was stopped."""
    if is_held(run_dir):
        return RunDirectoryError(
            f"{run_dir} has not begun: its items are being checked; `bulk watch {quoted(run_dir)}` shows how far"
        )
    return RunDirectoryError(
        f"{run_dir} has not begun: it ended while it was checked; to begin it: {resuming(run_dir)}"
    )


def resuming(run_dir: Path) -> str:
    """Return the command that goes on with a run that has work left, ready for a shell."""
    return f"bulk resume {quoted(run_dir)}"


def quoted(run_dir: Path) -> str:
    """Return the run directory as a word of a command, ready for a shell."""
    place = str(run_dir)
    return shlex.quote(f"./{place}" if place.startswith("-") else place)


def _make(run_dir: Path) -> bool:
    """Make the directory if there is none; return whether it had to be made."""
    if run_dir.is_dir():
        return False
    run_dir.parent.mkdir(parents=True, exist_ok=True)
    run_dir.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    run_dir.chmod(DIRECTORY_MODE)
    with contextlib.suppress(PermissionError):  # a parent whose names may be used and not listed
        sync_directory(run_dir.parent)
    return True


def _refuse_foreign(run_dir: Path) -> None:
    if (run_dir / LEDGER).is_symlink() or (run_dir / LEDGER).exists():
        refuse_foreign(run_dir / LEDGER)
        return
    foreign = foreign_names(run_dir, BEFORE_LEDGER)
    if foreign:
        raise RunDirectoryError(f"{run_dir} is not a run directory: it holds {foreign} and no {LEDGER}; {ANOTHER_RUN}")


def _lock(run_dir: Path, fd: int) -> int:
    lock_fd = open_private(LOCK, os.O_RDWR | os.O_CREAT, fd)
    try:
        for _ in range(LOOKS_MOST):
            if try_lock(lock_fd, fcntl.LOCK_EX):
                break
            if not try_lock(lock_fd, fcntl.LOCK_SH):
                _refuse_held(run_dir)
            fcntl.flock(lock_fd, fcntl.LOCK_UN)  # other processes only look whether it is held
        else:
            _refuse_held(run_dir)
        name = msgspec.json.encode(Holder(os.getpid(), socket.gethostname()))
        os.pwrite(lock_fd, name, 0)
        os.ftruncate(lock_fd, len(name))
    except BaseException:
        os.close(lock_fd)
        raise
    return lock_fd


def _refuse_held(run_dir: Path) -> NoReturn:
    holder = read_holder(run_dir)
    who = f"process {holder.pid} on {holder.host}" if holder else "another process"
    raise RunDirectoryError(f"{run_dir} is in use by {who}; wait until it has ended, or {ANOTHER_RUN}")


def _make_private(run_dir: Path) -> None:
    # Below `saved` nothing is looked at: a closed directory closes all that it holds.
    if stat.S_IMODE(run_dir.stat().st_mode) & 0o077:
        run_dir.chmod(DIRECTORY_MODE)
    with os.scandir(run_dir) as entries:
        for entry in entries:
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode) and entry.name in (LEDGER, LOCK, RESULTS, SAVED):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), entry.path)
            if stat.S_IMODE(mode) & 0o077 and not stat.S_ISLNK(mode):
                Path(entry.path).chmod(DIRECTORY_MODE if stat.S_ISDIR(mode) else FILE_MODE)
