"""The identity of a run, to which its ledger and a live plan are pinned."""

import contextlib
import hashlib
from pathlib import Path

from bulk.bundle.checked import Checked, JobCheck
from bulk.bundle.index import INDEX, SCHEMA, opened
from bulk.ledger.opening import UNKNOWN
from bulk.ledger.records import RunIdentity
from bulk.manifest.manifest import Manifest

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


def identity_before_check(manifest: Manifest) -> RunIdentity:
    """Return the identity of the run of a manifest whose items were not read yet: their digest is `UNKNOWN`."""
    return identity_of(Checked(manifest, tuple(JobCheck(items=0) for _ in manifest.jobs), (), UNKNOWN))


def files_digest(workspace: Path) -> str:
    """Return SHA-256 (hex) over the files that items name, as the check in `workspace` has read them; blocks."""
    digest = hashlib.sha256()
    with contextlib.closing(opened(workspace / INDEX, SCHEMA)) as index:
        for name, found in index.execute("SELECT name, digest FROM files ORDER BY name"):
            digest.update(len(name.encode()).to_bytes(8, "big") + name.encode() + found)
    return digest.hexdigest()
