"""The way to disk: gathers intents and outcomes and commits them in groups, one group after the other.

An intent is awaited: its write leaves only once the intent is durable. An outcome is not awaited; because groups keep
their order, it is durable at the latest with the next intent of its lane, or of another job. The outcomes of items that
share no lane gather beside the intents of their job, so that each sync of the results serves more of them. Only what is
durable is reported. When the disk refuses, the group stays in memory and is tried again until `GRACE_S` is over.
Source: design.md §5, §6; failures.md rows 42, 47, 50.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from bulk.clock import Clock
from bulk.errors import BulkError, RunStopped
from bulk.ledger.protocol import RunLedger
from bulk.ledger.records import Action, Entry, Intent, Minute, Record, StoredTally, Withdrawn
from bulk.status import RunStatus
from bulk.storage.disk_threads import Disk

GATHER_S = 0.02
"""How long outcomes gather before they are written (seconds): those of writes that are alone always, others only while
no intent waits."""

JOIN_PASSES = 4
"""Most turns of the event loop that a group waits for more entries, as long as each turn brings some (count)."""

JOIN_S = 0.001
"""How long a group with intents waits for those of other items, at most half of the last group's time (seconds)."""

GROUP_MOST = 1_000
GROUP_BYTES = 2 * 1024 * 1024
"""Most entries of one group, and most bytes of results: bounds memory and the time of a commit."""

INTENT_BYTES = 200
"""About the memory that an intent takes (bytes)."""

ROOM_BYTES = 6 * 1024 * 1024
"""Workers wait while more than this is on its way to disk."""

GRACE_S = 10.0
"""How long a refusing disk is tried again before the run ends without the last outcomes (a resume settles them)."""


@dataclass(slots=True, eq=False)
class _Group:
    entries: list[Entry] = field(default_factory=list)
    size_bytes: int = 0
    intents: int = 0
    tallies: Mapping[int, StoredTally] | None = None
    waiters: list[asyncio.Future[None]] = field(default_factory=list)
    holders: list[object] = field(default_factory=list)

    async def end(self) -> None:
        """Wait until the group is written, or never will be; it must not be called after `let_go`.

        Each caller has a future of its own, as in an `asyncio.Event`, which takes longer to find whom to wake.
        """
        waiter = asyncio.get_running_loop().create_future()
        self.waiters.append(waiter)
        await waiter

    def let_go(self) -> None:
        """Wake all tasks that wait in `end`."""
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)


@dataclass(slots=True, eq=False)
class _Gathering:
    """Outcomes of one job that need not go with the next intent; `since`: when the first of them came."""

    records: list[Record] = field(default_factory=list)
    size_bytes: int = 0
    since: float = 0.0


async def _nothing(_: Sequence[object]) -> None:
    """Do nothing, in place of hooks that are not asked for."""


@dataclass(frozen=True, slots=True)
class CommitHooks:
    """What is done with each group besides writing it.

    Attributes:
        tally: called with the records, once, in the thread that writes; returns the tallies that the ledger keeps.
        flush: further blocking work for that thread once the records are written (the store of validators).
        durable: called with the records once they are durable.
        released: called with the holders that no longer need their bodies (see `Recorder.hold`).
    """

    tally: Callable[[Sequence[Record]], Mapping[int, StoredTally]] = lambda _: {}
    flush: Callable[[], None] = lambda: None
    durable: Callable[[Sequence[Record]], Awaitable[None]] = _nothing
    released: Callable[[Sequence[object]], Awaitable[None]] = _nothing


class Recorder:
    """Commits intents and outcomes: one task (`run`) writes, and any worker calls `intend` and `record`.

    Args:
        hooks: what is done with each group besides writing it.
        stop: called when the disk refuses.
        in_flight: returns the number of items that are worked on, each of which may soon have an intent.

    Attributes:
        actions: actions of people that no group has stored yet; the next group stores them.
    """

    def __init__(
        self,
        ledger: RunLedger,
        clock: Clock,
        disk: Disk,
        hooks: CommitHooks,
        stop: Callable[[RunStopped], None],
        in_flight: Callable[[], int],
    ) -> None:
        self._ledger, self._clock, self._disk, self._hooks = ledger, clock, disk, hooks
        self._stop, self._in_flight = stop, in_flight
        self._group = _Group()
        self._gathering = _Gathering()
        self._writing: _Group | None = None
        self._waiting_bytes = 0
        self._took_s = 0.0
        self._wanted = asyncio.Event()
        self._urgent = asyncio.Event()
        self._has_room = anyio.Event()
        self._is_closing = False
        self._status: RunStatus | None = None
        self._minute: Minute | None = None
        self.actions: list[Action] = []
        self.failure: BulkError | None = None

    async def intend(self, *intents: Intent) -> None:
        """Make durable that a write is about to leave. A combined write has an intent for each item, all of one job.

        Raises:
            RunStopped: the disk refuses; the write must not leave.
        """
        group, gathered = self._group, self._gathering.records
        if gathered and gathered[0].job != intents[0].job:
            self._take_gathered()
        if not group.intents:
            self._wanted.set()
            self._urgent.set()
        group.entries += intents
        group.intents += len(intents)
        group.size_bytes += INTENT_BYTES * len(intents)
        self._waiting_bytes += INTENT_BYTES * len(intents)
        await group.end()
        if self.failure is not None:
            raise RunStopped(str(self.failure))

    def withdraw(self, *intents: Withdrawn) -> None:
        """Take back what `intend` has made durable, because the write did not leave.

        Where the process ends before that is durable, the next one settles them as if they had been sent.
        """
        self._group.entries += intents
        self._group.size_bytes += INTENT_BYTES * len(intents)
        self._waiting_bytes += INTENT_BYTES * len(intents)
        self._wanted.set()

    def record(self, record: Record, size_bytes: int, *, is_alone: bool = False) -> None:
        """Hand over an item that has ended.

        Args:
            size_bytes: about the memory that the record takes.
            is_alone: see `ItemTally.is_alone`.
        """
        self._waiting_bytes += size_bytes
        if not is_alone:
            group = self._group
            if not group.entries:
                self._wanted.set()
            group.entries.append(record)
            group.size_bytes += size_bytes
            if group.size_bytes >= GROUP_BYTES or len(group.entries) >= GROUP_MOST:
                self._urgent.set()
            return
        gathering = self._gathering
        if gathering.records and gathering.records[0].job != record.job:
            self._take_gathered()
            gathering = self._gathering
        if not gathering.records:
            gathering.since = self._clock.monotonic()
            self._wanted.set()
        gathering.records.append(record)
        gathering.size_bytes += size_bytes
        if _is_large(len(gathering.records), gathering.size_bytes):
            self._take_gathered()

    def hold(self, holder: object) -> None:
        """Tell `released` of `holder` when the record that was handed over last is durable, or never will be."""
        self._take_gathered()
        self._group.holders.append(holder)

    @property
    def is_full(self) -> bool:
        """Whether workers should `wait_room` before they take on more."""
        return self._waiting_bytes > ROOM_BYTES

    async def wait_room(self) -> None:
        """Wait until the disk has caught up."""
        while self.is_full and self.failure is None:
            if self._has_room.is_set():
                self._has_room = anyio.Event()
            await self._has_room.wait()

    async def caught_up(self) -> None:
        """Wait until all that was handed over so far is durable.

        Raises:
            RunStopped: the disk refuses.
        """
        self._take_gathered()
        last = self._group if self._group.entries else self._writing
        if last is not None:
            await last.end()
        if self.failure is not None:
            raise RunStopped(str(self.failure))

    def note_status(self, status: RunStatus, minute: Minute | None = None) -> None:
        """Store this status, and what the plots need of its minute, with the next group, or soon."""
        self._status, self._minute = status, minute or self._minute
        self._wanted.set()

    def close(self) -> None:
        """Note that no more is coming: `run` ends when all is durable."""
        self._is_closing = True
        self._wanted.set()
        self._urgent.set()

    def _take_gathered(self) -> None:
        """Let what was gathered go with the next group."""
        gathering = self._gathering
        if not gathering.records:
            return
        self._gathering = _Gathering()
        self._group.entries += gathering.records
        self._group.size_bytes += gathering.size_bytes
        self._wanted.set()
        self._hurry_if_large(self._group)

    def _hurry_if_large(self, group: _Group) -> None:
        if _is_large(len(group.entries), group.size_bytes):
            self._urgent.set()

    async def run(self) -> None:
        """Write groups until `close`."""
        while True:
            if self._wanted.is_set():
                await anyio.lowlevel.checkpoint()  # tasks that are ready may join this group
            else:
                await self._wanted.wait()
            if not self._group.intents and not self._is_closing:
                await self._gather()
            await self._let_join()
            is_due = self._clock.monotonic() - self._gathering.since >= GATHER_S
            if is_due or not self._group.intents:
                self._take_gathered()
            group, self._group = self._group, _Group()
            self._wanted.clear()
            self._urgent.clear()
            self._writing = group
            await self._write(group)
            self._writing = None
            del group  # the bodies of this group are not kept while the next one is waited for
            is_more = bool(self._group.entries or self._gathering.records)
            if is_more or self._is_closing:
                self._wanted.set()
            if self._is_closing and not is_more:
                return

    async def _gather(self) -> None:
        """Wait for more until the group is urgent; a timer for that costs a third of a scope that is cancelled."""
        timer = asyncio.get_running_loop().call_later(GATHER_S, self._urgent.set)
        try:
            await self._urgent.wait()
        finally:
            timer.cancel()

    async def _let_join(self) -> None:
        """Let the tasks that are ready now, or in a moment, join the same group, so that more writes share its cost."""
        await self._let_ready_join()
        pause_s = min(JOIN_S, self._took_s / 2)
        if pause_s > 0.0 and 0 < self._group.intents < self._in_flight():
            await self._clock.sleep(pause_s)
            await self._let_ready_join()

    async def _let_ready_join(self) -> None:
        size, passes = -1, 0
        while size < len(self._group.entries) < GROUP_MOST and passes < JOIN_PASSES:
            size, passes = len(self._group.entries), passes + 1
            await anyio.lowlevel.checkpoint()

    async def _write(self, group: _Group) -> None:
        status, self._status = self._status, None
        minute, self._minute = self._minute, None
        actions = tuple(self.actions)
        started = self._clock.monotonic()
        while self.failure is None:
            try:
                await self._disk(lambda: self._commit(group, status, minute, actions))
                count = len(actions)
                del self.actions[:count]
                self._took_s = self._clock.monotonic() - started
            except RunStopped as refusal:
                self._stop(refusal)
                if self._clock.monotonic() - started > GRACE_S:
                    self.failure = refusal
                else:
                    await self._clock.sleep(0.25)
            except BulkError as refusal:
                self.failure = refusal
                self._stop(RunStopped(str(refusal)))
            else:
                await self._hooks.durable([entry for entry in group.entries if type(entry) is Record])
                break
        if group.holders:
            await self._hooks.released(group.holders)
        self._waiting_bytes -= group.size_bytes
        group.let_go()
        if not self.is_full:
            self._has_room.set()

    def _commit(
        self, group: _Group, status: RunStatus | None, minute: Minute | None, actions: Sequence[Action]
    ) -> None:
        if group.tallies is None:
            group.tallies = self._hooks.tally([entry for entry in group.entries if type(entry) is Record])
        self._ledger.commit(group.entries, status, group.tallies, minute, actions)
        self._hooks.flush()


def _is_large(entries: int, size_bytes: int) -> bool:
    return entries >= GROUP_MOST or size_bytes >= GROUP_BYTES
