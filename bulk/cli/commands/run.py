"""`bulk run`: check a manifest, run it, print its report."""

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bulk.cli import foreground
from bulk.cli.commands.cluster import stored, submit
from bulk.cli.logs import Command
from bulk.cli.options import LIMITS, MANIFEST, PLATFORM, RunDirectory, overriding

if TYPE_CHECKING:
    from bulk.engine.approval import Approve
    from bulk.manifest.reading import Overrides
    from bulk.report.fold import Report
    from bulk.status import Display


@click.command(cls=Command)
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option("--run-dir", metavar="DIR", type=RunDirectory(), help="Default: runs/NAME-TIME. An existing one resumes.")
@click.option("--yes", "is_yes", is_flag=True, help="Answer the question before what can't be undone.")
@click.option(
    "--confirm-above",
    metavar="N",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="On a terminal, ask before more items than this are written.",
)
@click.option("--store", metavar=stored.STORE, help="Submit it to this store, whose workers do it, and wait.")
@click.option(
    "--accept-wave",
    "accepted",
    metavar="N",
    type=click.IntRange(min=1),
    multiple=True,
    help="Go on with this wave although it is over a budget. Repeatable.",
)
@overriding(*MANIFEST, *PLATFORM, *LIMITS)
@foreground.showing
def run(
    *,
    manifest: Path,
    run_dir: Path | None,
    is_yes: bool,
    confirm_above: int,
    store: str | None,
    accepted: tuple[int, ...],
    overrides: "Overrides",
    **showing: Any,
) -> int:
    """Check MANIFEST, run it, print its report. An approved plan does what it has seen, and nothing else.

    With the run directory of an earlier run it goes on with that run: nothing is lost, nothing is done twice.

    On a terminal it shows what would be done and asks, where something can't be undone or much is written.

    With --store it is submitted: workers of the store do it, and this command waits and takes the results home.
    Interrupted, it leaves the run to them; the same command waits again.
    """
    from bulk.cli.progress.painter import Painter
    from bulk.cli.question import Question
    from bulk.engine import commands
    from bulk.engine.surroundings import Surroundings

    if store is not None:
        return submit.run_in_store(
            manifest,
            store,
            run_dir,
            overrides=overrides,
            question=Question(is_yes=is_yes, above=confirm_above, alone=contextlib.nullcontext),
            progress=showing["progress"],
            as_json=showing["as_json"],
        )
    made, is_first = run_dir is None, not commands.RUNS.exists()
    manifest, overrides, place, approve = _meant(manifest, overrides, run_dir)

    async def start(display: "Display", cache: Path | None) -> "Report":
        alone = display.suspended if isinstance(display, Painter) else contextlib.nullcontext
        return await commands.run_manifest(
            manifest,
            overrides=overrides,
            run_dir=place,
            cache=cache,
            display=display,
            environ=os.environ,
            surroundings=Surroundings(
                handles_signals=True,
                is_steered=True,
                accepted_waves=frozenset(accepted),
                approve=approve or Question(is_yes=is_yes, above=confirm_above, alone=alone),
            ),
        )

    try:
        return foreground.run(start, place, **showing)
    finally:
        if made:
            commands.remove_if_empty(place, with_parent=is_first)


def _meant(given: Path, overrides: "Overrides", run_dir: Path | None) -> "tuple[Path, Overrides, Path, Approve | None]":
    """Return the manifest, what overrides it, the run directory, and the approval where `given` is a plan."""
    from bulk.clock import Clock
    from bulk.engine.migrations import plan_file, planned_run

    if not plan_file.is_plan(given):
        return given, overrides, run_dir or _new_run_dir(given, overrides), None
    plan = plan_file.read_plan(given)
    place = run_dir or planned_run.run_dir_of(plan)
    approve = planned_run.approval_of(plan, given, place, Clock())
    return Path(plan.origin.manifest), plan.origin.overrides(overrides), place, approve


def _new_run_dir(manifest: Path, overrides: "Overrides") -> Path:
    from bulk.clock import Clock
    from bulk.engine.commands import new_run_dir
    from bulk.manifest.reading import read_manifest

    return new_run_dir(read_manifest(manifest, overrides, os.environ).name, Clock())
