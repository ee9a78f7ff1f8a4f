"""The small files beside a ledger that later processes rely on: bound to it by their digests.

The parts that the check made can be made again from the manifest and its items, whose own digests are the run's
identity. So a missing part does no harm, except for `plan.json`: without it a run would do what was not approved. A
part that differs from the bound one was edited, or is an older copy or another run's, and is refused. While parts are
being made again the seal says so, so that a process that is killed then leaves nothing that is refused. Source:
interface.md §5; failures.md rows 46, 55.
"""

import contextlib
import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import msgspec

from bulk.errors import ANOTHER_RUN, RunDirectoryError
from bulk.ledger import database, seal
from bulk.ledger.database import LEDGER
from bulk.ledger.directory import refusing
from bulk.storage.private_files import DIRECTORY_MODE, open_regular

STDIN_COPIES = "stdin-*.jsonl"
CHECKED = ("check.json", "index.db", "copies.db", "items-*.jsonl", STDIN_COPIES)
"""Names of the parts that the check makes."""
FRESH = "check.new"
"""The folder in a run directory in which the check makes them again."""
NAMED = ("origin.json", "manifest.yaml", "plan.json")
"""Names of the parts that say where the run came from."""

SMALL_BYTES = 16 * 1024 * 1024
"""A part larger than this is not read again, if its times and place on the disk are those that were bound (bytes)."""


class Part(NamedTuple):
    """A file as it was bound; `changed`: its times and its inode number; `digest`: BLAKE2b, hex."""

    size: int
    changed: str
    digest: str


def refuse_changed_parts(run_dir: Path) -> bool:
    """Compare the parts with the bound ones before any is used; return whether the check must be made again.

    Raises:
        RunDirectoryError: a part was edited, or is not this run's, or can't be read; or the ledger is older than the
            seal. The message says the way out.
    """
    path = run_dir / LEDGER
    if not path.exists():
        return False
    with refusing(run_dir):
        seal.refuse_older(path)
        found = seal.read_seal(run_dir) or seal.Seal(run="", commits=0)
        with database.open_reader(path) as connection:
            known = _known(connection)
        for name, part in known.items():
            is_open = found.is_checking if _is_checked(name) else found.is_naming
            now = None if is_open else _now(run_dir / name, part)
            if now is not None and (now.size, now.digest) != (part.size, part.digest):
                raise RunDirectoryError(_refusal(run_dir / name))
        return found.is_checking


def bound_part(run_dir: Path, name: str) -> tuple[int, str] | None:
    """Return size and digest of a part as it was bound, even if the part is gone; None: it was not bound.

    Raises:
        RunDirectoryError: the ledger can't be read.
    """
    path = run_dir / LEDGER
    if not path.exists():
        return None
    with refusing(run_dir), database.open_reader(path) as connection:
        return bound(connection).get(name)


def _refusal(path: Path) -> str:
    if fnmatch(path.name, "stdin-*"):
        way_out = f"restore it from a copy, or {ANOTHER_RUN}"
    elif path.name == "plan.json":
        way_out = "undo that, or delete it: `bulk run` with the plan's file makes it again"
    elif path.name in NAMED:
        way_out = "undo that, or delete it: `bulk run MANIFEST --run-dir RUN` makes it again"
    else:
        way_out = "undo that, or delete it: the items are then checked again"
    return f"{path} is not what this run has made (it was edited, or is an older copy or another run's); {way_out}"


def note_making(run_dir: Path, *, is_checking: bool = False, is_naming: bool = False) -> None:
    """Note that parts are going to be made again beside an existing ledger: incomplete parts that a killed process
    leaves are then no damage.

    Raises:
        RunDirectoryError, RunStopped: the seal can't be written.
    """
    with refusing(run_dir):
        found = seal.read_seal(run_dir)
        if found is not None:
            checking, naming = found.is_checking or is_checking, found.is_naming or is_naming
            if (checking, naming) != (found.is_checking, found.is_naming):
                seal.write_seal(run_dir, msgspec.structs.replace(found, is_checking=checking, is_naming=naming))


class FreshParts:
    """The parts that the check makes again beside a ledger. They lie in a folder of their own until nothing refuses the
    run any more, so that a refused run leaves its directory as it was. A context manager.

    Attributes:
        folder: where the parts are made: the run directory itself where it has no ledger.
        is_whole: whether the check has made all of its parts, and not `check.json` alone.
    """

    def __init__(self, run_dir: Path) -> None:
        self.folder, self.is_whole, self._run_dir = run_dir, False, run_dir

    def __enter__(self) -> "FreshParts":
        """Make the folder; copies of standard input can be read in it, too.

        Raises:
            RunDirectoryError, RunStopped: the folder can't be made.
        """
        if (self._run_dir / LEDGER).exists():
            with refusing(self._run_dir):
                self.folder = self._run_dir / FRESH
                self._remove()
                self.folder.mkdir(mode=DIRECTORY_MODE)
                for copy in self._run_dir.glob(STDIN_COPIES):
                    (self.folder / copy.name).symlink_to(Path("..") / copy.name)
        return self

    def __exit__(self, *_: object) -> None:
        if self.folder != self._run_dir:
            with contextlib.suppress(OSError):
                self._remove()

    def settle(self) -> None:
        """Let the parts take the places of those that were there before, and remove their folder.

        Raises:
            RunDirectoryError, RunStopped: a part can't be moved.
        """
        if self.folder == self._run_dir:
            return
        with refusing(self._run_dir):
            there = {path.name: path for path in self.folder.iterdir()}
            made = [path for name, path in there.items() if _is_checked(name) and not path.is_symlink()]
            if made:
                note_making(self._run_dir, is_checking=True)
            for name in list(_names(self._run_dir)) if self.is_whole else ():
                if _is_checked(name) and name not in there:
                    (self._run_dir / name).unlink()
            for path in made:
                path.replace(self._run_dir / path.name)
            self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.folder)


def bind(connection: sqlite3.Connection, run_dir: Path) -> None:
    """Bind the parts that are there now as those that the run has made; within a transaction.

    Raises:
        OSError: a part can't be read.
    """
    known = _known(connection)
    rows = [(name, *part) for name in _names(run_dir) if (part := _now(run_dir / name, known.get(name))) is not None]
    connection.execute("DELETE FROM parts")
    connection.executemany("INSERT INTO parts VALUES (?, ?, ?, ?)", rows)


def bound(connection: sqlite3.Connection) -> dict[str, tuple[int, str]]:
    """Return size and digest of each part as it was bound, by name."""
    return {name: (part.size, part.digest) for name, part in _known(connection).items()}


def digest_of(path: Path) -> tuple[int, str] | None:
    """Return size and digest of a part as it is, read to its end; None: there is no such file.

    Raises:
        OSError: the file can't be read.
    """
    part = _now(path, None)
    return None if part is None else (part.size, part.digest)


def _names(run_dir: Path) -> Iterator[str]:
    for name in sorted(path.name for path in run_dir.iterdir()):
        if name in NAMED or _is_checked(name):
            yield name


def _is_checked(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in CHECKED)


def _known(connection: sqlite3.Connection) -> dict[str, Part]:
    if not database.has_table(connection, "parts"):
        return {}
    return {name: Part(*part) for name, *part in connection.execute("SELECT * FROM parts")}


def _now(path: Path, known: Part | None) -> Part | None:
    """Return the part as it is now; None: there is no such file. Of a large part, `known` is returned while size and
    times are the same."""
    try:
        fd = open_regular(path)
    except FileNotFoundError:
        return None
    with open(fd, "rb") as file:
        about = os.fstat(fd)
        changed = f"{about.st_mtime_ns} {about.st_ctime_ns} {about.st_ino}"
        is_still = known is not None and (known.size, known.changed) == (about.st_size, changed)
        if is_still and about.st_size > SMALL_BYTES:
            return known
        digest = hashlib.file_digest(file, "blake2b").hexdigest()
    return Part(about.st_size, changed, digest)
