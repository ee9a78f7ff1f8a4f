"""The bytes that files had before a run, read by an ordinary run of its own: it keeps to limits and can be resumed.

A file whose bytes are not those that git's name for them says is not taken for it.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from bulk.capabilities import FileBefore
from bulk.engine.execution import execute
from bulk.engine.origin import Origin
from bulk.engine.surroundings import Surroundings
from bulk.errors import CredentialRefused, RunStopped
from bulk.exit_codes import COMPLETE, ExitCode
from bulk.manifest.credential_specs import written
from bulk.manifest.manifest import Platform
from bulk.manifest.reading import Overrides, read_manifest
from bulk.manifest.variables import escaped
from bulk.status import Display

READS = "reads"
SAVED = "saved"


async def read_bytes(
    files: Mapping[str, Iterable[FileBefore]],
    platform: Platform,
    programs: Path,
    folder: Path,
    display: Display,
    environ: Mapping[str, str],
    around: Surroundings,
) -> frozenset[str]:
    """Read files into `folder/reads/saved/`, each under its blob's name, and return the names of those that are there.

    Args:
        files: by the name of the credential that they are read with; none twice.
        programs: the folder in which programs that print tokens run.
        folder: where the reads have their run directory: giving the same again goes on with it.

    Raises:
        BulkError: they can't be read now.
    """
    jobs: dict[str, object] = {}
    for credential, wanted in files.items():
        by_operation: dict[str, list[FileBefore]] = {}
        for file in wanted:
            by_operation.setdefault(file.operation, []).append(file)
        for operation, each in by_operation.items():
            name = f"reads-{len(jobs)}"
            items = folder / f"{name}.jsonl"
            with items.open("wb") as out:
                for file in each:
                    out.write(msgspec.json.encode({"id": file.blob_sha, **file.item}) + b"\n")
            jobs[name] = {"operation": operation, "credential": credential, "items": items.name, "save": "{id}"}
    if not jobs:
        return frozenset()
    path = folder / "reads.yaml"
    manifest_text = msgspec.json.encode(
        {"version": 1, "platform": section_of(platform, programs), "jobs": jobs}
    ).decode()
    path.write_text(escaped(manifest_text), encoding="utf-8")
    manifest = read_manifest(path, Overrides(), {})  # where the run was, whatever the environment says
    origin = Origin.of(manifest)
    report = await execute(manifest, origin, folder / READS, display, environ, replace(around, is_steered=False))
    if report.exit_code == ExitCode.CREDENTIAL_REFUSED:
        raise CredentialRefused("default", report.why)
    if report.exit_code not in COMPLETE:
        raise RunStopped(f"the files from before could not all be read: {report.why}; give the same command again")
    names = {file.blob_sha for wanted in files.values() for file in wanted}
    return frozenset(name for name in names if _is_blob(folder / READS / SAVED / name, name))


def section_of(platform: Platform, programs: Path | None) -> dict[str, object]:
    """Return the section `platform` of a manifest that goes where this one does.

    Args:
        programs: the folder in which programs that print tokens run; None: that of the manifest.
    """
    section: dict[str, object] = {
        "base_url": platform.base_url,
        "vendor": platform.vendor,
        "credentials": {name: written(source, programs) for name, source in platform.credentials.items()},
    }
    if platform.api_version is not None:
        section["api_version"] = platform.api_version
    if platform.ca_bundle is not None:
        section["ca_bundle"] = str(platform.ca_bundle)
    if platform.trust_env:
        section["trust_env"] = True
    if platform.base_url.startswith("http:"):
        section["allow_insecure_http"] = True
    return section


def _is_blob(path: Path, name: str) -> bool:
    """Return whether a file has the bytes that git calls so."""
    try:
        size = path.stat().st_size
        sha = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        with path.open("rb") as file:
            while chunk := file.read(1024 * 1024):
                sha.update(chunk)
    except OSError:
        return False
    return sha.hexdigest() == name
