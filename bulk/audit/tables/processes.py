"""The processes that hold DuckDB. One that has done its task waits for the next: to start one takes as long as most
tasks, and a night has six of them. It ends with the process that started it, however that one ends.
"""

import atexit
from collections.abc import Iterator

import msgspec

from bulk.audit.tables.child import Task
from bulk.storage.child_process import ChildProcess

_CHILD = "bulk.audit.tables.child"


class TableProcess(ChildProcess):
    """One process."""

    def __init__(self) -> None:
        super().__init__(_CHILD)

    def lines(self, task: Task) -> Iterator[bytes]:
        """Give it a task, and yield what it says, line by line.

        Raises:
            BrokenPipeError: it has ended.
        """
        said = self.tell(msgspec.json.encode(task))
        yield from iter(said.readline, b"")  # the pipe itself would be closed with whoever reads it


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
