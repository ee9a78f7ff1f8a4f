"""A run of an approved plan: it does what was looked at, and nothing else.

The run directory is named by the plan's digest, so that the same plan is never begun twice: a second call goes on with
the first run. A copy of the plan is kept in the run directory, so that every resume keeps to it.
"""

from pathlib import Path
from typing import Final

from bulk.bundle.checked import Checked
from bulk.clock import Clock
from bulk.engine.agreement import plan_file
from bulk.engine.agreement.approval import Approve
from bulk.engine.agreement.plan_file import PlanFile
from bulk.errors import RunDirectoryError
from bulk.execute.preview import Planned
from bulk.ledger.companion_files import bound_part, digest_of
from bulk.ledger.database import LEDGER
from bulk.ledger.directory import RUNS, safe_name, unusable
from bulk.storage.private_files import write_whole

NAME: Final = "plan.json"
"""The copy of the plan in a run directory."""


def run_dir_of(plan: PlanFile) -> Path:
    """Return the default run directory of a plan."""
    return RUNS / f"{safe_name(plan.name)}-{plan.digest[:12]}"


def approval_of(plan: PlanFile, path: Path, run_dir: Path, clock: Clock) -> Approve:
    """Return the function that lets the run of a plan begin if the plan is approved and still holds (`Approve`)."""

    def approve(checked: Checked) -> None:
        plan_file.require_current(plan, path, checked, run_dir, clock.now())
        try:
            write_whole(run_dir / NAME, path.read_bytes())
        except OSError as error:
            raise unusable(run_dir, error) from error

    return approve


def keep_to(plan: PlanFile, path: Path, run_dir: Path) -> None:
    """Refuse to go on with a run that does not keep to this plan; if its copy of the plan is gone, write it again.

    Raises:
        RunDirectoryError: the run was begun without a plan, or with another one.
    """
    copy = run_dir / NAME
    if not (run_dir / LEDGER).exists():
        return
    if copy.exists():
        if plan_file.read_plan(copy).digest != plan.digest:
            raise RunDirectoryError(f"{run_dir} is the run of another plan than {path}; name another --run-dir")
        return
    bound = bound_part(run_dir, NAME)
    if bound is None:
        raise RunDirectoryError(
            f"{run_dir} was begun without a plan, so that {path} can't hold; name another --run-dir"
        )
    if bound != digest_of(path):
        raise RunDirectoryError(
            f"{copy} is gone, and {path} is another plan, or was approved again since; restore it from a copy"
        )
    try:
        write_whole(copy, path.read_bytes())
    except OSError as error:
        raise unusable(run_dir, error) from error


def planned_in(run_dir: Path) -> Planned | None:
    """Return what the plan of a run has seen; None: the run has no plan.

    Raises:
        RunDirectoryError: the plan was changed, or is gone.
    """
    path = run_dir / NAME
    if bound_part(run_dir, NAME) is not None and not path.exists():
        raise RunDirectoryError(
            f"{path} is gone, and this run does what a plan has seen and nothing else; restore it from a copy, or go "
            "on with `bulk run` and the plan's file, which makes it again"
        )
    return plan_file.planned_of(plan_file.read_plan(path)) if path.is_file() else None
