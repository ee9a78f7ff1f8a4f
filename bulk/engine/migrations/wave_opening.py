"""`bulk approve RUN --wave N`: waves are opened that the run has and that wait for somebody, and no others.

A gate that opens by itself, a run that is complete and a wave that is none of its own are mistakes of whoever asks:
what was meant would not happen, and would be noticed only when the run goes on.
"""

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

from bulk.engine.agreement import gates
from bulk.engine.execution import MANIFEST
from bulk.engine.origin import Origin
from bulk.errors import UsageError
from bulk.ledger.view import LedgerView
from bulk.manifest.manifest import Manifest
from bulk.manifest.reading import Overrides, read_manifest
from bulk.quantities import Share
from bulk.report.render.formatting import counted
from bulk.report.run_state import RunJob, RunState, run_state_of
from bulk.schedule.waves import NEVER, Waves


def open_waves(run_dir: Path, wave: int, now: float) -> range:
    """Open the waves of the run in `run_dir` up to `wave`, and return which ones were not open before.

    Args:
        wave: number, from 1. now: UTC epoch seconds.

    Raises:
        UsageError: the run has no such wave, it has passed it, or none of its waves waits for anybody.
        BulkError: the run can't be read, or what was decided can't be written.
    """
    run_state = run_state_of(LedgerView(run_dir), now)
    origin = Origin.load(run_dir)
    manifest = read_manifest(
        Path(origin.manifest), origin.overrides(Overrides()), os.environ, text_at=run_dir / MANIFEST
    )
    refusal = _refusal(run_dir, manifest, run_state, wave)
    if refusal:
        raise UsageError(refusal)
    before = gates.read_gates(run_dir).opened
    gates.decide(run_dir, opened=wave)
    return range(before + 1, wave + 1)


def _refusal(run_dir: Path, manifest: Manifest, run_state: RunState, wave: int) -> str:
    """Return why there is no such wave to open; empty: there is."""
    limits = manifest.limits
    if not limits.waves:
        return f"{run_dir} has no waves: its manifest has no limits.waves"
    if limits.gate != "manual":
        return f"the waves of {run_dir} begin by themselves: limits.gate in its manifest is not manual"
    if run_state.state == "complete":
        return f"{run_dir} is complete: it has no wave left to open"
    of = _most_waves(limits.waves, _written(manifest, run_state.jobs))
    if wave > of:
        return f"{run_dir} has {counted(of, 'wave')}; there is no wave {wave}"
    gate = gates.closed_gate(run_state.why)
    if gate is not None and not gate.is_over and wave < gate.wave:
        way_on = shlex.join(["bulk", "approve", str(run_dir), "--wave", str(gate.wave)])
        return f"{run_dir} has passed wave {wave}; it waits at wave {gate.wave} of {gate.of}: {way_on}"
    return ""


def _written(manifest: Manifest, jobs: Iterable[RunJob]) -> list[int | None]:
    """Return how many items each job has that writes; None where that is not known yet."""
    items = {job.name: job.items for job in jobs}
    return [items.get(job.name) for job in manifest.jobs if not job.operation.is_read]


def _most_waves(sizes: tuple[Share, ...], items: Iterable[int | None]) -> int:
    waves = Waves(sizes)
    return max((len(waves.ends(NEVER if each is None else each)) for each in items), default=0)
