"""`bulk rehearse`: what is asked of the platform and of earlier runs before the rehearsal, and the rehearsal itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bulk.engine.commands import ask_budgets
from bulk.engine.rehearsal.measured import measured
from bulk.engine.rehearsal.model_platform import ModelBudget
from bulk.engine.rehearsal.rehearse import Rehearsed, model_of, rehearse_all
from bulk.errors import UsageError
from bulk.manifest.manifest import Manifest
from bulk.manifest.reading import Overrides, read_manifest

USUAL_S = 0.1
"""How long an answer takes of which nothing was learnt (seconds)."""
HOUR_S = 3600.0
LONG = 20_000
SEEDS = ((2_000, 20), (LONG, 5))
"""Rehearsals of a run with fewer items (counts): the range of 20 holds the real end nine times in ten."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line says.

    Attributes:
        budgets: requests in a window and its seconds, by category. faults: shares of the requests, by kind.
        assumed: items of jobs whose items are made from results. learnt_from: earlier runs.
        seeds: rehearsals (count); None: as many as the size allows. asks: also what would change the end.
        is_offline: nothing is sent.
    """

    budgets: Mapping[str, tuple[int, float]]
    faults: Mapping[str, float]
    assumed: Mapping[str, int]
    learnt_from: tuple[Path, ...]
    seeds: int | None
    asks: bool
    is_offline: bool


@dataclass(frozen=True, slots=True)
class Told:
    """The manifest, and what the platform says of its budgets; latency_s: how long it took to say so (seconds)."""

    manifest: Manifest
    budgets: Mapping[str, ModelBudget]
    latency_s: float | None
    notes: tuple[str, ...]


async def told(path: Path, given: Given, *, overrides: Overrides, environ: Mapping[str, str]) -> Told:
    """Read the manifest, and ask for the budgets that were not given.

    Raises:
        BulkError: the manifest can't be used, or the platform can't be asked.
    """
    manifest = read_manifest(path, overrides, environ)
    categories = {job.operation.category for job in manifest.jobs}
    unknown = [name for name in given.assumed if name not in {job.name for job in manifest.jobs}]
    if unknown:
        raise UsageError(f"--assume {unknown[0]}: the manifest has no job of that name")
    budgets: dict[str, ModelBudget] = {
        name: ModelBudget(limit=count, seconds=seconds, remaining=count)
        for name, (count, seconds) in given.budgets.items()
    }
    notes: list[str] = []
    latency_s: float | None = None
    if not given.is_offline:
        found, latency_s = await ask_budgets(manifest, environ)
        for bucket in found:
            if bucket.category in budgets or bucket.category not in categories or bucket.limit is None:
                continue
            if bucket.window_s is None:
                notes.append(f"the length of a window of {bucket.category} was not seen: an hour is assumed")
            ends_in_s = None if bucket.reset_at is None or bucket.remaining == bucket.limit else bucket.reset_at
            budgets[bucket.category] = ModelBudget(
                limit=bucket.limit,
                seconds=bucket.window_s or HOUR_S,
                remaining=bucket.remaining if bucket.remaining is not None else bucket.limit,
                ends_in_s=ends_in_s,
            )
    return Told(manifest, budgets, latency_s, tuple(notes))


def rehearsed(told: Told, given: Given) -> Rehearsed:
    """Rehearse it; blocks.

    Raises:
        BulkError: an item can't be used, or an earlier run can't be read.
    """
    learnt = measured(given.learnt_from)
    latency_s = told.latency_s or USUAL_S
    notes = list(told.notes)
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
    found = rehearse_all(told.manifest, model, seeds=seeds, assumed=given.assumed, asks=given.asks)
    return Rehearsed(
        course=found.course,
        earliest_s=found.earliest_s,
        latest_s=found.latest_s,
        seeds=found.seeds,
        what_if=found.what_if,
        seen=learnt.per_second,
        notes=(*found.notes, *notes),
    )
