"""The little of a terminal that the live display needs: what a person would see after the bytes that it wrote.

When it becomes narrower, a line that is too long goes on in the next row, as on the terminals of today.
"""

import re

_TOKEN = re.compile(r"\x1b\[(\??)([\d;]*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)|(\x1b)")


class Screen:
    """Lines of text and a cursor.

    Attributes:
        lines: every line ever reached, the oldest first; each takes one row or, where it is too long, more.
        columns, height: of the terminal.
        highest_climb: most rows that the cursor went up from the last one.
        is_cursor_shown: whether the cursor is visible.
    """

    def __init__(self, height: int, columns: int = 1_000) -> None:
        self.lines = [""]
        self.height, self.columns = height, columns
        self.line = self.offset = 0
        self.highest_climb = 0
        self.is_cursor_shown = True
        self._torn = ""

    def resize(self, columns: int) -> None:
        """From now on there are `columns`."""
        self.columns = columns

    def feed(self, text: str) -> None:
        """Take in what was written; an escape sequence may come in pieces."""
        text, self._torn = self._torn + text, ""
        start = text.rfind("\x1b")
        last = _TOKEN.match(text, start) if start >= 0 else None
        if last is not None and last.group(3) is None:
            text, self._torn = text[:start], text[start:]
        for private, numbers, letter, back, down, words, stray in _TOKEN.findall(text):
            if stray:
                raise AssertionError(f"an escape that no terminal face writes: {text!r}")
            if words:
                line = self.lines[self.line].ljust(self.offset)
                self.lines[self.line] = line[: self.offset] + words + line[self.offset + len(words) :]
                self.offset += len(words)
            elif back:
                self.offset = self._row() * self.columns
            elif down:
                self.line, self.offset = self.line + 1, 0
                if self.line == len(self.lines):
                    self.lines.append("")
            elif letter == "A":
                self._climb(int(numbers or 1))
            elif letter == "J":
                assert numbers in ("", "0")
                self.lines[self.line] = self.lines[self.line][: self.offset]
                del self.lines[self.line + 1 :]
            elif private and letter in "hl":
                self.is_cursor_shown = letter == "h"
            else:
                assert letter == "m", f"unexpected sequence {letter}"

    def _row(self) -> int:
        """In which row of its line the cursor stands; behind the last column it stays in its row."""
        return max(0, self.offset - 1) // self.columns if self.offset == len(self.lines[self.line]) else (
            self.offset // self.columns
        )  # fmt: skip

    def _climb(self, rows: int) -> None:
        at_column = self.offset - self._row() * self.columns
        row = self._row()
        for _ in range(rows):
            if row:
                row -= 1
            else:
                assert self.line, "it climbs above the first row"
                self.line -= 1
                row = self._rows_of(self.line) - 1
        self.offset = row * self.columns + at_column
        below = self._rows_of(self.line) - 1 - row + sum(map(self._rows_of, range(self.line + 1, len(self.lines))))
        self.highest_climb = max(self.highest_climb, below)

    def _rows_of(self, line: int) -> int:
        return max(1, -(-len(self.lines[line]) // self.columns))

    @property
    def rows(self) -> list[str]:
        """What stands in each row."""
        columns = self.columns
        return [
            line[row * columns : (row + 1) * columns].rstrip()
            for number, line in enumerate(self.lines)
            for row in range(self._rows_of(number))
        ]

    @property
    def text(self) -> str:
        """Everything that is on it."""
        return "\n".join(self.rows).strip()
