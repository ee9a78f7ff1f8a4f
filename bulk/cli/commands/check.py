"""`bulk check`: a manifest and every item of it, offline."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.cli.options import ANY_PATH, LIMITS, MANIFEST, PLATFORM, as_json, overriding
from bulk.storage.scratch import scratch_folder

if TYPE_CHECKING:
    from bulk.manifest.reading import Overrides


@click.command(cls=Command)
@click.argument("manifest", type=ANY_PATH)
@overriding(*MANIFEST, *PLATFORM, *LIMITS)
@as_json
def check(*, manifest: Path, overrides: "Overrides", as_json: bool) -> int:
    """Check MANIFEST and every item of it offline.

    Nothing is sent and no credential is opened.
    """
    from bulk.check import check_data, checking
    from bulk.cli.progress.work import at_work
    from bulk.manifest import reading
    from bulk.report.render.formatting import span

    with at_work(f"reading {manifest}"):
        read = reading.read_manifest(manifest, overrides, os.environ)
    if read.audit is not None:
        from bulk.audit.audit import prepare
        from bulk.clock import Clock

        prepare(read, Clock().now())
    with scratch_folder("check") as workspace, at_work(f"checking {manifest}") as tell:
        checked = checking.check(
            read,
            workspace,
            stdin=sys.stdin.buffer if sys.stdin else None,
            progress=tell,
        )
    found = check_data.of_checked(checked)
    if as_json:
        output.out_json(found)
        return 0
    output.out_table(
        ["job", "operation", "items", "lanes", "longest lane", "requests"],
        [
            [
                job.job,
                job.operation,
                f"{job.items:,}",
                f"{job.lanes:,}" if job.lanes else "-",
                f"{job.longest_lane} ({job.longest_lane_items:,})" if job.longest_lane else "-",
                span(job.least_requests, job.most_requests),
            ]
            for job in found.jobs
        ],
        right=frozenset((2, 3, 5)),
    )
    for note in found.notes:
        output.say(f"note: {note}")
    return 0
