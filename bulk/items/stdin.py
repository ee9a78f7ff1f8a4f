"""Items from standard input are kept in the workspace, byte for byte, so that a run can read them again."""

import os
from pathlib import Path
from typing import BinaryIO

from bulk.items.lines import SourceFlaw

_CHUNK_BYTES = 1024 * 1024


def keep_stdin(stdin: BinaryIO | None, path: Path) -> None:
    """Copy `stdin` to `path` (0600), unless a copy is there: a resume does not need it again.

    Raises:
        SourceFlaw: there is no standard input, or it can't be read.
    """
    if path.is_file():
        return
    if stdin is None:
        raise SourceFlaw("there is no standard input to read items from")
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        while chunk := _read(stdin):
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _read(stdin: BinaryIO) -> bytes:
    try:
        return stdin.read(_CHUNK_BYTES)
    except OSError as error:
        raise SourceFlaw(f"can't be read: {error.strerror}") from error
