"""The bundle that workers get: the manifest's text, the options given with it, the files that it names, and its check.

A worker uses the check of the submitter, because only workers with the same version and operations get the run, and
the digest proves the bundle. If the check would make the bundle too large, each worker checks again. The bundle does
not say where a token is, because each worker has its own sources. Source: interface.md §4 (store).
"""

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from bulk.bundle.checked import SUMMARY, Checked, spool_path
from bulk.bundle.duplicate_reads import COPIES
from bulk.bundle.index import INDEX
from bulk.bundle.item_secrets import places_in, secrets_in
from bulk.capabilities import HoldsSecrets, file_fields
from bulk.engine.origin import MANIFEST, Origin
from bulk.errors import UsageError
from bulk.execute.job_streams import JobStreams
from bulk.items.sources import STDIN
from bulk.ledger.directory import ORIGIN
from bulk.manifest.derived_jobs import paths_of
from bulk.manifest.manifest import Job, Manifest
from bulk.manifest.reading import Overrides, read_manifest
from bulk.redaction import redact
from bulk.schedule.queues import all_of
from bulk.storage.private_files import write_whole
from bulk.store.bundles import MOST_BYTES, is_inside

FILES = "files"
"""The folder in the bundle with the files that a manifest names, at their paths below the manifest's folder."""


def refuse_what_stays_here(manifest: Manifest, option: str = "--store") -> None:
    """Refuse a manifest with a job that a worker could not do, or with a secret.

    Args:
        option: the option that the user gave, for messages.

    Raises:
        UsageError: the manifest has such a job, or holds a secret; the message names it and the way out.
    """
    for job in manifest.jobs:
        why = _why_not(job, is_in_waves=bool(manifest.limits.waves))
        if why:
            raise UsageError(f"{option}: jobs.{job.name}: {why}; run it without {option}")
    if redact(manifest.text) != manifest.text:
        raise UsageError(f"{option}: the manifest holds a secret, which must not stand in a store; name a file with it")


def _why_not(job: Job, *, is_in_waves: bool) -> str:
    if job.items_path == STDIN:
        return "items from standard input are on this machine alone; write them into a file"
    named = job.derivation.fields if job.derivation is not None else {}
    also = job.derivation.also if job.derivation is not None else ()
    if any(any(paths_of(named[field], also)) for field in file_fields(job.operation) if field in named):
        return "which files its items name is known only when they are made, so that no worker would have them"
    if job.by_key:
        return "needs by key hold within one process; need whole jobs (needs: [JOB])"
    if is_in_waves and job.derivation is not None and not job.operation.is_read:
        return "with limits.waves it can't be made from results, because one worker would do all of it at once"
    if isinstance(job.operation, HoldsSecrets) and job.derivation is not None:
        return "its items may hold secrets, and nobody knows before they are made"
    return ""


def names_secrets(checked: Checked, workspace: Path, option: str) -> bool:
    """Return whether items name secrets, which each worker must have; reads the items of operations that hold secrets.

    Raises:
        UsageError: an item holds a secret itself.
    """
    found, streams = False, JobStreams(checked, workspace)
    try:
        for job in checked.manifest.jobs:
            if not isinstance(job.operation, HoldsSecrets) or job.derivation is not None:
                continue
            for entry in all_of(streams.stream(job.number)):
                if secrets_in(entry.item, job.operation):
                    raise UsageError(
                        f"{option}: jobs.{job.name}: item {entry.index} holds a secret, which must not stand in a "
                        "store: write env:NAME or file:NAME, which workers find below their --secrets"
                    )
                found = found or bool(places_in(entry.item, job.operation))
    finally:
        streams.close()
    return found


@contextlib.contextmanager
def packed(
    checked: Checked, origin: Origin, workspace: Path, *, is_alone: bool = False
) -> Iterator[tuple[Path, Sequence[str]]]:
    """Yield a folder, and the names of the files in it that make the bundle; `workspace` has the files of the check.

    Args:
        is_alone: whether all workers are on this machine, so that they use the submitter's sources of tokens.

    Raises:
        UsageError: an items file lies outside of the manifest's folder.
    """
    manifest = checked.manifest
    folder = manifest.path.resolve().parent
    names = {f"{FILES}/{name}" for name in _items_files(manifest, folder)}
    names |= {f"{FILES}/{name}" for name in _content_files(workspace)}
    names |= {f"{FILES}/{name}" for name in _files_of_made_items(manifest, folder)}
    own = msgspec.structs.replace(origin, credentials=origin.credentials if is_alone else {}, cache=None)
    for name, data in ((MANIFEST, manifest.text.encode()), (ORIGIN, own.text())):
        write_whole(workspace / name, data)
    link = workspace / FILES
    link.symlink_to(folder, target_is_directory=True)
    names |= {MANIFEST, ORIGIN}
    check = _check_files(manifest, workspace)
    if sum((workspace / name).stat().st_size for name in names | check) <= MOST_BYTES:
        names |= check
    try:
        yield workspace, sorted(names)
    finally:
        link.unlink()


def _check_files(manifest: Manifest, workspace: Path) -> set[str]:
    """Return the names of the files that the check has made."""
    spooled = {spool_path(job, workspace).name for job in manifest.jobs}
    return {name for name in (SUMMARY, INDEX, COPIES, *spooled) if (workspace / name).is_file()}


def _items_files(manifest: Manifest, folder: Path) -> Iterator[str]:
    for job in manifest.jobs:
        if job.items_path is None:
            continue
        path = job.items_path
        found = path if path.is_relative_to(folder) else path.resolve()
        if not found.is_relative_to(folder):
            raise UsageError(
                f"jobs.{job.name}: with several workers its items file must lie below the manifest's folder, {folder}"
            )
        yield str(found.relative_to(folder))


def _content_files(workspace: Path) -> list[str]:
    """Return the names of the files that items name, as the check has found them."""
    path = workspace / INDEX
    if not path.is_file():
        return []
    with contextlib.closing(sqlite3.connect(path.absolute().as_uri() + "?mode=ro&immutable=1", uri=True)) as database:
        return [name for (name,) in database.execute("SELECT name FROM files")]


def _files_of_made_items(manifest: Manifest, folder: Path) -> Iterator[str]:
    """Yield the names of the files that derived items will name. A missing file is left out, and its items fail."""
    for job in manifest.jobs:
        if job.derivation is not None:
            given = {**job.defaults, **job.derivation.fields}
            names = [str(given[field]) for field in file_fields(job.operation) if given.get(field)]
            yield from (name for name in names if is_inside(name) and (folder / name).is_file())


def unpacked(workspace: Path, credentials: Mapping[str, str]) -> tuple[Manifest, Origin]:
    """Return the manifest that was downloaded into `workspace`, with the worker's credentials (name -> source) alone.

    Raises:
        UsageError: the manifest uses a credential that the worker does not have.
        BulkError: the manifest can't be read.
    """
    origin = Origin.load(workspace)
    given = Overrides(credentials=dict(credentials))
    files = workspace / FILES
    files.mkdir(mode=0o700, exist_ok=True)
    manifest = read_manifest(files / MANIFEST, origin.overrides(given), {}, text_at=workspace / MANIFEST)
    missing = sorted({job.credential for job in manifest.jobs} - set(credentials))
    if missing:
        names = ", ".join(missing)
        raise UsageError(f"the run uses credentials that this worker does not have ({names}): --credential NAME=SOURCE")
    return manifest, origin
