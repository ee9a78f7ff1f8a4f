"""What is left of the distance to the bare loop once that loop does what nobody can leave out.

A 304 confirms a body that has to be found, parsed and written down; a durable write is noted on disk before it leaves
and after its answer. Here the bare loop does exactly that, in the cheapest way there is: what was kept is read 64
answers at a time in the order in which it will be asked for, lines are written a thousand at a time, notes are
committed for all that is in flight together. No schedule, no limits, no checks, no retries, no resume, no report.
As in `throughput.py`, ours is the whole process with its start-up, and the loop is the loop alone, which leaves the
lines and notes of its last group unwritten.

    python -m benchmarks.compared.duties [--items 60000] [--rounds 3]
"""

import argparse
import asyncio
import contextlib
import json
import os
import sqlite3
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

import anyio
import orjson
import uvloop

from benchmarks.harness.bare import Send, Wrap, loop
from benchmarks.harness.canned_platform import README, canned_platform
from benchmarks.harness.measuring import Cost, Spread, ratios, row
from benchmarks.throughput import CASES, Ours, bare, of_loop, speeds

CLAIMS = {
    "unchanged": "the same again, answered 304, of a bare loop that finds, parses and writes down what was kept",
    "writes": "durable writes, of a bare loop that notes each on disk before and after",
}
AHEAD, TOGETHER = 64, 1_000
"""Kept answers that are read at once, and lines that are written at once (count)."""


class Lines:
    """Lines for a file of results, which are written together."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._text = file, bytearray()
        self.count = 0

    def add(self, number: int, outcome: str, status: int, result: object) -> None:
        """One line, as `results.jsonl` has them."""
        line = {
            "job": "work",
            "index": number,
            "id": None,
            "item": {"owner": "acme", "repo": f"api-{number}"},
            "outcome": outcome,
            "http_status": status,
            "attempts": 1,
            "started_at": "2026-11-22T08:00:00.000Z",
            "elapsed_ms": 1.0,
            "request_id": None,
            "result": result,
            "error": None,
        }
        self._text += orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
        self.count += 1

    def take(self) -> bytearray:
        """What was added since the last time."""
        text, self._text, self.count = self._text, bytearray(), 0
        return text

    def sync(self, text: bytearray) -> None:
        """Write that, and wait until it is on disk."""
        os.write(self._file.fileno(), text)
        os.fdatasync(self._file.fileno())


class Kept:
    """What was kept of the answers, in the order in which it is asked for."""

    def __init__(self, path: Path, count: int) -> None:
        self._database = sqlite3.connect(path)
        self._database.execute("CREATE TABLE answer (number INTEGER PRIMARY KEY, etag TEXT, body BLOB)")
        body = json.dumps(README).encode()
        rows = ((number, '"0123456789abcdef0123456789abcdef"', body) for number in range(count))
        self._database.executemany("INSERT INTO answer VALUES (?, ?, ?)", rows)
        self._database.commit()
        self._ahead: dict[int, tuple[int, str, bytes]] = {}

    def find(self, number: int) -> bytes:
        """Its body."""
        found = self._ahead.pop(number, None)
        if found is None:
            query = "SELECT number, etag, body FROM answer WHERE number >= ? ORDER BY number LIMIT ?"
            self._ahead.update((row[0], row) for row in self._database.execute(query, (number, AHEAD)))
            found = self._ahead.pop(number)
        return found[2]


class Notes:
    """Notes that a write is about to leave, and how it ended; `committed` is set once those so far are on disk."""

    def __init__(self, path: Path, lines: Lines) -> None:
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._database.executescript("""
            PRAGMA journal_mode = WAL;
            PRAGMA synchronous = FULL;
            CREATE TABLE intent (item INTEGER PRIMARY KEY, method TEXT, path TEXT, sent_at REAL);
            CREATE TABLE outcome (item INTEGER PRIMARY KEY, kind INTEGER);
        """)
        self._lines = lines
        self._intents: list[tuple[int, str, str, float]] = []
        self._ended: list[int] = []
        self.wanted, self.committed = asyncio.Event(), asyncio.Event()

    def intend(self, number: int) -> asyncio.Event:
        """What to wait for."""
        self._intents.append((number, "PUT", f"/repos/acme/api-{number}/contents/CODEOWNERS", 0.0))
        self.wanted.set()
        return self.committed

    def end(self, number: int, result: object) -> None:
        """Goes to disk with the next intents."""
        self._lines.add(number, "succeeded", 201, result)
        self._ended.append(number)

    async def write(self) -> None:
        """Commit, one group after the other, each of all that comes in half a millisecond."""
        running = asyncio.get_running_loop()
        while True:
            await self.wanted.wait()
            await asyncio.sleep(0.0005)
            intents, ended, committed = self._intents, self._ended, self.committed
            self._intents, self._ended, self.committed = [], [], asyncio.Event()
            self.wanted.clear()
            await running.run_in_executor(None, self._commit, intents, ended, self._lines.take())
            committed.set()

    def _commit(self, intents: list[tuple[int, str, str, float]], ended: list[int], text: bytearray) -> None:
        if text:
            self._lines.sync(text)
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO intent VALUES (?, ?, ?, ?)", intents)
        self._database.executemany("INSERT INTO outcome VALUES (?, 1)", [(number,) for number in ended])
        self._database.executemany("DELETE FROM intent WHERE item = ?", [(number,) for number in ended])
        self._database.execute("COMMIT")


def finding(kept: Kept, lines: Lines) -> Wrap:
    """Around each 304: find what was kept, parse it, write its line."""

    @contextlib.asynccontextmanager
    async def wrap(send: Send) -> AsyncIterator[Send]:
        running = asyncio.get_running_loop()

        async def confirm(number: int) -> None:
            body = kept.find(number)
            status = await send(number)
            lines.add(number, "unchanged", status, orjson.loads(body))
            if lines.count >= TOGETHER:
                await running.run_in_executor(None, lines.sync, lines.take())

        yield confirm

    return wrap


def noting(notes: Notes) -> Wrap:
    """Around each write: a note before it, durable before it leaves, and its line and a note after it."""

    @contextlib.asynccontextmanager
    async def wrap(send: Send) -> AsyncIterator[Send]:
        async def write(number: int) -> None:
            await notes.intend(number).wait()
            notes.end(number, await send(number))

        async with anyio.create_task_group() as group:
            group.start_soon(notes.write)
            yield write
            group.cancel_scope.cancel()

    return wrap


def dutiful(base_url: str, name: str, items: int) -> Cost:
    """The figures of the loop that does what it must."""
    return of_loop("benchmarks.compared.duties", "--items", str(items), "--loop", name, base_url)


def measure(name: str, items: int, rounds: int) -> None:
    """Ours, the loop that does what it must, and the bare one, in turns."""
    case = CASES[name]
    runs, loops, bares = [], [], []
    with canned_platform() as base_url, tempfile.TemporaryDirectory(prefix="bulk-bench-") as folder:
        ours = Ours(Path(folder), base_url, case, items)
        if case.is_again:
            ours.run()
        loops.append(dutiful(base_url, name, items))
        for _ in range(rounds):
            runs.append(ours.run())
            bares.append(bare(base_url, case, items))
            loops.append(dutiful(base_url, name, items))
    speed = speeds(runs, loops)
    cpu = Spread(tuple(1 / value for value in ratios([one.cpu_s for one in runs], [one.cpu_s for one in loops]).values))
    us = (Spread(tuple(one.cpu_s / items * 1e6 for one in each)).median for each in (bares, loops, runs))
    shown = "CPU µs each: bare {:.0f}, with what it must do {:.0f}, ours {:.0f}".format(*us)
    row(CLAIMS[name], f"{speed.text()} by time, {cpu.text()} by CPU time; {shown}")


def main() -> None:
    """Measure, or be one of the loops."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loop", nargs=2, metavar=("CASE", "BASE_URL"), help="be the loop of that case")
    given = parser.parse_args()
    if given.loop is None:
        for name in CLAIMS:
            measure(name, given.items, given.rounds)
        return
    name, base_url = given.loop
    case = CASES[name]
    with tempfile.TemporaryDirectory(prefix="bulk-bench-") as folder, open(f"{folder}/results.jsonl", "ab") as file:
        path, lines = Path(folder, "notes.db"), Lines(file)
        wrap = finding(Kept(path, given.items + 1), lines) if name == "unchanged" else noting(Notes(path, lines))
        found = uvloop.run(loop(base_url, given.items, case.in_flight, case.kind, wrap))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
