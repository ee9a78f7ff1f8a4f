"""Reads the elements of a YAML list that stand in lines of their own and hold plain fields alone, as most items do.

A regular expression reads such an element in a hundredth of the time that a YAML parser takes. What it takes is a small
part of YAML that has one meaning: `- {name: value, other: value}`, or a field in each line. From the first element on
that is anything else, `yaml_text` reads the rest.
"""

import re
from collections.abc import Callable, Generator, Iterator
from typing import Any

from bulk.items.lines import MOST_LINE_BYTES, Given, Row, SourceFlaw

_KEY = r"\w[\w.-]{0,99}"
_WORD = r"[\w/.][\w./@+()!;$&*=~%-]*(?: [\w./@+()!;$&*=~%-]+)*"
_QUOTED = r""""[\w !#-\[\]-~]*"|'[\w !-&(-~]*\'"""
_FLOW_PAIR = rf"({_KEY}): ({_WORD}|{_QUOTED})"
_FLOW = re.compile(rf"- \{{{_FLOW_PAIR}(?:, {_FLOW_PAIR})*\}} *")
_FLOW_PAIRS = re.compile(_FLOW_PAIR)
_LINE = re.compile(rf"[- ] ({_KEY}):(?: ({_WORD.replace('@', '@:')}(?<!:)|{_QUOTED}))? *")
_NOTHING = re.compile(r" *(?:#[\w -~]*)?")

_ROW_BYTES = 100
"""What is held for each line besides its text (bytes)."""


class SimpleItems:
    """Reads a list as long as its elements are simple.

    Attributes:
        rows: lines that were read and belong to no element that was yielded.
    """

    def __init__(self, resolved: Callable[[str, int, str], Any]) -> None:
        """Read scalars without quotes by `resolved`, which gets the text, the line and the name of the field."""
        self._resolved = resolved
        self.rows: list[Row] = []
        self._held_bytes = 0
        self._item: Given | None = None
        self._line = 0
        self._is_whole = False  # the element takes no more lines

    def stream(self, batches: Iterator[list[Row]]) -> Generator[list[Row], None, bool]:
        """Yield the elements in `batches` of lines; return whether the text ends with the last of them."""
        for batch in batches:
            done: list[Row] = []
            for place, row in enumerate(batch):
                text = _text(row)
                if text.startswith("- "):
                    self._finish(done)
                is_taken = self._takes(text, row[0])
                self.rows.append(row)
                self._held_bytes += len(text) + _ROW_BYTES
                if not is_taken or self._held_bytes > MOST_LINE_BYTES:
                    self.rows += batch[place + 1 :]
                    if done:
                        yield done
                    return False
            if done:
                yield done
        done = []
        self._finish(done)
        if done:
            yield done
        return not self.rows

    def _finish(self, done: list[Row]) -> None:
        """Add the element that was begun to `done`; only now it is known that no further line belongs to it."""
        if self._item is not None:
            done.append((self._line, 0, self._item))
            self._item, self._held_bytes = None, 0
            self.rows.clear()

    def _takes(self, text: str, line: int) -> bool:
        """Return whether the line is simple; its fields are part of the element then."""
        if text.startswith("- "):
            self._item, self._line = Given({}, {"": line}), line
            self._is_whole = _FLOW.fullmatch(text) is not None
            if self._is_whole:
                return all(self._adds(key, value, line) for key, value in _FLOW_PAIRS.findall(text))
        elif _NOTHING.fullmatch(text) is not None or (text == "---" and not self.rows and self._line == 0):
            return True
        elif self._item is None or self._is_whole or not text.startswith("  "):
            return False
        found = _LINE.fullmatch(text)
        return found is not None and self._adds(found[1], found[2] or "", line)

    def _adds(self, key: str, text: str, line: int) -> bool:
        assert self._item is not None, "a field belongs to an element"
        fields = self._item.value
        if key in fields:
            return False
        try:
            fields[key] = text[1:-1] if text[:1] in {'"', "'"} else self._resolved(text, line, key)
        except SourceFlaw:
            return False
        self._item.lines[key] = line  # type: ignore[index]  # what was made above
        return True


def _text(row: Row) -> str:
    """Return the text of a line without its end; one that is not simple, whatever it says, where it can't be read."""
    data = row[2]
    try:
        return data.decode().removesuffix("\r") if isinstance(data, bytes) else "?"
    except UnicodeDecodeError:
        return "?"
