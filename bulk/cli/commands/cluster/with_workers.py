"""`bulk run --workers N`: several workers and a PostgreSQL of their own, on this machine, for this run alone."""

import os
import shlex
import sys
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bulk.cli import errors, event_loop, output
from bulk.cli.commands.cluster import stored
from bulk.errors import BulkError, Interrupted, RunDirectoryError

if TYPE_CHECKING:
    from bulk.cli.question import Question
    from bulk.cluster.local.folder_beside import Beside
    from bulk.manifest.manifest import Manifest
    from bulk.manifest.reading import Overrides
    from bulk.report.record import Report
    from bulk.store.runs import StoredRun

_WORKER = "bulk.cli.commands.cluster.local_worker"


def is_at_home(run_dir: Path | None) -> bool:
    """Return whether a run directory has a run's results, so that no workers are needed to go on with it."""
    if run_dir is None:
        return False
    from bulk.cluster.local import folder_beside

    return folder_beside.is_at_home(run_dir)


def is_under_way(run_dir: Path) -> bool:
    """Return whether workers do the run, so that its results are not in `run_dir` yet."""
    from bulk.cluster.local import folder_beside

    return folder_beside.is_under_way(run_dir)


def refuse_under_way(run_dir: Path) -> None:
    """Refuse a run that workers do.

    Raises:
        RunDirectoryError: workers do the run; the message names the store that has it.
    """
    if is_under_way(run_dir):
        from bulk.cluster.local.folder_beside import folder_of

        where = shlex.join([run_dir.resolve().name, "--store", os.path.relpath(folder_of(run_dir))])
        raise RunDirectoryError(f"{run_dir} is done by workers: bulk status {where}, and so with the other commands")


def approve(run_dir: Path, wave: int) -> int:
    """Open the waves of a run up to `wave` (number), whether its workers run or not."""
    stored.need_client("--wave")
    from bulk.cluster.local.folder_beside import folder_of

    with stored.opened(str(folder_of(run_dir)), "approve") as store:
        from bulk.cluster.stored_waves import open_waves
        from bulk.store import runs

        open_waves(store, runs.find(store, run_dir.resolve().name), stored.who(), opened=wave)
    output.out(f"waves up to {wave} of {run_dir} are open")
    output.say("Next: the command that began the run, again, with its --run-dir and --workers")
    return 0


def run(
    manifest: Path,
    count: int,
    run_dir: Path,
    *,
    overrides: "Overrides",
    question: "Question",
    progress: str,
    as_json: bool,
    accepted: AbstractSet[int],
    read: "Manifest | None",
) -> int:
    """Have `count` workers do the run, take the results home, and print the report; returns the exit code.

    Args:
        read: the manifest, where it has been read already.
    """
    stored.need_client("--workers")
    from bulk.cluster.local import folder_beside
    from bulk.store.export import refuse_taken
    from bulk.store.server.programs import binaries

    binaries()
    refuse_taken(run_dir)
    try:
        with folder_beside.held(run_dir) as beside:
            report = _report(manifest, count, run_dir, beside, overrides, question, progress, accepted, read)
    except KeyboardInterrupt:
        return _left(Interrupted("SIGINT", 130), run_dir, as_json=as_json)
    except Exception as error:
        if not isinstance(error, BulkError) and not is_under_way(run_dir):
            raise
        return _left(error, run_dir, as_json=as_json)
    output.out_report(report, as_json=as_json)
    return report.exit_code


def _report(
    manifest: Path,
    count: int,
    run_dir: Path,
    beside: "Beside",
    overrides: "Overrides",
    question: "Question",
    progress: str,
    accepted: AbstractSet[int],
    read: "Manifest | None",
) -> "Report":
    from bulk.cli.progress.painter import display
    from bulk.cluster import submission
    from bulk.cluster.local import local_run
    from bulk.manifest.reading import read_manifest
    from bulk.store import address, runs, schema
    from bulk.store.connections import StoreConnection
    from bulk.store.server.shared_server import KEPT, shared_server

    is_submitted = False
    try:
        read = read or read_manifest(manifest, overrides, os.environ)
        local_run.read_tokens(read, os.environ)
        with shared_server(beside.folder, KEPT) as place, StoreConnection(address.read(place.store()), "run") as store:
            schema.init(store)
            with display(progress, sys.stderr) as shown:
                submitted = event_loop.run(
                    lambda: submission.submit_manifest(
                        manifest, store, overrides=overrides, environ=os.environ, display=shown, approve=question,
                        accepted=accepted, who=stored.who(), alone_as=run_dir.name, read=read,
                    )
                )  # fmt: skip
                is_submitted = True
                shown.note(f"{run_dir} {'begins' if submitted.is_new else 'goes on'} with {count} workers")
                with StoreConnection(store.address, "run's workers") as another:
                    note = output.say if progress == "none" else shown.note  # what a worker says is never lost
                    workers = local_run.workers_of(read, count, beside, another, note, _WORKER)
                    who = stored.who()
                    is_new = submitted.is_new
                    run = event_loop.run(
                        lambda: local_run.to_its_end(submitted.name, store, shown, workers, who, is_new=is_new)
                    )
            if run.state != runs.COMPLETE:
                raise _stopped(run, run_dir)
            report = submission.taken_home(store, run, run_dir, submitted.notes)
        beside.remove()
        return report
    finally:
        if not is_submitted and beside.is_new:
            beside.remove()


class _Stopped(BulkError):
    """The run does not go on; its exit code says why."""


def _stopped(run: "StoredRun", run_dir: Path) -> BulkError:
    from bulk.report.wave_gates import closed_gate

    gate = closed_gate(run.why)
    how = "" if gate is None or gate.is_over else f"; bulk approve {shlex.quote(str(run_dir))} --wave {gate.wave}"
    error = _Stopped(f"{run.name} is {run.state}" + (f": {run.why}{how}" if run.why else ""))
    error.exit_code = run.exit_code
    return error


def _left(error: Exception, run_dir: Path, *, as_json: bool) -> int:
    exit_code = errors.exit_code_of(error, is_json=as_json)
    given = list(click.get_current_context().find_object(tuple) or ())
    if not any(part.split("=")[0] == "--run-dir" for part in given):
        given += ["--run-dir", str(run_dir)]
    errors.say_how_to_go_on(shlex.join(["bulk", *given]), exit_code)
    return exit_code
