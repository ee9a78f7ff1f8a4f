"""The processes that hold DuckDB. One that has done its task waits for the next: to start one takes as long as most
tasks, and a night has six of them. It ends with the process that started it, however that one ends.
"""

import atexit
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import msgspec

from bulk.audit.tables.child import Task

_CHILD = "bulk.audit.tables.child"
END_S = 30.0
"""So long one that was killed is waited for; the system can't end what waits for a disk (seconds)."""


class TableProcess:
    """One process."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", _CHILD]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        self._owner = os.getpid()

    @property
    def is_usable(self) -> bool:
        """Whether it waits for a task of this process, not of one that this one was forked from."""
        return self._owner == os.getpid() and self._process.poll() is None

    def lines(self, task: Task) -> Iterator[bytes]:
        """Give it a task, and yield what it says, line by line.

        Raises:
            BrokenPipeError: it has ended.
        """
        given, said = self._process.stdin, self._process.stdout
        assert given is not None
        assert said is not None
        given.write(msgspec.json.encode(task) + b"\n")
        given.flush()
        yield from iter(said.readline, b"")  # the pipe itself would be closed with whoever reads it

    def kill(self) -> None:
        """End it, whatever it does; what it said can still be read."""
        self._process.kill()

    def end(self) -> tuple[int, str]:
        """End it, and return its exit code and the last line of its standard error."""
        self._process.kill()
        try:
            _, said = self._process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL, f"it was killed, and still runs {END_S:.0f} s later"
        lines = said.decode("utf-8", "replace").strip().splitlines()
        return self._process.returncode, lines[-1] if lines else "no message"


_idle: list[TableProcess] = []


def take() -> TableProcess:
    """Return a process that waits for a task; one that is new where none does."""
    while _idle:
        process = _idle.pop()
        if process.is_usable:
            return process
    return TableProcess()


def give_back(process: TableProcess) -> None:
    """Mark the process as free: it has done its task, and may have the next one."""
    _idle.append(process)


def begin() -> None:
    """Have one that waits, so that it starts while its task is still put together."""
    give_back(take())


@atexit.register
def end_all() -> None:
    """End those that wait for a task."""
    while _idle:
        process = _idle.pop()
        if process.is_usable:
            process.end()
