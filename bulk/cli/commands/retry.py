"""`bulk retry`: what did not succeed, once more."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bulk.cli import foreground, output
from bulk.cli.commands.cluster import stored, stored_steering
from bulk.cli.logs import Command
from bulk.cli.options import (
    LIMITS,
    OF_ITS_PROCESS,
    PLATFORM,
    PLATFORM_AND_LIMITS,
    RunDirectory,
    overriding,
    refuse_for_workers,
)
from bulk.errors import UsageError

if TYPE_CHECKING:
    from bulk.engine.again import Again
    from bulk.ledger.view import LedgerView
    from bulk.manifest.reading import Overrides


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@stored.in_store
@click.option(
    "--overwrite",
    "overwrites",
    is_flag=True,
    help="Write all the same over what somebody else seems to have changed since an answer was lost.",
)
@click.option("--only", metavar="OUTCOME,…", help="Only these items: failed, skipped, unknown.")
@click.option("--code", "codes", metavar="CODE", multiple=True, help="Only items with this error. Repeatable.")
@click.option("--job", "selected", metavar="NAME", multiple=True, help="Only items of this job. Repeatable.")
@overriding(*PLATFORM, *LIMITS)
@foreground.showing
def retry(
    *,
    run_dir: Path,
    store: str | None,
    overwrites: bool,
    only: str | None,
    codes: tuple[str, ...],
    selected: tuple[str, ...],
    overrides: "Overrides",
    **showing: Any,
) -> int:
    """Run again what did not succeed in RUN.

    That is what failed, was skipped or is unknown; new lines replace the old ones in the same run directory. What is
    unknown is looked at first, and nothing is overwritten that somebody else has written since.
    """
    from bulk.engine.again import Again

    again = Again(
        is_retry=True,
        jobs=selected,
        outcomes=_outcomes(only),
        codes=_codes(codes),
        overwrites=overwrites,
        by=foreground.started_by(os.environ),
    )
    if store is not None:
        if overwrites:
            raise UsageError("--overwrite is for run directories: workers of a store overwrite nothing of others")
        refuse_for_workers("--store", *PLATFORM_AND_LIMITS, *OF_ITS_PROCESS, "as_json")
        return stored_steering.retry(str(run_dir), store, again)
    from bulk.cli.progress.work import at_work
    from bulk.clock import Clock
    from bulk.ledger.view import LedgerView
    from bulk.manifest.settings import item_limit
    from bulk.report.run_state import run_state_of

    view = LedgerView(run_dir)
    run_state = run_state_of(view, Clock().now())
    if run_state.state == "complete":
        foreground.refuse_values(run_dir, overrides, showing)
        again.require([job.name for job in run_state.jobs])
        why = "" if run_state.is_to_retry else "every item succeeded or was unchanged"
        if not why:
            with at_work(f"reading {run_dir}"):
                is_any_chosen = _is_any_chosen(view, again, item_limit(overrides))
            why = "" if is_any_chosen else "no item that did not succeed is among those that were asked for"
        if why:
            output.say(f"There is nothing to retry in {run_dir}: {why}.")
            return run_state.exit_code
    return foreground.go_on(run_dir, again, overrides, showing)


def _is_any_chosen(view: "LedgerView", again: "Again", limit: int | None) -> bool:
    """Return whether a retry would run any item of a complete run again."""
    from bulk.model import ErrorCode

    kinds, codes, _ = again.chosen([name for name, _, _ in view.identity().jobs])
    for job in again.jobs or (None,):
        for line in view.finished(kinds=kinds, job=job):
            code = line["error"]["code"] if line["error"] else ""
            is_chosen = code != ErrorCode.SUPERSEDED and (not codes or code in codes)
            if is_chosen and (limit is None or line["index"] < limit):
                return True
    return False


def _outcomes(only: str | None) -> tuple[str, ...]:
    """Return the outcomes that `--only` names."""
    from bulk.engine.again import RETRIED

    known = [str(kind) for kind in RETRIED]
    found = tuple(dict.fromkeys(word.strip() for word in (only or "").split(",") if word.strip()))
    for word in found:
        if word not in known:
            raise UsageError(f"--only: {word!r} items can't be run again; expected {', '.join(known)}")
    if only is not None and not found:
        raise UsageError(f"--only: name some of {', '.join(known)}")
    return found


def _codes(codes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the codes that `--code` names."""
    from bulk.flaws import name_shown, unknown_name
    from bulk.model import ErrorCode

    for code in codes:
        if code not in tuple(ErrorCode):
            raise UsageError(f"--code {name_shown(code)}: {unknown_name(code, ErrorCode, 'code')}")
    return codes
