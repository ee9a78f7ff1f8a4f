"""Dependency snapshots of a repository. Of each job.correlator and detector.name the platform keeps the latest alone.

They have a rate-limit category of their own, and nothing reads them, so after a lost answer the newest is sent again.
Source: specification, Dependency snapshot; operations.md, POST dependency snapshot; open-points.md (relationship).
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import orjson
from msgspec import Meta

from bulk import urls
from bulk.capabilities import Conflict, ConvertsFiles, DecidesState, FileError, Returns, SkipsUnchanged
from bulk.model import Effect, ErrorCode, Lost, Request, Undecided, failed, succeeded
from bulk.operation import Item, ItemFlaw, Settling, Steps
from bulk_jobs import accesses
from bulk_jobs.result_types import Snapshot
from bulk_jobs.shared import names, proofs, refusals
from bulk_jobs.shared.sboms import correlators, package_urls
from bulk_jobs.shared.sboms.bill import BillFlaw
from bulk_jobs.shared.sboms.reading import read_bill
from bulk_jobs.shared.sboms.snapshot import manifests_of

GOOD_RESULTS = frozenset(("success", "accepted"))
"""Values of `result`, case folded, that say that the platform has processed a snapshot, or will process it."""

SHOWN_FLAWS = 5
"""The most flaws of a manifest file that one message names (count)."""

_TAKEN = proofs.entry({"id": proofs.NUMBER, "result": str})

Scalar = str | int | float | bool | None
Metadata = Annotated[
    dict[str, Scalar],
    Meta(max_length=8, description="keys of your own, with a text, number, boolean or null each"),
]
PackageUrl = Annotated[str, Meta(min_length=1, description="package URL", examples=["pkg:npm/left-pad@1.3.0"])]


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The tool that made the snapshot."""

    id: Annotated[str, Meta(min_length=1, description="of the run that made it", examples=["5622"])]
    correlator: Annotated[
        str,
        Meta(
            min_length=1, description="the same in every run of one job: the latest takes the place of the one before"
        ),
    ]
    html_url: Annotated[str, Meta(description="page of the run")] | None = None


class Detector(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The program that found the dependencies."""

    name: Annotated[str, Meta(min_length=1, description="of the program", examples=["acme-detector"])]
    version: Annotated[str, Meta(min_length=1, description="of the program", examples=["1.2.0"])]
    url: Annotated[str, Meta(min_length=1, description="its home page", examples=["https://example.com/acme-detector"])]


class Dependency(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One resolved package."""

    package_url: PackageUrl | None = None
    metadata: Metadata | None = None
    relationship: Annotated[Literal["direct", "indirect"], Meta(description="who asks for it")] | None = None
    scope: Annotated[Literal["runtime", "development"], Meta(description="when it is needed")] | None = None
    dependencies: Annotated[list[PackageUrl], Meta(description="package URLs of its direct children")] | None = None


class SourceFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The place of the manifest in the repository."""

    source_location: Annotated[str, Meta(description="path from the root of the repository")] | None = None


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One manifest of a package manager, and what it resolves to."""

    name: Annotated[str, Meta(min_length=1, description="of the manifest", examples=["package-lock.json"])]
    file: Annotated[SourceFile, Meta(description="where it lies")] | None = None
    metadata: Metadata | None = None
    resolved: Annotated[dict[str, Dependency], Meta(description="packages by a key of your own")] | None = None


Manifests = dict[str, Manifest]


class SnapshotItem(Item, frozen=True, kw_only=True):
    """Names a repository, and gives a snapshot in the platform's own form."""

    owner: names.Owner
    repo: names.Repo
    version: Annotated[int, Meta(description="version of the snapshot's form", examples=[0])]
    job: Annotated[Job, Meta(description="what produced it")]
    sha: Annotated[str, Meta(min_length=1, max_length=40, description="commit that it describes")]
    ref: Annotated[str, Meta(min_length=1, description="branch reference", examples=["refs/heads/main"])]
    detector: Annotated[Detector, Meta(description="what found the dependencies")]
    metadata: Metadata | None = None
    manifests: Annotated[Manifests, Meta(description="manifests by a key of your own")] | None = None
    manifest_file: (
        Annotated[
            str,
            Meta(min_length=1, description="JSON file that holds `manifests`", examples=["files/npm.json"]),
        ]
        | None
    ) = None
    sbom_file: (
        Annotated[
            str,
            Meta(
                min_length=1,
                description="bill of materials from which `manifests` is made: CycloneDX as JSON or XML, or SPDX 2 as "
                "JSON, also as .gz and .zst",
                examples=["sboms/api.cdx.json"],
            ),
        ]
        | None
    ) = None
    scanned: (
        Annotated[
            str,
            Meta(
                description="when it was made, ISO 8601; with `sbom_file` its own time where it is left out",
                examples=["2026-11-21T08:00:00Z"],
            ),
        ]
        | None
    ) = None


class CreateSnapshot(
    DecidesState[SnapshotItem], ConvertsFiles[SnapshotItem], SkipsUnchanged[SnapshotItem], Returns[Snapshot]
):
    """Submit the dependencies of one commit of a repository.

    Requests:  1.
    Category:  dependency_snapshots. Lane: the repository, job.correlator and detector.name, of which the latest wins.
    Result:    id, created_at, message, result. One that was taken and reported as failed is `rejected`.
    Superseded: of those of one lane in a manifest the last alone is sent.
    Refused:   one that was scanned before an earlier item of its lane, unless `allow_overwrites` is true on its job, or
               that job needs the other's.
    Lost answer: nothing reads a snapshot. It is sent again while nothing later of its lane was; where
               that is refused, or led elsewhere, nobody knows.
    Source:    Dependency snapshot, POST /repos/{owner}/{repo}/dependency-graph/snapshots.
    """

    name = "snapshot.create"
    access = accesses.CONTENTS_WRITE
    Item = SnapshotItem
    category = "dependency_snapshots"
    is_read = False
    file_fields: ClassVar = {"manifest_file": "manifests", "sbom_file": "manifests"}
    keeps_only_last = True
    unreported = frozenset({"manifests"})
    settled_by = (
        "The platform offers no read of snapshots. The same one is sent again, which changes nothing where it arrived, "
        "as long as nothing later of its repository, correlator and detector was sent. Where the repeat is refused, "
        "but for what it holds, or the request was redirected, nobody knows whether it arrived: the outcome is unknown."
    )
    example: ClassVar = {
        "owner": "acme-eng",
        "repo": "hello-world",
        "version": 0,
        "job": {"id": "5622", "correlator": "build"},
        "sha": "0123456789abcdef0123456789abcdef01234567",
        "ref": "refs/heads/main",
        "detector": {"name": "acme-detector", "version": "1.2.0", "url": "https://example.com/acme-detector"},
        "scanned": "2026-11-21T08:00:00Z",
        "manifests": {
            "package-lock.json": {
                "name": "package-lock.json",
                "file": {"source_location": "package-lock.json"},
                "resolved": {"left-pad": {"package_url": "pkg:npm/left-pad@1.3.0", "relationship": "direct"}},
            }
        },
    }

    def check(self, item: SnapshotItem) -> Iterator[ItemFlaw]:
        yield from names.flaws_of_repository(item.owner, item.repo)
        for field, text in _texts(item):
            flaw = names.flaw_of_text(text)
            if flaw:
                yield ItemFlaw(field, flaw)
        if item.scanned is not None:
            flaw = names.flaw_of_timestamp(item.scanned)
            if flaw:
                yield ItemFlaw("scanned", flaw)
        elif item.sbom_file is None:
            yield ItemFlaw("scanned", "is missing; only a bill of materials (sbom_file) may bring its own")
        flaw = correlators.flaw_of(item.job.correlator, item.job.id, item.sha)
        if flaw:
            yield ItemFlaw("job.correlator", flaw)
        yield from _flaws_of_metadata("metadata", item.metadata)
        if sum(part is not None for part in (item.manifests, item.manifest_file, item.sbom_file)) > 1:
            yield ItemFlaw("manifests", "expected at most one of manifests, manifest_file and sbom_file")
        manifests: Any = item.manifests
        if manifests is not None and not isinstance(manifests, orjson.Fragment):  # of a file they were checked before
            yield from flaws_of_manifests(manifests)

    def lanes(self, item: SnapshotItem) -> tuple[str, ...]:
        return (f"{item.owner}/{item.repo} {item.job.correlator} {item.detector.name}",)

    def identities(self, item: SnapshotItem) -> tuple[str, ...]:
        return (self.lanes(item)[0].casefold(),)

    def conflict(self, earlier: object, later: SnapshotItem) -> Conflict | None:
        if not isinstance(earlier, SnapshotItem):
            return None
        if earlier.sha == later.sha and earlier.ref == later.ref and _source(earlier) != _source(later):
            return Conflict(correlators.OVERWRITTEN, may_insist=True)
        if earlier.scanned is None or later.scanned is None or _instant(earlier) <= _instant(later):
            return None
        message = (
            f"was scanned at {later.scanned}, before {{other}} of the same repository, correlator and detector "
            f"({earlier.scanned}), and would take its place: put the newest last"
        )
        return Conflict(message, may_insist=True)

    @classmethod
    def converted(cls, field: str, data: bytes) -> bytes:
        if field not in cls.file_fields:
            return super().converted(field, data)
        if field == "sbom_file":
            return _of_bill(data)
        try:
            manifests = msgspec.json.decode(data, type=Manifests)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as flaw:
            raise FileError(f"expected a JSON object of manifests: {flaw}") from None
        flaws = list(flaws_of_manifests(manifests))
        if flaws:
            shown = [f"{flaw.field}: {flaw.message}" for flaw in flaws[:SHOWN_FLAWS]]
            more = [f"and {len(flaws) - SHOWN_FLAWS:,} more"] if len(flaws) > SHOWN_FLAWS else []
            raise FileError("; ".join(shown + more))
        return msgspec.json.encode(manifests)

    @classmethod
    def counted(cls, field: str, data: bytes) -> bytes:
        """Return a digest of the manifests: a bill that was made anew and says the same is not sent again."""
        manifests = memoryview(data)[data.index(b"\n") + 1 :] if field == "sbom_file" else data
        return hashlib.sha256(manifests).digest()

    def with_converted(self, item: SnapshotItem, field: str, data: bytes) -> SnapshotItem:
        if field == "manifest_file":
            return _with_manifests(item, data, manifest_file=None)
        end = data.index(b"\n")
        scanned = item.scanned or orjson.loads(data[:end])
        flaw = names.flaw_of_timestamp(scanned) if scanned else "is missing in the bill of materials; give it"
        if flaw:
            raise FileError(f"scanned: {flaw}")
        return _with_manifests(item, data[end + 1 :], scanned=scanned)

    def sent_bytes(self, item: SnapshotItem) -> int:
        return len(orjson.dumps(item.manifests)) if item.sbom_file is not None else 0

    def steps(self, item: SnapshotItem) -> Steps:
        manifests: Any = item.manifests
        body: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(item, manifests=None))
        for field in ("id", "owner", "repo", "manifest_file", "sbom_file"):
            body.pop(field, None)
        if manifests is not None:
            body["manifests"] = manifests if isinstance(manifests, orjson.Fragment) else msgspec.to_builtins(manifests)
        reply = yield Request(
            method="POST",
            path=f"/repos/{urls.segment(item.owner)}/{urls.segment(item.repo)}/dependency-graph/snapshots",
            body=body,
            effect=Effect.ORDERED,
            accept=frozenset((201,)),
            proof=_TAKEN,
        )
        result = {name: reply.body.get(name) for name in ("id", "created_at", "message", "result")}
        verdict = reply.body["result"]
        if verdict.strip().casefold() not in GOOD_RESULTS:
            message = f"the platform took the snapshot and reports {verdict}: {refusals.message_of(reply)}"
            return failed(ErrorCode.REJECTED, message, http_status=reply.status, result=result, gives_codes=True)
        return succeeded(result)

    def sent_digest(self, item: SnapshotItem, counted: bytes = b"") -> bytes:
        if self.skip_unchanged == "never" or (not self.skip_unchanged and item.sbom_file is None):
            return b""
        if not counted:
            manifests: Any = item.manifests
            is_made = isinstance(manifests, orjson.Fragment)
            counted = hashlib.sha256(orjson.dumps(manifests) if is_made else msgspec.json.encode(manifests)).digest()
        parts = [item.version, item.ref, item.job.correlator, msgspec.to_builtins(item.detector), item.metadata]
        if self.skip_unchanged != "content":
            parts.append(item.sha)
        return hashlib.sha256(msgspec.json.encode(parts) + counted).digest()

    def settle(self, item: SnapshotItem, lost: Lost) -> Settling:
        yield from ()
        return Undecided("the platform offers no read of a snapshot")


def _instant(item: SnapshotItem) -> datetime:
    return datetime.fromisoformat(item.scanned or "")


def _source(item: SnapshotItem) -> object:
    """Return the source from which a snapshot is made, as far as the item names it."""
    if item.manifests is None:
        return item.sbom_file or item.manifest_file
    return frozenset(
        manifest.file.source_location if manifest.file is not None else key for key, manifest in item.manifests.items()
    )


def _of_bill(data: bytes) -> bytes:
    """Return a bill as two parts: a line of JSON with the time of the bill, and after that its manifests as JSON."""
    try:
        bill = read_bill(data)
        manifests = manifests_of(bill)
    except BillFlaw as error:
        raise FileError(str(error)) from None
    (manifest,) = manifests.values()
    flaws = [flaw for url in manifest["resolved"] if (flaw := package_urls.flaw_of(url))]
    if flaws:
        more = [f"and {len(flaws) - SHOWN_FLAWS:,} more"] if len(flaws) > SHOWN_FLAWS else []
        raise FileError("; ".join(flaws[:SHOWN_FLAWS] + more))
    return orjson.dumps(bill.created) + b"\n" + orjson.dumps(manifests)


def _with_manifests(item: SnapshotItem, text: bytes, **changes: Any) -> SnapshotItem:
    """Return the item with its manifests as bytes, as they are sent: bytes take a fourth of the objects' memory."""
    manifests: Any = orjson.Fragment(text)
    return msgspec.structs.replace(item, manifests=manifests, **changes)


def flaws_of_manifests(manifests: Mapping[str, Manifest]) -> Iterator[ItemFlaw]:
    """Yield what is wrong with the values of `manifests`; the names of flaws are dotted fields below `manifests`."""
    for key, manifest in manifests.items():
        field = f"manifests.{key}"
        yield from _flaws_of_metadata(f"{field}.metadata", manifest.metadata)
        location = manifest.file.source_location if manifest.file is not None else None
        if location is not None:
            flaw = urls.flaw_of_path(location)
            if flaw:
                yield ItemFlaw(
                    f"{field}.file.source_location", f"expected a path from the root of the repository; {flaw}"
                )
        for name, dependency in (manifest.resolved or {}).items():
            yield from _flaws_of_dependency(f"{field}.resolved.{name}", dependency)


def _flaws_of_dependency(field: str, dependency: Dependency) -> Iterator[ItemFlaw]:
    if dependency.package_url is not None:
        flaw = package_urls.flaw_of(dependency.package_url)
        if flaw:
            yield ItemFlaw(f"{field}.package_url", flaw)
    if dependency.metadata:
        yield from _flaws_of_metadata(f"{field}.metadata", dependency.metadata)
    for place, child in enumerate(dependency.dependencies or ()):
        flaw = package_urls.flaw_of(child)
        if flaw:
            yield ItemFlaw(f"{field}.dependencies.{place}", flaw)


def _flaws_of_metadata(field: str, metadata: Mapping[str, Scalar] | None) -> Iterator[ItemFlaw]:
    for key, value in (metadata or {}).items():
        if isinstance(value, float) and not math.isfinite(value):
            yield ItemFlaw(f"{field}.{key}", f"expected a finite number; got {value}")
        flaw = names.flaw_of_text(f"{key}{value}" if isinstance(value, str) else key, allowed="\t\n\r")
        if flaw:
            yield ItemFlaw(f"{field}.{key}", flaw)


def _texts(item: SnapshotItem) -> Iterator[tuple[str, str]]:
    yield "job.id", item.job.id
    yield "job.correlator", item.job.correlator
    yield "job.html_url", item.job.html_url or ""
    yield "sha", item.sha
    yield "ref", item.ref
    yield "detector.name", item.detector.name
    yield "detector.version", item.detector.version
    yield "detector.url", item.detector.url
