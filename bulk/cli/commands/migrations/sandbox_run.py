"""A manifest run for real, on a sandbox that has what its items name: `bulk rehearse --sandbox`."""

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

from bulk.cli import foreground, sandbox_process
from bulk.cli.options import RUNS
from bulk.storage.scratch import scratch_folder

if TYPE_CHECKING:
    from bulk.manifest.reading import Overrides
    from bulk.report.fold import Report
    from bulk.status import Display

NOWHERE = "http://127.0.0.1:9/api/v3"
"""The address that stands for the sandbox until the sandbox is there."""
TOKEN = "BULK_SANDBOX_TOKEN"
"""The variable from which the run takes the sandbox's token, whatever the manifest says of credentials."""


def run(manifest: Path, overrides: "Overrides") -> int:
    """Run the manifest on a sandbox, print the report, and return the exit code; the run directory is kept.

    Raises:
        BulkError: the manifest can't be used, or the sandbox did not start.
    """
    import msgspec

    from bulk.clock import Clock
    from bulk.engine import commands
    from bulk.engine.rehearsal.named_things import seed_of
    from bulk.engine.surroundings import Surroundings
    from bulk.manifest.reading import read_manifest

    read = read_manifest(manifest, dataclasses.replace(overrides, base_url=NOWHERE), os.environ)
    seed = seed_of(read)
    sources = dict.fromkeys(read.platform.credentials, f"env:{TOKEN}")
    environ = {**os.environ, TOKEN: sandbox_process.TOKEN}
    options = ("--rate-limit", "off", "--vendor", read.platform.vendor)
    is_first = not RUNS.exists()
    with (
        scratch_folder("sandbox") as folder,
        sandbox_process.running(folder, seed, *options) as (base_url, _),
    ):
        place = commands.new_run_dir(f"{read.name}-sandbox", Clock())
        there = dataclasses.replace(overrides, base_url=base_url, credentials=sources, credentials_file=None)

        async def start(display: "Display", _: Path | None) -> "Report":
            report = await commands.run_manifest(
                manifest,
                overrides=there,
                run_dir=place,
                display=display,
                environ=environ,
                surroundings=Surroundings(handles_signals=True, is_steered=True),
            )
            return msgspec.structs.replace(report, next_command="")  # the platform is gone when this has ended

        try:
            return foreground.run(
                start, place, cache=None, no_cache=True, progress="auto", as_json=False, is_resumable=False
            )
        finally:
            commands.remove_if_empty(place, with_parent=is_first)
