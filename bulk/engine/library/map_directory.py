"""The files of one `map` call: a manifest of one job, and its items. With a run directory, the call can be resumed.

The run directory is complete: it holds `manifest.yaml` and `stdin-map.jsonl`, which `bulk retry` needs. A call that
resumes the run must give the items that the run began with. Errors name the item or the argument, never one of these
files.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from bulk.capabilities import secret_fields
from bulk.engine.library.staged_items import StagedItems
from bulk.engine.origin import Origin
from bulk.errors import Flaw, ManifestError, RunDirectoryError, UsageError
from bulk.ledger.database import LEDGER
from bulk.ledger.directory import Claim
from bulk.ledger.records import Finished
from bulk.ledger.view import LedgerView
from bulk.manifest.manifest import Manifest
from bulk.manifest.reading import Overrides, read_manifest
from bulk.model import ErrorCode, ItemError, OutcomeKind
from bulk.storage.private_files import write_whole

JOB = "map"
STDIN_SHOWN = "<stdin>"


class MapDirectory:
    """The files of one `map` call on disk.

    Attributes:
        run_dir: where the run lives.
        earlier: how many items had ended before this call (count).
    """

    def __init__(self, staged: StagedItems, run_dir: Path | None) -> None:
        self._staged, self._is_kept = staged, run_dir is not None
        self.run_dir = staged.path.with_name("run") if run_dir is None else run_dir.absolute()
        self._manifest = (staged.path.parent if run_dir is None else self.run_dir) / "manifest.yaml"
        self._shown = Path.cwd() / JOB
        self.earlier = 0

    def prepare(self) -> None:
        """Write the manifest; where a run exists, check that the manifest and the items are those of that run.

        Raises:
            UsageError: the items of the operation hold secrets, which must not be kept in a run directory.
            RunDirectoryError: the directory belongs to another run, other items were given, or it can't be written.
        """
        items = "-" if self._is_kept else str(self._staged.path)
        job = {"operation": self._staged.operation.name, "items": items, "allow_empty": True}
        text = msgspec.json.encode({"version": 1, "name": JOB, "jobs": {JOB: job}}) + b"\n"
        if not self._is_kept:
            self._write(text)
            return
        if secret_fields(self._staged.operation):
            raise UsageError(
                f"map(run_dir=…) keeps the items, and those of {self._staged.operation.name} hold secrets: "
                "leave run_dir out, or write a manifest and use run"
            )
        with Claim.take(self.run_dir):
            there = self._manifest.read_bytes() if self._manifest.is_file() else text
            if there != text:
                raise RunDirectoryError(f"{self.run_dir} belongs to another run; name another run_dir")
            kept = self.run_dir / f"stdin-{JOB}.jsonl"
            if (self.run_dir / LEDGER).exists():
                self._refuse_other_items(kept)
            else:  # an earlier call ended during its check: nothing was sent
                kept.unlink(missing_ok=True)
                (self.run_dir / "check.json").unlink(missing_ok=True)
            self._write(text)

    def _write(self, text: bytes) -> None:
        write_whole(self._manifest, text)

    def _refuse_other_items(self, kept: Path) -> None:
        with ExitStack() as files:
            lines = [files.enter_context(path.open("rb")) for path in (kept, self._staged.path)]
            for number, (before, now) in enumerate(zip_longest(*lines)):
                if before == now:
                    continue
                what = f"items[{number}] is not what it was"
                if before is None:
                    what = f"there are more items than the {number:,} that there were"
                elif now is None:
                    what = f"there are fewer items, {number:,}, than there were"
                raise RunDirectoryError(
                    f"{what} when the run in {self.run_dir} began: give the same items, or name another run_dir"
                )

    def read(self, overrides: Overrides, environ: Mapping[str, str]) -> tuple[Manifest, Origin]:
        """Return the manifest and its origin. Files that items name are relative to the folder of the caller.

        Raises:
            ManifestError, UsageError: the manifest can't be used.
        """
        manifest = read_manifest(self._manifest, overrides, environ)
        return replace(manifest, path=self._shown), Origin.of(manifest)

    def items(self) -> BinaryIO | None:
        """Return the items as a stream if the run has to keep a copy of them; otherwise None."""
        return self._staged.path.open("rb") if self._is_kept else None

    def finished_before(self) -> Iterator[Finished]:
        """Yield the items that ended in earlier calls, in the order in which they were given."""
        if not self._is_kept or not (self.run_dir / LEDGER).exists():
            return
        for line in LedgerView(self.run_dir).finished(job=JOB):
            self.earlier += 1
            yield _finished(line)

    def told(self, error: ManifestError) -> ManifestError:
        """Return the error with the item or the argument in place of a file and its line."""
        shown = STDIN_SHOWN if self._is_kept else str(self._staged.path)
        line = re.compile(re.escape(shown) + r":(\d+)")

        def as_items(text: str) -> str:
            text = re.sub(r"; allow_overwrites: true lets it pass.*", "", text)  # that remedy is for manifests only
            return line.sub(lambda found: f"items[{int(found[1]) - 1}]", text)

        flaws = []
        for flaw in error.flaws:
            field = flaw.field.removeprefix(f"jobs.{JOB}.")
            if flaw.path == shown:
                place = f"items[{flaw.line - 1}]" if flaw.line else "items"
                flaws.append(Flaw(place, 0, flaw.field, as_items(flaw.message)))
            elif flaw.path in (str(self._manifest), str(self._shown)):
                flaws.append(Flaw(JOB, 0, field, as_items(flaw.message)))
            else:
                flaws.append(Flaw(flaw.path, flaw.line, flaw.field, as_items(flaw.message)))
        return ManifestError(flaws, error.more)


def _finished(line: dict[str, Any]) -> Finished:
    error = line.pop("error")
    return Finished(
        **{
            **line,
            "outcome": OutcomeKind(line["outcome"]),
            "started_at": datetime.fromisoformat(line["started_at"]).timestamp(),
            "error": None if error is None else ItemError(**{**error, "code": ErrorCode(error["code"])}),
        }
    )
