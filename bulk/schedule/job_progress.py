"""How far each job is: counts and one bit per item, the only thing kept in memory for every item of a manifest.

Whether a job is complete, and how it went, a `Board` says. A process that works alone sees it itself; one of several
does not.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from bulk.manifest.manifest import Job
from bulk.model import OutcomeKind
from bulk.schedule.waves import NEVER, Waves

REMEMBERED = 200
"""Items over which the cost of an item is averaged (count): a run learns whether its items have changed or not."""

ESTIMATE_FROM = 20
"""Finished items from which on the cost of an item is estimated from them (count)."""

BLOCK_BYTES = 64 * 1024
"""How much of the bits of items is looked over at once (bytes)."""


class JobState(StrEnum):
    """Where a job stands."""

    WAITING = "waiting"
    RUNNING = "running"
    COMPLETE = "complete"


@dataclass(slots=True, eq=False)
class JobProgress:
    """Counts the items of one job: ended, in flight, left.

    Attributes:
        items: items of the job that this process works on (count): all, or the first ones where there is a `--limit`.
        beyond: items behind these that ended in an earlier process without such a limit (count).
        elsewhere: items that other processes work on, or none yet (count); their bits are 1, so they are passed by.
        done: one bit per item: 1 if it has an outcome, or is not for this process to do.
        ended: how many items ended with each kind of outcome.
        paid_each: requests that an item costs the bucket, a moving mean over the last items (count).
        finished: items that ended in this process (count). paid: requests that these cost the bucket (count).
        is_known: whether the items are known; not yet where they are made from another job's results.
        copies: one bit per item: 1 if it gets the outcome of an earlier item and is not offered; None: no copies.
        waves: how the items are cut. offered_until: index from which on no item is offered yet.
        copies_left: copies without an outcome (count). passed: one bit per item: done or a copy; None: as `done`.
    """

    items: int
    done: bytearray
    ended: dict[OutcomeKind, int] = field(default_factory=dict)
    in_flight: int = 0
    superseded: int = 0
    paid_each: float = 0.0
    finished: int = 0
    paid: int = 0
    is_known: bool = True
    copies: bytearray | None = None
    copies_left: int = 0
    passed: bytearray | None = None
    beyond: int = 0
    elsewhere: int = 0
    waves: Waves | None = None
    offered_until: int = NEVER

    def leave_all(self) -> None:
        """Leave all items to other processes, until this one takes some on; `ended` then counts what ended here."""
        self.done = bytearray(b"\xff" * len(self.done))
        self.ended, self.superseded, self.beyond, self.elsewhere = {}, 0, 0, self.items

    def take_on(self, indexes: Iterable[int]) -> None:
        """Take on these items, which were not for this process to do and have no outcome."""
        for index in indexes:
            self.done[index >> 3] &= ~(1 << (index & 7)) & 0xFF
            self.elsewhere -= 1

    def begin(self, items: int, done: bytearray) -> None:
        """Begin with the number of items that is known now, and the bits of those that are done; `ended` also counts
        items behind them.
        """
        self.items, self.done = items, done
        self.beyond = sum(self.ended.values()) - int.from_bytes(done, "little").bit_count()
        self.cut()

    def cut(self) -> None:
        """Offer items only up to the end of the wave that holds the first item that is left."""
        if self.waves is not None:
            self.offered_until = self.waves.offered_until(self.items, self.next_left(0))

    @property
    def total(self) -> int:
        """Items that this process works on, and items behind them that have an outcome (count)."""
        return self.items + self.beyond

    def note_paid(self, requests: int) -> None:
        """Note that an item has ended that cost its bucket this many requests."""
        self.finished += 1
        self.paid += requests
        if requests != self.paid_each:
            self.paid_each += (requests - self.paid_each) / min(self.finished, REMEMBERED)

    def cost_of_one(self, most: int) -> float:
        """Return how many requests one more item costs its bucket: measured, or else `most`."""
        return self.paid_each if self.finished >= ESTIMATE_FROM else float(most)

    def is_done(self, index: int) -> bool:
        """Return whether that item has an outcome."""
        return bool(self.done[index >> 3] & (1 << (index & 7)))

    def next_left(self, index: int) -> int:
        """Return the first item from that one on that has no outcome; `items` where all have one."""
        return self._next_without(self.done, index)

    def next_offered(self, index: int) -> int:
        """Return the first item from that one on that is offered, which a copy is not; `items` if there is none."""
        bits = self.done if self.passed is None else self.passed
        is_next = index < self.items and not bits[index >> 3] & (1 << (index & 7))  # as nearly always
        found = index if is_next else self._next_without(bits, index)
        return found if found < self.offered_until else self.items

    def _next_without(self, bits: bytearray, index: int) -> int:
        if index >= self.items:
            return self.items
        place = index >> 3
        left = ~bits[place] & (0xFF << (index & 7)) & 0xFF
        if not left:
            place += 1
            while block := bits[place : place + BLOCK_BYTES]:
                ahead = block.lstrip(b"\xff")
                place += len(block) - len(ahead)
                if ahead:
                    left = ~ahead[0] & 0xFF
                    break
            else:
                return self.items
        return min(self.items, (place << 3) + (left & -left).bit_length() - 1)

    def is_copy(self, index: int) -> bool:
        """Return whether that item gets the outcome of an earlier one."""
        return self.copies is not None and bool(self.copies[index >> 3] & (1 << (index & 7)))

    def set_copies(self, copies: bytearray) -> None:
        """Note the items (one bit each) that get the outcome of earlier ones. `done` and `items` must be known."""
        if any(copies):
            done, mine = int.from_bytes(self.done, "little"), int.from_bytes(copies, "little")
            self.copies, self.copies_left = copies, (mine & ~done).bit_count()
            self.passed = bytearray((done | mine).to_bytes(len(self.done), "little"))

    def end(self, index: int, kind: OutcomeKind) -> None:
        """Note that this item has its outcome now."""
        if self.copies_left and self.is_copy(index):
            self.copies_left -= 1
        self.done[index >> 3] |= 1 << (index & 7)
        if self.passed is not None:
            self.passed[index >> 3] |= 1 << (index & 7)
        self.ended[kind] = self.ended.get(kind, 0) + 1

    @property
    def left(self) -> int:
        """Items without an outcome that are for this process to do (count)."""
        if not self.is_known:
            return 0
        return self.items + self.beyond - self.elsewhere - sum(self.ended.values())

    @property
    def unsuccessful(self) -> int:
        """Items that failed, were skipped or are unknown; superseded ones don't count (count)."""
        ended = self.ended
        bad = (OutcomeKind.FAILED, OutcomeKind.SKIPPED, OutcomeKind.UNKNOWN)
        return sum(ended.get(kind, 0) for kind in bad) - self.superseded


def dependency_failed(job: Job, unsuccessful: Callable[[int], int], numbers: Mapping[str, int]) -> str:
    """Return the message for the items of a job that is not to run; `unsuccessful`: items of a job that did not
    succeed, by its number (count)."""
    bad = {name: count for name in job.needs if (count := unsuccessful(numbers[name]))}
    counts = ", ".join(f"{name} ({count:,} not successful)" for name, count in bad.items())
    return f"not tried: {job.name} needs {counts}"


class Board(Protocol):
    """What is known of the jobs of a run, whichever processes work on it.

    Attributes:
        is_shared: other processes work on the run, too: this one does only the parts that join (`Scheduler.join`).
        expects_more: items may still join, so the run does not end when nothing is left now.
        free: items that no process works on yet and that this one may get (count).
    """

    is_shared: bool
    expects_more: bool
    free: int

    def is_complete(self, job: int) -> bool:
        """Return whether every item of the job with that number has an outcome."""

    def unsuccessful(self, job: int) -> int:
        """Return how many of its items failed, were skipped or are unknown (count)."""


class LocalBoard:
    """The board of a process that does all of the work."""

    is_shared: bool = False
    expects_more: bool = False
    free: int = 0

    def __init__(self, progress: Sequence[JobProgress]) -> None:
        self._progress = progress

    def is_complete(self, job: int) -> bool:
        """See `Board`."""
        return self._progress[job].left == 0

    def unsuccessful(self, job: int) -> int:
        """See `Board`."""
        return self._progress[job].unsuccessful
