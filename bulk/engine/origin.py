"""Where a run came from: what `bulk retry RUN` must know and the manifest does not say. A small file beside the ledger.

It holds names of places (`env:BULK_TOKEN`), never a token.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import msgspec

from bulk.errors import RunDirectoryError
from bulk.manifest.manifest import Manifest
from bulk.manifest.reading import Overrides
from bulk.redaction import redact_json

NAME = "origin.json"


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Says where a run came from, so that it can be resumed and retried.

    Attributes:
        manifest: absolute path; items and content files are relative to its folder.
        base_url, vendor, credentials: as the run used them, wherever they were given.
        limit: first so many items of each job only; None: all.
        ca_bundle, trust_env: as the run used them; older runs say nothing of them, and then the manifest's count.
        variables: what `--var` gave. jobs: the ones that `--job` chose; None: all.
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

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """The origin of a manifest that was read."""
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
        )

    @classmethod
    def load(cls, run_dir: Path) -> Self:
        """The origin of the run in `run_dir`.

        Raises:
            RunDirectoryError: no run was ever started there, or the file is damaged.
        """
        try:
            return msgspec.json.decode((run_dir / NAME).read_bytes(), type=cls)
        except OSError as error:
            raise RunDirectoryError(f"{run_dir} holds no run that was started: {NAME}: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise RunDirectoryError(f"{run_dir / NAME} is damaged; `bulk run MANIFEST --run-dir` goes on") from error

    def text(self) -> bytes:
        """What the file holds; a secret that stands in the command of a credential is not in it."""
        places = (self.manifest, self.base_url, self.vendor, self.ca_bundle or "")
        own = frozenset(msgspec.json.encode(text)[1:-1] for text in places)
        data = redact_json(msgspec.json.encode(self), own)
        return msgspec.json.format(data, indent=2) + b"\n"

    def overrides(self, given: Overrides) -> Overrides:
        """What the command line gives, and the origin's own where it gives nothing."""
        return dataclasses.replace(
            given,
            base_url=given.base_url or self.base_url,
            vendor=given.vendor or self.vendor,
            credentials={**self.credentials, **given.credentials},
            limit=given.limit if given.limit is not None else self.limit,
            ca_bundle=given.ca_bundle if given.ca_bundle is not None else self.ca_bundle,
            trust_env=given.trust_env if given.trust_env is not None else self.trust_env,
            variables={**self.variables, **given.variables},
            jobs=given.jobs or self.jobs or (),
        )


def manifest_of(run_dir: Path) -> Path | None:
    """Where the manifest of a run was, for the command that goes on; None where the run does not say."""
    try:
        return Path(Origin.load(run_dir).manifest)
    except RunDirectoryError:
        return None
