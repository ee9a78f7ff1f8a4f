"""The origin of a run: `bulk resume RUN` and `bulk retry RUN` must know it, and the manifest does not say it.

The origin is a small file beside the ledger. It holds names of places (`env:BULK_TOKEN`), never a token.
"""

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import msgspec

from bulk.errors import UNDECODABLE, RunDirectoryError, UsageError
from bulk.ledger.directory import ORIGIN
from bulk.ledger.view import LedgerView
from bulk.manifest.manifest import Manifest
from bulk.manifest.reading import Overrides, read_manifest
from bulk.redaction import redact_json
from bulk.storage.private_files import read_regular

LIMITS = ("concurrency", "reserve", "failures")
"""Limits that a resume keeps. `max_duration` holds for one process only, so that a resume can get to the end."""
MASK = "***"
"""The text in the place of a secret; see `bulk.redaction`."""
MANIFEST = "manifest.yaml"
"""The copy of the manifest in a run directory."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run came from, so that it can be resumed and retried.

    Attributes:
        manifest: absolute path of the manifest; items and content files are relative to its folder.
        base_url, vendor, credentials: the values that the run used, wherever they were given.
        limit: only this many first items of each job (count); None: all.
        ca_bundle, trust_env: the values that the run used. Files of older runs lack them; then the manifest's count.
        variables: values given with `--var`. jobs: names of the jobs chosen with `--job`; None: all.
        limits: concurrency, reserve and failures, as far as the command line gave them, as texts.
        cache: folder of stored validators and bodies; None: none are kept; empty: not known.
    """

    manifest: str
    base_url: str
    vendor: str
    credentials: Mapping[str, str]
    limit: int | None = None
    ca_bundle: str | None = None
    trust_env: bool | None = None
    variables: Mapping[str, str] = {}
    jobs: tuple[str, ...] | None = None
    limits: Mapping[str, str] = {}
    cache: str | None = ""

    @classmethod
    def of(cls, manifest: Manifest, given: Overrides | None = None, cache: Path | None = None) -> Self:
        """Return the origin of a manifest that was read with the overrides `given`."""
        platform = manifest.platform
        return cls(
            manifest=str(manifest.path.resolve()),
            base_url=platform.base_url,
            vendor=platform.vendor,
            credentials=dict(platform.credentials),
            limit=manifest.limit,
            ca_bundle=None if platform.ca_bundle is None else str(platform.ca_bundle),
            trust_env=platform.trust_env,
            variables=dict(manifest.variables),
            jobs=manifest.chosen,
            limits={} if given is None else {name: str(text) for name in LIMITS if (text := getattr(given, name))},
            cache=None if cache is None else str(cache.absolute()),
        )

    @classmethod
    def load(cls, run_dir: Path) -> Self:
        """Return the origin of the run in `run_dir`.

        Raises:
            RunDirectoryError: no run was ever started there, or the file is gone or damaged.
        """
        command = shlex.join(["bulk", "run", "MANIFEST", "--run-dir", str(run_dir)])
        try:
            return msgspec.json.decode(read_regular(run_dir / ORIGIN), type=cls)
        except OSError as error:
            LedgerView(run_dir)  # refuses what is not a run directory
            why = "is not there" if isinstance(error, FileNotFoundError) else f"can't be read ({error.strerror})"
            raise RunDirectoryError(f"{run_dir / ORIGIN} {why}; this makes it again: {command}") from error
        except UNDECODABLE as error:
            raise RunDirectoryError(f"{run_dir / ORIGIN} is damaged; this makes it again: {command}") from error

    def text(self) -> bytes:
        """Return the content of the file; a secret in the command of a credential is masked."""
        places = (self.manifest, self.base_url, self.vendor, self.ca_bundle or "")
        own = frozenset(msgspec.json.encode(text)[1:-1] for text in places)
        data = redact_json(msgspec.json.encode(self), own)
        return msgspec.json.format(data, indent=2) + b"\n"

    def without_secrets(self) -> Self:
        """Return the origin as the file holds it, with secrets masked."""
        return msgspec.json.decode(self.text(), type=type(self))

    def _sources(self) -> dict[str, str]:
        """Return the sources without masked secrets; in place of the others, those of the manifest are used."""
        return {name: source for name, source in self.credentials.items() if MASK not in source}

    def overrides(self, given: Overrides) -> Overrides:
        """Return the overrides `given` on the command line, completed with the values of this origin."""
        limits: dict[str, Any] = {
            name: text for name, text in self.limits.items() if name in LIMITS and not getattr(given, name)
        }
        return dataclasses.replace(
            given,
            base_url=given.base_url or self.base_url,
            vendor=given.vendor or self.vendor,
            credentials={**self._sources(), **given.credentials},
            named=given.named - self.credentials.keys(),
            limit=given.limit if given.limit is not None else self.limit,
            ca_bundle=given.ca_bundle if given.ca_bundle is not None else self.ca_bundle,
            trust_env=given.trust_env if given.trust_env is not None else self.trust_env,
            variables={**self.variables, **given.variables},
            jobs=given.jobs or self.jobs or (),
            **limits,
        )


def manifest_of(
    view: LedgerView, given: Overrides, environ: Mapping[str, str], *, needs_items: bool = True
) -> Manifest:
    """Return the manifest of a run as the run has kept it.

    Args:
        given: changes what the run was started with. needs_items: whether items files have to be there.

    Raises:
        UsageError: `given` names another platform than that of the run, where nothing is that the run has left.
        BulkError: no run was ever started there, or its manifest can't be used.
    """
    origin, copy, identity = Origin.load(view.run_dir), view.run_dir / MANIFEST, view.identity()
    path, overrides = Path(origin.manifest), origin.overrides(given)
    manifest = read_manifest(path, overrides, environ, text_at=copy, needs_items=needs_items)
    platform = manifest.platform
    for option, used, named in (
        ("--base-url", identity.base_url, platform.base_url),
        ("--vendor", identity.vendor, platform.vendor),
    ):
        if named != used:
            raise UsageError(f"{option} {named}: the run was done with {option} {used}; what it has left is only there")
    return manifest
