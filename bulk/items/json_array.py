"""Yields the elements of a JSON list, one at a time, without holding the list.

Only strings, brackets and commas are looked at: the content of an element is left to the decoder, which also finds its
flaws. Memory is bounded by one element.
"""

import re
from collections.abc import Iterator

from bulk.items.lines import CHUNK_BYTES, MOST_LINE_BYTES, TOO_LONG, Read, Row, SourceFlaw, bad, without_mark

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_FLAT = rb'[\[{](?:[^"\[\]{}]++|' + _STRING + rb")*+[\]}]"  # with nothing nested: most items are, so one match will do
_TOKEN = re.compile(_STRING + b"|" + _FLAT + rb'|["\[\]{},]', re.DOTALL)
_SPACE = b" \t\r\n"


def elements(read: Read, *, most_bytes: int = MOST_LINE_BYTES, chunk_bytes: int = CHUNK_BYTES) -> Iterator[list[Row]]:
    """Yield the elements of the list that `read` gives, in batches, without offsets; an empty element (two commas)
    is `Bad`.

    Raises:
        SourceFlaw: the text is not a list, is not closed, or goes on behind the end of the list.
    """
    text, line = _without_space(without_mark(read, chunk_bytes)[0], 1, read, chunk_bytes)
    if not text.startswith(b"["):
        hint = "; one object on each line goes into a .jsonl file" if text.startswith(b"{") else ""
        raise SourceFlaw(f"expected a list: [ … ]{hint}" if text else "is empty; expected a list: [ … ]", line)
    text, before, ends = text[1:], b"[", _Ends()
    while before != b"]":
        batch: list[Row] = []
        start = 0
        for end in ends.within(text):
            row = _row(text[start:end], line, before, text[end : end + 1])
            if row is not None:
                batch.append(row)
            line += text.count(b"\n", start, end)
            start, before = end + 1, text[end : end + 1]
            if before != b",":
                break
        if batch:
            yield batch
        text = text[start:]
        ends.at -= start
        if before == b"}":
            raise SourceFlaw("expected ], got }", line)
        if before != b"]":
            if len(text) > most_bytes:
                raise SourceFlaw(f"an element is {TOO_LONG}", line + _lines_of_space(text))
            more = read(max(chunk_bytes, len(text)))
            if not more:
                raise SourceFlaw("the list is not closed: expected ]", line + text.count(b"\n"))
            text += more
    text, line = _without_space(text, line, read, chunk_bytes)
    if text:
        raise SourceFlaw("there is more after the end of the list", line)


class _Ends:
    """Finds where elements end. `at`: where to look next. `depth`: in how many lists and objects that place is."""

    def __init__(self) -> None:
        self.at = self.depth = 0

    def within(self, text: bytes) -> Iterator[int]:
        """Yield the positions of the commas and the bracket that end elements."""
        for token in _TOKEN.finditer(text, self.at):
            if token[0] == b'"':  # of a string that goes on in bytes that were not read yet
                self.at = token.start()
                return
            self.at = token.end()
            if token[0] in (b"[", b"{"):
                self.depth += 1
            elif token[0] in (b"]", b"}", b","):
                if not self.depth:
                    yield token.start()
                elif token[0] != b",":
                    self.depth -= 1
        self.at = len(text)


def _row(text: bytes, line: int, before: bytes, behind: bytes) -> Row | None:
    """Return the element in `text`, which begins in that line and stands between two of `[`, `,` and `]`; None for
    `[]`."""
    element = text.strip(_SPACE)
    line += _lines_of_space(text)
    if element:
        return line, 0, element
    if behind == b",":
        return line, 0, bad(line, "expected an element in front of the comma")
    return (line, 0, bad(line, "one comma too many")) if before == b"," else None


def _lines_of_space(text: bytes) -> int:
    """Return how many line ends stand before the first byte that is not a space (count)."""
    return text.count(b"\n", 0, len(text) - len(text.lstrip(_SPACE)))


def _without_space(text: bytes, line: int, read: Read, chunk_bytes: int) -> tuple[bytes, int]:
    """Return `text`, which begins in that line, from the first byte on that is not a space, and the line of that byte;
    read on as long as there is no such byte.
    """
    while True:
        line += _lines_of_space(text)
        if rest := text.lstrip(_SPACE):
            return rest, line
        text = read(chunk_bytes)
        if not text:
            return b"", line
