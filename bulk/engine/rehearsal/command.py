"""`bulk rehearse`: what is asked of the platform and of earlier runs before the rehearsal, and the rehearsal itself."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from bulk.bundle.checked import refuse_standard_input
from bulk.engine.commands import ask_budgets, run_manifest
from bulk.engine.rehearsal.measured import Measured, measured
from bulk.engine.rehearsal.model_platform import ModelBudget
from bulk.engine.rehearsal.rehearse import Rehearsed, model_of, rehearse_all
from bulk.engine.status.unfinished import refuse_unfinished
from bulk.engine.surroundings import Surroundings
from bulk.errors import UsageError
from bulk.manifest.manifest import Manifest
from bulk.manifest.reading import Overrides, read_manifest
from bulk.model import SUCCESSFUL
from bulk.status import Silence, Working, silently
from bulk.storage.scratch import scratch_folder

USUAL_S = 0.1
"""How long an answer takes if no latency was learnt (seconds)."""
HOUR_S = 3600.0
PROBES = 10
"""Reads that are sent to learn latencies from (count)."""
LONG = 20_000
SEEDS = ((2_000, 20), (LONG, 5))
"""A run with fewer items than the former is rehearsed as often as the latter says (counts): 20 ends span the real one
nine times in ten."""


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of the command line.

    Attributes:
        budgets: requests in a window (count) and its length (seconds), by category.
        faults: shares of the requests, by kind.
        assumed: numbers of items of jobs whose items are made from results, by job name (counts).
        learnt_from: run directories of earlier runs.
        seeds: number of rehearsals (count); None: as many as the size allows.
        asks: also rehearse what would change the end.
        is_offline: nothing is sent. probes: some reads are sent. tokens: tokens that share the work (count).
    """

    budgets: Mapping[str, tuple[int, float]]
    faults: Mapping[str, float]
    assumed: Mapping[str, int]
    learnt_from: tuple[Path, ...]
    seeds: int | None
    asks: bool
    is_offline: bool
    probes: bool = False
    tokens: int = 1


@dataclass(frozen=True, slots=True)
class Told:
    """The manifest, and what the platform told of its budgets.

    Attributes:
        latency_s: how long an answer of the platform took (seconds); None: the platform was not asked.
        learnt: what was measured in earlier runs and in the reads that were sent for it.
    """

    manifest: Manifest
    budgets: Mapping[str, ModelBudget]
    latency_s: float | None
    learnt: Measured
    notes: tuple[str, ...]


async def told(path: Path, given: Given, *, overrides: Overrides, environ: Mapping[str, str]) -> Told:
    """Read the manifest, and ask for the budgets that were not given; send some reads if `--probe` was given.

    Raises:
        BulkError: the manifest can't be used, the platform can't be asked, or an earlier run can't be read.
    """
    manifest = read_manifest(path, overrides, environ)
    categories = {job.operation.category for job in manifest.jobs}
    refuse_standard_input(manifest, "rehearsed")
    _refuse_unused(manifest, given, categories)
    budgets: dict[str, ModelBudget] = {
        name: ModelBudget(limit=count, seconds=seconds, remaining=count)
        for name, (count, seconds) in given.budgets.items()
    }
    notes: list[str] = []
    with scratch_folder("probe") as folder:
        runs = given.learnt_from
        if given.probes:
            runs += await _probed(manifest, folder / "run", overrides, environ, notes)
        learnt = await anyio.to_thread.run_sync(measured, runs)
    latency_s: float | None = None
    if not given.is_offline:
        told = await ask_budgets(manifest, environ)
        latency_s = told.latency_s
        notes.extend(told.notes)
        for bucket in told.buckets:
            if bucket.category in budgets or bucket.category not in categories or bucket.limit is None:
                continue
            if bucket.window_s is None:
                notes.append(f"the length of a window of {bucket.category} was not seen: an hour is assumed")
            window_s = bucket.window_s or HOUR_S
            is_untouched = bucket.reset_at is None or bucket.remaining == bucket.limit
            ends_in_s = (
                None if is_untouched else min(bucket.reset_at or 0.0, window_s)
            )  # a window ends within its length
            budgets[bucket.category] = ModelBudget(
                limit=bucket.limit,
                seconds=window_s,
                remaining=bucket.remaining if bucket.remaining is not None else bucket.limit,
                ends_in_s=ends_in_s,
            )
    if given.tokens > 1:
        budgets = {name: budget.times(given.tokens) for name, budget in budgets.items()}
        notes.append(f"{given.tokens} tokens with a budget each; those that are not there yet are taken to be unused")
    return Told(manifest, budgets, latency_s, learnt, tuple(notes))


def _refuse_unused(manifest: Manifest, given: Given, categories: AbstractSet[str]) -> None:
    """Refuse arguments for a job or a category that the manifest does not have: they would change nothing."""
    jobs = {job.name: job for job in manifest.jobs}
    for name in given.assumed:
        if name not in jobs:
            raise UsageError(f"--assume {name}: the manifest has no job of that name")
        if jobs[name].derivation is None:
            raise UsageError(
                f"--assume {name}: its items stand in the manifest or its items file, so that they are known"
            )
    for category in given.budgets:
        if category not in categories:
            told = ", ".join(sorted(categories))
            raise UsageError(f"--budget {category}: no job of the manifest needs that category; they need {told}")


async def _probed(
    manifest: Manifest, run_dir: Path, overrides: Overrides, environ: Mapping[str, str], notes: list[str]
) -> tuple[Path, ...]:
    """Run a few items of the jobs that read, without the jobs they need; return the run, or nothing if no job reads."""
    reads = [job.name for job in manifest.jobs if job.operation.is_read and not job.derivation][:PROBES]
    if not reads:
        notes.append("no job reads, so that --probe could learn nothing")
        return ()
    wanted = replace(overrides, jobs=tuple(reads), limit=-(-PROBES // len(reads)), with_needs=False)
    report = await run_manifest(
        manifest.path,
        overrides=wanted,
        run_dir=run_dir,
        display=Silence(),
        environ=environ,
        surroundings=Surroundings(handles_signals=True),
    )
    refuse_unfinished(report, "--probe")
    failures = sum(count for outcome, count in report.outcomes.items() if outcome not in SUCCESSFUL)
    failed = f"; {failures} of its reads failed, and nothing is learnt from those" if failures else ""
    notes.append(f"--probe sent {report.requests} requests{failed}")
    return (run_dir,)


def rehearsed(told: Told, given: Given, working: Working = silently) -> Rehearsed:
    """Rehearse the manifest with what was told and learnt; blocks.

    Args:
        working: shows what is done, and with how many items.

    Raises:
        BulkError: an item can't be used.
    """
    learnt = told.learnt
    latency_s = told.latency_s or USUAL_S
    notes = [*told.manifest.notes, *told.notes]
    if learnt.runs:
        runs = f"{learnt.runs} run{'s' if learnt.runs > 1 else ''}"
        notes.append(f"latencies are learnt from {runs}, {learnt.items:,} items")
    else:
        how = "that of GET /rate_limit" if told.latency_s else "assumed"
        notes.append(f"the latency of {latency_s * 1000:.0f} ms is {how}: --from RUN learns it from an earlier run")
    notes.append("the platform's own throughput was not measured: where it is the limit, the run ends later")
    if told.manifest.limits.gate == "manual":
        notes.append("gates that are opened by hand are taken to be open")
    faults = dict(given.faults)
    if not faults and learnt.lost:
        faults = {"drop-after": learnt.lost}
        notes.append(f"{learnt.lost:.1%} of the answers are taken to be lost, as in those runs")
    model = model_of(told.budgets, learnt, latency_s, faults)
    size = sum(len(job.items or ()) or LONG for job in told.manifest.jobs)
    seeds = given.seeds or next((seeds for most, seeds in SEEDS if size < most), 1)
    found = rehearse_all(told.manifest, model, seeds=seeds, assumed=given.assumed, asks=given.asks, working=working)
    return Rehearsed(
        course=found.course,
        earliest_s=found.earliest_s,
        latest_s=found.latest_s,
        seeds=found.seeds,
        what_if=found.what_if,
        seen=learnt.per_second,
        notes=(*found.notes, *notes),
    )
