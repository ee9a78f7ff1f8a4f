"""`bulk check`: a manifest and every item of it, offline."""

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.cli.options import LIMITS, PLATFORM, as_json, overriding

if TYPE_CHECKING:
    from bulk.bundle.checked import Checked
    from bulk.manifest.reading import Overrides


@click.command(cls=Command)
@click.argument("manifest", type=click.Path(path_type=Path))
@overriding(*PLATFORM, *LIMITS)
@as_json
def check(*, manifest: Path, overrides: "Overrides", as_json: bool) -> int:
    """Check MANIFEST and every item of it offline.

    Nothing is sent and no credential is opened.
    """
    from bulk.check import checking
    from bulk.manifest import reading

    with tempfile.TemporaryDirectory(prefix="bulk-check-") as workspace:
        checked = checking.check(
            reading.read_manifest(manifest, overrides, os.environ),
            Path(workspace),
            stdin=sys.stdin.buffer if sys.stdin else None,
            progress=None,
        )
    counts = _counts(checked)
    if as_json:
        output.out_json(counts)
        return 0
    output.out_table(
        ["job", "operation", "items", "lanes", "longest lane", "requests"],
        [
            [
                job["job"],
                job["operation"],
                f"{job['items']:,}",
                f"{job['lanes']:,}" if job["lanes"] else "-",
                f"{job['longest_lane']} ({job['longest_lane_items']:,})" if job["longest_lane"] else "-",
                _span(job["least_requests"], job["most_requests"]),
            ]
            for job in counts["jobs"]
        ],
        right=frozenset((2, 3, 5)),
    )
    for note in counts["notes"]:
        output.say(f"note: {note}")
    return 0


def _counts(checked: "Checked") -> dict[str, Any]:
    jobs = [
        {
            "job": job.name,
            "operation": job.operation.name,
            "items": found.items,
            "lanes": found.lanes,
            "longest_lane": found.longest_lane[0] if found.longest_lane else None,
            "longest_lane_items": found.longest_lane[1] if found.longest_lane else 0,
            "least_requests": found.least_requests,
            "most_requests": found.most_requests,
        }
        for job, found in zip(checked.manifest.jobs, checked.jobs, strict=True)
    ]
    return {"name": checked.manifest.name, "jobs": jobs, "notes": list(checked.notes)}


def _span(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
