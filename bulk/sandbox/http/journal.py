"""The journal: one JSON line for each request, in the file before the answer's last byte leaves.

A reader that has an answer finds its line. Keys: `at` (arrival, UTC with microseconds), `elapsed_ms` (arrival to the
writing of the line), `user` (login; null: anonymous or not known), `payer` (whose budget it is: `user:ID`,
`installation:ID`, `app:ID`, `address:IP`; null: not known), `method`, `path` (as sent, without the query),
`status` (what the client was sent; null: nothing), `applied` (the operation was carried out, reads included: its own
answer was below 400, whatever became of that answer), `effect` (what was changed; null: nothing), `category` (who
pays; null: not counted), `remaining` (of the category after this request; null: no limit), `fault` (its kind, or
null).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import orjson

from bulk.sandbox.clock import iso_exact
from bulk.sandbox.files import open_appending
from bulk.sandbox.settings import SettingError


@dataclass(slots=True)
class Entry:
    """The journal's entry of one request, which is filled in while the request is served."""

    at: float
    method: str
    path: str
    user: str | None = None
    payer: str | None = None
    status: int | None = None
    applied: bool = False
    effect: str | None = None
    category: str | None = None
    remaining: int | None = None
    fault: str | None = None

    def line(self, now: float) -> bytes:
        """Return the entry as a JSON line."""
        return orjson.dumps(
            {
                "at": iso_exact(self.at),
                "elapsed_ms": round((now - self.at) * 1000, 3),
                "user": self.user,
                "payer": self.payer,
                "method": self.method,
                "path": self.path,
                "status": self.status,
                "applied": self.applied,
                "effect": self.effect,
                "category": self.category,
                "remaining": self.remaining,
                "fault": self.fault,
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )


class Journal:
    """Appends lines to a file, each with one write to the system. Without a path, it keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self._file: int | None = None
        if path is not None:
            try:
                self._file = open_appending(path)
            except OSError as error:
                raise SettingError(f"--journal {path}: {error.strerror}: name a file that can be written") from None

    def write(self, entry: Entry, now: float) -> None:
        """Append one entry. A full disk loses lines, not answers."""
        if self._file is None:
            return
        line = memoryview(entry.line(now))
        try:
            while line:
                line = line[os.write(self._file, line) :]
        except OSError:
            return

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
