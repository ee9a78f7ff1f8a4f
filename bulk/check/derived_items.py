"""Items made from another job's results: kept as `from-JOB.jsonl`, checked like those of a file, and indexed.

A line is `{"source":12,"item":{…}}`: the index of the item whose result it comes from, and the item that was made. A
line that was written never changes and never moves, because the ledger knows items by their place: items that a
retried source gives later are added at the end. So the file is the same whenever it is made, and after a kill on the
way, the next process makes it again. Source: interface.md §2.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from bulk.bundle.checked import derived_path, index_name
from bulk.bundle.duplicate_reads import DuplicateFinder, DuplicatesBuilder, copies_name, has_copies
from bulk.bundle.index import IndexBuilder
from bulk.bundle.item_files import file_check_of
from bulk.bundle.streams import LaneIndex
from bulk.capabilities import DecidesState, secret_fields
from bulk.check.conflicts import ConflictFinder, Spot, decides, told
from bulk.check.request_savings import kept_together
from bulk.check.saved_names import SavedPaths, same_file
from bulk.items.decoding import UNREADABLE, ItemReader
from bulk.manifest.derived_jobs import mapped
from bulk.manifest.manifest import Entry, Job, Manifest
from bulk.manifest.save_template import SaveFlaw, Template
from bulk.operation import AnyOperation, Item
from bulk.storage.private_files import replacing

_HEAD = b'{"source":%d,"item":'
_PAGE = 500
_SHOWN_FLAWS = 5


def make(
    job: Job,
    manifest: Manifest,
    workspace: Path,
    lines: Iterable[Mapping[str, Any]],
    beside: Mapping[str, Mapping[str, Any]] | None = None,
) -> int:
    """Make the items of `job` and their index, and return how many items there are; blocks.

    Args:
        lines: lines of results of the source job, of its items that succeeded, in the order of its items.
        beside: the one line of results of each job of `also` that has one.

    Raises:
        OSError, sqlite3.Error: the workspace can't be written.
    """
    path = derived_path(job, workspace)
    with replacing(path) as file:
        seen = _copy(path, file)
        for line in lines:
            source = line["index"]
            if seen.has(source):
                continue
            for item in mapped(job.derivation, line, beside) if job.derivation is not None else ():
                merged = {**job.defaults, **item}
                file.write(_HEAD % source + msgspec.json.encode(merged) + b"}\n")
        file.flush()
        file.seek(0)
        with contextlib.ExitStack() as stack:
            items = _Indexing(job, manifest, workspace, stack).run(file)
    return items


class Sources:
    """The items of the source job from which items were made already: one bit each."""

    def __init__(self) -> None:
        self._bits = bytearray()

    def add(self, source: int) -> None:
        """Note that items were made from this source."""
        if source >> 3 >= len(self._bits):
            self._bits.extend(bytes((source >> 3) + 1 - len(self._bits)))
        self._bits[source >> 3] |= 1 << (source & 7)

    def has(self, source: int) -> bool:
        """Return whether `source` was added."""
        return source >> 3 < len(self._bits) and bool(self._bits[source >> 3] & (1 << (source & 7)))


def _copy(path: Path, file: BinaryIO) -> Sources:
    """Copy the lines that an earlier process made, and return their sources."""
    seen = Sources()
    with contextlib.suppress(FileNotFoundError), path.open("rb") as made:
        for line in made:
            seen.add(int(line[len(b'{"source":') : line.index(b",")]))
            file.write(line)
    return seen


class _Indexing:
    """Checks every item, by itself and against those before it, and puts it into the index or notes its flaws."""

    def __init__(self, job: Job, manifest: Manifest, workspace: Path, stack: contextlib.ExitStack) -> None:
        """Prepare the check of items; `stack` closes the files that are opened here."""
        self._job, self._operation, self._limit = job, job.operation, manifest.limit
        self._reader = ItemReader(job.operation, {})
        self._template = Template(job.save, job.operation) if job.save is not None else None
        self._files = file_check_of(manifest.path.parent, job.operation)
        self._index = stack.enter_context(IndexBuilder(workspace, index_name(job)))
        self._saved = stack.enter_context(SavedPaths())
        self._crossings = stack.enter_context(ConflictFinder()) if decides(job) else None
        self._finder = stack.enter_context(DuplicateFinder(workspace)) if has_copies(job) else None
        self._copies = stack.enter_context(DuplicatesBuilder(workspace, copies_name(job)))

    def run(self, file: BinaryIO) -> int:
        """Index the items in `file`, and return how many there are."""
        at = count = 0
        for line in file:
            if count == self._limit:
                break
            start = line.index(b',"item":') + len(b',"item":')
            raw = line[start:-2]
            try:
                item = self._reader.spooled(raw)
                flaws = list(self._flaws(item))
            except UNREADABLE:
                flaws = [f"{flaw.field}: {flaw.message}" for flaw in self._reader.explain(msgspec.json.decode(raw))]
            if flaws:
                more = f"; and {len(flaws) - _SHOWN_FLAWS:,} more" if len(flaws) > _SHOWN_FLAWS else ""
                self._index.add_flaw(count, "; ".join(flaws[:_SHOWN_FLAWS]) + more, _shown(self._operation, raw))
            else:
                self._add(item, count, at + start, len(raw))
            at += len(line)
            count += 1
        if self._files is not None:
            self._index.add_files(self._files.new)
        self._refuse_second(file.fileno())
        if self._finder is not None:
            self._copies.add(self._job.number, self._finder)
        self._copies.finish()
        self._index.finish(kept_together([self._job]))
        return count

    def _flaws(self, item: Item) -> Iterator[str]:
        found = list(self._operation.check(item))
        if self._files is not None:
            found += self._files.flaws(item)
        yield from (f"{flaw.field}: {flaw.message}" for flaw in found)
        if self._template is not None:
            try:
                self._template.fill(item)
            except SaveFlaw as flaw:
                yield f"{flaw.field}: {flaw}"

    def _add(self, item: Item, count: int, at: int, size: int) -> None:
        """Add an item that is good by itself."""
        payload, number = self._index.add(self._job, item, count, at, size), self._job.number
        if self._template is not None:
            self._saved.add(self._template.fill(item), number, count, count)
        if self._crossings is not None:
            self._crossings.add(self._operation, item, Spot(number, count, at, size, count, payload))
        if self._finder is not None:
            self._finder.add(item, count)

    def _refuse_second(self, fd: int) -> None:
        """Take items out of the index that can't be meant beside an earlier one; `fd` is the file with all items."""

        def given(at: int, size: int) -> str:
            return _shown(self._operation, os.pread(fd, size, at))

        for earlier, later in self._crossings.pairs() if self._crossings is not None else ():
            one, other = (self._reader.spooled(os.pread(fd, spot.size, spot.at)) for spot in (earlier, later))
            found = self._operation.conflict(one, other) if isinstance(self._operation, DecidesState) else None
            if found is not None and not (found.may_insist and self._job.allow_overwrites):
                self._index.refuse(later.item, told(found, f"item {earlier.item:,}"), given)
        for collision in self._saved.collisions():
            self._index.refuse(collision.item, f"save: {same_file(f'item {collision.earlier[1]:,}')}", given)


def _shown(operation: AnyOperation, raw: bytes) -> str:
    """Return an item that was made, as results show it."""
    hidden = operation.unreported | {name.partition(".")[0] for name in secret_fields(operation)}
    shown = {name: value for name, value in msgspec.json.decode(raw).items() if name not in hidden}
    return msgspec.json.encode(shown).decode()


class DerivedStream:
    """The items of a job in order, as `EntryStream` gives those of a file; items that can't be used are left out."""

    def __init__(self, index: LaneIndex) -> None:
        self._index, self._after = index, 0

    def take(self, count: int, next_left: Callable[[int], int], *, near: int | None = None) -> list[Entry] | None:
        """Take the next entries as `EntryStream.take` does."""
        found: list[Entry] = []
        pages, wanted = 0, -1
        while len(found) < count:
            rows = self._index.in_order(after=self._after, count=min(_PAGE, count - len(found)))
            if not rows:
                break
            self._after = rows[-1][0]
            for row in rows:
                if row[2] > wanted:
                    wanted = next_left(row[2])
                if row[2] == wanted:
                    found.append(self._index.entry(*row[1:]))
            pages += 1
            if near is not None and pages * _PAGE > near:
                return found or None
        return found
