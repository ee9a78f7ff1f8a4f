"""The little of a terminal that the live display needs: what a person would see after the bytes that it wrote."""

import re

_TOKEN = re.compile(r"\x1b\[(\??)([\d;]*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)|(\x1b)")


class Screen:
    """Rows of text and a cursor.

    Attributes:
        rows: what stands on each row ever reached, the oldest first; the terminal shows the last `height` of them.
        highest_climb: most rows that the cursor went up from the last one.
        is_cursor_shown: whether the cursor is visible.
    """

    def __init__(self, height: int) -> None:
        self.rows = [""]
        self.height = height
        self.row = self.column = 0
        self.highest_climb = 0
        self.is_cursor_shown = True
        self._torn = ""

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
                row = self.rows[self.row].ljust(self.column)
                self.rows[self.row] = row[: self.column] + words + row[self.column + len(words) :]
                self.column += len(words)
            elif back:
                self.column = 0
            elif down:
                self.row, self.column = self.row + 1, 0
                if self.row == len(self.rows):
                    self.rows.append("")
            elif letter == "A":
                climb = int(numbers or 1)
                self.row -= climb
                assert self.row >= 0
                self.highest_climb = max(self.highest_climb, len(self.rows) - 1 - self.row)
            elif letter == "K":
                self.rows[self.row] = ""
            elif private and letter in "hl":
                self.is_cursor_shown = letter == "h"
            else:
                assert letter == "m", f"unexpected sequence {letter}"

    @property
    def text(self) -> str:
        """Everything that is on it."""
        return "\n".join(row.rstrip() for row in self.rows).strip()
