"""Takes in the bodies of answers, so that memory stays flat whatever their size and number.

A short body goes into memory as it comes, a longer one only if the memory budget has room. A body that finds no room,
or is longer than `IN_MEMORY_BYTES`, is written to a file while it arrives, so that no connection ever waits for memory.
The file is either handed on as a BodyFile, or read back when there is room for it. An item owns its memory and its
files until `end`. Source: interface.md §3 (raw); failures.md row 29.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from aiohttp import StreamReader

from bulk.clock import Clock
from bulk.model import BodyFile, Request
from bulk.platform.bodies.body_values import AS_BYTES, Unreadable
from bulk.platform.bodies.content_coding import Coded
from bulk.platform.bodies.memory_budget import MemoryBudget
from bulk.platform.bodies.spool import Spool, SpooledBody
from bulk.platform.deadlines import InFlight
from bulk.platform.http1 import SMALL_BYTES, Answering
from bulk.storage.disk_threads import Disk

ROOM_BYTES = 16 * 1024 * 1024
"""Bytes of all answers above `SMALL_BYTES` that there is room for; the value of an answer takes a few times as much."""

IN_MEMORY_BYTES = 8 * 1024 * 1024
"""Longer bodies come by way of a file; bodies up to this are kept in the store of validators."""

UNKNOWN_BYTES = 1024 * 1024
"""Most bytes that are read into memory of a body that does not say how long it is."""

STEP_BYTES = 256 * 1024
"""How much room is taken at a time for a body of unknown length, and how much is written at once (bytes)."""


class Holder(Protocol):
    """The item that a body is for. Compared by identity.

    Attributes:
        is_saved: the item's payload is going to be a file of the user's.
        holds_body: the item has memory or files, so that `BodyReader.end` must be called for it when it has ended.
    """

    is_saved: bool
    holds_body: bool


def too_long(most: int) -> Unreadable:
    """Return the value that stands for a body of more than `most` bytes, which is not read to its end."""
    return Unreadable(f"it has more than {most:,} bytes", is_too_large=True)


def _decoded(response: Answering) -> Coded | StreamReader:
    """Return the body of an answer without its coding, block by block."""
    coding = ", ".join(response.headers.getall("Content-Encoding", ("identity",))).lower()  # several: all were applied
    return response.content if coding in ("identity", "") else Coded(response.content, coding)


async def read_alone(response: Answering, most: int) -> bytes | Unreadable:
    """Return the body of an answer that belongs to no item, in memory; see `BodyReader.read`."""
    content = _decoded(response)
    blocks: list[bytes] = []
    size = 0
    while block := await content.readany():
        blocks.append(block)
        size += len(block)
        if size > most:
            return too_long(most)
    response.release()
    return b"".join(blocks)


class BodyReader:
    """Reads the bodies of all requests of a run.

    Args:
        run_dir: run directory, held by this process.
        disk: runs calls that block.
    """

    def __init__(self, run_dir: Path, clock: Clock, disk: Disk) -> None:
        self._monotonic = clock.monotonic
        self._memory_budget, self._spool = MemoryBudget(ROOM_BYTES), Spool(run_dir, disk)
        self._files: dict[object, list[str]] = {}

    def clear(self) -> None:
        """Remove files that no item owns, such as those of a killed process; blocks."""
        self._spool.clear()

    def step_aside(self, holder: Holder) -> None:
        """Note that an item goes on to its next request, for which it may have to wait."""
        self._memory_budget.step_aside(holder)

    async def end(self, holders: Iterable[object]) -> None:
        """Note that items have ended, and that their results are on disk."""
        names = [name for holder in holders for name in self._files.pop(holder, ())]
        for holder in holders:
            self._memory_budget.give(holder)
        if names:
            await self._spool.remove(names)

    def abandon(self, holder: object) -> None:
        """Note that this item has no outcome; its files go when the run ends."""
        self._files.pop(holder, None)
        self._memory_budget.give(holder)

    async def read(
        self, response: Answering, request: Request, flight: InFlight, holder: Holder
    ) -> bytes | BodyFile | Unreadable:
        """Return the body of `response`, which is released when all of it has come.

        Raises:
            One of `failures.FOREIGN`, CodingBroken: the body broke off.
            RunStopped: the disk refuses the file.
        """
        content = _decoded(response)
        said = response.headers.get("Content-Length", "") if content is response.content else ""
        length = int(said) if said.isdecimal() and len(said) < 20 else 0  # 0: the length is not known
        if length > request.max_bytes:
            return too_long(request.max_bytes)
        budget, body, blocks = self._memory_budget, object(), list[bytes]()
        file: SpooledBody | None = None
        size, waiting, is_kept = 0, 0, False
        room = max(length, SMALL_BYTES)
        if room > SMALL_BYTES and (room > IN_MEMORY_BYTES or not budget.take_nowait(body, room)):
            file = self._spool.new()
        try:
            while block := await content.readany():
                blocks.append(block)
                size += len(block)
                waiting += len(block)
                if size > request.max_bytes:
                    return too_long(request.max_bytes)
                if file is None and size > room:
                    if size > UNKNOWN_BYTES or not budget.take_nowait(body, STEP_BYTES + size - room):
                        file = self._spool.new()
                    room = size + STEP_BYTES
                if file is not None and waiting >= STEP_BYTES:
                    await self._write(file, blocks, flight)
                    budget.give(body)
                    waiting = 0
            response.release()
            if file is None:
                if body in budget:
                    budget.pass_on(body, holder)
                    holder.holds_body = True
                return b"".join(blocks)
            await self._write(file, blocks, flight)
            budget.give(body)
            is_success = 200 <= response.status < 300
            is_handed_on = request.takes_file and request.media in AS_BYTES and is_success and size > IN_MEMORY_BYTES
            came = await self._of_file(file, size, flight, holder, is_handed_on=is_handed_on)
            is_kept = is_handed_on
            return came
        finally:
            budget.give(body)
            if file is not None and not is_kept:
                file.drop()

    async def _of_file(
        self, file: SpooledBody, size: int, flight: InFlight, holder: Holder, *, is_handed_on: bool
    ) -> bytes | BodyFile:
        flight.begin_ours(self._monotonic())
        try:
            if is_handed_on:
                sealed = await file.seal(size, is_durable=holder.is_saved)
                self._files.setdefault(holder, []).append(sealed.name)
                holder.holds_body = True
                return sealed
            await self._memory_budget.take(holder, size)
            holder.holds_body = True
            return await file.read()
        finally:
            flight.end_ours(self._monotonic())

    async def _write(self, file: SpooledBody, blocks: list[bytes], flight: InFlight) -> None:
        """Write `blocks`, and forget them."""
        data = b"".join(blocks)
        blocks.clear()
        flight.begin_ours(self._monotonic())
        try:
            await file.write(data)
        finally:
            flight.end_ours(self._monotonic())
