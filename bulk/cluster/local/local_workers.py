"""Workers on this machine, each a process of its own, which live as long as the command that started them.

A worker reads its settings from its standard input, so that no source of a token stands on a command line. The end of
that pipe tells the worker to end, even if the command was killed. Each worker holds a file locked as long as it lives:
the next command waits until no worker does. The shards of a worker that is known to be dead are given back at once.
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
from bulk.storage.locks import try_lock
from bulk.store.connections import StoreConnection
from bulk.store.leases import release_dead

LEASE_S = 10.0
"""How long a lease of a local worker lasts without a renewal (seconds): the shards of a frozen worker are taken over
sooner than on several machines."""

OTHERS_S, LOOK_S = 120.0, 0.1
"""How long a worker of an earlier command may take to end, and how often this is checked (seconds)."""

MOST_DEATHS, LIFE_S = 10, 60.0
"""How often in a row a worker is started again that dies within `LIFE_S` of its start (count, seconds)."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker reads from its standard input: see `WorkerSettings`.

    Attributes:
        credentials: name -> source. secrets: the manifest's folder, where the secrets that items name are found.
        log_level: the level of its log, a number of `logging`.
    """

    store: str
    base_url: str
    credentials: dict[str, str]
    folder: str
    secrets: str
    lease_s: float = LEASE_S
    log_level: int = 30


class LocalWorkers:
    """The worker processes of one command.

    Args:
        command: the command that starts a worker.
        told: the settings of each worker, by its number.
        store: a connection that this object alone uses.
        lock: a file, which each worker holds locked as long as it lives.
        note: called with each line that a worker writes to standard error, and when a worker was killed.
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
        """Start the workers, and start again those that die, until all of them have ended after `end`.

        Raises:
            RunStopped: a worker can't work, or a worker of an earlier command does not end.
        """
        await self._others_gone()
        if self._ending.is_set():
            return
        await anyio.to_thread.run_sync(release_dead, self._store, None)
        async with anyio.create_task_group() as group:
            for number in range(len(self._told)):
                group.start_soon(self._keep, number)

    async def _others_gone(self) -> None:
        """Wait until no worker of an earlier command lives: a worker ends by itself when its command does."""
        until = self._clock.monotonic() + OTHERS_S
        while not self._ending.is_set() and not is_free(self._lock):
            if self._clock.monotonic() > until:
                raise RunStopped(
                    f"a worker of an earlier command has not ended within {OTHERS_S:.0f} s, which holds {self._lock}: "
                    "end it, then give the same command again"
                )
            await self._clock.sleep(LOOK_S)

    def end(self) -> None:
        """Tell the workers to end, after their requests in flight have ended."""
        self._ending.set()
        for process in self._processes.values():
            _tell_to_end(process)

    def kill(self) -> None:
        """Kill the workers at once."""
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
            with contextlib.suppress(BulkError):  # if the store can't be reached, its leases end by themselves
                await anyio.to_thread.run_sync(release_dead, self._store, name)

    async def _life(self, number: int, last: list[str]) -> tuple[int, str]:
        """Return how a worker ended (exit code, or minus the signal) and its name; its last line is put into `last`."""
        with open(self._lock, "rb") as lock:  # noqa: ASYNC230 - an empty file
            fcntl.flock(lock, fcntl.LOCK_SH)
            process = await anyio.open_process(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is meant for the command that started it
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
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # its exit code says the rest
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
    """Return whether no worker lives that was started with this lock file."""
    with open(lock, "ab") as file:
        return try_lock(file.fileno())
