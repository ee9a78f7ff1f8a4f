"""New files for a user's own folder: all of them arrive, or none. A full disk leaves no half of them behind, and what a
killed process has left goes with the next call, which also ends a move that was under way."""

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_ARRIVING, _WHOLE = ".arriving-", ".arrived-"
"""Beginnings of the names of a folder whose files are being written, and of one with all of them, which are moved."""


@contextlib.contextmanager
def arriving(folder: Path) -> Iterator[Path]:
    """Lend an empty folder; the files that are put into it move to `folder` when the block ends, which is made where it
    is not there; a folder that is new there moves as a whole. If the block raises, nothing of them is left.

    Raises:
        FileExistsError: one of them is there already; nothing is replaced, and none has moved.
        OSError: `folder` can't be written.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    settle(folder)
    part = Path(tempfile.mkdtemp(prefix=_ARRIVING, dir=folder))
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, _held(part))
        try:
            yield part
            for _, place in _moves(part, folder):
                if os.path.lexists(place):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            with contextlib.suppress(OSError):  # somebody else has put something there meanwhile
                for made in missing:
                    made.rmdir()
            raise
        whole = part.rename(part.with_name(part.name.replace(_ARRIVING, _WHOLE, 1)))  # from here on they all arrive
        _move(whole, folder)
        shutil.rmtree(whole, ignore_errors=True)


def _moves(part: Path, folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield what is in `part`, and the place in `folder` for each; of a folder that is there already, what is in it."""
    for each in sorted(part.iterdir()):
        place = folder / each.name
        if each.is_dir() and place.is_dir() and not place.is_symlink():
            yield from _moves(each, place)
        else:
            yield each, place


def _move(part: Path, folder: Path) -> None:
    for file, place in list(_moves(part, folder)):
        if not os.path.lexists(place):
            file.rename(place)


def settle(folder: Path) -> None:
    """End what killed processes have begun in `folder`: all files of a call arrive there, or none. Whoever asks what is
    there before `arriving` does this first."""
    for part in [*folder.glob(f"{_ARRIVING}*"), *folder.glob(f"{_WHOLE}*")]:
        with contextlib.suppress(OSError):  # a process is at work on it, or it is not a folder of this user
            held = _held(part)
            try:
                if part.name.startswith(_WHOLE):
                    _move(part, folder)
                shutil.rmtree(part, ignore_errors=True)
            finally:
                os.close(held)


def _held(part: Path) -> int:
    """Return a descriptor of a folder that holds it locked.

    Raises:
        OSError: another process holds it.
    """
    held = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise
    return held
