"""`bulk run`: check a manifest, run it, print its report."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bulk.cli import foreground
from bulk.cli.commands.cluster import stored, submit, with_workers
from bulk.cli.logs import Command
from bulk.cli.options import (
    ACCEPT_WAVE,
    ANY_PATH,
    LIMITS,
    MANIFEST,
    OF_ITS_PROCESS,
    PLATFORM,
    RUNS,
    RunDirectory,
    overriding,
    refuse_for_workers,
)
from bulk.errors import UsageError

if TYPE_CHECKING:
    from bulk.engine.agreement.approval import Approve
    from bulk.manifest.manifest import Manifest
    from bulk.manifest.reading import Overrides
    from bulk.report.fold import Report
    from bulk.status import Display


@click.command(cls=Command)
@click.argument("manifest", type=ANY_PATH)
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
@ACCEPT_WAVE
@click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(min=1, max=64),
    help="Have N processes of this machine do it, each of which may be killed.",
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
    workers: int | None,
    overrides: "Overrides",
    **showing: Any,
) -> int:
    """Check MANIFEST, run it, print its report. An approved plan does what it has seen, and nothing else.

    With the run directory of an earlier run it goes on with that run: nothing is lost, nothing is done twice.

    On a terminal it shows what would be done and asks, where something can't be undone or much is written.

    With --store it is submitted: workers of the store do it, and this command waits and takes the results home.
    Interrupted, it leaves the run to them; the same command waits again. With --workers it does the same with a store
    and workers of its own.
    """
    from bulk.cli.question import Question

    if store is not None and workers is not None:
        raise UsageError("--workers starts workers of its own; --store is for those of a store: give one of them")
    ask = partial(Question, is_yes=is_yes, above=confirm_above)
    question = ask(alone=contextlib.nullcontext)
    shared = {"overrides": overrides, "question": question, **{name: showing[name] for name in ("progress", "as_json")}}
    shared["accepted"] = frozenset(accepted)
    if store is not None:
        refuse_for_workers("--store", *OF_ITS_PROCESS)
        return submit.run_in_store(manifest, store, run_dir, **shared)
    with _place(manifest, overrides, run_dir) as meant:
        if workers is None or with_workers.is_at_home(meant.run_dir):
            return _run_alone(meant, ask, accepted, showing)
        if meant.approve is not None:
            raise UsageError("an approved plan is carried out by one process: give it without --workers")
        refuse_for_workers("--workers", *OF_ITS_PROCESS)
        shared |= {"overrides": meant.overrides, "read": meant.read}
        return with_workers.run(meant.manifest, workers, meant.run_dir, **shared)


@dataclasses.dataclass(frozen=True, slots=True)
class _Meant:
    """What the command line means.

    Attributes:
        read: the manifest, where it had to be read for the name of the run directory.
        approve: agrees to the run of a plan.
    """

    manifest: Path
    overrides: "Overrides"
    run_dir: Path
    read: "Manifest | None" = None
    approve: "Approve | None" = None


def _run_alone(meant: _Meant, ask: "Callable[..., Approve]", accepted: tuple[int, ...], showing: dict[str, Any]) -> int:
    """Run the manifest in this process; without `approve`, the question that `ask` makes decides."""
    from bulk.cli.progress.painter import Painter
    from bulk.engine import commands
    from bulk.engine.surroundings import Surroundings

    async def start(display: "Display", cache: Path | None) -> "Report":
        alone = display.suspended if isinstance(display, Painter) else contextlib.nullcontext
        return await commands.run_manifest(
            meant.manifest,
            overrides=meant.overrides,
            run_dir=meant.run_dir,
            display=display,
            environ=os.environ,
            surroundings=Surroundings(
                cache=cache,
                handles_signals=True,
                is_steered=True,
                accepted_waves=frozenset(accepted),
                approve=meant.approve or ask(alone=alone),
            ),
            read=meant.read,
        )

    return foreground.run(start, meant.run_dir, **showing)


@contextlib.contextmanager
def _place(given: Path, overrides: "Overrides", run_dir: Path | None) -> Iterator[_Meant]:
    """Yield the result of `_meant`; a run directory that was made for it is removed where no run began in it."""
    from bulk.engine import commands

    is_first = not RUNS.exists()
    found = _meant(given, overrides, run_dir)
    try:
        yield found
    finally:
        if run_dir is None:
            commands.remove_if_empty(found.run_dir, with_parent=is_first)


def _meant(given: Path, overrides: "Overrides", run_dir: Path | None) -> _Meant:
    """Return what `given`, a manifest or a plan, means; where no run directory is given, one is made."""
    from bulk.clock import Clock
    from bulk.engine.agreement import plan_file, planned_run
    from bulk.engine.commands import new_run_dir

    if not plan_file.is_plan(given):
        if run_dir is not None:
            return _Meant(given, overrides, run_dir)
        read = _read(given, overrides)
        return _Meant(given, overrides, new_run_dir(read.name, Clock()), read)
    plan = plan_file.read_plan(given)
    place = run_dir or planned_run.run_dir_of(plan)
    planned_run.keep_to(plan, given, place)
    approve = planned_run.approval_of(plan, given, place, Clock())
    base_url = overrides.base_url or os.environ.get("BULK_BASE_URL")  # another one than the plan's is refused
    overrides = plan.origin.overrides(dataclasses.replace(overrides, base_url=base_url))
    return _Meant(Path(plan.origin.manifest), overrides, place, approve=approve)


def _read(manifest: Path, overrides: "Overrides") -> "Manifest":
    from bulk.cli.progress.work import at_work
    from bulk.manifest.reading import read_manifest

    with at_work(f"reading {manifest}"):
        return read_manifest(manifest, overrides, os.environ)
