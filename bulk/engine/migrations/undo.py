"""Writes a manifest that takes a run back: `bulk undo RUN -o FILE`.

It is an ordinary manifest, to be read, checked, planned and run as any other. Its jobs stand in reverse order and need
each other the other way round, and in each job the last item comes first. Each item says what the run has left, so that
a value that another user has changed since is a conflict and stays. Items that can't be taken back are listed in a file
beside the manifest, with the reason. Bytes of files are read now, from the commits before those of the run.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from bulk.engine.migrations import undo_items
from bulk.engine.migrations.file_bytes import READS, READS_ELSEWHERE, Reading, section_of
from bulk.engine.migrations.gathered_items import UNREAD, GatheredItems, Line, Part
from bulk.engine.migrations.undo_items import Taken
from bulk.engine.origin import manifest_of
from bulk.engine.surroundings import Surroundings
from bulk.errors import RunDirectoryError, UsageError
from bulk.ledger.companion_files import refuse_changed_parts
from bulk.ledger.directory import is_held
from bulk.ledger.view import LedgerView
from bulk.manifest.manifest import Manifest
from bulk.manifest.reading import Overrides
from bulk.manifest.settings import gentle_section
from bulk.manifest.variables import escaped
from bulk.redaction import redact
from bulk.status import Display, Working, silently
from bulk.storage.disk_threads import beside
from bulk.storage.private_files import try_replacing, write_whole
from bulk.undo import FileBefore, Irreversible

BYTES_GONE = "its bytes could not be read: {why} (neither at the commit before its write nor in a file that was equal)"
NO_COMMIT = "no answer has named the commit before it, where its bytes are: the file was the blob {blob}"
_OTHER_BYTES = "they are others there"

REMOVED = "a later item removed it, and it does not come back"
COMES_ANEW = "a later item removed it, and it comes back under another number, as it was then"


class UndoSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What `bulk undo` has written.

    Attributes:
        manifest: the file, or None where there is nothing to take back.
        list: the file with what does not come back, or None where all does.
        items: items that take something back (count); jobs: the jobs that they stand in.
        partly: items of which something is lost (count); irreversible: items that can't be taken back.
    """

    manifest: str | None
    list: str | None
    items: int
    jobs: int
    partly: int
    irreversible: int


async def write_undo(
    run_dir: Path,
    out: Path,
    *,
    overrides: Overrides,
    display: Display,
    environ: Mapping[str, str],
    working: Working = silently,
    surroundings: Surroundings | None = None,
) -> UndoSummary:
    """Write a manifest that takes the run in `run_dir` back, and the files that belong to the manifest.

    Args:
        out: the manifest's file; `NAME.d/` beside it gets its items and the bytes of files, `NAME.txt` what is lost.

    Raises:
        UsageError: one of these files exists already.
        BulkError: the run can't be read or is under way, or bytes of files can't be read from the platform.
    """
    around = surroundings or Surroundings(handles_signals=True)
    if is_held(run_dir):
        raise RunDirectoryError(f"{run_dir} is in use: wait until the run has ended, or stop it with `bulk stop`")
    with working(f"reading {run_dir}") as tell:
        view = LedgerView(run_dir)
        refuse_changed_parts(run_dir)
        view.refuse_edited()
        manifest = manifest_of(view, overrides, environ, needs_items=False)
        writing = _Writing(manifest, out)
        try:
            writing.refuse_existing()
        except OSError as error:
            raise _unwritable(error, out) from None
        await beside(around.disk, lambda: writing.gather(view, tell))
    programs = manifest.path.resolve().parent
    limits = gentle_section(manifest.limits)
    reading = Reading(manifest.platform, limits, programs, writing.folder, display, environ, around)
    there = await reading.read(READS, writing.files())
    elsewhere = await beside(around.disk, lambda: writing.elsewhere(there))
    if elsewhere:
        there = {**there, **await reading.read(READS_ELSEWHERE, elsewhere)}
    with working(f"writing {out}"):
        return await beside(around.disk, lambda: writing.finish(there, reading.failures))


@dataclass(slots=True)
class _Writing:
    """Writes the manifest and the files beside it.

    Attributes:
        names: by the names that items taken back later use, in lower case, the present names of the same owners.
        anew: lanes of things that come back under another number. gone: those of them that the run had made itself.
        removed: lanes of things that the run has removed for good.
        dated: by histories of files, the file of the earliest known commit.
        told_anew: for each earlier change of a thing that comes back anew, its lanes and the line that tells of it.
    """

    manifest: Manifest
    out: Path
    wanted: dict[str, tuple[str, FileBefore]] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    anew: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    dated: dict[str, FileBefore] = field(default_factory=dict)
    told_anew: list[tuple[frozenset[str], str]] = field(default_factory=list)
    gathered: GatheredItems = field(init=False)

    @property
    def folder(self) -> Path:
        return self.out.with_name(f"{self.out.stem}.d")

    @property
    def list_path(self) -> Path:
        return self.out.with_name(f"{self.out.stem}.txt")

    @property
    def _is_begun(self) -> bool:
        """Whether the folder is there and empty, as a call leaves it that was killed before it wrote anything."""
        return self.folder.is_dir() and not self.folder.is_symlink() and not any(self.folder.iterdir())

    def refuse_existing(self) -> None:
        if self.out.name in ("", "..") or self.out.is_dir():
            raise UsageError(f"{self.out} is a folder; name the file to write with -o, such as undo.yaml")
        if self.out in (self.folder, self.list_path):
            raise UsageError(
                f"{self.out} is where what belongs to the manifest is written; name it {self.out.stem}.yaml"
            )
        goes_on = any(self.folder.glob(f"*{UNREAD}"))  # an earlier call could not read or write all
        for path in (self.out,) if goes_on else (self.out, self.folder, self.list_path):
            if (path.exists() or path.is_symlink()) and not (path == self.folder and self._is_begun):
                raise UsageError(f"{path} exists already; name another file with -o, or move it away")

    def gather(self, view: LedgerView, tell: Callable[[int], None]) -> None:
        """Write the items of each job, before it is known whether the bytes of their files can be read."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            try_replacing(self.out)
            self.gathered = GatheredItems(self.folder)
            with self.gathered:
                for job in reversed(self.manifest.jobs):
                    for taken in undo_items.of_job(view, job):
                        self._add(taken)
                        tell(self.gathered.count)
            for credential, file in self.gathered.files():
                if file.is_dated:
                    self.wanted[file.blob_sha] = credential, file
                else:
                    self.wanted.setdefault(file.blob_sha, (credential, file))
        except OSError as error:
            raise _unwritable(error, self.folder) from None

    def _add(self, taken: Taken) -> None:
        if isinstance(taken.way, Irreversible):
            self.lost.append(_told(taken, taken.way.why))
            if taken.way.removes:
                self.removed.update(taken.lanes)
            return
        if not self.removed.isdisjoint(taken.lanes):
            self.lost.append(_told(taken, REMOVED))
            return
        if not self.anew.isdisjoint(taken.lanes):
            self.told_anew.append((taken.lanes, _told(taken, COMES_ANEW)))
            return
        if taken.removes and taken.removes <= self.anew:
            self.gone.update(taken.removes)  # the run has made and removed the thing
            return
        if taken.way.comes_anew:
            self.anew.update(taken.lanes)
        more: Line = {"about": _told(taken, "")}
        way = taken.way
        if way.comes_anew:
            more["anew"] = sorted(taken.lanes)
        if way.renamed is not None:
            former, name = way.renamed
            self.names[former.casefold()] = self.names.get(name.casefold(), name)
        if way.file is not None:
            file = self._readable(way.file)
            if file.is_dated:
                self.dated[file.history] = file
            way = msgspec.structs.replace(way, file=file)
        self.gathered.add(taken, way, more)

    def _readable(self, file: FileBefore) -> FileBefore:
        """Return where the bytes of a file can be read now: the owner may bear another name until it is taken back."""
        owner = str(file.item[file.owner_field])
        name = self.names.get(owner.casefold(), owner)
        return msgspec.structs.replace(file, item={**file.item, file.owner_field: name})

    def files(self) -> dict[str, list[FileBefore]]:
        """Return the files whose bytes are needed, by credential; one of several files with equal bytes."""
        files: dict[str, list[FileBefore]] = {}
        for credential, file in self.wanted.values():
            files.setdefault(credential, []).extend(self._dated(file))
        return files

    def _dated(self, file: FileBefore) -> Iterator[FileBefore]:
        """Yield a file with the commit at which it is read, if one is known: that of another file with its history may
        be the right one."""
        other = file if file.is_dated else self.dated.get(file.history)
        if other is not None:
            yield msgspec.structs.replace(file, item={**other.item, **file.item})

    def elsewhere(self, there: Mapping[str, str]) -> dict[str, list[FileBefore]]:
        """Return all other files with bytes that are not in `there`, by credential: only the first file may be gone."""
        files: dict[str, list[FileBefore]] = {}
        for credential, file in self.gathered.files() if len(there) < len(self.wanted) else ():
            if file.blob_sha not in there and (credential, file) != self.wanted[file.blob_sha]:
                files.setdefault(credential, []).extend(self._dated(file))
        return files

    def finish(self, there: Mapping[str, str], failures: Mapping[str, str]) -> UndoSummary:
        """Write the manifest and the list of losses, without the items whose bytes are not in `there`; `failures` says
        why not."""
        try:
            self.lost += [told for lanes, told in self.told_anew if not self.gone.issuperset(lanes)]
            for part in self.gathered.parts:
                self._finish_part(part, there, failures)
            parts = [part for part in self._ordered() if part.items]
            told = [*_section("What does not come back", self.lost), *_section("What comes back in part", self.kept)]
            if told:
                _write(self.list_path, redact("\n".join(told)) + "\n")
            if parts:
                _write(self.out, escaped("".join(self._manifest_lines(parts))))
            self.gathered.remove()  # as long as these files are there, the same command goes on
            if not parts and not any(self.folder.iterdir()):
                self.folder.rmdir()
        except OSError as error:
            self.list_path.unlink(missing_ok=True)
            raise _unwritable(error, self.out) from None
        return UndoSummary(
            manifest=str(self.out) if parts else None,
            list=str(self.list_path) if told else None,
            items=sum(part.items for part in parts),
            jobs=len(parts),
            partly=len(self.kept),
            irreversible=len(self.lost),
        )

    def _finish_part(self, part: Part, there: Mapping[str, str], failures: Mapping[str, str]) -> None:
        path = self.folder / f"{part.name}.jsonl"
        with path.open("wb") as out:
            for found in self.gathered.lines(part):
                if self.gone.issuperset(found.get("anew") or ("",)):
                    part.items -= 1
                    continue
                if "file" in found:
                    file = found["file"][1]
                    if file["blob_sha"] not in there:
                        is_known = file["is_dated"] or file["history"] in self.dated
                        why = BYTES_GONE.format(why=failures.get(file["blob_sha"], _OTHER_BYTES))
                        self.lost.append(
                            found["about"] + (why if is_known else NO_COMMIT.format(blob=file["blob_sha"]))
                        )
                        part.items -= 1
                        continue
                    found["item"][file["field"]] = f"{self.folder.name}/{there[file['blob_sha']]}"
                if found["loses"]:
                    self.kept.append(f"{found['about']}without {found['loses']}")
                out.write(msgspec.json.encode(found["item"]) + b"\n")
        if not part.items:
            path.unlink()

    def _ordered(self) -> Iterator[Part]:
        for job in reversed(self.manifest.jobs):
            yield from (part for part in self.gathered.parts if part.job is job)

    def _manifest_lines(self, parts: list[Part]) -> Iterator[str]:
        yield f"# Takes back the run {json.dumps(self.manifest.name)}: read it, then `bulk plan` and `bulk run` it.\n"
        yield f"version: 1\nname: {json.dumps('undo-' + self.manifest.name)}\n"
        programs = self.manifest.path.resolve().parent
        platform = section_of(self.manifest.platform, None if programs == self.out.resolve().parent else programs)
        yield f"platform: {json.dumps(platform)}\n"
        if limits := gentle_section(self.manifest.limits):
            yield f"limits: {json.dumps(limits)}\n"
        yield "jobs:\n"
        needed_by: dict[str, list[str]] = {}
        for job in self.manifest.jobs:
            for need in (*job.needs, *(job.derivation.needs if job.derivation is not None else ())):
                needed_by.setdefault(need, []).append(job.name)
        for part in parts:
            later = set(_closed(part.job.name, needed_by))
            needs = [other.name for other in parts if other.job.name in later]
            yield f"  {json.dumps(part.name)}:\n    operation: {part.operation}\n"
            yield f"    credential: {json.dumps(part.job.credential)}\n"
            if needs:
                yield f"    needs: {json.dumps(needs)}\n    needs_policy: any-outcome\n"
            yield "    allow_overwrites: true\n"
            yield f"    items: {json.dumps(f'{self.folder.name}/{part.name}.jsonl')}\n"


def _closed(name: str, needed_by: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the jobs that need the job `name`, directly or through other jobs."""
    seen, rest = set[str](), [name]
    while rest:
        for other in needed_by.get(rest.pop(), ()):
            if other not in seen:
                seen.add(other)
                rest.append(other)
                yield other


def _told(taken: Taken, why: str) -> str:
    return f"{taken.job.name} #{taken.index} {taken.label}: {why}"


def _section(head: str, lines: list[str]) -> list[str]:
    return [f"{head} ({len(lines):,}):", *(f"  {line}" for line in lines)] if lines else []


def _write(path: Path, text: str) -> None:
    write_whole(path, text.encode())


def _unwritable(error: OSError, path: Path) -> UsageError:
    return UsageError(
        f"{error.filename or path} can't be written: {error.strerror}; the same command goes on after that is mended"
    )
