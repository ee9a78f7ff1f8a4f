"""`bulk rehearse`: the run of a manifest in virtual time, and what would change its end.

The real scheduler, governor, workers and recorder run; only the platform and the disk are models. Budgets are those of
the platform now, unless they were given; latencies are learnt from earlier runs, or else measured by a few requests.
"""

import functools
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import msgspec

from bulk.bundle.checked import Checked
from bulk.check.checking import check
from bulk.clock import Clock
from bulk.engine.agreement.gates import cut
from bulk.engine.rehearsal.measured import Measured
from bulk.engine.rehearsal.model_platform import Model, ModelBudget, ModelWire
from bulk.engine.rehearsal.shaped_operations import pending, shaped
from bulk.engine.rehearsal.virtual_time import START, VirtualClock, VirtualLoop
from bulk.engine.run import Run
from bulk.engine.surroundings import Surroundings
from bulk.execute.resume_state import ResumeState
from bulk.execute.writes.late_writes import LateWrites
from bulk.execute.writes.recent_writes import RecentCreations, RecentWrites
from bulk.ledger.records import Entry, Record
from bulk.manifest.manifest import Job, Manifest
from bulk.platform.auth.manifest_credentials import credentials_of
from bulk.schedule.job_progress import JobProgress
from bulk.status import Silence, Tell, Working, silently, untold
from bulk.storage.scratch import scratch_folder

TOKEN = "rehearsal-" + "0" * 20
TICK_S = 60.0
"""Time between two statuses, which nobody reads in a rehearsal (seconds)."""
READ_LINE = b'{"outcome": "succeeded", "result": null, "error": null, "http_status": 200, "request_id": null}'
BINDING = 0.5
"""A budget decides the end of the run if more than this part of it is spent (share)."""


class JobCourse(msgspec.Struct, frozen=True, kw_only=True):
    """When a job would run.

    Attributes:
        begins_s, ends_s: when the first and the last of its items ended (seconds from the start).
        needs: names of the jobs that it needs.
    """

    name: str
    begins_s: float
    ends_s: float
    items: int
    needs: tuple[str, ...]


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """How a rehearsal went.

    Attributes:
        ends_s: when the last item ended (seconds from the start).
        requests: requests that were sent, by category (counts).
        jobs: one entry for each job, in running order.
        limit: what decides the end: a category, or `latency` where it is the time that answers take.
        windows: windows of that category from which requests were spent (count).
        to_spare: requests left in the last of these windows (count); None if no budget was spent from.
        exit_code, why: how the run would end: its exit code, and the reason where that is not 0.
    """

    ends_s: float
    jobs: tuple[JobCourse, ...]
    requests: dict[str, int]
    limit: str
    windows: int
    to_spare: int | None
    exit_code: int
    why: str

    @property
    def per_second(self) -> float:
        """Requests over the whole run (count a second)."""
        return sum(self.requests.values()) / self.ends_s if self.ends_s else 0.0


@dataclass(slots=True)
class _NoLedger:
    """A ledger that keeps nothing but when the items of each job ended, and tells how many have ended."""

    run_dir: Path
    clock: VirtualClock
    tell: Tell
    began_at: float = START
    last: dict[int, float] = field(default_factory=dict)
    first: dict[int, float] = field(default_factory=dict)
    ended: int = 0

    def commit(self, batch: Sequence[Entry], *_: object) -> None:
        """Note when items of each job ended first and last; nothing is written."""
        now = self.clock.monotonic()
        for entry in batch:
            if type(entry) is Record:
                self.last[entry.job] = now
                self.first.setdefault(entry.job, now)
                self.ended += 1
        self.tell(self.ended)

    def view(self) -> "_NoLedger":
        """Return itself: no records stand in it."""
        return self

    def lines_of(self, _: int, indexes: Collection[int], __: int) -> dict[int, bytes]:
        """Return a line for each of these items, from which equal reads are copied: all succeed."""
        return dict.fromkeys(indexes, READ_LINE)

    def timeline(self, *, newest: bool = False) -> list[Any]:
        """Return an empty list: a rehearsal has no earlier samples."""
        return []

    def planned_from(self, guess: float | None) -> float | None:
        """Return `guess`: no earlier process has begun the run."""
        return guess


def stand_ins(checked: Checked, assumed: Mapping[str, int]) -> tuple[Manifest, tuple[str, ...]]:
    """Return the manifest with stand-ins for the items made from results, and notes on what was assumed of them.

    Args:
        assumed: how many items such a job will have, by its name (`--assume`).
    """
    manifest = checked.manifest
    counts = {job.name: found.items for job, found in zip(manifest.jobs, checked.jobs, strict=True)}
    notes: list[str] = []
    jobs: list[Job] = []
    for job in manifest.jobs:
        derivation = job.derivation
        if derivation is None:
            jobs.append(job)
            continue
        count = assumed.get(job.name, counts[derivation.job])
        if job.name not in assumed and derivation.each == "result":
            notes.append(f"{job.name}: one item for each result is assumed; say --assume {job.name}=COUNT")
        counts[job.name] = count
        items = tuple({"place": number} for number in range(count))
        needs = tuple(dict.fromkeys((*job.needs, *derivation.needs)))
        jobs.append(
            replace(
                job,
                operation=pending(job.operation),
                items=items,
                item_lines=tuple({} for _ in items),
                allow_empty=True,
                items_path=None,
                derivation=None,
                defaults={},
                needs=needs,
                save=None,
            )
        )
    return replace(manifest, jobs=tuple(replace(job, save=None) for job in jobs)), tuple(notes)


def model_of(
    budgets: Mapping[str, ModelBudget], learnt: Measured, latency_s: float, faults: Mapping[str, float]
) -> Model:
    """Return the model of a platform with these budgets, by category.

    Args:
        latency_s: latency of operations of which none was learnt (seconds).
    """
    return Model(budgets=budgets, answer_s=learnt.request_s, spread=learnt.spread, default_s=latency_s, faults=faults)


def rehearse(checked: Checked, model: Model, workspace: Path, seed: int = 1, tell: Tell = untold) -> Course:
    """Run a checked manifest in virtual time; blocks for some tenth of a millisecond for each request.

    Args:
        checked: a checked manifest without derived jobs (`stand_ins`). workspace: folder with the files of the check.
        tell: is told how many items have ended in virtual time (count).
    """
    return anyio.run(
        functools.partial(_run, checked, model, workspace, seed, tell),
        backend_options={"loop_factory": functools.partial(VirtualLoop, is_alone=True)},
    )


async def _run(checked: Checked, model: Model, workspace: Path, seed: int, tell: Tell) -> Course:
    clock = VirtualClock()
    dice = random.Random(seed)
    clock.skew_s = dice.random() if seed > 1 else 0.5  # windows begin at whole seconds, and runs at any time
    manifest = checked.manifest
    sources = dict.fromkeys(manifest.platform.credentials, "env:REHEARSAL")
    jobs = tuple(replace(job, operation=shaped(job.operation)) for job in manifest.jobs)
    manifest = replace(manifest, jobs=jobs, platform=replace(manifest.platform, credentials=sources))
    checked = replace(checked, manifest=manifest)
    limits = manifest.limits
    if limits.hours:
        clock.skew_s += round(Clock().now() - START)  # the hours are those of today
    wire = ModelWire(model, manifest.platform, limits.concurrency, clock, seed)

    async def disk(call: Any) -> None:
        await clock.sleep(model.commit_s)
        call()

    around = Surroundings(
        clock=clock, dice=dice, disk=disk, wire=wire, tick_s=TICK_S, environ={"REHEARSAL": f"{TOKEN}"}
    )
    ledger = _NoLedger(workspace, clock, tell)
    progress = [JobProgress(found.items, bytearray(found.items // 8 + 1), {}) for found in checked.jobs]
    settle_s = limits.settle_s
    state = ResumeState(progress, {}, LateWrites(), RecentWrites(settle_s), RecentCreations(settle_s))
    names = {name: f"{TOKEN}{number}" for number, name in enumerate(sources)}
    environ = {f"REHEARSAL_{number}": names[name] for number, name in enumerate(names)}
    placed = {name: f"env:REHEARSAL_{number}" for number, name in enumerate(names)}
    manifest = replace(manifest, platform=replace(manifest.platform, credentials=placed))
    checked = replace(checked, manifest=manifest)
    credentials = credentials_of(manifest, environ, clock)
    untyped: Any = ledger
    while True:
        left = [job.left for job in progress]
        cut(manifest.jobs, manifest.limits.waves, progress)  # gates that people open count as open
        run = Run(checked, untyped, state, credentials, Silence(), around)
        ended = await run.execute()
        if not limits.waves or not run.has_run_dry or left == [job.left for job in progress]:
            break
        await clock.sleep(limits.gate_after_s)
    ends_s = max(ledger.last.values(), default=clock.monotonic())
    return _course(checked, ledger, wire, ends_s, ended.exit_code, ended.why)


def _course(checked: Checked, ledger: _NoLedger, wire: ModelWire, ends_s: float, exit_code: int, why: str) -> Course:
    jobs = tuple(
        JobCourse(
            name=job.name,
            begins_s=ledger.first.get(job.number, 0.0),
            ends_s=ledger.last.get(job.number, 0.0),
            items=found.items,
            needs=job.needs,
        )
        for job, found in zip(checked.manifest.jobs, checked.jobs, strict=True)
    )
    most = max(wire.windows.items(), key=lambda each: each[1].windows, default=None)
    limit, windows, to_spare = "latency", 0, None
    if most is not None:
        (_, category), window = most
        to_spare = window.budget.limit - window.used
        windows = window.windows
        if windows > 1 or window.spent > BINDING * window.budget.limit:
            limit = category
    return Course(
        ends_s=ends_s,
        jobs=jobs,
        requests=dict(wire.requests),
        limit=limit,
        windows=windows,
        to_spare=to_spare,
        exit_code=exit_code,
        why=why,
    )


class Rehearsed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of all rehearsals.

    Attributes:
        course: course of the middle rehearsal by its end. earliest_s, latest_s: the earliest and the latest end of all
            rehearsals (seconds from the start).
        seeds: number of rehearsals (count).
        what_if: for each change, such as a second token, the end with it (seconds from the start).
        notes: what was assumed.
        seen: the most requests that earlier runs have sent (count a second); None: not known.
    """

    seen: float | None = None
    course: Course
    earliest_s: float
    latest_s: float
    seeds: int
    what_if: dict[str, float]
    notes: tuple[str, ...]


def rehearse_all(
    manifest: Manifest,
    model: Model,
    *,
    seeds: int,
    assumed: Mapping[str, int],
    asks: bool,
    working: Working = silently,
) -> Rehearsed:
    """Check a manifest and rehearse it `seeds` times; blocks.

    Args:
        asks: also rehearse what would change the end.
        working: shows what is done, and with how many items.

    Raises:
        ManifestError: an item can't be used.
    """
    with scratch_folder("rehearsal") as place:
        with working(f"checking {manifest.path}") as tell:
            checked = check(manifest, place, progress=tell)
        stood_in, notes = stand_ins(checked, assumed)
        has_stand_ins = any(job.derivation for job in manifest.jobs)
        checked = check(stood_in, place) if has_stand_ins else replace(checked, manifest=stood_in)
        courses: list[Course] = []
        for seed in range(1, seeds + 1):
            with working(f"rehearsing {manifest.path}" + (f", {seed} of {seeds}" if seeds > 1 else "")) as tell:
                courses.append(rehearse(checked, model, place, seed, tell))
        courses.sort(key=lambda each: each.ends_s)
        found = {}
        for what, changed, limits in _changes(model, stood_in) if asks else ():
            other = replace(checked, manifest=replace(stood_in, limits=limits))
            with working(f"rehearsing {manifest.path} with {what}") as tell:
                found[what] = rehearse(other, changed, place, tell=tell).ends_s
    ends = [course.ends_s for course in courses]
    return Rehearsed(
        course=courses[len(courses) // 2],
        earliest_s=min(ends),
        latest_s=max(ends),
        seeds=seeds,
        what_if=found,
        notes=notes,
    )


def _changes(model: Model, manifest: Manifest) -> list[tuple[str, Model, Any]]:
    """Return the changes to rehearse, each with its name, the changed model and the changed limits."""
    limits = manifest.limits
    doubled = {name: budget.times(2) for name, budget in model.budgets.items()}
    lossy = {**model.faults, "drop-after": model.faults.get("drop-after", 0.0) + 0.01}
    quarter = max(1, limits.concurrency // 4)
    return [
        ("a second token", replace(model, budgets=doubled), limits),
        (f"concurrency {quarter}", model, replace(limits, concurrency=quarter)),
        ("1% of the answers lost", replace(model, faults=lossy), limits),
    ]
