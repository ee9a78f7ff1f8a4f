"""Files whose content is converted before it is sent, such as bills of materials, and the process that does so.

In a thread, conversion would hold the event loop: decoding a bill of 5 MB is one call, and no other Python code of this
process runs meanwhile. So one process beside this one converts all large files, and all files after the first few small
ones. Conversion has no effects: if that process ends, another one begins the same file again.
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
"""A file larger than this is converted in another process (bytes): it takes longer than the event loop may be held.
"""
HERE_BYTES = 1_000_000
"""How much of smaller files is converted in this process (bytes): starting another one takes longer."""

TRIES = 2
"""How many processes may end over one file before the file is given up (count)."""

_CHILD = "bulk.bundle.conversion_child"


class Content(NamedTuple):
    """The content of a file.

    Attributes:
        digest: SHA-256 of the file as it is on disk.
        data: the bytes of the file, or the converted ones where the operation converts it.
        counted: digest of the converted bytes that count (`ConvertsFiles.counted`).
        flaw: why the file can't be converted; empty: it can.
    """

    digest: bytes
    data: bytes
    counted: bytes = b""
    flaw: str = ""


def converted(operation: type[ConvertsFiles[Any]], field: str, data: bytes) -> Content:
    """Convert a file in this process, and return its content."""
    digest = hashlib.sha256(data).digest()
    try:
        made = operation.converted(field, data)
    except FileError as error:
        return Content(digest, b"", flaw=str(error))
    return Content(digest, made, operation.counted(field, made))


class Converter:
    """Converts files in another process, which is started when it is needed."""

    def __init__(self) -> None:
        self._busy = threading.Lock()
        self._child: ChildProcess | None = None
        self._here = 0

    def content(self, folder: Path, operation: ConvertsFiles[Any], field: str, name: str) -> Content | None:
        """Return a file below `folder`, converted by the other process; None where this process has to convert it.

        This waits for the other process: call it where that may block.

        Raises:
            FileError: the file can't be read, or the other process ended over it again and again.
        """
        kind = type(operation)
        if not _is_found_by_name(kind):
            return None
        try:
            size = (folder / name).stat().st_size
        except (OSError, ValueError):
            return None  # the code that reads the file says why
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
        """End the other process, if there is one; a process without work ends by itself after a while."""
        if self._child is not None and self._child.is_own:
            self._child.end()
        self._child = None

    def _taken(self) -> ChildProcess:
        if self._child is None or not self._child.is_usable:
            self.end()
            self._child = ChildProcess(_CHILD)
        return self._child


def _is_found_by_name(kind: type) -> bool:
    """Return whether another process can find the class: not if a script or a function has defined it."""
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
"""The converter of this process."""
atexit.register(CONVERTER.end)
