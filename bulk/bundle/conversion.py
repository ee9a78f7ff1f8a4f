"""Files whose content is converted before it is sent, such as bills of materials, and the process that does so.

In a thread it would hold the event loop: to decode a bill of 5 MB is one call, and nothing else of this process runs
meanwhile. So one process beside this one converts all large files, and whatever comes after the first few small ones.
Conversion has no effects: where that process ends, another one begins the same file again.
"""

import atexit
import hashlib
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

from bulk.capabilities import ConvertsFiles, FileError
from bulk.flaws import shown
from bulk.storage.child_process import ChildProcess

LARGE_BYTES = 100_000
"""A file that is larger is converted in a process of its own (bytes): it takes longer than the event loop may be held.
"""
HERE_BYTES = 1_000_000
"""So much of smaller ones is converted here (bytes): to start a process takes longer."""

TRIES = 2
"""Processes that may end over one file before it is given up (count)."""

_CHILD = "bulk.bundle.conversion_child"


class Content(NamedTuple):
    """What a file holds.

    Attributes:
        digest: SHA-256 of the file as it is.
        data: the file, or what is made of it where the operation converts it.
        counted: of the latter (`ConvertsFiles.counted`).
        flaw: why it can't be converted.
    """

    digest: bytes
    data: bytes
    counted: bytes = b""
    flaw: str = ""


def converted(operation: type[ConvertsFiles[Any]], field: str, data: bytes) -> Content:
    """Return what is made of a file, in this process."""
    digest = hashlib.sha256(data).digest()
    try:
        made = operation.converted(field, data)
    except FileError as error:
        return Content(digest, b"", flaw=str(error))
    return Content(digest, made, operation.counted(field, made))


class Converter:
    """Converts files elsewhere: in a process that it starts when it is needed."""

    def __init__(self) -> None:
        self._busy = threading.Lock()
        self._child: ChildProcess | None = None
        self._here = 0

    def content(self, folder: Path, operation: ConvertsFiles[Any], field: str, name: str) -> Content | None:
        """Return a file below `folder`, converted elsewhere; None where that is for this process to do.

        It waits for the other process: call it where that may block.

        Raises:
            FileError: the file can't be read, or that process ended over it again and again.
        """
        kind = type(operation)
        if not _is_found_by_name(kind):
            return None
        try:
            size = (folder / name).stat().st_size
        except (OSError, ValueError):
            return None  # whoever reads it says why
        if size <= LARGE_BYTES and self._here + size <= HERE_BYTES:
            self._here += size
            return None
        named = {"module": kind.__module__, "kind": kind.__qualname__}
        task = orjson.dumps({"folder": str(folder), "name": name, "field": field, **named})
        code, said = 0, ""
        with self._busy:
            for _ in range(TRIES):
                try:
                    child = self._taken()
                except OSError:
                    return None
                try:
                    return _answer(child.tell(task))
                except (OSError, EOFError):
                    code, said = child.end()
                    self._child = None
        ended = f"the process that converts it ended {TRIES} times, the last with {code}: {said}"
        raise FileError(f"{shown(name)}: {ended}")

    def end(self) -> None:
        """End the other process, where there is one; it ends by itself where nobody wants it for long."""
        if self._child is not None and self._child.is_own:
            self._child.end()
        self._child = None

    def _taken(self) -> ChildProcess:
        if self._child is None or not self._child.is_usable:
            self.end()
            self._child = ChildProcess(_CHILD)
        return self._child


def _is_found_by_name(kind: type) -> bool:
    """Return whether another process finds the class: not one of a script, nor one that a function has made."""
    found: object = sys.modules.get(kind.__module__) if kind.__module__ != "__main__" else None
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is kind


def _answer(said: BinaryIO) -> Content:
    head = said.readline()
    if not head.endswith(b"\n"):
        raise EOFError
    found = orjson.loads(head)
    if "unread" in found:
        raise FileError(found["unread"])
    data = said.read(found["size"])
    if len(data) != found["size"]:
        raise EOFError
    return Content(bytes.fromhex(found["digest"]), data, bytes.fromhex(found["counted"]), found["flaw"])


CONVERTER = Converter()
"""That of this process."""
atexit.register(CONVERTER.end)
