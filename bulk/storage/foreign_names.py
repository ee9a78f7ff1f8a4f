"""Finds files of somebody else in a folder that a command would take for its own."""

import contextlib
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

OF_FILE_SYSTEM = (".*", "lost+found")
"""Patterns of names that a new volume or a version control may have put into a folder that is empty otherwise."""


def foreign_names(folder: Path, own: Sequence[str]) -> str:
    """Return the names of up to three entries of `folder` that fit none of the patterns in `own`, as a message lists
    them; empty where there is no such entry, or no folder.

    Raises:
        OSError: the folder can't be listed.
    """
    names: list[str] = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        names = sorted(entry.name for entry in folder.iterdir())
    foreign = [repr(name) for name in names if not any(fnmatch(name, pattern) for pattern in own)]
    return ", ".join(foreign[:3]) + (f" and {len(foreign) - 3:,} more" if len(foreign) > 3 else "")
