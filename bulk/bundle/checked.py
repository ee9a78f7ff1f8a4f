"""The findings of a check, as data: handed on to every later stage, and kept as `check.json` for a resume.

The check counts as long as manifest and items are unchanged: judged by size and time of each items file, and by its
hash where the time differs. Source: interface.md §5, failures.md row 55.
"""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bulk.bundle.duplicate_reads import COPIES
from bulk.bundle.index import INDEX
from bulk.capabilities import file_fields
from bulk.errors import ANOTHER_RUN, UNDECODABLE, RunDirectoryError, UsageError
from bulk.items.lines import SourceFlaw
from bulk.items.sources import STDIN, digest_of, format_of
from bulk.manifest.manifest import Job, Manifest
from bulk.redaction import redact_json
from bulk.storage.private_files import read_regular, write_whole

SUMMARY = "check.json"
_FORM = 5

MOST_MARKS = 2_048
"""Most marks kept of one items file: a resume reads at most the 2,048th part of it, or 256 KiB, to find an item."""


class SourceCheck(msgspec.Struct, frozen=True):
    """An items file as it was checked.

    Attributes:
        size: bytes. mtime_ns: time of its last change. sha256: hex, of the file as it is on disk.
        marks: (index of an item, offset of its line or of blank lines before it) for some items, in order; none where
            an item can't be read again from its offset.
    """

    size: int
    mtime_ns: int
    sha256: str
    marks: tuple[tuple[int, int], ...] = ()


class Marks:
    """Marks of a source, gathered while it is read: at most `MOST_MARKS`, evenly spread, whatever its size."""

    def __init__(self) -> None:
        self._marks: list[tuple[int, int]] = []
        self._every = 1
        self._passed = 0

    def add(self, index: int, offset: int) -> None:
        """Note that a batch begins at that item and offset; the mark may be dropped later."""
        if self._passed % self._every == 0:
            self._marks.append((index, offset))
            if len(self._marks) > MOST_MARKS:
                self._marks = self._marks[::2]
                self._every *= 2
        self._passed += 1

    @property
    def kept(self) -> tuple[tuple[int, int], ...]:
        """The marks that were not dropped."""
        return tuple(self._marks)


class JobCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it was checked.

    Attributes:
        items: items of the job (count), no more than `--limit`.
        lanes: lanes whose first item belongs to the job (count); 0 for reads.
        longest_lane: (name, items) of the longest of these lanes, items of later jobs counted in.
        superseded: items that are not sent, because a later item takes their place (count).
        copies: items that are not sent, because an earlier item asks for the same; they get its outcome (count).
        joined: items that share the request of an item before them (count).
        least_requests, most_requests: requests of all items together, when no answer is lost (count).
        source: the items file; None for inline items.
    """

    items: int
    lanes: int = 0
    longest_lane: tuple[str, int] | None = None
    superseded: int = 0
    copies: int = 0
    joined: int = 0
    least_requests: int = 0
    most_requests: int = 0
    source: SourceCheck | None = None

    @property
    def sent(self) -> int:
        """Items, or groups of joined items, for which requests are sent (count)."""
        return self.items - self.superseded - self.copies - self.joined

    @property
    def is_laned(self) -> bool:
        """Whether an item of the job may have to wait for another one: not each item has a lane of its own."""
        return self.longest_lane is None or self.longest_lane[1] > 1 or self.lanes != self.items


@dataclass(frozen=True, slots=True)
class Checked:
    """A manifest whose every item was found to be usable.

    Attributes:
        jobs: one for each job of the manifest, in the same order.
        notes: sentences that the user should read and that do not stop the run.
        digest: SHA-256 (hex) over the hashes of the items files: with `manifest.digest` the identity of a run.
    """

    manifest: Manifest
    jobs: tuple[JobCheck, ...]
    notes: tuple[str, ...]
    digest: str


class _Summary(msgspec.Struct, frozen=True, kw_only=True):
    form: int
    manifest: str
    limit: int | None
    jobs: tuple[JobCheck, ...]
    notes: tuple[str, ...]
    digest: str


def source_path(job: Job, workspace: Path) -> Path | None:
    """Return the file of the items of `job`: its items file, or the copy of standard input; None: they are inline."""
    return workspace / f"stdin-{job.name}.jsonl" if job.items_path == STDIN else job.items_path


def refuse_standard_input(manifest: Manifest, what: str) -> None:
    """Refuse a manifest with items from standard input, which can be read only once. `what`: what can't be done with
    them.

    Raises:
        UsageError: the manifest has such items.
    """
    for job in manifest.jobs:
        if job.items_path == STDIN:
            raise UsageError(f"{job.name}: items from standard input can't be {what}: put them into a file")


def is_spooled(job: Job) -> bool:
    """Return whether the items file of a job can't be read at an offset. The items that a job that writes needs again
    are then copied to a spool."""
    return job.items_path is not None and format_of(job.items_path) != ("jsonl", "")


def spool_path(job: Job, workspace: Path) -> Path:
    """Return the path of the spool, which keeps the items of such a job as JSON lines."""
    return workspace / f"items-{job.name}.jsonl"


def derived_path(job: Job, workspace: Path) -> Path:
    """Return the path of the derived items of a job, which are made from another job's results: one JSON line each."""
    return workspace / f"from-{job.name}.jsonl"


def index_name(job: Job) -> str:
    """Return the name of the index that has the items of `job`; derived items have an index of their own."""
    return f"from-{job.name}.db" if job.derivation is not None else INDEX


def needs_index(manifest: Manifest) -> bool:
    """Return whether there is an `index.db`: for items that write or wait, and for files that items name."""
    return any(is_indexed(job) or file_fields(job.operation) for job in manifest.jobs)


def is_indexed(job: Job) -> bool:
    """Return whether the index has each item of `job`, because items write or wait for others."""
    return not job.operation.is_read or bool(job.by_key)


def changed(path: Path | None) -> RunDirectoryError:
    """Return the error for a source that is no longer as it was checked."""
    return RunDirectoryError(f"{path} was edited while it was in use; undo that, or {ANOTHER_RUN}")


def refuse_change(fd: int, source: SourceCheck | None, path: Path | None) -> None:
    """Check that the open file has the size and time that it had when it was checked.

    Raises:
        RunDirectoryError: size or time differ.
    """
    status = os.fstat(fd)
    if source is not None and (status.st_size, status.st_mtime_ns) != (source.size, source.mtime_ns):
        raise changed(path)


def digest_over(jobs: Iterable[JobCheck]) -> str:
    """Return `Checked.digest` of these jobs."""
    found = hashlib.sha256()
    for job in jobs:
        found.update((job.source.sha256 if job.source else "-").encode() + b"\n")
    return found.hexdigest()


def keep(checked: Checked, workspace: Path) -> None:
    """Write `check.json`, whole or not at all."""
    summary = _Summary(
        form=_FORM,
        manifest=checked.manifest.digest,
        limit=checked.manifest.limit,
        jobs=checked.jobs,
        notes=checked.notes,
        digest=checked.digest,
    )
    write_whole(workspace / SUMMARY, redact_json(msgspec.json.encode(summary)) + b"\n")


def load_checked(manifest: Manifest, workspace: Path, fresh: Path | None = None) -> Checked | None:
    """Return the check of an earlier process in this workspace, if it still holds; None: check again.

    Args:
        fresh: the folder that gets `check.json` anew where an items file has another time; None: the workspace.

    Raises:
        RunDirectoryError: manifest or items have changed since.
    """
    summary = _summary(workspace)
    if summary is None:
        return None
    if summary.manifest != manifest.digest or len(summary.jobs) != len(manifest.jobs):
        raise RunDirectoryError(
            f"{workspace} belongs to another manifest, to other variables or jobs, or {manifest.path} was edited "
            f"since; undo that, or {ANOTHER_RUN}"
        )
    needed = {INDEX: needs_index(manifest), COPIES: any(job.copies for job in summary.jobs)}
    if summary.limit != manifest.limit or not all((workspace / name).is_file() for name in needed if needed[name]):
        return None
    jobs = tuple(
        _current(found, source_path(job, workspace), workspace)
        for job, found in zip(manifest.jobs, summary.jobs, strict=True)
    )
    checked = Checked(manifest, jobs, summary.notes, summary.digest)
    if jobs != summary.jobs:
        keep(checked, fresh or workspace)
    return checked


def refuse_edited(checked: Checked, workspace: Path) -> None:
    """Refuse items files whose content is not what an earlier check in this workspace has read.

    Raises:
        RunDirectoryError: a file was edited since.
    """
    summary = _summary(workspace)
    if summary is None or summary.manifest != checked.manifest.digest:
        return
    for job, before, now in zip(checked.manifest.jobs, summary.jobs, checked.jobs, strict=True):
        if before.source is not None and now.source is not None and before.source.sha256 != now.source.sha256:
            raise _edited(source_path(job, workspace), workspace)


def _summary(workspace: Path) -> _Summary | None:
    """Return the content of `check.json`; None: there is none that this version can read."""
    try:
        summary = msgspec.json.decode(read_regular(workspace / SUMMARY), type=_Summary)
    except (OSError, *UNDECODABLE):
        return None
    return summary if summary.form == _FORM else None


def _edited(path: Path | None, workspace: Path) -> RunDirectoryError:
    return RunDirectoryError(f"{path} was edited since the run in {workspace} began; undo that, or {ANOTHER_RUN}")


def _current(found: JobCheck, path: Path | None, workspace: Path) -> JobCheck:
    """Return `found` with the size and time that its source has now; its content is the same."""
    if found.source is None or path is None:
        return found
    try:
        status = path.stat()
        if (status.st_size, status.st_mtime_ns) == (found.source.size, found.source.mtime_ns):
            return found
        size, mtime_ns, digest = digest_of(path)
    except OSError as error:
        raise RunDirectoryError(f"{path}: its items are needed to go on: {error.strerror}") from error
    except SourceFlaw as flaw:
        raise RunDirectoryError(f"{path}: its items are needed to go on: {flaw}") from flaw
    if digest != found.source.sha256:
        raise _edited(path, workspace)
    source = msgspec.structs.replace(found.source, size=size, mtime_ns=mtime_ns)
    return msgspec.structs.replace(found, source=source)
