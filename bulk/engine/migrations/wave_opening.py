"""`bulk approve RUN --wave N`: opens waves that the run has and that wait for a person, and no others.

A gate that opens by itself, a run that is complete and a wave that the run does not have are mistakes of the caller:
what was meant would not happen, which would be noticed only when the run goes on.
"""

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

from bulk.engine.agreement import gates
from bulk.engine.origin import manifest_of
from bulk.errors import UsageError
from bulk.ledger.records import Action
from bulk.ledger.view import LedgerView
from bulk.manifest.manifest import Manifest
from bulk.manifest.reading import Overrides
from bulk.report.run_state import RunJob, run_state_of
from bulk.report.wave_gates import read_gates


def open_waves(run_dir: Path, wave: int, now: float, who: str) -> range:
    """Open the waves of the run in `run_dir` up to `wave`, and return which ones were not open before; the end of the
    range is behind the last one that is open.

    Args:
        wave: number, from 1. now: UTC epoch seconds. who: who does it, for the table of actions.

    Raises:
        UsageError: the run has no such wave, it has passed that wave, or none of its waves waits for a person.
        BulkError: the run can't be read, or what was decided can't be written.
    """
    view = LedgerView(run_dir)
    run_state = run_state_of(view, now)
    manifest = manifest_of(view, Overrides(), os.environ)
    limits = manifest.limits
    if not limits.waves:
        raise UsageError(f"{run_dir} has no waves: its manifest has no limits.waves")
    run = gates.Openable(
        str(run_dir),
        gates.most_waves(limits.waves, _written(manifest, run_state.jobs)),
        limits.gate == "manual",
        run_state.state == "complete",
        run_state.why,
        f"bulk approve {shlex.quote(str(run_dir))} --wave",
    )
    if refusal := run.refusal(wave):
        raise UsageError(refusal)
    before = read_gates(run_dir).opened
    action = Action(at=now, who=who, verb="approve", args={"wave": wave}, result=run_state.state)
    gates.decide(run_dir, opened=wave, opened_by=(action,) if wave > before else ())
    return range(before + 1, max(before, wave) + 1)


def _written(manifest: Manifest, jobs: Iterable[RunJob]) -> list[int | None]:
    """Return how many items each job that writes has; None where that is not known yet."""
    items = {job.name: job.items for job in jobs}
    return [items.get(job.name) for job in manifest.jobs if not job.operation.is_read]
