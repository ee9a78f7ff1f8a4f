"""Between two waves: what was judged, who opened the next one, and when it begins.

A wave is judged when each of its items has an outcome that is durable. Budgets for error codes are counted as outcomes
come, so that a wave that is over one stops at once; what was counted before a kill counts too.
"""

import contextlib
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

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
from bulk.ledger.view import LedgerView
from bulk.manifest.manifest import Job, Limits
from bulk.model import Outcome
from bulk.quantities import Share
from bulk.schedule.job_progress import JobProgress
from bulk.schedule.waves import NEVER, Wave, Waves, inheriting, wave_numbers
from bulk.storage.private_files import replacing

NAME: Final = "gates.json"
"""What people have opened and accepted, in a run directory."""


class Gates(msgspec.Struct, frozen=True, kw_only=True):
    """What people have decided.

    Attributes:
        opened: the last wave that may begin where the gate is manual (number).
        accepted: waves that go on although they were over a budget (numbers).
        opens_at: when the wave may begin that comes after those that were judged (UTC epoch seconds).
    """

    opened: int = 1
    accepted: frozenset[int] = frozenset()
    opens_at: float = 0.0


def read_gates(run_dir: Path) -> Gates:
    """Return what was decided so far.

    Raises:
        RunDirectoryError: the file is damaged.
    """
    path = run_dir / NAME
    try:
        return msgspec.json.decode(path.read_bytes(), type=Gates)
    except FileNotFoundError:
        return Gates()
    except (OSError, msgspec.MsgspecError) as error:
        raise RunDirectoryError(f"{path} can't be read: {error}; delete it: only the first wave is open then") from None


def decide(
    run_dir: Path, *, opened: int = 1, accepted: frozenset[int] = frozenset(), opens_at: float | None = None
) -> None:
    """Write down that waves up to `opened` may begin, that these go on, and when the next one begins.

    Raises:
        BulkError: it can't be written.
    """
    found = read_gates(run_dir)
    decided = Gates(
        opened=max(found.opened, opened),
        accepted=found.accepted | accepted,
        opens_at=found.opens_at if opens_at is None else opens_at,
    )
    if decided == found:
        return
    try:
        with replacing(run_dir / NAME) as file:
            file.write(msgspec.json.encode(decided) + b"\n")
    except OSError as error:
        raise unusable(run_dir, error) from error


async def wait_for_gate(opens_at: float, clock: Clock, reasons: WaitReasons, draining: anyio.Event) -> None:
    """Return when the gate opens (monotonic), or the run is stopped before; meanwhile its status says so."""
    seconds = opens_at - clock.monotonic()
    if seconds > 0.0:
        with reasons.told(WaitReason.GATE, seconds, clock.monotonic()), anyio.move_on_after(seconds):
            await draining.wait()


class ClosedGate(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run has ended before a wave, or within it.

    Attributes:
        wave, of: which wave of how many (numbers). job: whose.
        is_over: it is over a budget of `limits.errors`; else it waits to be opened.
    """

    wave: int
    of: int
    job: str
    is_over: bool


def cut(
    jobs: Sequence[Job], sizes: tuple[Share, ...], progress: Sequence[JobProgress], opened: int = NEVER
) -> frozenset[int]:
    """Cut the jobs that write into waves of these sizes; return the numbers of those that go in the waves of what they
    need by key, which are not cut. `opened`: the last wave that may begin (number)."""
    inherit = inheriting(jobs) if sizes else frozenset[int]()
    for job, job_progress in zip(jobs, progress, strict=True):
        if job.number not in inherit:
            job_progress.waves = Waves(sizes if not job.operation.is_read else (), opened)
            job_progress.cut()
    return inherit


def first_wave(numbers: "array[int]", job_progress: JobProgress) -> int:
    """Return the first wave of which an item has no outcome, of a job whose items are in these waves; 0: all have."""
    return min((number for index, number in enumerate(numbers) if not job_progress.is_done(index)), default=0)


def hold_back(
    jobs: Sequence[Job], progress: Sequence[JobProgress], inherited: "Mapping[int, array[int]]"
) -> dict[int, int]:
    """Offer no wave of a job as long as items that go in an earlier one, with those that they need, have not ended.

    Returns:
        The wave to which each job is held back that others need by key (numbers).
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


_CLOSED = re.compile(r"wave (\d{1,3}) of (\d{1,3}) of (\S+) (waits to be opened|stopped): ")


def closed_gate(why: str) -> ClosedGate | None:
    """Return the gate that the reason of an end is about (`WaveBudgets` words it); None where it is about none."""
    found = _CLOSED.match(why)
    if found is None:
        return None
    wave, of, job, what = found.groups()
    return ClosedGate(wave=int(wave), of=int(of), job=job, is_over=what == "stopped")


@dataclass(frozen=True, slots=True)
class Openable:
    """What there is of a run for a person to open.

    Attributes:
        name: of the run, as the person calls it. of: how many waves it has (count).
        is_manual: they wait for somebody. is_complete: the run is. why: it has ended.
        command: which opens waves of it; the number comes behind.
    """

    name: str
    of: int
    is_manual: bool
    is_complete: bool
    why: str
    command: str

    def refusal(self, wave: int) -> str:
        """Return why there is no such wave to open (number); empty: there is."""
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
    """Return how many waves jobs of so many items have at most (counts); None: their items are not known yet."""
    waves = Waves(sizes)
    return max((len(waves.ends(NEVER if each is None else each)) for each in items), default=0)


def refuse_unknown_waves(accepted: AbstractSet[int], checked: Checked) -> None:
    """Refuse to go on with waves (numbers) that a run does not have.

    Raises:
        UsageError: there is one.
    """
    manifest = checked.manifest
    written = (pair for pair in zip(manifest.jobs, checked.jobs, strict=True) if not pair[0].operation.is_read)
    most = most_waves(manifest.limits.waves, (None if job.derivation else found.items for job, found in written))
    if accepted and max(accepted) > most:
        raise UsageError(f"--accept-wave {max(accepted)}: there is no such wave; the run has {most} at most")


class Judged(NamedTuple):
    """The wave of a job that is judged now: which one (number, from 1) of how many, and its items (count)."""

    number: int
    of: int
    items: int


def over_budget(job: str, wave: Judged, code: str, count: int, limits: Limits) -> str:
    """Return why a wave has to stop of which so many items ended with that code (count); empty: it need not."""
    allowed: Share | None = limits.errors.get(code)
    if allowed is None:
        return ""
    most = allowed.of(wave.items) if allowed.fraction is None else int(wave.items * allowed.fraction)
    if count <= most:
        return ""
    return (
        f"wave {wave.number} of {wave.of} of {job} stopped: {count:,} {code} of {wave.items:,} items, {most:,} "
        f"allowed; go on with --accept-wave {wave.number}"
    )


def waits_to_be_opened(job: str, number: int, of: int, how: str) -> str:
    """Return what a run says that ends before that wave (`number` of so many); `how`: it is opened."""
    return f"wave {number} of {of} of {job} waits to be opened: {how}"


@dataclass(slots=True)
class WaveBudgets:
    """Counts the errors of the waves under way, and says when one is over its budget.

    Attributes:
        waves, counts: the wave that each job is in, and its errors by code. reason: why none may go on.
        inherited: of jobs whose items go in the waves of what they need, the wave of each item.
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
        """Whether there is anything to keep to."""
        return bool(self.limits.waves or self.limits.errors)

    def begin(self, progress: Sequence[JobProgress], view: LedgerView) -> None:
        """Cut the jobs that write, and count what the waves under way have had before."""
        opened = self.gates.opened if self.limits.gate == "manual" else NEVER
        self.waves.clear()
        self.counts.clear()
        self.reason = None
        inherit = cut(self.jobs, self.limits.waves, progress, opened)
        held = dict[int, int]()
        if self.inherited is None:
            # a process that was killed: what stands before a next wave is not in the progress of one job alone
            self.inherited = self._inherited(inherit, progress)
            held = hold_back(self.jobs, progress, self.inherited)
        for job, job_progress in zip(self.jobs, progress, strict=True):
            if not job_progress.is_known:
                continue
            # those before too: one that was over its budget is so after a resume
            if job.number in inherit:
                self._judge(job, self._counted(job, job_progress, view))
                continue
            self._judge(job, self._begun(job, job_progress, view, held.get(job.number, NEVER)))

    def made(self, job: Job, progress: JobProgress) -> BulkError | None:
        """Count what the waves under way have had before of a job whose items were made now from results; return why
        none may go on. It blocks."""
        self._judge(job, self._begun(job, progress, LedgerView(self.run_dir), NEVER))
        return self.reason

    @staticmethod
    def _begun(job: Job, progress: JobProgress, view: LedgerView, last: int) -> Iterator[tuple[Judged, Counter[str]]]:
        """Yield the waves that have begun of a job that is cut itself, up to the last one (number)."""
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
        """Yield the waves that have begun of a job whose items go in those of what they need."""
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
        """Count how an item ended; return why the run has to stop."""
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
        """Wait until the next wave begins, `limits.gate_after_s` from now, also when this process dies; blocks. Return
        when (monotonic).
        """
        decide(self.run_dir, opens_at=clock.now() + self.limits.gate_after_s)
        return clock.monotonic() + self.limits.gate_after_s

    def waits_until(self, clock: Clock) -> float:
        """Return until when a process that begins has to wait (monotonic), by what `wait` wrote down."""
        left_s = min(self.gates.opens_at - clock.now(), self.limits.gate_after_s)
        return clock.monotonic() + left_s

    def closed(self, progress: Sequence[JobProgress]) -> BulkError | None:
        """Return which gate is closed, where nothing more can be offered; None where a next wave may begin."""
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
        how = f"bulk approve {self.run_dir} --wave {wave.number}"
        return RunStopped(waits_to_be_opened(job.name, wave.number, wave.of, how))

    @property
    def _opened(self) -> int:
        return self.gates.opened if self.limits.gate == "manual" else NEVER
