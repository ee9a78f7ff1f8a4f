"""The identity of a run, to which its ledger and a live plan are pinned."""

import contextlib
import hashlib
from pathlib import Path

import msgspec

from bulk.bundle.checked import Checked, JobCheck, SourceCheck, digest_over, source_path
from bulk.bundle.index import INDEX, SCHEMA, opened
from bulk.items.lines import SourceFlaw
from bulk.items.sources import STDIN, digest_of
from bulk.ledger.opening import UNKNOWN
from bulk.ledger.records import RunIdentity
from bulk.manifest.manifest import Job, Manifest

UNKNOWN_ITEMS = -1
"""Stands in the ledger for the items of a job (count) until they are known, because they are made from results."""


def identity_of(checked: Checked) -> RunIdentity:
    """Return the identity of the run of a checked manifest."""
    manifest = checked.manifest
    return RunIdentity(
        name=manifest.name,
        base_url=manifest.platform.base_url,
        vendor=manifest.platform.vendor,
        manifest_digest=manifest.digest,
        items_digest=checked.digest,
        jobs=tuple(
            (job.name, job.operation.name, found.items if job.derivation is None else UNKNOWN_ITEMS)
            for job, found in zip(manifest.jobs, checked.jobs, strict=True)
        ),
    )


def identity_before_check(manifest: Manifest, workspace: Path) -> RunIdentity:
    """Return the identity of the run of a manifest that is about to be checked in `workspace`; blocks.

    The digest of its items is `UNKNOWN` where they come from standard input or can't be read.
    """
    jobs = [JobCheck(items=0, source=_source_before_check(job, workspace)) for job in manifest.jobs]
    found = identity_of(Checked(manifest, tuple(jobs), (), digest_over(jobs)))
    is_known = all(job.source is None or job.source.sha256 for job in jobs)
    return found if is_known else msgspec.structs.replace(found, items_digest=UNKNOWN)


def _source_before_check(job: Job, workspace: Path) -> SourceCheck | None:
    """Return the items file of a job as it is now, with an empty hash where that can't be told; None: they are
    inline."""
    path = source_path(job, workspace)
    if path is None:
        return None
    size, mtime_ns, digest = 0, 0, ""
    if job.items_path != STDIN:
        with contextlib.suppress(OSError, SourceFlaw):  # the check tells of it
            size, mtime_ns, digest = digest_of(path)
    return SourceCheck(str(path), size, mtime_ns, digest)


def files_digest(workspace: Path) -> str:
    """Return SHA-256 (hex) over the files that items name, as the check in `workspace` has read them; blocks."""
    digest = hashlib.sha256()
    with contextlib.closing(opened(workspace / INDEX, SCHEMA)) as index:
        for name, found in index.execute("SELECT name, digest FROM files ORDER BY name"):
            digest.update(len(name.encode()).to_bytes(8, "big") + name.encode() + found)
    return digest.hexdigest()
