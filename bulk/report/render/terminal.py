"""What may be shown on a terminal: names and messages come from the platform and from files, and may be hostile.

Everything that a face of Bulk prints passes through `safe` (failures.md row 66). Files keep the raw text, as JSON.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from typing import TextIO

from bulk.platform.printable import JOINERS, printable

safe = printable
"""What everything that a face of Bulk prints passes through."""


def width(text: str) -> int:
    """Columns that `text`, already safe, takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char) or char in JOINERS or unicodedata.category(char) == "Me":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, columns: int) -> str:
    """`text`, made safe, within so many columns; what is longer ends in an ellipsis."""
    text = safe(text)
    if width(text) <= columns:
        return text
    taken, left = [], columns - 1
    for char in text:
        left -= _columns(char)
        if left < 0:
            break
        taken.append(char)
    return "".join(taken).rstrip() + "…"


def wrapped(text: str, columns: int, indent: str = "") -> Iterator[str]:
    """`text`, made safe, as lines of at most so many columns, broken between words where that is possible.

    Args:
        columns: at least 20 are used.
        indent: in front of all lines but the first.
    """
    columns = max(20, columns)
    line = ""
    for word in safe(text).split(" "):
        joined = f"{line} {word}" if line.strip() else line + word
        if width(joined) <= columns:
            line = joined
            continue
        if line.strip():
            yield line
            line = indent
        line += word
        while width(line) > columns:
            head = cut(line, columns + 1)[:-1]
            yield head
            line = indent + line[len(head) :]
    if line.strip():
        yield line


def column(text: str, columns: int, *, is_right: bool = False) -> str:
    """`text`, made safe, cut and padded to exactly so many columns."""
    text = cut(text, columns)
    space = " " * (columns - width(text))
    return space + text if is_right else text + space


def is_terminal(stream: TextIO) -> bool:
    """Whether a person sees what is written to `stream`; False for one that is closed or gone."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError, OSError):
        return False


def wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Colour only on a terminal that has it, and not where `NO_COLOR` is set to anything."""
    return is_terminal(stream) and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


class Ink:
    """Colours by meaning. Without colour, every method gives the text back as it was."""

    _CODES: Mapping[str, str] = {"good": "32", "same": "36", "bad": "31", "doubt": "33", "dim": "2", "strong": "1"}

    def __init__(self, *, is_on: bool) -> None:
        self.is_on = is_on

    def __call__(self, meaning: str, text: str) -> str:
        """`text` in the colour of `meaning`: `good`, `same`, `bad`, `doubt`, `dim` or `strong`."""
        return f"\x1b[{self._CODES[meaning]}m{text}\x1b[0m" if self.is_on and text.strip() else text
