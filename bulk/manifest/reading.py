"""Reads a manifest file into a Manifest, or raises all its flaws as one error. `checking.py` reads the items later.

No value of a manifest ends in an HTTP header unchecked (failures.md row 58): `vendor` and `api_version` are matched
here against what they may be, the host of `base_url` too; tokens are checked by `platform/credentials.py`; everything
else goes into paths and queries, which `urls.py` encodes, or into JSON.
"""

import hashlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from bulk.errors import Flaw, ManifestError
from bulk.flaws import Flaws
from bulk.items.lines import SourceFlaw
from bulk.items.sources import open_source
from bulk.items.yaml_text import Node, read_document
from bulk.manifest import platform_section, variables
from bulk.manifest.audit_section import audit_of
from bulk.manifest.credential_specs import kind_of
from bulk.manifest.fields import NAME, Fields
from bulk.manifest.jobs import jobs_of
from bulk.manifest.manifest import Job, Manifest, Platform
from bulk.manifest.needs.chosen_jobs import chosen_of
from bulk.manifest.settings import Overrides, item_limit, limits_of, platform_of, read_platform

__all__ = ["Overrides", "read_manifest", "read_platform"]

MOST_MANIFEST_BYTES = 16 * 1024 * 1024
"""Largest manifest (bytes); long lists of items go into files of their own, which have no such limit."""

LARGE_CHARACTERS = 1_000_000
"""A manifest with more characters (count) is told where its items are read at once: in YAML this takes seconds."""

VERSION = 1


def read_manifest(
    path: Path,
    overrides: Overrides,
    environ: Mapping[str, str],
    *,
    text_at: Path | None = None,
    needs_items: bool = True,
) -> Manifest:
    """Read a manifest; its items are located, not read.

    Args:
        overrides: the options of the command line.
        environ: environment variables, for BULK_BASE_URL, BULK_TOKEN and BULK_VENDOR.
        text_at: path of a copy of the manifest, if it is no longer at `path`.
        needs_items: whether items files have to be there.

    Raises:
        ManifestError: the manifest can't be used: up to 50 flaws with line and field, and how many more.
        UsageError: a value of the command line or the environment can't be used.
    """
    flaws = Flaws()
    shown = str(path)
    raw = _content(text_at or path, str(text_at or path))
    try:
        root, repeated = read_document(io.BytesIO(raw).read)
    except SourceFlaw as error:
        raise ManifestError([Flaw(shown, error.line, error.field, error.message)]) from None
    for line, flaw in repeated:
        flaws.add(shown, line, flaw.field, flaw.message)
    if root is None or root.value is None:
        raise ManifestError([Flaw(shown, 1, "", "is empty; expected a manifest with version, platform and jobs")])
    fields = Fields(shown, root, "", flaws)
    if "bulk_plan" in fields:
        flaws.add(shown, 1, "", "is a live plan: `bulk approve` and `bulk run` take it; name the manifest of it here")
        flaws.raise_if_any()
    if fields.is_object:
        variables.fill(fields, root, overrides.variables)
    flaws.raise_if_any()  # a value that is missing would be seen as a second flaw
    text = raw.decode("utf-8-sig")
    manifest = _manifest(fields, root, path, text, overrides, environ, needs_items=needs_items)
    flaws.raise_if_any()
    assert manifest is not None, "or there was a flaw"
    return manifest


def _manifest(
    fields: Fields,
    root: Node,
    path: Path,
    text: str,
    overrides: Overrides,
    environ: Mapping[str, str],
    *,
    needs_items: bool,
) -> Manifest | None:
    folder = path.parent
    if "version" not in fields:
        fields.flaw("version", f"is missing; expected version: {VERSION}")
    fields.scalar("version", VERSION, _version)
    name = fields.text("name", re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-.")[:100] or "manifest", _name)
    unused = replace(overrides, named=overrides.named - _used_by_jobs(root)) if overrides.named else overrides
    platform = platform_of(fields.inner("platform"), folder, unused, environ)
    limits = limits_of(fields.inner("limits"), overrides)
    limit = item_limit(overrides)
    if fields.node("jobs") is None:
        fields.flaw("jobs", "is missing; expected at least one job")
    credentials = platform.credentials if platform else _credential_names(root, overrides)
    chosen = chosen_of(root, overrides.jobs, with_needs=overrides.with_needs)
    jobs: tuple[Job, ...] = ()
    notes: list[str] = []
    if "jobs" in fields:
        jobs, notes = jobs_of(fields.inner("jobs"), folder, credentials, chosen, needs_items=needs_items)
    audit = audit_of(fields.inner("audit"), folder) if "audit" in fields else None
    fields.finish()
    if platform is None:
        return None
    return Manifest(
        path=path,
        name=name,
        text=text,
        digest=_digest(root, chosen),
        platform=platform,
        limits=limits,
        jobs=jobs,
        limit=limit,
        variables=dict(overrides.variables),
        chosen=None if chosen is None else tuple(sorted(chosen)),
        audit=audit,
        notes=(
            *platform_section.notes_on(platform.base_url),
            *_notes_on_credentials(platform, jobs),
            *notes,
            *_notes_on_size(text, jobs),
        ),
    )


def _notes_on_size(text: str, jobs: Sequence[Job]) -> Iterator[str]:
    """Yield a note on the job with the most items in a large manifest."""
    most = max(jobs, key=lambda job: len(job.items or ()), default=None)
    if len(text) > LARGE_CHARACTERS and most is not None and most.items:
        yield (
            f"job {most.name}: its {len(most.items):,} items make the manifest large, and YAML is slow to read; from a "
            "file of JSON lines they are read at once (items: FILE.jsonl)"
        )


def _notes_on_credentials(platform: Platform, jobs: Sequence[Job]) -> Iterator[str]:
    """Yield a note where BULK_TOKEN takes the place of more than a token, and one on the vendor's terms for each pool
    that is used on the vendor's own hosts."""
    if platform.replaced and any(job.credential == "default" for job in jobs):
        yield (
            "BULK_TOKEN is set, and its one token takes the place of the manifest's credential 'default' "
            f"({platform.replaced}); unset it, or give that credential another name"
        )
    host = urlsplit(platform.base_url).hostname or ""
    is_theirs = host in ("github.com", "api.github.com") or host.endswith(".ghe.com")
    for name, source in platform.credentials.items():
        if is_theirs and kind_of(source) == "pool":
            yield (
                f"credential {name!r} is a pool: GitHub's terms forbid sharing tokens to exceed its rate limits; "
                "an App has budgets that are meant for this"
            )


def _credential_names(root: Node, overrides: Overrides) -> Mapping[str, str]:
    """Return the credential names for jobs if the platform can't be used, so that one flaw does not look like two."""
    platform = root.plain().get("platform")
    given = platform.get("credentials") if isinstance(platform, dict) else None
    return dict.fromkeys(("default", *overrides.credentials, *(given if isinstance(given, dict) else ())), "")


def _used_by_jobs(root: Node) -> frozenset[str]:
    """Return the credentials that jobs name, chosen or not. These may be given on the command line alone."""
    jobs = root.value.get("jobs") if isinstance(root.value, dict) else None
    each = jobs.value.values() if jobs is not None and isinstance(jobs.value, dict) else ()
    named = [job.value.get("credential") for job in each if isinstance(job.value, dict)]
    return frozenset(node.value for node in named if node is not None and isinstance(node.value, str))


def _content(path: Path, shown: str) -> bytes:
    try:
        with open_source(path) as file:
            raw = file.read(MOST_MANIFEST_BYTES + 1)
    except SourceFlaw as flaw:
        message = flaw.message
    except OSError as error:
        message = f"can't be read: {error.strerror}"
    else:
        if len(raw) <= MOST_MANIFEST_BYTES:
            return raw
        message = "larger than 16 MiB; put items into a file of their own and name it in `items`"
    raise ManifestError([Flaw(shown, 0, "", message)])


def _version(given: object) -> int:
    if given == str(VERSION):
        raise ValueError(f"expected the number {VERSION}, got a string: write it without quotes")
    if given is True or given != VERSION or not isinstance(given, int):
        raise ValueError(f"expected {VERSION}, the only version of manifests there is")
    return VERSION


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise ValueError("expected letters, digits, hyphens, underscores and dots, at most 100 characters")
    return text


def _digest(root: Node, chosen: frozenset[str] | None) -> str:
    """Return the SHA-256 of what the manifest means: comments and layout may change.

    `limits` and `audit` are not part of a run's identity.
    Variables count where they are used, and of the jobs only the chosen ones count.
    """
    plain = root.plain()
    plain.pop("limits", None)
    plain.pop("audit", None)
    plain.pop(variables.SECTION, None)
    if chosen is not None and isinstance(plain.get("jobs"), dict):
        plain["jobs"] = {name: job for name, job in plain["jobs"].items() if name in chosen}
    return hashlib.sha256(msgspec.json.encode(plain)).hexdigest()
