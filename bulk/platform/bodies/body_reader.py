"""Takes in the bodies of answers, so that memory stays flat whatever their size and number.

A body that is short goes into memory as it comes, the others only where the memory budget has room; what finds none,
and what is longer than `IN_MEMORY_BYTES`, is written to a file while it arrives, so that no connection ever waits for
memory. Of a file, either a BodyFile is handed on, or it is read back when there is room for it. What an item holds is
its own until `end`. Source: interface.md §3 (raw); failures.md row 29.
"""

from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Protocol

from bulk.clock import Clock
from bulk.model import BodyFile, Media, Request
from bulk.platform.bodies.content_coding import Coded
from bulk.platform.bodies.memory_budget import MemoryBudget
from bulk.platform.bodies.spool import Elsewhere, Spool, SpooledBody
from bulk.platform.deadlines import InFlight
from bulk.platform.http1 import SMALL_BYTES, Answering

ROOM_BYTES = 16 * 1024 * 1024
"""What there is room for of all answers above `SMALL_BYTES`; a value of one takes a few times as much."""

IN_MEMORY_BYTES = 8 * 1024 * 1024
"""Longer bodies come by way of a file; bodies up to this are kept in the store of validators."""

UNKNOWN_BYTES = 1024 * 1024
"""As much is read into memory of a body that does not say how long it is."""

STEP_BYTES = 256 * 1024
"""So much room is taken at a time for a body of unknown length, and so much is written at once."""

_AS_BYTES = (Media.RAW, Media.HTML)


class TooLong(Enum):
    """The body has more bytes than the request allows; it was not read to its end."""

    TOO_LONG = "too long"


TOO_LONG = TooLong.TOO_LONG


class Holder(Protocol):
    """The item that a body is for. Compared by identity.

    Attributes:
        is_saved: its payload is going to be a file of the user's.
    """

    is_saved: bool


class _Blocks(Protocol):
    async def readany(self) -> bytes: ...


async def read_alone(response: Answering, coding: str, most: int) -> bytes | TooLong:
    """The body of an answer that belongs to no item, in memory; see `Intake.read`."""
    content: _Blocks = Coded(response.content, coding) if coding else response.content
    blocks: list[bytes] = []
    size = 0
    while block := await content.readany():
        blocks.append(block)
        size += len(block)
        if size > most:
            response.close()
            return TOO_LONG
    response.release()
    return b"".join(blocks)


class BodyReader:
    """For all requests of a run.

    Args:
        run_dir: held by this process.
        elsewhere: where what blocks is done.
    """

    def __init__(self, run_dir: Path, clock: Clock, elsewhere: Elsewhere) -> None:
        self._monotonic = clock.monotonic
        self._memory_budget, self._arrivals = MemoryBudget(ROOM_BYTES), Spool(run_dir, elsewhere)
        self._files: dict[object, list[str]] = {}

    def clear(self) -> None:
        """Remove files that nobody owns, such as those of a killed process; blocks."""
        self._arrivals.clear()

    def holds(self, holder: object) -> bool:
        """Whether an item has something that must come to its `end`."""
        return holder in self._memory_budget or holder in self._files

    def step_aside(self, holder: object) -> None:
        """This item goes on to its next request, for which it may have to wait."""
        self._memory_budget.step_aside(holder)

    async def end(self, holders: Iterable[object]) -> None:
        """These items have ended, and all that counts of them is on disk."""
        names = [name for holder in holders for name in self._files.pop(holder, ())]
        for holder in holders:
            self._memory_budget.give(holder)
        if names:
            await self._arrivals.remove(names)

    def abandon(self, holder: object) -> None:
        """This item has no outcome; its files go when the run ends."""
        self._files.pop(holder, None)
        self._memory_budget.give(holder)

    async def read(
        self, response: Answering, length: int, coding: str, request: Request, flight: InFlight, holder: Holder
    ) -> bytes | BodyFile | TooLong:
        """The body of `response`, which is released when all of it has come, or closed when it is too long.

        Args:
            length: that the answer says it has (bytes); 0: it does not say.
            coding: of the content; empty: none.

        Raises:
            One of `failures.FOREIGN`, CodingBroken: it broke off.
            RunStopped: the disk refuses.
        """
        content: _Blocks = Coded(response.content, coding) if coding else response.content
        length = 0 if coding else length
        if length > request.max_bytes:
            response.close()
            return TOO_LONG
        blocks: list[bytes] = []
        body = object()
        try:
            if await self._into_memory(content, length, blocks, request.max_bytes, body):
                response.release()
                self._memory_budget.pass_on(body, holder)
                return b"".join(blocks)
            return await self._by_file(response, content, blocks, request, flight, holder, body)
        finally:
            self._memory_budget.give(body)

    async def _into_memory(self, content: _Blocks, length: int, blocks: list[bytes], most: int, body: object) -> bool:
        """Read into `blocks` while there is room, which is taken for `body`; whether that was all of it."""
        size, memory_budget = 0, max(length, SMALL_BYTES)
        if memory_budget > SMALL_BYTES and (
            memory_budget > IN_MEMORY_BYTES or not self._memory_budget.take_nowait(body, memory_budget)
        ):
            return False
        while block := await content.readany():
            blocks.append(block)
            size += len(block)
            if size > memory_budget:
                if size > min(most, UNKNOWN_BYTES) or not self._memory_budget.take_nowait(
                    body, STEP_BYTES + size - memory_budget
                ):
                    return False
                memory_budget = size + STEP_BYTES
        return True

    async def _by_file(
        self,
        response: Answering,
        content: _Blocks,
        blocks: list[bytes],
        request: Request,
        flight: InFlight,
        holder: Holder,
        body: object,
    ) -> bytes | BodyFile | TooLong:
        """As `read`, of which `blocks` have come already, for which `body` has taken room."""
        file = self._arrivals.new()
        is_kept = False
        try:
            size = waiting = sum(len(block) for block in blocks)
            while block := await content.readany():
                blocks.append(block)
                size += len(block)
                waiting += len(block)
                if size > request.max_bytes:
                    response.close()
                    return TOO_LONG
                if waiting >= STEP_BYTES:
                    await self._write(file, blocks, flight)
                    self._memory_budget.give(body)
                    waiting = 0
            response.release()
            await self._write(file, blocks, flight)
            self._memory_budget.give(body)
            flight.begin_ours(self._monotonic())
            is_success = 200 <= response.status < 300
            if request.takes_file and request.media in _AS_BYTES and is_success and size > IN_MEMORY_BYTES:
                sealed = await file.seal(size, is_durable=holder.is_saved)
                self._files.setdefault(holder, []).append(sealed.name)
                is_kept = True
                return sealed
            await self._memory_budget.take(holder, size)
            return await file.read()
        finally:
            flight.end_ours(self._monotonic())
            if not is_kept:
                file.drop()

    async def _write(self, file: SpooledBody, blocks: list[bytes], flight: InFlight) -> None:
        """Write `blocks`, and forget them."""
        data = b"".join(blocks)
        blocks.clear()
        flight.begin_ours(self._monotonic())
        try:
            await file.write(data)
        finally:
            flight.end_ours(self._monotonic())
