"""The histories of audits, and the results of their nights.

A history is found only by its name here: the name of its folder, with the number of the parent folder before it from
the second one on (`2:fleet`). A night is known by the name of its run, which the history lists; so no address of a page
can name a path. Files are read again only when they have changed.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from bulk.audit import history as places
from bulk.audit.history import History
from bulk.audit.policies.judging import PolicyResult
from bulk.audit.result import AuditResult
from bulk.clock import Clock
from bulk.errors import UNDECODABLE, BulkError
from bulk.storage.names import text_of

T = TypeVar("T")

FRESH_S = 2.0
"""How long the list of histories is used before the folders are read again (seconds)."""
MOST_JUDGED_BYTES = 64 * 1024 * 1024
"""The results of a night in a larger file are not read into memory; `bulk sql` shows them (bytes)."""
MOST_KEPT = 400
_PREFIX = "audit:"


class _Policies(msgspec.Struct, frozen=True):
    policies: tuple[PolicyResult, ...] = ()


class _Judged(msgspec.Struct, frozen=True):
    """The sums of the policies from the results of a night; nothing else of the file is decoded."""

    judgement: _Policies = _Policies()


class Audit(msgspec.Struct, frozen=True):
    """One history; `history` is None where it can't be read, and `why` says the reason."""

    name: str
    path: Path
    history: History | None
    why: str = ""

    def run_name(self, run: str) -> str:
        """Return the name that the run of a night has among all runs."""
        return f"{_PREFIX}{self.name}:{run}"


class Histories:
    """The histories below some folders, each of which is a history, or holds histories."""

    def __init__(self, folders: Sequence[Path], clock: Clock) -> None:
        self._folders, self._clock = tuple(folders), clock
        self._kept: OrderedDict[object, tuple[object, object]] = OrderedDict()
        self._found: dict[str, Audit] = {}
        self._looked_at = float("-inf")
        self._lock = threading.RLock()

    def all(self) -> list[Audit]:
        """Return all histories, in the order of their names."""
        with self._lock:
            if self._clock.monotonic() - self._looked_at >= FRESH_S:
                self._found = {audit.name: audit for audit in self._read()}
                self._looked_at = self._clock.monotonic()
            return [self._found[name] for name in sorted(self._found)]

    def find(self, name: str) -> Audit | None:
        """Return the history of that name; None where there is none."""
        return next((audit for audit in self.all() if audit.name == name), None)

    def pending(self) -> Iterator[tuple[str, str, Path]]:
        """Yield the runs of nights that don't count yet: name of the audit, name of the run, run directory."""
        for audit in self.all():
            if audit.history is not None:
                for place in audit.history.pending():
                    yield audit.name, audit.run_name(place.name), place

    def run_dir(self, name: str) -> Path | None:
        """Return the run directory of a night, by the name that its run has here; None where it is not kept."""
        audit, run = self._parted(name)
        if audit is None or audit.history is None:
            return None
        known = {night.run for night in audit.history.nights} | {place.name for place in audit.history.pending()}
        place = audit.path / places.RUNS / run
        return place if run in known and place.is_dir() else None

    def policies(self, audit: Audit, run: str) -> tuple[PolicyResult, ...] | None:
        """Return the sums of a night; None where they are not kept any more."""
        return self.cached(place_of(audit, run), "policies", _policies_of)

    def judged(self, audit: Audit, run: str) -> AuditResult | None:
        """Return the results of a night; None where they are not kept any more, or are too large."""
        path = place_of(audit, run)
        try:
            if path.stat().st_size > MOST_JUDGED_BYTES:
                return None
            return msgspec.json.decode(path.read_bytes(), type=AuditResult)
        except (OSError, *UNDECODABLE):
            return None

    def cached(self, path: Path, what: str, make: Callable[[Path], T]) -> T | None:
        """Return the result of `make` for a file, made anew when the file has changed; None where there is no file."""
        try:
            found = path.stat()
        except OSError:
            return None
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        with self._lock:
            kept = self._kept.get((path, what))
        if kept is not None and kept[0] == stamp:
            return kept[1]  # type: ignore[return-value]
        made = make(path)
        with self._lock:
            self._kept[path, what] = stamp, made
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return made

    def _parted(self, name: str) -> tuple[Audit | None, str]:
        if not name.startswith(_PREFIX):
            return None, ""
        whose, _, run = name.removeprefix(_PREFIX).rpartition(":")
        return self.find(whose), run

    def _read(self) -> Iterator[Audit]:
        for number, folder in enumerate(self._folders, 1):
            for place, why in _below(folder):
                plain = text_of(place.resolve().name)
                name = plain if number == 1 else f"{number}:{plain}"
                if why:
                    yield Audit(name, place, None, why)
                    continue
                try:
                    history = self.cached(place / places.NAME, "history", lambda path: History.open(path.parent))
                except BulkError as error:
                    yield Audit(name, place, None, str(error))
                else:
                    if history is not None:
                        yield Audit(name, place, history)


def _below(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the folders that have a history, and with the reason those of which nobody knows, as they can't be read."""
    try:
        found = [folder, *sorted(folder.iterdir())]
    except FileNotFoundError:
        return  # its first audit has not come yet
    except OSError as error:
        yield folder, f"{folder} can't be read: {error.strerror}"
        return
    for place in found:
        try:
            has_history = (place / places.NAME).is_file()
        except OSError as error:
            yield place, f"{place} can't be read: {error.strerror}"
        else:
            if has_history:
                yield place, ""


def place_of(audit: Audit, run: str) -> Path:
    """Return the path of the file with the results of a night."""
    return audit.path / places.JUDGED / f"{run}.json"


def _policies_of(path: Path) -> tuple[PolicyResult, ...]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Judged).judgement.policies
    except (OSError, *UNDECODABLE):
        return ()
