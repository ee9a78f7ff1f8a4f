"""`bulk runs`: the runs below a folder, and where each of them stands."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.cli.options import RUNS, as_json
from bulk.errors import BulkError, UsageError


@click.command(cls=Command)
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@as_json
def runs(folder: Path | None, *, as_json: bool) -> int:
    """List the runs below DIR (default: runs), the oldest first."""
    place = RUNS if folder is None else folder
    if folder is not None and not folder.is_dir():
        raise UsageError(f"{folder} is no folder")
    found = sorted(_found(place), key=lambda run: (run["started_at"] or "", run["run_dir"]))
    if as_json:
        output.out_json(found)
    elif not found:
        output.say(f"there is no run below {place}")
    else:
        head = ("run", "name", "state", "items", "started", "ended", "exit")
        output.out_table(head, map(_row, found), right=frozenset((3, 6)))
    return 0


def _found(place: Path) -> Iterator[dict[str, Any]]:
    from bulk.engine.origin import NAME
    from bulk.ledger.database import LEDGER

    try:
        folders = [place, *sorted(place.iterdir())]
    except OSError:
        return
    for folder in folders:
        try:
            has_ledger, has_origin = (folder / LEDGER).is_file(), (folder / NAME).is_file()
        except OSError:  # a folder of another user
            continue
        if has_ledger:
            yield _run(folder)
        elif has_origin:
            yield _unbegun(folder)


def _run(run_dir: Path) -> dict[str, Any]:
    """A run with a ledger; one that can't be read is `damaged`, with the reason."""
    from bulk.cli.commands.steering import asking
    from bulk.report.render.formatting import iso

    try:
        standing = asking.standing_of(run_dir)
    except BulkError as error:
        return _data(run_dir, run_dir.name, "damaged", why=str(error))
    assert standing is not None, "it has a ledger"
    first, last = (standing.epochs[0], standing.epochs[-1]) if standing.epochs else (None, None)
    return _data(
        run_dir,
        standing.name,
        standing.state,
        items=standing.items,
        outcomes=standing.outcomes,
        started_at=None if first is None else iso(first.started_at),
        ended_at=None if last is None or last.ended_at is None or standing.is_live else iso(last.ended_at),
        exit_code=None if standing.is_live else standing.exit_code,
        why=standing.why,
    )


def _unbegun(run_dir: Path) -> dict[str, Any]:
    """A run whose manifest is being checked, or was when its process ended."""
    from bulk.ledger.directory import is_held

    return _data(run_dir, run_dir.name, "checking" if is_held(run_dir) else "lost")


def _data(run_dir: Path, name: str, state: str, **known: Any) -> dict[str, Any]:
    unknown = dict.fromkeys(("items", "outcomes", "started_at", "ended_at", "exit_code"))
    return {"run_dir": str(run_dir), "name": name, "state": state, **unknown, "why": "", **known}


def _row(run: dict[str, Any]) -> tuple[str, ...]:
    done = sum((run["outcomes"] or {}).values())
    items = f"{done:,}/{run['items']:,}" if run["items"] is not None else f"{done:,}" if run["outcomes"] else "-"
    started, ended = (_minute(run[name]) for name in ("started_at", "ended_at"))
    exit_code = "-" if run["exit_code"] is None else str(run["exit_code"])
    return run["run_dir"], run["name"], run["state"], items, started, ended, exit_code


def _minute(at: str | None) -> str:
    return "-" if at is None else at[:19].replace("T", " ") + "Z"
