"""The process that converts files. It takes a line of JSON for each, and answers with one: the digest of the file, and
how many bytes follow of what was made of it. Started by `conversion.py` with `python -m bulk.bundle.conversion_child`.

It ends with whoever started it, and where nobody has asked for long: it begins anew within a third of a second.
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
"""How much less urgent it is than the event loop, which waits for it: a third of its share of a core that both want.
As little as threads of the disk get, a tenth, lets one large file hold up all others on a busy machine.
"""
OBJECTS = 100_000
"""New objects after which Python looks for those that only hold each other (count): a file is made of many that don't,
and to look as often as it does by itself takes a third of the time.
"""
IDLE_S = 30.0
"""So long after its last file it ends (seconds)."""


def main(source: BinaryIO, target: BinaryIO) -> None:
    """Convert files until `source` ends, or nothing has come for long."""
    with suppress(OSError):  # forbidden: it goes on as urgent as all else
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
