"""Reads and checks every item of every job once, before anything is sent; memory does not grow with the items.

On the way it hashes the sources, indexes the items that write (`index.py`), looks at the files that items name
(`item_files.py`) and where results would be saved (`saved_names.py`). Every flaw is found, not just the first.
"""

import contextlib
import errno
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from bulk.bundle import item_secrets
from bulk.bundle.checked import (
    SUMMARY,
    Checked,
    JobCheck,
    Marks,
    SourceCheck,
    digest_over,
    is_indexed,
    keep,
    needs_index,
    source_path,
    spool_path,
)
from bulk.bundle.duplicate_reads import DuplicateFinder, DuplicatesBuilder, has_copies
from bulk.bundle.index import IndexBuilder, JobCounts
from bulk.bundle.item_files import file_check_of
from bulk.capabilities import Combinable, secret_fields
from bulk.check import request_savings
from bulk.check.conflicts import ConflictFinder, Spot, conflicts, decides, notes_on_names, told
from bulk.check.item_keys import KeyFinder, Unmatched
from bulk.check.repeated_ids import IdFinder
from bulk.check.saved_names import SavedPaths, same_file
from bulk.errors import RunDirectoryError, RunStopped
from bulk.flaws import Flaws
from bulk.items import json_text
from bulk.items.decoding import UNREADABLE, ItemReader, line_of
from bulk.items.lines import Bad, Given, Row, SourceFlaw
from bulk.items.sources import STDIN, ItemsFile, keep_stdin
from bulk.manifest import save_template
from bulk.manifest.manifest import Job, Manifest
from bulk.operation import Item, ItemFlaw, Operation
from bulk.storage.private_files import replacing

_TELL_ITEMS = 5_000
_TELL_BATCHES = 16
_INLINE_BATCH = 1_000

_FULL = "the disk is full; free some space, then give the same command again"


def check(
    manifest: Manifest,
    workspace: Path,
    *,
    stdin: BinaryIO | None = None,
    progress: Callable[[int], None] | None = None,
) -> Checked:
    """Check every item, and write `index.db` and `check.json` into `workspace`, an existing private folder.

    Args:
        stdin: the stream for `items: -`, whose content is kept in the workspace.
        progress: called often with the number of items that were read so far.

    Raises:
        ManifestError: items can't be used: up to 50 flaws with file, line and field, and how many more.
        RunStopped: the disk is full.
        RunDirectoryError: the workspace can't be written.
    """
    try:
        with contextlib.ExitStack() as stack:
            return _Checking(manifest, workspace, stdin, progress or (lambda _: None), stack).run()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RunStopped(f"{workspace}: {_FULL}") from error
        raise RunDirectoryError(f"{workspace} can't be written: {error.strerror}") from error
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            raise RunStopped(f"{workspace}: {_FULL}") from error
        raise RunDirectoryError(f"{workspace} can't be written: {error}") from error


class _Checking:
    """One check of all jobs. `stack` closes the files that are opened here."""

    def __init__(
        self,
        manifest: Manifest,
        workspace: Path,
        stdin: BinaryIO | None,
        progress: Callable[[int], None],
        stack: contextlib.ExitStack,
    ) -> None:
        self.manifest, self.workspace, self.stdin = manifest, workspace, stdin
        self.flaws = Flaws()
        self._progress = progress
        self._items = self._told = self._batches = 0
        self.file_notes: list[str] = []
        self.index = stack.enter_context(IndexBuilder(workspace))
        self.saved = stack.enter_context(SavedPaths())
        self.conflict_finder = stack.enter_context(ConflictFinder())
        self.copies = stack.enter_context(DuplicatesBuilder(workspace))
        self.keys = stack.enter_context(KeyFinder(manifest.jobs, manifest.limit))

    def run(self) -> Checked:
        jobs = self.manifest.jobs
        (self.workspace / SUMMARY).unlink(missing_ok=True)
        found = tuple(_JobChecking(self, job).run() for job in jobs)
        self._progress(self._items)
        self._note_collisions()
        self.flaws.raise_if_any()
        self.keys.link(found, self._note_unmatched, self.index)
        self.flaws.raise_if_any()
        self._note_conflicts(Checked(self.manifest, found, (), ""))
        self.flaws.raise_if_any()
        alike = notes_on_names(self.conflict_finder, jobs)
        repeats = self.index.repeats()
        indexed: Mapping[int, JobCounts] = {}
        if needs_index(self.manifest):
            most = {job.number: job.operation.most_combined for job in jobs if isinstance(job.operation, Combinable)}
            indexed = self.index.finish(request_savings.kept_together(jobs), most)
        self.copies.finish()
        counted = tuple(
            request_savings.counted(job, one, indexed.get(job.number, JobCounts()))
            for job, one in zip(jobs, found, strict=True)
        )
        notes = (*self.manifest.notes, *request_savings.notes_on(jobs, counted, repeats), *alike, *self.file_notes)
        checked = Checked(self.manifest, counted, notes, digest_over(counted))
        keep(checked, self.workspace)
        return checked

    def count(self, items: int) -> None:
        """Note that `items` more items were read."""
        self._items += items
        self._batches += 1
        if self._items - self._told >= _TELL_ITEMS or self._batches >= _TELL_BATCHES:
            self._told, self._batches = self._items, 0
            self._progress(self._items)

    def _note_unmatched(self, found: Unmatched) -> None:
        if self.flaws.is_full:
            self.flaws.count_only()
        else:
            place = _place(self.manifest, self.manifest.jobs[found.edge.waiting])
            self.flaws.add(place, found.line, found.field, found.message)

    def _note_collisions(self) -> None:
        jobs = self.manifest.jobs
        for collision in self.saved.collisions():
            job, (earlier, index, _) = jobs[collision.job], collision.earlier
            place = _place(self.manifest, job)
            self.flaws.add(place, collision.line, "save", same_file(_other(job, jobs[earlier], index)))

    def _note_conflicts(self, checked: Checked) -> None:
        jobs = self.manifest.jobs
        for earlier, later, found in conflicts(self.conflict_finder, checked, self.workspace):
            job, other = jobs[later.job], _other(jobs[later.job], jobs[earlier.job], earlier.item)
            self.flaws.add(_place(self.manifest, job), later.line, "", told(found, other))
            if self.flaws.is_full:
                return


def _other(job: Job, earlier: Job, index: int) -> str:
    """Return the words for an item that came before an item of `job`."""
    return f"item {index:,}" if earlier is job else f"item {index:,} of job {earlier.name}"


def _place(manifest: Manifest, job: Job) -> str:
    """Return the file that flaws of a job's items name, as the user would name it: by a path like the manifest's."""
    if job.items_path is None:
        return str(manifest.path)
    if job.items_path == STDIN:
        return "<stdin>"
    folder = manifest.path.parent
    relative = os.path.relpath(job.items_path, folder.absolute())
    return str(job.items_path) if relative.startswith("..") else str(folder / relative)


class _JobChecking:
    """The check of one job. `_count` is how many items were read."""

    def __init__(self, whole: _Checking, job: Job) -> None:
        self._whole, self._job, self._operation = whole, job, job.operation
        self._flaws, self._place = whole.flaws, _place(whole.manifest, job)
        self._reader = ItemReader(job.operation, job.defaults)
        self._count = 0
        self._files = file_check_of(whole.manifest.path.parent, job.operation)
        self._template = save_template.Template(job.save, job.operation) if job.save is not None else None
        self._decides, self._has_keys = decides(job), whole.keys.takes(job)
        self._copies: DuplicateFinder | None = None
        self._ids: IdFinder | None = None
        self._spool: BinaryIO | None = None
        self._spooled_bytes = self._items_with_secrets = 0

    def run(self) -> JobCheck:
        if self._job.derivation is not None:
            return JobCheck(items=0)
        self._flaws.next_job()
        source, copies = None, 0
        with contextlib.ExitStack() as stack:
            if has_copies(self._job):
                self._copies = stack.enter_context(DuplicateFinder(self._whole.workspace))
            self._ids = stack.enter_context(IdFinder(self._whole.workspace))
            if self._job.items is not None:
                self._check_rows(self._inline())
                if not self._job.items and not self._job.allow_empty:
                    self._flaws.add(
                        self._place, self._job.items_line, f"jobs.{self._job.name}.items", _no_items(self._job)
                    )
            else:
                try:
                    source = self._check_source()
                except SourceFlaw as flaw:
                    self._flaws.add(self._place, flaw.line, flaw.field, flaw.message)
            self._ids.note_repeats(self._flaws, self._place)
            if self._files is not None:
                self._whole.file_notes += self._files.notes(self._job.name)
            if self._copies is not None and not len(self._flaws):
                copies = self._whole.copies.add(self._job.number, self._copies)
        return JobCheck(items=self._count, copies=copies, source=source)

    def _check_source(self) -> SourceCheck:
        job, workspace = self._job, self._whole.workspace
        path = source_path(job, workspace)
        assert path is not None, "not inline"
        if job.items_path == STDIN:
            keep_stdin(self._whole.stdin, path)
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(ItemsFile(path, self._operation, defaults=job.defaults))
            if is_indexed(job) and not file.is_plain:
                self._spool = stack.enter_context(replacing(spool_path(job, workspace)))
            marks = Marks() if file.is_plain else None
            self._check_rows(file.rows(), marks)
            digest = file.finish()
        if not self._count and not job.allow_empty:
            self._flaws.add(self._place, 0, "", _no_items(job, file.size))
        return SourceCheck(file.size, file.mtime_ns, digest, marks.kept if marks is not None else ())

    def _inline(self) -> Iterator[list[Row]]:
        items, lines = self._job.items or (), self._job.item_lines
        for start in range(0, len(items), _INLINE_BATCH):
            batch: list[Row] = []
            for number in range(start, min(start + _INLINE_BATCH, len(items))):
                known = lines[number] if number < len(lines) else {"": self._job.line}
                batch.append((known.get("", self._job.line), 0, Given(items[number], known)))
            yield batch

    def _check_rows(self, batches: Iterator[list[Row]], marks: Marks | None = None) -> None:
        for batch in batches:
            before = self._count
            if marks is not None and batch:
                marks.add(before, batch[0][1])
            self._check_batch(batch)
            self._whole.count(self._count - before)
            if self._files is not None and self._files.new:
                self._whole.index.add_files(self._files.new)
                self._files.new.clear()
            if self._count == self._whole.manifest.limit:
                return

    def _check_batch(self, batch: list[Row]) -> None:
        """Check every item in one loop, which leaves out what most items don't need."""
        operation, from_json, limit = self._operation, self._reader.from_json, self._whole.manifest.limit
        check = operation.check if type(operation).check is not Operation.check else None
        has_more = self._files is not None or self._template is not None or is_indexed(self._job) or self._has_keys
        compare = self._copies.add if self._copies is not None else None
        ids = self._ids
        assert ids is not None, "run makes one"
        count = self._count
        for line, offset, data in batch:
            if count == limit:
                break
            if type(data) is bytes:
                try:
                    item = from_json(data)
                except UNREADABLE:
                    if data and not data.isspace():
                        self._explain_json(line, data)
                        count += 1
                    continue
            else:
                given = self._given(line, data)
                if given is None:
                    count += 1
                    continue
                item = given
            is_good = True
            if check is not None:
                for flaw in check(item):
                    self._refuse(line, data, [flaw])
                    is_good = False
            if has_more and is_good:
                self._take(item, count, line, offset, data)
            if compare is not None:
                compare(item, count)
            if item.id is not None:
                ids.add(item.id, count, line)
            count += 1
        self._count = count

    def _given(self, line: int, data: "bytes | Given | Bad") -> Item | None:
        """Return the item in a mapping; None, with its flaws noted, if the mapping is not a valid item."""
        if isinstance(data, Given):
            try:
                return self._reader.from_mapping(data.value)
            except UNREADABLE:
                is_yaml = bool(data.lines)
                flaws = [] if self._flaws.is_full else self._reader.explain(data.value, is_yaml=is_yaml)
                self._refuse(line, data, flaws)
        elif isinstance(data, Bad):
            for at, flaw in data.flaws:
                self._flaws.add(self._place, at, flaw.field, flaw.message)
        return None

    def _take(self, item: Item, count: int, line: int, offset: int, data: "bytes | Given | Bad") -> None:
        """Do what only some operations need: read files, name a place to save to, add a row to the index."""
        whole = self._whole
        if self._files is not None:
            flaws = self._files.flaws(item)
            if flaws:
                self._refuse(line, data, flaws)
        if self._template is not None:
            try:
                whole.saved.add(self._template.fill(item), self._job.number, count, line)
            except save_template.SaveFlaw as error:
                self._refuse(line, data, [ItemFlaw(error.field, str(error))])
        if self._has_keys:
            for field, message in whole.keys.add(self._job, item, count, line):
                self._refuse(line, data, [ItemFlaw(field, message)])
        if is_indexed(self._job) and not len(self._flaws):
            self._index(item, count, line, offset, len(data) if isinstance(data, bytes) else 0)

    def _index(self, item: Item, count: int, line: int, offset: int, size: int) -> None:
        if self._spool is not None:
            text = msgspec.json.encode(item)
            kept = self._without_secrets(item, line, text) if secret_fields(self._operation) else text
            self._spool.write(kept + b"\n")
            offset, size = self._spooled_bytes, len(kept)
            self._spooled_bytes += size + 1
        payload = self._whole.index.add(self._job, item, count, offset, size)
        if self._decides:
            spot = Spot(self._job.number, count, offset, size, line, payload)
            self._whole.conflict_finder.add(self._operation, item, spot)

    def _explain_json(self, line: int, raw: bytes) -> None:
        if self._flaws.is_full:
            self._flaws.count_only()
            return
        for below, flaw in self._reader.explain_json(raw):
            self._flaws.add(self._place, line + below, flaw.field, flaw.message)

    def _refuse(self, line: int, data: "bytes | Given | Bad", flaws: list[ItemFlaw]) -> None:
        """Note flaws of an item that could be decoded, each with the line of its field."""
        if self._flaws.is_full:
            self._flaws.count_only()
            return
        lines: Mapping[str, int] = {}
        if isinstance(data, Given):
            lines = data.lines
        elif isinstance(data, bytes) and b"\n" in data.strip():
            lines = {name: line + below - 1 for name, below in json_text.places(data).items()}
        given = data.value if isinstance(data, Given) else data
        for flaw in self._reader.told(flaws, given):
            self._flaws.add(self._place, line_of(flaw.field, lines, line), flaw.field, flaw.message)

    def _without_secrets(self, item: Item, line: int, text: bytes) -> bytes:
        """Return the JSON of an item for the copy in the workspace, without the secrets."""
        secrets = item_secrets.secrets_in(item, self._operation)
        if not secrets:
            return text
        self._items_with_secrets += 1
        if self._items_with_secrets == item_secrets.MOST_ITEMS + 1:
            most = f"{item_secrets.MOST_ITEMS:,} items"
            message = (
                f"expected env:NAME or file:PATH, or a plain .jsonl file: more than {most} hold secrets themselves"
            )
            self._flaws.add(self._place, line, min(secrets), message)
        return msgspec.json.encode(item_secrets.without(item, secrets))


def _no_items(job: Job, size: int = 0) -> str:
    """Return the flaw of an items file, or of a list in the manifest, that holds no items.

    A pipeline that had nothing to write looks like one that broke.

    Args:
        size: size of the file (bytes).
    """
    what = "holds no items" if size else "is empty"
    if size and job.items_path is not None and job.items_path.suffix == ".csv":
        what = "holds a header and no items"
    return f"{what}: add some, or write allow_empty: true into the job {job.name}, where that is fine"
