"""The items of a run that have ended: pages of items, with filter and search, and one whole item.

Blocking, and read only. A page begins after a key, never at a page number, so that the last page costs as much as the
first.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from bulk.clock import Clock
from bulk.errors import UNDECODABLE
from bulk.ledger.database import MOST_NUMBER, Index
from bulk.ledger.view import CUT_BYTES, Cut, LedgerView
from bulk.report.tally import label_of_redacted
from bulk.report.tally_rows import LineError
from bulk.serve.run_data import Place, RunData
from bulk.serve.search_index import SearchIndex, Wanted, place_of, searched_text
from bulk.storage.private_files import open_private
from bulk.storage.scratch import scratch_folder

PAGE = 100
MOST_LABEL, MOST_MESSAGE = 300, 500
MOST_ITEM_BYTES = 1024 * 1024
"""A longer line is shown without its result."""
GROW_S, FIND_S = 0.1, 0.1
"""How long one answer indexes new results, and how long it searches (seconds); the page asks again for the rest."""
MOST_LOOKS = 20
LOOKED_AT, MOST_LOOKED_AT = 2_000, 128_000
"""Number of items in which one statement looks for matches of a filter, at first and at most (count)."""
SCANNED = 2_000
"""Most items that one statement reads where there is no index (count)."""
_RESULT = b',"result":'
_INDEX_NAME = re.compile(r"[0-9a-f]{32}")
"""The names of the folders of indexes; no other folder is ever removed."""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter of items; empty: any. `text` is searched for in labels, ids, request ids, codes and messages."""

    job: str = ""
    outcome: str = ""
    code: str = ""
    text: str = ""


class ItemRow(msgspec.Struct, frozen=True, kw_only=True):
    """An item in a list."""

    job: str
    index: int
    id: str | None
    label: str
    outcome: str
    code: str
    message: str
    http_status: int | None
    attempts: int
    started_at: str
    elapsed_ms: float
    request_id: str | None


class ItemsPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of items.

    Attributes:
        next: the key after which the next page begins; empty where there is no next page.
        indexed: the share of the results that can be searched by now (0.0 to 1.0); None without a search.
        count: how many items fit the filter, where the ledger counts them; None with a search.
    """

    rows: list[ItemRow]
    next: str
    indexed: float | None
    count: int | None


class _Head(msgspec.Struct):
    """A line without its result."""

    job: str
    index: Index
    outcome: str
    id: str | None = None
    item: msgspec.Raw = msgspec.Raw(b"{}")
    http_status: int | None = None
    attempts: int = 0
    started_at: str = ""
    elapsed_ms: float = 0.0
    request_id: str | None = None
    error: LineError | None = None


_decode = msgspec.json.Decoder(_Head).decode
_fields = msgspec.json.Decoder(dict[str, Any]).decode


class Items:
    """The items of all runs of the fleet.

    Args:
        cache: the folder for the indexes; one process at a time uses it, another process has a folder of its own.
    """

    def __init__(self, cache: Path, clock: Clock) -> None:
        self._clock = clock
        self._stack = contextlib.ExitStack()
        self._folder = self._held(cache)
        self._indexes: dict[Path, tuple[SearchIndex, threading.Lock]] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Unlock the folder of the indexes."""
        self._stack.close()

    def page(self, view: RunData, wanted: Filter, after: str) -> ItemsPage:
        """Return the page that comes after `after` (`ItemsPage.next`; empty: the first page).

        Raises:
            RunDirectoryError: the run can't be read. ValueError: `after` is not the `next` of a page.
        """
        names = [job[0] for job in view.identity().jobs]
        if wanted.text:
            if isinstance(view, LedgerView):
                return self._searched(view, wanted, int(after or 0), names)
            return self._scanned(view, wanted, _key(after), names)
        sums = _sums(view, wanted, names)
        found, more = self._filtered(view, wanted, _key(after), sums)
        rows = [_row(each, names) for each in found]
        behind = f"{more[0]}:{more[1]}" if more else ""
        return ItemsPage(rows=rows, next=behind, indexed=None, count=sum(sums.values()))

    def _filtered(
        self, view: RunData, wanted: Filter, after: Place, sums: Mapping[int, int]
    ) -> tuple[list[Cut], Place | None]:
        """Return the items of a page, and the key after which the next page begins.

        The ledger has no index of outcomes: if few items fit the filter, an answer reads as many as there is time for,
        and the next page goes on behind them.
        """
        found: list[Cut] = []
        stops_at, looked_at = self._clock.monotonic() + FIND_S, LOOKED_AT
        for job in (each for each in sorted(sums) if each >= after[0]):
            at, last = max(after, (job, -1)), view.last_index(job)
            while at[1] < last:
                until = (job, min(last, at[1] + looked_at))
                most = PAGE + 1 - len(found)
                found += view.page(at, most, outcome=wanted.outcome, code=wanted.code, until=until)
                if len(found) > PAGE:
                    return found[:PAGE], (found[PAGE - 1].job, found[PAGE - 1].place)
                at, looked_at = until, min(MOST_LOOKED_AT, 2 * looked_at)
                if self._clock.monotonic() > stops_at:
                    return found, at
        return found, None

    def _searched(self, view: LedgerView, wanted: Filter, after: int, names: list[str]) -> ItemsPage:
        index, lock = self._index(view)
        job = names.index(wanted.job) if wanted.job in names else None
        rows, at, until = list[ItemRow](), after, self._clock.monotonic() + FIND_S
        if wanted.job and job is None:
            return ItemsPage(rows=[], next="", indexed=1.0, count=None)
        with lock:
            share = index.grow(GROW_S)
            if share < 1:
                return ItemsPage(rows=[], next="", indexed=share, count=None)
            sought = Wanted(job, wanted.outcome, wanted.code)
            for _ in range(MOST_LOOKS):
                left_s = until - self._clock.monotonic()
                found = index.find(wanted.text, sought, at, PAGE - len(rows), max(left_s, 0.01))
                rows += [_row(each, names) for each in view.current(found.hits)]
                at = found.next
                if found.is_complete or len(rows) >= PAGE or left_s <= 0:
                    break
        return ItemsPage(rows=rows, next="" if found.is_complete else str(at), indexed=1.0, count=None)

    def _scanned(self, view: RunData, wanted: Filter, after: tuple[int, int], names: list[str]) -> ItemsPage:
        """Search as `_searched` does, without an index: each answer reads as many items as there is time for."""
        needle, rows, until = wanted.text.lower().encode(), list[ItemRow](), self._clock.monotonic() + FIND_S
        while True:
            found = view.page(after, SCANNED, job=wanted.job, outcome=wanted.outcome, code=wanted.code)
            for cut in found:
                after = (cut.job, cut.place)
                if needle in searched_text(cut.line):
                    rows.append(_row(cut, names))
                    if len(rows) >= PAGE:
                        return ItemsPage(rows=rows, next=f"{after[0]}:{after[1]}", indexed=1.0, count=None)
            if len(found) < SCANNED:
                return ItemsPage(rows=rows, next="", indexed=1.0, count=None)
            if self._clock.monotonic() > until:
                return ItemsPage(rows=rows, next=f"{after[0]}:{after[1]}", indexed=1.0, count=None)

    def _index(self, view: LedgerView) -> tuple[SearchIndex, threading.Lock]:
        with self._lock:
            if view.run_dir not in self._indexes:
                name = hashlib.sha256(f"{view.run_dir.resolve()}\0{view.began_at()}".encode()).hexdigest()[:32]
                index = SearchIndex(view, self._folder / name, self._clock.monotonic)
                self._indexes[view.run_dir] = index, threading.Lock()
            return self._indexes[view.run_dir]

    def _held(self, cache: Path) -> Path:
        """Return the folder for the indexes, after deleting indexes of runs that are gone.

        While another process has the cache, this is a temporary folder.
        """
        try:
            cache.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd = open_private(cache / "lock", os.O_RDWR | os.O_CREAT)
            self._stack.callback(os.close, fd)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return self._stack.enter_context(scratch_folder("serve"))
        for folder in cache.iterdir():
            place = place_of(folder)
            if _INDEX_NAME.fullmatch(folder.name) and (place is None or not place.is_dir()):
                shutil.rmtree(folder, ignore_errors=True)
        return cache


def _key(after: str) -> tuple[int, int]:
    job, _, index = after.partition(":")
    found = (int(job), int(index)) if after else (-1, -1)
    if max(found) > MOST_NUMBER:
        raise ValueError("no item has that number")
    return found


def item(view: RunData, job: str, index: int) -> bytes | None:
    """Return the line of one item as JSON, without a result that is too long; None where the item has not ended.

    Raises:
        RunDirectoryError: the run can't be read.
    """
    names = [each[0] for each in view.identity().jobs]
    if job not in names:
        return None
    number = names.index(job)
    found = view.page((number, index - 1), 1, job=job)
    if not found or found[0].place != index:
        return None
    if found[0].length > MOST_ITEM_BYTES:
        return _without_result(found[0].line)
    return view.lines_of(number, [index], MOST_ITEM_BYTES)[index]


def _without_result(line: bytes) -> bytes | None:
    end = line.find(_RESULT)
    return line[:end] + b',"result":"(too long for this page)"}' if end > 0 else None


def _sums(view: RunData, wanted: Filter, names: list[str]) -> dict[int, int]:
    """Return job number -> items that fit the filter, apart from its text (count); jobs without any are left out."""
    found = Counter[int]()
    for job, outcome, code, items in view.sums():
        if wanted.job in ("", names[job]) and wanted.outcome in ("", outcome) and wanted.code in ("", code):
            found[job] += items
    return found


def _row(cut: Cut, names: list[str]) -> ItemRow:
    head = _head(cut)
    if head is None:
        return _unread(cut, names)
    error = head.error
    return ItemRow(
        job=head.job,
        index=head.index,
        id=head.id,
        label=label_of_redacted(_fields(head.item))[:MOST_LABEL],
        outcome=head.outcome,
        code=error.code if error is not None else "",
        message=error.message[:MOST_MESSAGE] if error is not None else "",
        http_status=(error.http_status if error is not None else None) or head.http_status,
        attempts=(error.attempts if error is not None else 0) or head.attempts,
        started_at=head.started_at,
        elapsed_ms=head.elapsed_ms,
        request_id=head.request_id,
    )


def _head(cut: Cut) -> _Head | None:
    with contextlib.suppress(*UNDECODABLE):
        return _decode(cut.line)
    end = cut.line.find(_RESULT)
    if end > 0:
        with contextlib.suppress(*UNDECODABLE):
            return _decode(cut.line[:end] + b"}")
    return None


def _unread(cut: Cut, names: list[str]) -> ItemRow:
    return ItemRow(
        job=names[cut.job],
        index=cut.place,
        id=None,
        label=f"(its line of {cut.length:,} bytes is too long for a list)"
        if cut.length > CUT_BYTES
        else "(unreadable)",
        outcome="",
        code="",
        message="",
        http_status=None,
        attempts=0,
        started_at="",
        elapsed_ms=0.0,
        request_id=None,
    )
