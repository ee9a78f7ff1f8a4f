"""Gives tasks to the process that holds DuckDB, and turns its failures into errors."""

import contextlib
import importlib.util
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson

from bulk.audit.tables import processes
from bulk.audit.tables.child import Task
from bulk.clock import Clock
from bulk.errors import RunDirectoryError, RunStopped, UsageError
from bulk.storage.scratch import scratch_folder

TIME_LIMIT_S = 60.0
"""How long a query may take (seconds)."""

LEAST_WRITE_S, LEAST_RATE = 300.0, 1e6
"""Time that writing tables may always take (seconds), and the rate that gives a large source more (bytes a second)."""

_FILE = re.compile(r'Could not (?:write|sync|truncate) (?:all to )?file "([^"]+)": ([^"]+)')
_DAMAGED = re.compile(r"""(?:read|of|in|from|Error:) file ['"]([^'"]+\.parquet)['"]""", re.IGNORECASE)
"""The message of DuckDB about a Parquet file that it can't read."""
_NO_JSON = re.compile(r"""Malformed JSON in file "([^"]+)"|a line of (.+) is not JSON""")
"""The messages of DuckDB and of our own view about lines that can't be read: a query reads no other JSON file."""
_OF_FILES = ("InvalidInputException", "IOException")
_UNFORESEEN = "Error"
"""The kind of errors that DuckDB has no kind for: a file is damaged, and DuckDB does not say which file."""
_NOT_OF_QUERIES = ("OutOfMemoryException", "InternalException")
_NOT_IN_PATHS = "*?[]{}"


class QueryFlaw(UsageError):
    """A query can't be answered.

    Attributes:
        query: name of the query.
    """

    def __init__(self, query: str, message: str) -> None:
        super().__init__(message)
        self.query = query


def require_duckdb(extra: str = "tables") -> None:
    """Refuse to begin where DuckDB is not installed.

    Args:
        extra: name of the extra that installs DuckDB and all else that is needed.

    Raises:
        UsageError: DuckDB is not installed.
    """
    if importlib.util.find_spec("duckdb") is None:
        raise UsageError(f"tables need DuckDB: pip install 'bulkops[{extra}]'")


def refuse_pattern(path: Path) -> Path:
    """Return `path`, which DuckDB must not take for a pattern.

    Raises:
        UsageError: the path holds a character of patterns.
    """
    found = [character for character in _NOT_IN_PATHS if character in str(path)]
    if found:
        raise UsageError(f"{path}: tables can't be made where a path holds {' or '.join(found)}; move it")
    return path


def ask(task: Task, *, seconds: float = TIME_LIMIT_S) -> Iterator[dict[str, Any]]:
    """Yield the answers of the process line by line: `{"query", "columns", "types"}`, then `{"rows"}`, many at once.

    Args:
        seconds: how long the process may take, without the time in which the caller does not wait for it.

    Raises:
        QueryFlaw: a query is not one SELECT, can't be understood, or takes too long.
        RunDirectoryError: the disk is full, or a file can't be read or written.
        RunStopped: memory is short, or a task without queries takes too long.
    """
    require_duckdb()
    with contextlib.ExitStack() as stack:
        spills = ""
        with contextlib.suppress(OSError):  # without a folder, a query that needs more than memory is an error
            spills = str(stack.enter_context(scratch_folder("spills")))
        yield from _asked(msgspec.structs.replace(task, spills=spills), seconds)


def _asked(task: Task, seconds: float) -> Iterator[dict[str, Any]]:
    process, limit = processes.take(), _Limit(seconds)
    is_done, last = False, ""
    try:
        with contextlib.suppress(BrokenPipeError):
            for line in limit.waited_for(process, task):
                if not line.endswith(b"\n"):  # the process was ended in the middle of a line
                    break
                found = orjson.loads(line)
                if "done" in found:
                    is_done = True
                    return
                if "error" in found:
                    raise _error(**found["error"])
                last = found.get("query", last)
                yield found
    finally:
        if is_done:
            processes.give_back(process)
        else:
            code, said = process.end()
    if limit.is_over and task.queries:
        raise QueryFlaw(last, f"took longer than {seconds:.0f} s, and was ended")
    if limit.is_over:
        raise RunStopped(f"the tables took longer than {seconds:.0f} s, and were given up")
    raise RunStopped(f"the process for tables ended with {code}: {said}")


class _Limit:
    """How long the process may be waited for. The time of the reader of its answers, such as a pager, does not count.

    Attributes:
        is_over: whether the process was ended for taking too long.
    """

    def __init__(self, seconds: float) -> None:
        self._left_s = seconds
        self.is_over = False

    def waited_for(self, process: processes.TableProcess, task: Task) -> Iterator[bytes]:
        """Yield the answers of the process to a task, line by line."""
        lines = process.lines(task)
        while True:
            with self._running(process):
                line = next(lines, None)
            if line is None:
                return
            yield line

    @contextlib.contextmanager
    def _running(self, process: processes.TableProcess) -> Iterator[None]:
        def end() -> None:
            self.is_over = True
            process.kill()

        began, timer = Clock.monotonic(), threading.Timer(max(self._left_s, 0.0), end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self._left_s -= Clock.monotonic() - began


def run(task: Task, source: Path) -> None:
    """Do a task that reads `source` and has no queries.

    Raises:
        RunDirectoryError: the disk is full, or a file can't be read or written.
        RunStopped: memory is short, or the task takes too long.
    """
    for _ in ask(task, seconds=limit_s(source)):
        pass


def limit_s(source: Path) -> float:
    """Return how long it may take to make tables of the file `source` (seconds)."""
    return max(LEAST_WRITE_S, source.stat().st_size / LEAST_RATE)


def _error(kind: str, message: str, query: str) -> Exception:
    text = message.replace("\n\nLINE", "\nLINE").strip()
    if kind == "refused" or (query and kind not in _NOT_OF_QUERIES and not _is_damage(kind, text)):
        return QueryFlaw(query, text)
    if kind == "OutOfMemoryException":
        return RunStopped(f"there is not enough memory for the tables: {text.splitlines()[0]}")
    return RunDirectoryError(f"the tables can't be made: {_of_disk(kind, text)}")


def _is_damage(kind: str, text: str) -> bool:
    """Return whether a file can't be read, rather than that a query is wrong."""
    if kind == "InvalidInputException" and _NO_JSON.search(_first(text)):
        return True
    return kind == _UNFORESEEN or (kind in _OF_FILES and _DAMAGED.search(_first(text)) is not None)


def _first(text: str) -> str:
    return text.partition("\n")[0].strip()


def _of_disk(kind: str, text: str) -> str:
    """Return a short message for an error of DuckDB about a file that can't be read or written."""
    found = _FILE.search(text.replace('\\"', '"'))
    if found:
        return f"{found[1]}: {found[2]}; free some space there"
    lines = _NO_JSON.search(_first(text))
    if lines:
        return f"{lines[1] or lines[2]} is damaged, a line of it is not JSON: restore it from a copy"
    damaged = _DAMAGED.search(_first(text))
    if damaged:
        return f"{damaged[1]} is damaged: restore it from a copy, or remove it, and the others are read"
    if kind == _UNFORESEEN:
        return f"a Parquet file that is read is damaged ({_first(text)}): restore the tables from a copy"
    return _first(text)
