"""The checks of a snapshot's body. Pure; every fault is a sentence that begins with its place (`job.id is missing`).

The specification leaves the values of `relationship` and `scope` open; the public ones are taken (open-points.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from packageurl import PackageURL

from bulk.sandbox.clock import parse_iso

MOST_METADATA_KEYS: Final = 8
MOST_SHA: Final = 40
MOST_FAULTS: Final = 20
URLS_IN_MEMORY: Final = 65_536
NAMES: Final = {dict: "an object", list: "an array", str: "a string", int: "an integer"}
RELATIONSHIPS: Final = ("direct", "indirect")
SCOPES: Final = ("runtime", "development")


def faults(body: Mapping[str, object]) -> list[str]:
    """Return the faults of a body, at most 20 sentences; empty: there are none."""
    found: list[str] = []
    for fault in _snapshot(body):
        found.append(fault)
        if len(found) == MOST_FAULTS:
            break
    return found


def identity(body: Mapping[str, object]) -> tuple[str, str]:
    """Return (job.correlator, detector.name) of a well-formed body."""
    job, detector = body["job"], body["detector"]
    if not isinstance(job, dict) or not isinstance(detector, dict):
        raise TypeError("only a body without faults has an identity")
    return str(job["correlator"]), str(detector["name"])


def _snapshot(body: Mapping[str, object]) -> Iterator[str]:
    yield from _field(body, "version", int, "")
    yield from _field(body, "job", dict, "")
    yield from _texts(body.get("job"), "job", ("id", "correlator"), optional=("html_url",))
    yield from _texts(body, "", ("sha", "ref", "scanned"))
    sha = body.get("sha")
    if isinstance(sha, str) and not 0 < len(sha) <= MOST_SHA:
        yield f"sha must have 1 to {MOST_SHA} characters"
    if body.get("ref") == "":
        yield "ref must not be empty"
    scanned = body.get("scanned")
    if isinstance(scanned, str):
        yield from _timestamp(scanned)
    yield from _field(body, "detector", dict, "")
    yield from _texts(body.get("detector"), "detector", ("name", "version", "url"))
    yield from _metadata(body, "")
    yield from _field(body, "manifests", dict, "", is_required=False)
    manifests = body.get("manifests")
    if isinstance(manifests, dict):
        for key, manifest in manifests.items():
            yield from _manifest(manifest, f"manifests.{key}")


def _manifest(manifest: object, where: str) -> Iterator[str]:
    if not isinstance(manifest, dict):
        yield f"{where} must be an object"
        return
    yield from _texts(manifest, where, ("name",))
    yield from _field(manifest, "file", dict, where, is_required=False)
    yield from _texts(manifest.get("file"), f"{where}.file", (), optional=("source_location",))
    yield from _metadata(manifest, where)
    yield from _field(manifest, "resolved", dict, where, is_required=False)
    resolved = manifest.get("resolved")
    if isinstance(resolved, dict):
        for key, dependency in resolved.items():
            yield from _dependency(dependency, f"{where}.resolved.{key}")


def _dependency(dependency: object, where: str) -> Iterator[str]:
    if not isinstance(dependency, dict):
        yield f"{where} must be an object"
        return
    yield from _texts(dependency, where, (), optional=("package_url", "relationship", "scope"))
    if isinstance(dependency.get("package_url"), str):
        yield from _package_url(dependency["package_url"], f"{where}.package_url")
    yield from _metadata(dependency, where)
    for name, allowed in (("relationship", RELATIONSHIPS), ("scope", SCOPES)):
        value = dependency.get(name)
        if isinstance(value, str) and value not in allowed:
            yield f"{where}.{name} must be one of {', '.join(allowed)}"
    yield from _field(dependency, "dependencies", list, where, is_required=False)
    children = dependency.get("dependencies")
    for place, child in enumerate(children if isinstance(children, list) else ()):
        yield from _package_url(child, f"{where}.dependencies[{place}]")


def _path(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _field(
    holder: Mapping[str, object], name: str, kind: type, where: str, *, is_required: bool = True
) -> Iterator[str]:
    """Yield the faults of one member: missing, or of another type. An optional member may be null."""
    value = holder.get(name)
    if name not in holder or (value is None and not is_required):
        if is_required:
            yield f"{_path(where, name)} is missing"
    elif not isinstance(value, kind) or isinstance(value, bool):
        yield f"{_path(where, name)} must be {NAMES[kind]}"


def _texts(holder: object, where: str, required: tuple[str, ...], *, optional: tuple[str, ...] = ()) -> Iterator[str]:
    if isinstance(holder, Mapping):
        for name in required:
            yield from _field(holder, name, str, where)
        for name in optional:
            yield from _field(holder, name, str, where, is_required=False)


def _metadata(holder: Mapping[str, object], where: str) -> Iterator[str]:
    yield from _field(holder, "metadata", dict, where, is_required=False)
    metadata = holder.get("metadata")
    if not isinstance(metadata, dict):
        return
    if len(metadata) > MOST_METADATA_KEYS:
        yield f"{_path(where, 'metadata')} has {len(metadata)} keys: at most {MOST_METADATA_KEYS} are allowed"
    for key, value in metadata.items():
        if isinstance(value, (dict, list)):
            yield f"{_path(where, 'metadata')}.{key} must be a string, a number, a boolean or null"


def _package_url(text: object, where: str) -> Iterator[str]:
    if not isinstance(text, str):
        yield f"{where} must be a string"
        return
    if not _is_package_url(text):
        yield f"{where} is not a package URL, as in pkg:npm/left-pad@1.3.0"


@lru_cache(maxsize=URLS_IN_MEMORY)
def _is_package_url(text: str) -> bool:
    """Return whether the reference library takes the text; results are kept, because packages come again and again."""
    try:
        PackageURL.from_string(text)
    except ValueError:
        return False
    return True


def _timestamp(text: str) -> Iterator[str]:
    try:
        parse_iso(text)
    except ValueError:
        yield "scanned must be a timestamp, as in 2026-11-21T08:00:00Z"
