"""Workers on this machine, each a process of its own, which live as long as the command that started them.

What a worker is told comes through its standard input, so that no source of a token stands on a command line. The end
of that pipe tells it to end, also where the command was killed. Each holds a file locked as long as it lives: who comes
next waits until nobody does. What is known to be dead needs no lease to run out.
"""

import contextlib
import fcntl
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread
import msgspec
from anyio.streams.text import TextReceiveStream

from bulk.clock import Clock
from bulk.errors import BulkError, RunStopped
from bulk.redaction import redact
from bulk.store.connections import StoreConnection
from bulk.store.leases import release_dead

LEASE_S = 10.0
"""How long a lease of theirs is good for: what is frozen is taken over sooner than from another machine (seconds)."""

OTHERS_S, LOOK_S = 120.0, 0.1
"""So long a worker of an earlier command may take to end, and how often that is looked for (seconds)."""

MOST_DEATHS, LIFE_S = 10, 60.0
"""So often a worker is started again that dies within so many seconds of its start (count, seconds)."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker reads from its standard input: see `WorkerSettings`.

    Attributes:
        credentials: name -> source. secrets: the manifest's folder, where items have theirs.
        log_level: of its log, a number of `logging`.
    """

    store: str
    base_url: str
    credentials: dict[str, str]
    folder: str
    secrets: str
    lease_s: float = LEASE_S
    log_level: int = 30


class LocalWorkers:
    """So many workers.

    Args:
        command: what starts one.
        told: by its number.
        store: a connection that nobody else uses.
        lock: a file, which each of them holds as long as it lives.
        note: is given what they say.
    """

    def __init__(
        self,
        command: Sequence[str],
        told: Sequence[Told],
        store: StoreConnection,
        lock: Path,
        note: Callable[[str], None],
    ) -> None:
        self._command, self._told, self._store, self._lock, self._note = command, told, store, lock, note
        self._clock = Clock()
        self._processes: dict[int, anyio.abc.Process] = {}
        self._ending = anyio.Event()

    async def run(self) -> None:
        """Start them, and start again those that die, until all of them have ended after `end`.

        Raises:
            RunStopped: one of them can't work, or one of an earlier command does not end.
        """
        await self._others_gone()
        if self._ending.is_set():
            return
        await anyio.to_thread.run_sync(release_dead, self._store, None)
        async with anyio.create_task_group() as group:
            for number in range(len(self._told)):
                group.start_soon(self._keep, number)

    async def _others_gone(self) -> None:
        """Wait until no worker of an earlier command lives: each ends by itself when that does."""
        until = self._clock.monotonic() + OTHERS_S
        while not self._ending.is_set() and not is_free(self._lock):
            if self._clock.monotonic() > until:
                raise RunStopped(
                    f"a worker of an earlier command has not ended within {OTHERS_S:.0f} s, which holds {self._lock}: "
                    "end it, then give the same command again"
                )
            await self._clock.sleep(LOOK_S)

    def end(self) -> None:
        """Let their requests in flight end, and then them."""
        self._ending.set()
        for process in self._processes.values():
            _tell_to_end(process)

    def kill(self) -> None:
        """End them at once."""
        self.end()
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    async def _keep(self, number: int) -> None:
        deaths = 0
        while not self._ending.is_set():
            began, last = self._clock.monotonic(), [""]
            code, name = await self._life(number, last)
            if self._ending.is_set():
                return
            if code > 0:
                raise RunStopped(f"worker {number + 1} ended with {code}: {last[0] or 'it said nothing'}")
            deaths = deaths + 1 if self._clock.monotonic() - began < LIFE_S else 1
            if deaths > MOST_DEATHS:
                raise RunStopped(f"worker {number + 1} was ended {deaths} times, the last time by signal {-code}")
            self._note(f"worker {number + 1} was ended by signal {-code}; another one takes its place")
            with contextlib.suppress(BulkError):  # then its leases end by themselves
                await anyio.to_thread.run_sync(release_dead, self._store, name)

    async def _life(self, number: int, last: list[str]) -> tuple[int, str]:
        """Return how a worker ended (exit code, or minus the signal) and its name; `last` is what it said last."""
        with open(self._lock, "rb") as lock:  # noqa: ASYNC230 - an empty file
            fcntl.flock(lock, fcntl.LOCK_SH)
            process = await anyio.open_process(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is meant for who started it
                pass_fds=[lock.fileno()],
            )
        self._processes[number] = process
        try:
            if self._ending.is_set():
                _tell_to_end(process)
            else:
                await self._tell(process, self._told[number])
            assert process.stderr is not None
            async for line in _lines(process.stderr):
                last[0] = redact(line)
                self._note(f"worker {number + 1}: {last[0]}")
            return await process.wait(), f"{socket.gethostname()}-{process.pid}"
        finally:
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    process.kill()
                await process.aclose()
            del self._processes[number]

    async def _tell(self, process: anyio.abc.Process, told: Told) -> None:
        assert process.stdin is not None
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # how it ended says the rest
            await process.stdin.send(msgspec.json.encode(told) + b"\n")


def _tell_to_end(process: anyio.abc.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()


async def _lines(stream: anyio.abc.ByteReceiveStream) -> AsyncIterator[str]:
    """Yield the lines that are not empty, without their ends."""
    begun = ""
    async for text in TextReceiveStream(stream, errors="replace"):
        *lines, begun = (begun + text).split("\n")
        for line in filter(None, lines):
            yield line
    if begun:
        yield begun


def is_free(lock: Path) -> bool:
    """Return whether no worker lives that was started with this file."""
    with open(lock, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
