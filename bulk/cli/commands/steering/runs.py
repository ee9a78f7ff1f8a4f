"""`bulk runs`: the runs below a folder or in a store, and where each of them stands."""

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bulk.cli import output
from bulk.cli.commands.cluster import stored
from bulk.cli.logs import Command
from bulk.cli.options import ANY_PATH, RUNS, as_json
from bulk.errors import UsageError
from bulk.exit_codes import ExitCode
from bulk.storage.names import text_of

if TYPE_CHECKING:
    from bulk.report.run_list import ListedRun


@click.command(cls=Command)
@click.argument("folder", metavar="[DIR]", required=False, type=ANY_PATH)
@stored.in_store
@as_json
def runs(folder: Path | None, *, store: str | None, as_json: bool) -> int:
    """List the runs below DIR (default: runs), the oldest first."""
    if store is not None and folder is not None:
        raise UsageError("give a folder or --store, not both")
    place = store or (RUNS if folder is None else folder)
    found = _in_folder(folder) if store is None else _in_store(store)
    if as_json:
        output.out_json(found)
    elif not found:
        output.say(f"there is no run {'below' if store is None else 'in'} {place}")
    else:
        head = ("run", "name", "state", "items", "started", "ended", "exit")
        output.out_table(head, map(_row, found), right=frozenset((3, 6)))
    wrong = [run for run in found if run.is_damaged]
    for run in wrong:
        output.say(f"{text_of(run.run_dir)} is damaged: {run.why}")
    return ExitCode.RUN_DIRECTORY if wrong and store is not None else ExitCode.DONE


def _in_folder(folder: Path | None) -> "list[ListedRun]":
    from bulk.cli.commands.steering import asking
    from bulk.cli.progress.work import at_work
    from bulk.ledger.directory import ORIGIN, unusable
    from bulk.report.run_list import runs_below

    if folder is not None and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; `bulk runs` lists the runs below {RUNS}")
    place = RUNS if folder is None else folder
    try:
        with contextlib.suppress(FileNotFoundError), os.scandir(place):
            pass  # of a folder that can't be read nobody knows that there is no run
    except OSError as error:
        raise unusable(place, error, "name another folder") from error
    with at_work(f"reading the runs below {place}"):
        return runs_below(place, ORIGIN, asking.state_of)


def _in_store(address: str) -> "list[ListedRun]":
    with stored.opened(address, "runs") as store:
        from bulk.cluster.stored_status import listed
        from bulk.store.runs import list_all

        return [listed(run) for run in reversed(list_all(store))]


def _row(run: "ListedRun") -> tuple[str, ...]:
    done = sum((run.outcomes or {}).values())
    items = f"{done:,}/{run.items:,}" if run.items is not None else f"{done:,}" if run.outcomes else "-"
    exit_code = "-" if run.exit_code is None else str(run.exit_code)
    return (
        text_of(run.run_dir),
        text_of(run.name),
        run.state,
        items,
        _second(run.started_at),
        _second(run.ended_at),
        exit_code,
    )


def _second(at: float | None) -> str:
    from bulk.report.render.formatting import iso

    return "-" if at is None else f"{(iso(at) or '-')[:19].replace('T', ' ')}Z"
