"""`saved/`: files that a job's `save` asked for, named after items and so, in part, by the platform.

Whatever its name, a file lands below `saved/`: names become plain components first, and directories are opened one
after the other without following links. A file is complete or not there. Source: interface.md §2; failures.md rows 49,
64, 67.
"""

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Sequence

from bulk.model import BodyFile
from bulk.storage.private_files import DIRECTORY_MODE, open_directory, open_private, write_all

SAVED = "saved"

NAME_BYTES = 255
"""Longest name of a file or directory (bytes of UTF-8); a longer one is cut."""

PARTS_MOST = 1_000
"""Deepest path (names, count); the rest of a deeper path becomes one name."""

TEMPORARY = ".saving"
"""The file being written, in the run directory: one at a time; the next one overwrites what a killed process left."""

_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.IGNORECASE)
_ATTEMPTS = 8  # names tried before a clash of files and directories is given up


def saved_parts(path: str) -> tuple[str, ...]:
    """Return the names, from directory to file, under which `path` is saved below `saved/`.

    `owner/repo.md` stays as it is. What a file system could misread is percent-encoded: `.` and `..`, control
    characters, backslashes, lone surrogates, names of devices, a dot or space at the end. Empty parts go. A name above
    `NAME_BYTES` is cut and told apart by a hash; below `PARTS_MOST` directories the rest becomes one name.
    """
    parts = [part for part in path.split("/") if part] or ["_"]
    if len(parts) > PARTS_MOST:
        parts[PARTS_MOST - 1 :] = ["%2F".join(parts[PARTS_MOST - 1 :])]
    return tuple(_plain_name(part) for part in parts)


def _plain_name(name: str) -> str:
    name = _UNSAFE.sub(lambda found: _percent(found[0]), name)
    if name.strip(".") == "":
        name = name.replace(".", "%2E")
    elif _DEVICE.match(name):
        name = _percent(name[0]) + name[1:]
    elif name[-1] in ". ":
        name = name[:-1] + _percent(name[-1])
    raw = name.encode()
    if len(raw) <= NAME_BYTES:
        return name
    stem, dot, suffix = name.rpartition(".")
    end = f"~{hashlib.sha256(raw).hexdigest()[:16]}{dot}{suffix}" if stem and len(suffix.encode()) <= 16 else ""
    end = end or f"~{hashlib.sha256(raw).hexdigest()[:16]}"
    return raw[: NAME_BYTES - len(end.encode())].decode("utf-8", "ignore") + end


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def save(run_fd: int, files: Iterable[tuple[str, bytes | BodyFile]], moved: set[str] | None = None) -> None:
    """Write files below `saved/` of the run directory that is open as `run_fd`, and make them durable.

    A BodyFile is moved there; its content is durable already.

    An older file of the same name is replaced. Where a directory has the name that a file wants, or the other way round
    (`docs` and `docs/a.md`), the later one gets a `~` at the end of that name.

    Args:
        moved: names of BodyFiles that an earlier try of the same group has moved; those that this one moves are added.

    Raises:
        OSError: the disk refused, or a symbolic link stands where a directory belongs (ELOOP); `filename` names it.
    """
    changed: set[tuple[str, ...]] = set()
    moved = set() if moved is None else moved
    for path, data in files:
        parts = (SAVED, *saved_parts(path))
        if isinstance(data, bytes):
            _write_temporary(run_fd, data)
            _put(run_fd, TEMPORARY, parts, changed)
        else:
            _put(run_fd, data.name if data.name not in moved else None, parts, changed)
            moved.add(data.name)
    for directory in sorted(changed):
        _sync(run_fd, directory)


def _write_temporary(run_fd: int, data: bytes) -> None:
    try:
        fd = open_private(TEMPORARY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, run_fd)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        os.unlink(TEMPORARY, dir_fd=run_fd)
        fd = open_private(TEMPORARY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, run_fd)
    try:
        write_all(fd, data)
        os.fdatasync(fd)
    except BaseException:
        os.unlink(TEMPORARY, dir_fd=run_fd)
        raise
    finally:
        os.close(fd)


def _put(run_fd: int, source: str | None, parts: Sequence[str], changed: set[tuple[str, ...]]) -> None:
    """Move the file `source` to its place (None: it is there); add the directories that must be synced to `changed`."""
    directory = run_fd
    taken: list[str] = []
    try:
        for part in parts[:-1]:
            below, name, is_new = _enter(directory, part, "/".join((*taken, part)))
            if is_new:
                changed.add(tuple(taken))
            if directory != run_fd:
                os.close(directory)
            directory = below
            taken.append(name)
        if source is not None:
            _rename(run_fd, source, directory, parts[-1])
        changed.add(tuple(taken))
    finally:
        if directory != run_fd:
            os.close(directory)


def _enter(directory: int, part: str, shown: str) -> tuple[int, str, bool]:
    """Open the directory `part`, or make it; return its descriptor, its name, and whether it is new."""
    for name in (_marked(part, attempt) for attempt in range(_ATTEMPTS)):
        try:
            try:
                return open_directory(name, directory), name, False
            except FileNotFoundError:
                os.mkdir(name, DIRECTORY_MODE, dir_fd=directory)
                os.chmod(name, DIRECTORY_MODE, dir_fd=directory)
                return open_directory(name, directory), name, True
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            if stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), shown) from None
    raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), shown)


def _rename(run_fd: int, source: str, directory: int, part: str) -> None:
    for attempt in range(_ATTEMPTS):
        try:
            os.rename(source, _marked(part, attempt), src_dir_fd=run_fd, dst_dir_fd=directory)
        except IsADirectoryError:
            continue
        return
    raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), part)


def _marked(part: str, attempt: int) -> str:
    return part.encode()[: NAME_BYTES - attempt].decode("utf-8", "ignore") + "~" * attempt


def _sync(run_fd: int, parts: Sequence[str]) -> None:
    fd = os.dup(run_fd)
    try:
        for part in parts:
            below = open_directory(part, fd)
            os.close(fd)
            fd = below
        os.fsync(fd)
    finally:
        os.close(fd)
