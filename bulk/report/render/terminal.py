"""Text that is safe on a terminal: names and messages come from the platform and from files, and may be hostile.

Everything that a face of Bulk prints passes through `safe` (failures.md row 66). Files keep the raw text, as JSON.
"""

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TextIO

from rich.cells import cell_len, set_cell_size

from bulk.redaction.printable import JOINERS, printable

safe = printable
"""The function that all text passes through that a face of Bulk prints."""


MOST_PROSE = 120
"""Whole sentences are broken into lines of at most this many columns, however wide the terminal is."""

LEAST_COLUMNS = 40
"""Text for a terminal is laid out in at least this many columns."""

UNLIMITED = 1_000_000
"""Columns of an output that is not a terminal: nothing is cut, and no sentence is broken into lines."""

width = cell_len
"""Columns that a text, already safe, takes on a terminal."""


def cut(text: str, columns: int) -> str:
    """Return `text`, made safe, within `columns`; a longer text is cut and ends in an ellipsis."""
    text = safe(text).rstrip(JOINERS)
    return text if width(text) <= columns else set_cell_size(text, columns - 1).rstrip(" " + JOINERS) + "…"


def wrapped(text: str, columns: int, indent: str = "") -> Iterator[str]:
    """Yield `text`, made safe, as lines of at most `columns`, broken between words where that is possible.

    Args:
        columns: at least 20 are used.
        indent: in front of all lines but the first.
    """
    columns = max(20, columns if columns >= UNLIMITED // 2 else min(columns, MOST_PROSE))
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
    """Return `text`, made safe, cut or padded to exactly `columns`."""
    text = cut(text, columns)
    space = " " * (columns - width(text))
    return space + text if is_right else text + space


def aligned(
    rows: Sequence[Sequence[str]], columns: int, *, names: int = 1, right: Container[int] = ()
) -> Iterator[list[str]]:
    """Yield the cells of each row, made safe and padded; cells with room for fewer than 8 columns are left empty.

    Args:
        columns: width of a line, with 2 between cells.
        names: number of first cells that are cut where the lines would be too long; the others never are.
        right: places of cells that stand to the right, such as numbers (counted from 0).
    """
    widths = [max(width(safe(row[place])) for row in rows) for place in range(len(rows[0]))]
    room = max(12, columns - sum(widths[names:]) - 2 * (len(widths) - 1))
    for place in reversed(range(names)):
        share = min(widths[place], room - 12 * place)
        widths[place] = share if share >= min(8, widths[place]) else 0
        room -= widths[place]
    for row in rows:
        yield [
            column(cell, size, is_right=place in right) if size else ""
            for place, (cell, size) in enumerate(zip(row, widths, strict=True))
        ]


def line_of(cells: Iterable[str]) -> str:
    """Return aligned cells as a line."""
    return "  ".join(filter(None, cells)).rstrip()


def paragraphs(*parts: Iterable[str]) -> str:
    """Return the parts of a text, each in lines, with an empty line between them; ends in a line break."""
    return "\n\n".join(filter(None, map("\n".join, parts))) + "\n"


def is_terminal(stream: TextIO) -> bool:
    """Return whether a person sees what is written to `stream`; False for a stream that is closed or gone."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError, OSError):
        return False


def size_of(stream: TextIO) -> tuple[int, int]:
    """Return the columns and rows of the terminal of `stream` (counts): rich would ask that of standard input."""
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError, AttributeError):
        columns = rows = 0
    return columns or 80, rows or 24


def is_movable(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether `stream` is a terminal that can move its cursor, so that rows on it can be written anew."""
    return is_terminal(stream) and environ.get("TERM") != "dumb"


def wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether `stream` is a terminal that has colours, and `NO_COLOR` is not set to anything."""
    return is_movable(stream, environ) and not environ.get("NO_COLOR")


def headed(name: str, said: str, columns: int, ink: "Ink", tone: str) -> Iterator[str]:
    """Yield `name` and `said` as lines of at most `columns`; the name is strong, the rest has the colour of `tone`."""
    name = cut(name, columns)
    first, *rest = wrapped(f"{name} {said}", columns)
    yield f"{ink('strong', name)} {ink(tone, first[len(name) + 1 :])}".rstrip()
    yield from (ink(tone, line) for line in rest)


class Ink:
    """Colours text by its meaning. Without colour, a call returns the text as it was."""

    _CODES: Mapping[str, str] = {"good": "32", "same": "36", "bad": "31", "doubt": "33", "dim": "2", "strong": "1"}

    def __init__(self, *, is_on: bool) -> None:
        self.is_on = is_on

    def __call__(self, meaning: str, text: str) -> str:
        """Return `text` in the colour of `meaning`: `good`, `same`, `bad`, `doubt`, `dim` or `strong`."""
        return f"\x1b[{self._CODES[meaning]}m{text}\x1b[0m" if self.is_on and text.strip() else text
