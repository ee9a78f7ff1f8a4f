"""Named moments at which a process kills itself. All from the outside: the product has no switch for it.

Each is put into a process of its own (`launcher.py`) by wrapping methods of the real classes; the n-th passage ends in
SIGKILL, which nothing can catch. Source: failures.md rows 42, 43.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from bulk.execute.item_runner import ItemRunner
from bulk.execute.recorder import Recorder
from bulk.execute.writes.settle import Settler
from bulk.ledger import database, results
from bulk.ledger.ledger import Ledger
from bulk.ledger.records import Intent, Point, Record
from bulk.platform import transport
from bulk.platform.deadlines import InFlight
from bulk.platform.http1 import ConnectionPool

LOOK_S = 0.0002


class Countdown:
    """Kills this process at the `nth` passage."""

    def __init__(self, nth: int) -> None:
        self._left = nth

    def __call__(self) -> None:
        if self.is_last_passage:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    @property
    def is_last_passage(self) -> bool:
        """Whether the next call kills."""
        return self._left == 1


def _patch(target: Any, name: str, replacement: Any) -> None:
    mock.patch.object(target, name, replacement).start()


def _around(target: Any, name: str, *, before: Countdown | None = None, after: Countdown | None = None) -> None:
    """Wrap a blocking method or function."""
    real = getattr(target, name)

    def wrapper(*args: Any, **more: Any) -> Any:
        if before is not None:
            before()
        done = real(*args, **more)
        if after is not None:
            after()
        return done

    _patch(target, name, wrapper)


def _commit(kind: type[Intent] | type[Record], *, is_after: bool) -> Callable[[Countdown], None]:
    """Before or after a group that holds an intent, or an outcome, is durable."""

    def put(passed: Countdown) -> None:
        real = Ledger.commit

        def commit(self: Ledger, batch: Sequence[Intent | Record], *more: Any) -> None:
            holds = any(isinstance(entry, kind) for entry in batch)
            if holds and not is_after:
                passed()
            real(self, batch, *more)
            if holds and is_after:
                passed()

        _patch(Ledger, "commit", commit)

    return put


def _about_to_send(passed: Countdown) -> None:
    real = ConnectionPool.send

    async def send(self: ConnectionPool, head: bytes, *more: Any) -> Any:
        if not head.startswith(b"GET"):
            passed()
        return await real(self, head, *more)

    _patch(ConnectionPool, "send", send)


def _sent(*, is_whole: bool) -> Callable[[Countdown], None]:
    """The first byte of a write, or all of it, is on the socket: two turns of the loop after it was handed over."""

    def put(passed: Countdown) -> None:
        real = ConnectionPool.send
        loop = asyncio.get_running_loop

        async def send(self: ConnectionPool, head: bytes, body: bytes | None, flight: InFlight) -> Any:
            if head.startswith(b"GET"):
                return await real(self, head, body, flight)
            if not passed.is_last_passage:
                passed()
                return await real(self, head, body, flight)
            asks = flight.may_leave

            def may_leave() -> bool:
                leaves = asks is None or asks()
                if leaves:  # it is written right after this was asked
                    loop().call_soon(lambda: loop().call_soon(passed))
                return leaves

            flight.may_leave = may_leave
            return await (real(self, head, body, flight) if is_whole else real(self, head[:1], None, flight))

        _patch(ConnectionPool, "send", send)

    return put


def _status_seen(passed: Countdown) -> None:
    real = transport.Transport._answer

    def answer(self: Any, request: Any, *more: Any) -> Any:
        if request.method != "GET":
            passed()
        return real(self, request, *more)

    _patch(transport.Transport, "_answer", answer)


def _reached(point: Point) -> Callable[[Countdown], None]:
    """One of the ledger's own moments."""

    def put(passed: Countdown) -> None:
        real = Ledger.open

        def opened(*args: Any, **more: Any) -> Ledger:
            return real(*args, **more, reached=lambda now: passed() if now is point else None)

        _patch(Ledger, "open", opened)

    return put


def _checkpoint(passed: Countdown) -> None:
    """The ledger's own file changes, as only a checkpoint changes it; they are made frequent, and looked for."""
    real = database.open_writer

    def open_writer(path: Path) -> Any:
        connection = real(path)
        connection.execute("PRAGMA wal_autocheckpoint = 20")
        threading.Thread(target=look, args=(path, path.stat().st_mtime_ns), daemon=True).start()
        return connection

    def look(path: Path, last: int) -> None:
        never = threading.Event()
        while not never.wait(LOOK_S):
            changed = path.stat().st_mtime_ns
            if changed != last:
                last = changed
                passed()

    _patch(database, "open_writer", open_writer)


def _doubt_taken_up(passed: Countdown) -> None:
    """What an earlier process sent is about to be read back."""
    real = ItemRunner._doubt_of

    def doubt_of(self: Any, *args: Any) -> Any:
        doubt = real(self, *args)
        if doubt is not None:
            passed()
        return doubt

    _patch(ItemRunner, "_doubt_of", doubt_of)


def _read_back(passed: Countdown) -> None:
    """What happened to a lost answer was just found out, and is written nowhere."""
    real = Settler.settle

    async def settle(self: Any, *args: Any) -> Any:
        outcome = await real(self, *args)
        passed()
        return outcome

    _patch(Settler, "settle", settle)


def _renamed(name: str, *, is_after: bool) -> Callable[[Countdown], None]:
    def put(passed: Countdown) -> None:
        real = os.replace

        def replace(source: Any, target: Any, **more: Any) -> None:
            is_it = Path(target).name == name
            if is_it and not is_after:
                passed()
            real(source, target, **more)
            if is_it and is_after:
                passed()

        _patch(os, "replace", replace)

    return put


AT_FIRST: dict[str, Callable[[Countdown], None]] = {
    "items checked": lambda passed: _around(Ledger, "open", before=passed),
}
"""There is no ledger yet, and the directory holds what the check has made."""

WHILE_WORKING: dict[str, Callable[[Countdown], None]] = {
    "intent not durable": _commit(Intent, is_after=False),
    "intent durable": _commit(Intent, is_after=True),
    "about to send": _about_to_send,
    "first byte sent": _sent(is_whole=False),
    "request sent": _sent(is_whole=True),
    "status seen": _status_seen,
    "outcome known": lambda passed: _around(Recorder, "record", before=passed),
    "file saved": _reached(Point.SAVED),
    "result line written": _reached(Point.APPENDED),
    "outcome durable": _commit(Record, is_after=True),
    "checkpoint": _checkpoint,
}
"""Work is left after each of these."""

WHILE_RECOVERING: dict[str, Callable[[Countdown], None]] = {
    "torn tail about to be cut": lambda passed: _around(results, "settle_rewrite", after=passed),
    "ledger opened": lambda passed: _around(Ledger, "open", after=passed),
    "doubt taken up": _doubt_taken_up,
    "read back": _read_back,
}
"""Come after a kill that left requests without an outcome."""

WHEN_COMPLETE: dict[str, Callable[[Countdown], None]] = {
    "epoch ended": _reached(Point.ENDED),
    "report.json not renamed": _renamed("report.json", is_after=False),
    "report.json renamed": _renamed("report.json", is_after=True),
    "report.html not renamed": _renamed("report.html", is_after=False),
    "report.html renamed": _renamed("report.html", is_after=True),
}
"""Come at the end of a run, and again where a complete one is run once more."""

WHEN_RETRIED: dict[str, Callable[[Countdown], None]] = {
    "results rewritten": _reached(Point.REWRITTEN),
    "results switched": _reached(Point.SWITCHED),
    "results renamed": _reached(Point.RENAMED),
}
"""Come when a retry has replaced lines."""

EVERY = {**AT_FIRST, **WHILE_WORKING, **WHILE_RECOVERING, **WHEN_COMPLETE, **WHEN_RETRIED}


FILE_TOUCHED = "file touched"
"""Right before a file is opened, made, renamed or removed, or a database is opened."""

_TOUCHES = frozenset(("open", "os.rename", "os.remove", "os.mkdir", "os.chmod", "os.truncate", "sqlite3.connect"))
_CODE = (".py", ".pyc", ".so", "/__pycache__", ".pth", "/METADATA", "entry_points.txt")


def _file_touched(passed: Countdown) -> None:
    def hear(event: str, details: tuple[Any, ...]) -> None:
        if event in _TOUCHES and isinstance(details[0], str | bytes | Path):
            path = os.fsdecode(details[0])
            if not path.endswith(_CODE) and not path.startswith(("/proc", "/sys", "/dev")):
                passed()

    sys.addaudithook(hear)


def kill_at(name: str, nth: int) -> None:
    """This process will end at that point."""
    (_file_touched if name == FILE_TOUCHED else EVERY[name])(Countdown(nth))
