"""The folder of an audit: its nights, and which process works on it.

    audits/NAME/runs/RUN/            run directories
                tables/TABLE/RUN.parquet, changes/RUN.parquet, violations/RUN.parquet
                judged/RUN.json      what the night found, for the next one
                baseline/RUN.db      what each item was when it was last read
                pages/RUN.html       the audit page
                notified/            who was told, made before anything is sent
                audit.json           the nights; renaming it makes a night count
                audit.lock           held while an audit runs; the kernel frees it when its process ends

Every other file is written beside its place and renamed, so that after a crash the same command goes on at the first
step whose file is not there.
"""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from bulk.clock import iso_utc
from bulk.errors import UNDECODABLE, RunDirectoryError
from bulk.items.lines import SourceFlaw
from bulk.items.sources import open_source
from bulk.ledger.directory import new_below, unusable
from bulk.storage.foreign_names import OF_FILE_SYSTEM, foreign_names
from bulk.storage.locks import try_lock
from bulk.storage.private_files import open_private, write_whole

NAME, LOCK = "audit.json", "audit.lock"
RUNS, TABLES, CHANGES, VIOLATIONS, JUDGED = "runs", "tables", "changes", "violations", "judged"
BASELINES, PAGES, NOTIFIED = "baseline", "pages", "notified"
_OWN = frozenset((NAME, LOCK, RUNS, TABLES, CHANGES, VIOLATIONS, JUDGED, BASELINES, PAGES, NOTIFIED))
VERSION = 1

WITNESSES = 4
"""How many of the newest nights have to say that a table is old before it goes (count): one clock may be wrong."""

_ANOTHER = "bulk audit MANIFEST --history NEW"
"""The way out, for commands that have no `--history`."""

_RUN = re.compile(r".+-\d{8}T\d{6}(-\d+)?")
"""Names that `new_below` gives; anything else among the run directories is not part of the history."""


class Night(msgspec.Struct, frozen=True, kw_only=True):
    """One night that counts.

    Attributes:
        run: name of its run directory and of its files.
        at: when its run began (RFC 3339).
        is_good: whether the night was compared and judged; otherwise it was given up, and `why` says the reason.
        exit_code: exit code of the audit. items, units: items read, and requests spent of the budget (counts).
        drift, changes: items that changed, and fields that changed. new, known, fixed, unknown, waived: violations
            (counts).
        verdict: `drift` where an item changed, `violation` where a policy is violated, and `unknown` where an item that
            could be read before can't be read.
        is_blind: whether no item at all could be read.
    """

    run: str
    at: str
    is_good: bool = True
    why: str = ""
    exit_code: int = 0
    items: int = 0
    failed: int = 0
    units: int = 0
    drift: int = 0
    changes: int = 0
    lost_sight: int = 0
    new: int = 0
    known: int = 0
    fixed: int = 0
    unknown: int = 0
    waived: int = 0
    verdict: tuple[str, ...] = ()
    is_blind: bool = False


class _Index(msgspec.Struct, frozen=True, kw_only=True):
    version: int = VERSION
    name: str
    manifest: str = ""
    base_url: str = ""
    nights: tuple[Night, ...] = ()


class History:
    """The nights of one audit, in `path`."""

    def __init__(self, path: Path, name: str, manifest: Path | None = None, base_url: str = "") -> None:
        """Read the nights.

        Args:
            manifest: the manifest of the night that begins; a manifest that was moved or edited keeps its nights.
            base_url: the platform of that night.

        Raises:
            RunDirectoryError: the folder can't be read, has lost its index, or is of a newer version, of another audit,
                of another platform, or of another manifest of the same name that is still there.
        """
        index = _index(path / NAME, name)
        self.path, self.name, self.nights = path, name, index.nights
        self._manifest, self._base_url = index.manifest, base_url or index.base_url
        if not (path / NAME).exists():
            self._refuse_lost()
        if base_url and index.base_url not in ("", base_url):
            raise RunDirectoryError(
                f"{path} is the history of {index.base_url}, and what is at {base_url} can't be compared with it: name "
                f"another --history; if it is the same platform at a new address, write that into {path / NAME}"
            )
        if manifest is not None:
            self._manifest = str(manifest.absolute())  # as it was named: a link may lead elsewhere tomorrow
            if index.manifest not in ("", self._manifest):
                _refuse_second(path, Path(index.manifest), manifest, name)

    @classmethod
    def open(cls, path: Path) -> "History":
        """Return the history in `path`, of whatever audit.

        Raises:
            RunDirectoryError: `path` is not the history of an audit.
        """
        if not (path / NAME).is_file():
            raise RunDirectoryError(f"{path} is not the history of an audit: it has no {NAME}")
        return cls(path, "")

    @staticmethod
    def owns(path: Path, file: Path) -> bool:
        """Return whether `file` is, or would be, one of the files of the history in `path`."""
        try:
            first = file.resolve().relative_to(path.resolve()).parts[:1]
        except ValueError:
            return False
        return not first or first[0] in _OWN

    def good(self) -> list[Night]:
        """Return the nights that were compared, oldest first."""
        return [night for night in self.nights if night.is_good]

    def pending(self) -> list[Path]:
        """Return run directories of nights that don't count yet, oldest first."""
        known = {night.run for night in self.nights}
        return [path for path in self._run_dirs() if path.name not in known]

    def new_run_dir(self, at: float) -> Path:
        """Make the run directory of a new night; `at`: UTC epoch seconds."""
        try:
            return new_below(self.path / RUNS, self.name, at)
        except OSError as error:
            raise unusable(self.path, error, "name another --history") from error

    def place(self, kind: str, run: str, suffix: str) -> Path:
        """Return the path of a file of a night; its folder is made."""
        folder = self.path / kind
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{run}{suffix}"

    def commit(self, night: Night) -> None:
        """Make a night count.

        Raises:
            RunDirectoryError: the disk is full.
        """
        nights = (*(each for each in self.nights if each.run != night.run), night)
        self._write(nights)

    def prune(self, keep_runs: int, keep_tables_s: float, now: float) -> None:
        """Remove run directories and tables that are older than what is kept; the last good night always stays.

        A table is older if the newest `WITNESSES` nights say so, too: while the clock is wrong for a night, none goes.
        """
        good = [night.run for night in self.good()]
        kept = {*good[-1:], *(night.run for night in self.nights[-keep_runs:])}
        for night in self.nights:
            if night.run not in kept:
                shutil.rmtree(self.path / RUNS / night.run, ignore_errors=True)
        moments = [now, *(datetime.fromisoformat(night.at).timestamp() for night in self.nights[-WITNESSES:])]
        oldest = iso_utc(min(moments) - keep_tables_s)
        gone = {night.run for night in self.nights if night.at < oldest and night.run not in good[-1:]}
        folders = [*(self.path / TABLES).glob("*/"), *(self.path / kind for kind in (CHANGES, VIOLATIONS, PAGES))]
        for folder in folders:
            for run in gone:
                for path in folder.glob(f"{run}.*"):
                    path.unlink(missing_ok=True)
        for kind, stays in ((BASELINES, {*good[-2:]}), (JUDGED, {*good[-2:], *kept})):
            for path in (self.path / kind).glob("*"):
                if path.stem not in stays:
                    path.unlink(missing_ok=True)
        if gone:
            self._write(tuple(night for night in self.nights if night.run not in gone))

    def _run_dirs(self) -> list[Path]:
        folder = self.path / RUNS
        found = sorted(folder.iterdir()) if folder.is_dir() else []
        return [path for path in found if _RUN.fullmatch(path.name) and path.is_dir()]

    def _refuse_lost(self) -> None:
        """Refuse a history of several nights that has no index: the nights would be given up, as if not counted."""
        runs = {path.name for path in self._run_dirs()} | {path.stem for path in (self.path / JUDGED).glob("*.json")}
        if len(runs) > 1:
            raise RunDirectoryError(
                f"{self.path} has files of {len(runs)} nights and no {NAME}, which says which of them count: restore "
                "it from a copy, or name another --history"
            )

    def _write(self, nights: tuple[Night, ...]) -> None:
        index = _Index(name=self.name, manifest=self._manifest, base_url=self._base_url, nights=nights)
        try:
            write_whole(self.path / NAME, msgspec.json.format(msgspec.json.encode(index), indent=1) + b"\n")
        except OSError as error:
            raise RunDirectoryError(f"{self.path / NAME}: {error.strerror}") from error
        self.nights = nights


def _index(path: Path, name: str) -> _Index:
    try:
        with open_source(path) as file:
            index = msgspec.json.decode(file.read(), type=_Index)
    except SourceFlaw as flaw:
        if isinstance(flaw.__cause__, FileNotFoundError) and not path.is_symlink():
            return _Index(name=name)
        raise RunDirectoryError(f"{path}: {flaw}") from flaw
    except OSError as error:
        raise RunDirectoryError(f"{path} can't be read: {error.strerror}") from error
    except UNDECODABLE as error:
        raise RunDirectoryError(
            f"{path} is damaged: {error}; restore a copy, or begin another history: {_ANOTHER}"
        ) from error
    if index.version != VERSION:
        raise RunDirectoryError(f"{path} is of version {index.version}, of a newer Bulk; this one reads {VERSION}")
    if name and index.name != name:
        raise RunDirectoryError(f"{path.parent} is the history of {index.name}, not of {name}: name another --history")
    return index


def _refuse_second(path: Path, first: Path, second: Path, name: str) -> None:
    """Refuse a manifest that has the name of another one that is still there: one would be compared with the other."""
    with contextlib.suppress(OSError, ValueError):  # the first one has moved, or can't be seen from here
        if not first.samefile(second):
            raise RunDirectoryError(
                f"{path} is the history of {first}, and {second} is another manifest with the name {name}: give it "
                "another name or another --history; if it takes the place of the first one, remove that"
            )


@contextlib.contextmanager
def holding(path: Path, *, waits: bool = False) -> Iterator[bool]:
    """Hold the lock of a history; yield False where another process holds it.

    Args:
        waits: wait until that process has ended.

    Raises:
        RunDirectoryError: the folder can't be written, or is something else than a history.
    """
    try:
        if not (path / NAME).is_symlink() and not (path / NAME).exists():
            _refuse_foreign(path)
        path.mkdir(parents=True, exist_ok=True)
        descriptor = open_private(path / LOCK, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise unusable(path, error, "name another --history") from error
    try:
        if waits:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield waits or try_lock(descriptor)
    finally:
        os.close(descriptor)


def _refuse_foreign(path: Path) -> None:
    """Refuse a folder with files of somebody else, and without an index: an audit removes what is old there."""
    foreign = foreign_names(path, (*_OWN, f"{NAME}.part", *OF_FILE_SYSTEM))
    if foreign:
        raise RunDirectoryError(
            f"{path} is not the history of an audit: it holds {foreign} and no {NAME}; "
            "name an empty or a new folder with --history"
        )
