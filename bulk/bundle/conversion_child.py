"""The process that converts files. It takes a line of JSON for each file, and answers with a line: the digest of the
file, and the number of converted bytes that follow. Started by `conversion.py` with
`python -m bulk.bundle.conversion_child`.

It ends with the process that started it, and after a while without work: a new one starts within a third of a second.
"""

import gc
import importlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from bulk.bundle.conversion import converted
from bulk.bundle.item_files import read_inside
from bulk.capabilities import FileError
from bulk.storage.child_process import Lines, work

NICENESS = 5
"""How much less urgent this process is than the event loop, which waits for it: it gets a third of the event loop's
share of a core that both want. A tenth, as threads of the disk get, would let one large file hold up all others on a
busy machine.
"""
OBJECTS = 100_000
"""New objects after which Python looks for garbage in cycles (count): a file is made of many objects without cycles,
and looking as often as Python does by default takes a third of the time.
"""
IDLE_S = 30.0
"""How long after its last file the process ends (seconds)."""


def main(source: BinaryIO, target: BinaryIO) -> None:
    """Convert files until `source` ends, or nothing has come for long."""
    with suppress(OSError):  # forbidden: this process then goes on with normal priority
        os.nice(NICENESS)
    gc.freeze()
    gc.set_threshold(OBJECTS)
    given = Lines(source)
    while (line := given.next(IDLE_S)) is not None:
        target.writelines(_answer(**orjson.loads(line)))
        target.flush()


def _answer(folder: str, name: str, field: str, module: str, kind: str) -> tuple[bytes, bytes]:
    try:
        data = read_inside(Path(folder), name)
    except FileError as error:
        return _head(unread=str(error)), b""
    operation: Any = importlib.import_module(module)
    for part in kind.split("."):
        operation = getattr(operation, part)
    made = converted(operation, field, data)
    digests = {"digest": made.digest.hex(), "counted": made.counted.hex()}
    return _head(**digests, size=len(made.data), flaw=made.flaw), made.data


def _head(**fields: str | int) -> bytes:
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


if __name__ == "__main__":
    work(main)
