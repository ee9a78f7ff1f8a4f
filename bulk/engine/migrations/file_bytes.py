"""Reads the bytes that files had before a run, with an ordinary run, which keeps to limits and can be resumed.

Bytes that do not match the name that git has for the blob are not used.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from bulk.engine.execution import execute
from bulk.engine.origin import Origin
from bulk.engine.status.unfinished import refuse_unfinished
from bulk.engine.surroundings import Surroundings
from bulk.ledger.view import LedgerView
from bulk.manifest.credential_specs import written
from bulk.manifest.manifest import Platform
from bulk.manifest.reading import Overrides, read_manifest
from bulk.manifest.variables import escaped
from bulk.model import OutcomeKind
from bulk.status import Display
from bulk.undo import FileBefore

READS = "reads"
READS_ELSEWHERE = "reads-elsewhere"
_SAVED = "saved"


@dataclass(frozen=True, slots=True)
class Reading:
    """Reads files from the platform.

    Attributes:
        limits: the section `limits` of the reads' manifest.
        programs: the folder in which programs that print tokens run.
        folder: where the reads have their run directories.
        failures: by the blobs that could not be read, why.
    """

    platform: Platform
    limits: Mapping[str, object]
    programs: Path
    folder: Path
    display: Display
    environ: Mapping[str, str]
    around: Surroundings
    failures: dict[str, str] = field(default_factory=dict)

    async def read(self, run: str, files: Mapping[str, Iterable[FileBefore]]) -> dict[str, str]:
        """Read files, and return the path of the bytes of each blob, relative to the folder; blobs that could not be
        found are left out. No single answer shows that, not even a refusal: the bytes may have been cut on their way,
        or be another file's.

        Args:
            run: name of the run directory; a call with the same name again goes on with that run.
            files: the files, by the name of the credential with which they are read.

        Raises:
            BulkError: the files can't be read now.
        """
        wanted = {credential: list(each) for credential, each in files.items()}
        found = await self._read_once(run, wanted)
        rest = {
            credential: [file for file in each if file.blob_sha not in found] for credential, each in wanted.items()
        }
        return {**found, **await self._read_once(f"{run}-again", rest)}

    async def _read_once(self, run: str, files: Mapping[str, Sequence[FileBefore]]) -> dict[str, str]:
        jobs: dict[str, object] = {}
        saved: dict[str, str] = {}
        for credential, wanted in files.items():
            by_operation: dict[str, list[FileBefore]] = {}
            for file in wanted:
                by_operation.setdefault(file.operation, []).append(file)
            for operation, each in by_operation.items():
                name = f"{run}-{len(jobs)}"
                items = self.folder / f"{name}.jsonl"
                with items.open("wb") as out:
                    for file in each:
                        place = file.blob_sha if file.blob_sha not in saved else f"{file.blob_sha}-{len(saved)}"
                        saved[place] = file.blob_sha
                        out.write(msgspec.json.encode({"id": place, **file.item}) + b"\n")
                jobs[name] = {"operation": operation, "credential": credential, "items": items.name, "save": "{id}"}
        if not jobs:
            return {}
        path = self.folder / f"{run}.yaml"
        section = section_of(self.platform, self.programs)
        made = {"version": 1, "platform": section, "limits": self.limits, "jobs": jobs}
        text = msgspec.json.encode({name: part for name, part in made.items() if part}).decode()
        path.write_text(escaped(text), encoding="utf-8")
        manifest = read_manifest(path, Overrides(), {})  # the platform of the run, whatever the environment says
        around = replace(self.around, is_steered=False)
        report = await execute(manifest, Origin.of(manifest), self.folder / run, self.display, self.environ, around)
        refuse_unfinished(report, "the files from before could not all be read", "; give the same command again")
        for line in LedgerView(self.folder / run).finished(kinds=frozenset((OutcomeKind.FAILED,))):
            self.failures[saved[line["id"]]] = line["error"]["message"]
        read = ((blob, f"{run}/{_SAVED}/{place}") for place, blob in saved.items())
        return {blob: place for blob, place in read if _is_blob(self.folder / place, blob)}


def section_of(platform: Platform, programs: Path | None) -> dict[str, object]:
    """Return the section `platform` of a manifest for the same platform.

    Args:
        programs: the folder in which programs that print tokens run; None: the folder of the new manifest.
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
    """Return whether the bytes of a file are the blob that git names `name`."""
    try:
        size = path.stat().st_size
        sha = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        with path.open("rb") as file:
            while chunk := file.read(1024 * 1024):
                sha.update(chunk)
    except OSError:
        return False
    return sha.hexdigest() == name
