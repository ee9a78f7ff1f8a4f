"""The processes that hold DuckDB. A process that has done its task waits for the next: to start a process takes as long
as most tasks, and a night has six tasks. It ends with the process that started it, however that process ends.
"""

import atexit
from collections.abc import Iterator

import msgspec

from bulk.audit.tables.child import Task
from bulk.storage.child_process import ChildProcess

_CHILD = "bulk.audit.tables.child"


class TableProcess(ChildProcess):
    """One process that holds DuckDB."""

    def __init__(self) -> None:
        super().__init__(_CHILD)

    def lines(self, task: Task) -> Iterator[bytes]:
        """Give the process a task, and yield its answers line by line.

        Raises:
            BrokenPipeError: the process has ended.
        """
        said = self.tell(msgspec.json.encode(task))
        yield from iter(said.readline, b"")  # `yield from said` would close the pipe together with this generator


_idle: list[TableProcess] = []


def take() -> TableProcess:
    """Return a process that waits for a task; a new process where none waits."""
    while _idle:
        process = _idle.pop()
        if process.is_usable:
            return process
    return TableProcess()


def give_back(process: TableProcess) -> None:
    """Mark the process as free: it has done its task, and may have the next one."""
    _idle.append(process)


def begin() -> None:
    """Have a process wait, so that it starts while its task is still put together."""
    give_back(take())


@atexit.register
def end_all() -> None:
    """End the processes that wait for a task."""
    while _idle:
        process = _idle.pop()
        if process.is_usable:
            process.end()
