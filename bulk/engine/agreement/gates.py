"""The gate between two waves: judges a wave, and decides whether and when the next one begins.

A wave is judged when each of its items has an outcome that is durable. Errors are counted against the budget of their
code as outcomes come, so that a wave that is over a budget stops at once. Errors from before a kill count too.
"""

import contextlib
import shlex
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec

from bulk.bundle.checked import Checked
from bulk.bundle.columns import Columns
from bulk.bundle.index import INDEX, SCHEMA, opened
from bulk.bundle.links import load_links
from bulk.clock import Clock
from bulk.errors import BulkError, RunDirectoryError, RunStopped, UsageError
from bulk.execute.requests.wait_reasons import WaitReason, WaitReasons
from bulk.ledger.directory import unusable
from bulk.ledger.records import Action
from bulk.ledger.view import LedgerView
from bulk.manifest.manifest import Job, Limits
from bulk.manifest.needs.wave_ends import inheriting
from bulk.model import Outcome
from bulk.quantities import Share
from bulk.report.wave_gates import NAME, Gates, closed_gate, read_gates, waits_to_be_opened
from bulk.schedule.job_progress import JobProgress
from bulk.schedule.waves import NEVER, Wave, Waves, wave_numbers
from bulk.storage.private_files import replacing


def decide(
    run_dir: Path,
    *,
    opened: int = 1,
    accepted: frozenset[int] = frozenset(),
    opens_at: float | None = None,
    opened_by: tuple[Action, ...] = (),
) -> None:
    """Write down that waves up to `opened` may begin and by whose action, that those in `accepted` go on, and when the
    next one begins.

    Raises:
        BulkError: the file can't be written.
    """

    def decided(found: Gates) -> Gates:
        return Gates(
            opened=max(found.opened, opened),
            accepted=found.accepted | accepted,
            opens_at=found.opens_at if opens_at is None else opens_at,
            opened_by=(*found.opened_by, *opened_by),
        )

    found = read_gates(run_dir)
    if decided(found) == found:
        return
    try:
        with replacing(run_dir / NAME) as file:  # what another process has decided meanwhile holds too
            file.write(msgspec.json.encode(decided(read_gates(run_dir))) + b"\n")
    except OSError as error:
        raise unusable(run_dir, error) from error


async def wait_for_gate(opens_at: float, items: int, clock: Clock, reasons: WaitReasons, draining: anyio.Event) -> None:
    """Wait until the gate opens (monotonic) or the run is stopped; its status shows that `items` wait (count)."""
    now = clock.monotonic()
    if opens_at > now:
        with reasons.told(WaitReason.GATE, opens_at - now, now, count=items), anyio.move_on_after(opens_at - now):
            await draining.wait()


def cut(
    jobs: Sequence[Job],
    sizes: tuple[Share, ...],
    progress: Sequence[JobProgress],
    opened: int = NEVER,
    after_s: float = 0.0,
) -> frozenset[int]:
    """Cut the jobs that write into waves of these sizes. `opened` and `after_s` are those of `Waves`.

    Returns:
        The numbers of the jobs that are not cut, because their items go in the waves of the items they need by key.
    """
    inherit = inheriting(jobs) if sizes else frozenset[int]()
    for job, job_progress in zip(jobs, progress, strict=True):
        if job.number not in inherit:
            job_progress.waves = Waves(sizes if not job.operation.is_read else (), opened, after_s)
            job_progress.cut()
    return inherit


def first_wave(numbers: "array[int]", job_progress: JobProgress) -> int:
    """Return the first wave with an item that has no outcome; 0: all have one. `numbers`: the wave of each item."""
    return min((number for index, number in enumerate(numbers) if not job_progress.is_done(index)), default=0)


def hold_back(
    jobs: Sequence[Job], progress: Sequence[JobProgress], inherited: "Mapping[int, array[int]]"
) -> dict[int, int]:
    """Offer no later wave of a job until the items of other jobs that go in its earlier waves have ended.

    Returns:
        For each job that others need by key, the last wave that the job may offer (numbers).
    """
    numbers = {job.name: job.number for job in jobs}
    held = dict[int, int]()
    for job in reversed(jobs):
        if job.number in inherited:
            firsts = (first_wave(inherited[job.number], progress[job.number]), held.get(job.number, 0))
            first = min((each for each in firsts if each), default=0)
            for need in job.by_key if first else ():
                needed = numbers[need.job]
                held[needed] = min(first, held.get(needed, first))
        elif (waves := progress[job.number].waves) is not None and job.number in held:
            ends = waves.ends(progress[job.number].items)
            until = ends[min(held[job.number], len(ends)) - 1]
            progress[job.number].offered_until = min(progress[job.number].offered_until, until)
    return held


@dataclass(frozen=True, slots=True)
class Openable:
    """The waves of a run that a person may open.

    Attributes:
        name: name of the run, as the person calls it. of: how many waves the run has (count).
        is_manual: waves wait until a person opens them. is_complete: the run is complete. why: why the run has ended.
        command: the command that opens waves of the run; the number of the wave comes behind it.
    """

    name: str
    of: int
    is_manual: bool
    is_complete: bool
    why: str
    command: str

    def refusal(self, wave: int) -> str:
        """Return why the wave with this number can't be opened; empty: it can."""
        if not self.is_manual:
            return f"the waves of {self.name} begin by themselves: limits.gate in its manifest is not manual"
        if self.is_complete:
            return f"{self.name} is complete: it has no wave left to open"
        if wave > self.of:
            return f"{self.name} has {self.of:,} wave{'s' if self.of != 1 else ''}; there is no wave {wave}"
        gate = closed_gate(self.why)
        if gate is not None and not gate.is_over and wave < gate.wave:
            place = f"it waits at wave {gate.wave} of {gate.of}"
            return f"{self.name} has passed wave {wave}; {place}: {self.command} {gate.wave}"
        return ""


def most_waves(sizes: tuple[Share, ...], items: Iterable[int | None]) -> int:
    """Return how many waves a job has at most. `items`: how many items each job has; None: that is not known yet."""
    waves = Waves(sizes)
    return max((len(waves.ends(NEVER if each is None else each)) for each in items), default=0)


def refuse_unknown_waves(accepted: AbstractSet[int], checked: Checked) -> None:
    """Refuse to accept waves (numbers) that a run does not have.

    Raises:
        UsageError: the run does not have one of the waves.
    """
    manifest = checked.manifest
    written = (pair for pair in zip(manifest.jobs, checked.jobs, strict=True) if not pair[0].operation.is_read)
    most = most_waves(manifest.limits.waves, (None if job.derivation else found.items for job, found in written))
    refuse_higher(accepted, most)


def refuse_higher(accepted: AbstractSet[int], most: int) -> None:
    """Refuse to accept waves (numbers) of a run that has `most` waves at most.

    Raises:
        UsageError: the run does not have one of the waves.
    """
    if accepted and max(accepted) > most:
        raise UsageError(f"--accept-wave {max(accepted)}: there is no such wave; the run has {most} at most")


class Judged(NamedTuple):
    """The wave of a job that is judged now: which one (number, from 1) of how many, and its items (count)."""

    number: int
    of: int
    items: int


def over_budget(job: str, wave: Judged, code: str, count: int, limits: Limits) -> str:
    """Return why a wave has to stop if `count` of its items ended with the error code `code`; empty: it need not."""
    allowed: Share | None = limits.errors.get(code)
    if allowed is None:
        return ""
    most = allowed.of(wave.items) if allowed.fraction is None else int(wave.items * allowed.fraction)
    if count <= most:
        return ""
    return (
        f"wave {wave.number} of {wave.of} of {job} stopped: {count:,} {code} of {wave.items:,} items, {most:,} "
        f"allowed; it goes on with --accept-wave {wave.number}"
    )


@dataclass(slots=True)
class WaveBudgets:
    """Counts the errors of the waves under way, and says when one is over its budget.

    Attributes:
        waves, counts: by job number, the wave that the job is in, and the errors of that wave by code.
        reason: why no wave may go on; None: they may.
        inherited: by number of a job whose items go in the waves of the items they need, the wave of each item.
    """

    jobs: Sequence[Job]
    limits: Limits
    gates: Gates
    run_dir: Path
    waves: dict[int, Judged] = field(default_factory=dict)
    counts: dict[int, Counter[str]] = field(default_factory=dict)
    reason: BulkError | None = None
    inherited: "dict[int, array[int]] | None" = None

    @property
    def is_wanted(self) -> bool:
        """Whether the manifest has waves or budgets for errors."""
        return bool(self.limits.waves or self.limits.errors)

    def begin(self, progress: Sequence[JobProgress], view: LedgerView) -> None:
        """Cut the jobs that write into waves, and count the errors that waves which have begun had before."""
        opened = self.gates.opened if self.limits.gate == "manual" else NEVER
        self.waves.clear()
        self.counts.clear()
        self.reason = None
        inherit = cut(self.jobs, self.limits.waves, progress, opened, self.limits.gate_after_s)
        held = dict[int, int]()
        if self.inherited is None:
            # after a kill, the progress of one job does not say what has to end before its next wave
            self.inherited = self._inherited(inherit, progress)
            held = hold_back(self.jobs, progress, self.inherited)
        for job, job_progress in zip(self.jobs, progress, strict=True):
            if not job_progress.is_known:
                continue
            # earlier waves too: one that was over its budget is still over it after a resume
            if job.number in inherit:
                self._judge(job, self._counted(job, job_progress, view))
                continue
            self._judge(job, self._begun(job, job_progress, view, held.get(job.number, NEVER)))

    def made(self, job: Job, progress: JobProgress) -> BulkError | None:
        """Count the errors that the waves of a job had before, whose items were just made from results; blocks. Return
        why no wave may go on; None: they may."""
        self._judge(job, self._begun(job, progress, LedgerView(self.run_dir), NEVER))
        return self.reason

    @staticmethod
    def _begun(job: Job, progress: JobProgress, view: LedgerView, last: int) -> Iterator[tuple[Judged, Counter[str]]]:
        """Yield the waves that have begun of a job with waves of its own, up to the wave `last` (number)."""
        for wave in (progress.waves or Waves(())).until(progress.items, progress.next_left(0)):
            if wave.number <= last:
                counts = view.error_counts_of(job.number, wave.start, wave.end)
                yield Judged(wave.number, wave.of, wave.end - wave.start), Counter(counts)

    def _judge(self, job: Job, waves: Iterable[tuple[Judged, Counter[str]]]) -> None:
        for wave, counts in waves:
            self.waves[job.number], self.counts[job.number] = wave, counts
            over = (self._over(job, code) for code in counts)
            self.reason = self.reason or next((reason for reason in over if reason is not None), None)

    def _inherited(self, inherit: AbstractSet[int], progress: Sequence[JobProgress]) -> "dict[int, array[int]]":
        if not inherit:
            return {}
        items = {job.number: job_progress.items for job, job_progress in zip(self.jobs, progress, strict=True)}
        ends = {
            job.number: job_progress.waves.ends(job_progress.items)
            for job, job_progress in zip(self.jobs, progress, strict=True)
            if job_progress.waves is not None and job_progress.is_known
        }
        with contextlib.closing(opened(self.run_dir / INDEX, SCHEMA)) as index:
            return wave_numbers(load_links(self.jobs, Columns(index)), inherit, ends, items)

    def _counted(self, job: Job, job_progress: JobProgress, view: LedgerView) -> Iterator[tuple[Judged, Counter[str]]]:
        """Yield the waves that have begun of a job whose items go in the waves of the items that they need."""
        numbers = (self.inherited or {}).get(job.number)
        if not numbers:
            return
        sizes = Counter(numbers)
        now = first_wave(numbers, job_progress) or max(sizes)
        counts = {number: Counter[str]() for number in sizes}
        for index, code in view.errors_of(job.number):
            counts[numbers[index]][code] += 1
        for number in sorted(sizes):
            if number <= now:
                yield Judged(number, max(sizes), sizes[number]), counts[number]

    def note(self, job: Job, outcome: Outcome) -> BulkError | None:
        """Count the outcome of an item; return why the run has to stop, or None."""
        if outcome.error is None or not self.limits.errors:
            return None
        code = outcome.error.code.value
        counts = self.counts.setdefault(job.number, Counter())
        counts[code] += 1
        return self._over(job, code)

    def _over(self, job: Job, code: str) -> BulkError | None:
        wave = self.waves.get(job.number)
        if wave is None or wave.number in self.gates.accepted:
            return None
        why = over_budget(job.name, wave, code, self.counts[job.number][code], self.limits)
        return RunStopped(why) if why else None

    def wait(self, clock: Clock) -> float:
        """Return when the next wave begins, `limits.gate_after_s` from now (monotonic). Write that time down, so that a
        process that comes after this one waits for it too; blocks.
        """
        decide(self.run_dir, opens_at=clock.now() + self.limits.gate_after_s)
        return clock.monotonic() + self.limits.gate_after_s

    def unrecorded(self, recorded: Iterable[Action]) -> list[Action]:
        """Return who opened waves, as far as it is not among these actions."""
        known = {(action.at, action.who, action.verb) for action in recorded}
        return [action for action in self.gates.opened_by if (action.at, action.who, action.verb) not in known]

    def waits_until(self, clock: Clock) -> float:
        """Return until when a process that begins has to wait (monotonic), as an earlier call of `wait` wrote down."""
        left_s = min(self.gates.opens_at - clock.now(), self.limits.gate_after_s)
        return clock.monotonic() + left_s

    def closed(self, progress: Sequence[JobProgress]) -> BulkError | None:
        """Return why the run ends now that nothing more can be offered (a closed gate); None: a next wave may begin;
        blocks."""
        with contextlib.suppress(RunDirectoryError):  # damaged since: the next command says so
            self.gates = read_gates(self.run_dir)  # the wave may have been opened while the one before went on
        waiting: list[tuple[Job, Wave]] = []
        for job, each in zip(self.jobs, progress, strict=True):
            wave = each.waves.at(each.items, each.next_left(0)) if each.waves is not None and each.is_known else None
            if wave is None:
                continue
            before = self.waves.get(job.number)
            if before is not None and before.number < wave.number and wave.number <= self._opened:
                return None
            if wave.number > self._opened:
                waiting.append((job, wave))
        if not waiting:
            return RunStopped("work is left that could not be reached in this run")
        job, wave = waiting[0]
        how = f"bulk approve {shlex.quote(str(self.run_dir))} --wave {wave.number}"
        return RunStopped(waits_to_be_opened(job.name, wave.number, wave.of, how))

    @property
    def _opened(self) -> int:
        return self.gates.opened if self.limits.gate == "manual" else NEVER
