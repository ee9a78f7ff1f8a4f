"""The elements of a JSON list, one at a time, without holding the list.

Only strings, brackets and commas are looked at: what an element holds is for the decoder, which also sees what is wrong
with it. Memory is bounded by one element.
"""

import re
from collections.abc import Iterator

from bulk.items.lines import CHUNK_BYTES, MOST_LINE_BYTES, TOO_LONG, Read, Row, SourceFlaw, bad, without_mark

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_FLAT = rb'[\[{](?:[^"\[\]{}]++|' + _STRING + rb")*+[\]}]"  # with nothing nested: most items are, so one match will do
_TOKEN = re.compile(_STRING + b"|" + _FLAT + rb'|["\[\]{},]', re.DOTALL)
_SPACE = b" \t\r\n"
_NOT_SPACE = re.compile(rb"[^ \t\r\n]|\Z")
_QUOTE, _COMMA, _OPEN, _CLOSE = b'",[]'
_OPENING, _CLOSING = b"[{", b"]}"


def elements(read: Read, *, most_bytes: int = MOST_LINE_BYTES, chunk_bytes: int = CHUNK_BYTES) -> Iterator[list[Row]]:
    """The elements of the list that `read` gives, in batches; an empty one (two commas in a row) is `Bad`.

    Raises:
        SourceFlaw: it is no list, is not closed, or goes on behind its end.
    """
    return _Splitter(read, most_bytes, chunk_bytes).batches()


class _Splitter:
    """`_text` is what has been read and not yet given out; `_line` and `_offset` are where it begins."""

    def __init__(self, read: Read, most_bytes: int, chunk_bytes: int) -> None:
        self._read, self._most_bytes, self._chunk_bytes = read, most_bytes, chunk_bytes
        self._text, self._line, self._offset = b"", 1, 0
        self._at = 0  # everything before it has been looked at
        self._depth = 0
        self._count = 0

    def batches(self) -> Iterator[list[Row]]:
        self._text, self._offset = without_mark(self._read, self._chunk_bytes)
        self._begin()
        while True:
            batch, is_end = self._take()
            if batch:
                yield batch
            if is_end:
                self._finish()
                return
            more = self._read(max(self._chunk_bytes, len(self._text)))
            if not more:
                self._drop(len(self._text))
                raise SourceFlaw("the list is not closed: expected ]", self._line)
            if len(self._text) > self._most_bytes:
                self._drop(self._blank(0))
                raise SourceFlaw(f"an element is {TOO_LONG}", self._line)
            self._text += more

    def _begin(self) -> None:
        while not self._text.strip(_SPACE):
            self._drop(len(self._text))
            self._text = self._read(self._chunk_bytes)
            if not self._text:
                raise SourceFlaw("is empty; expected a list: [ … ]", 1)
        self._drop(self._blank(0))
        if self._text[0] != _OPEN:
            hint = "; one object on each line goes into a .jsonl file" if self._text[0] == _OPENING[1] else ""
            raise SourceFlaw(f"expected a list: [ … ]{hint}", self._line)
        self._drop(1)

    def _take(self) -> tuple[list[Row], bool]:
        """The elements that are complete in `_text`, and whether the list ends there."""
        batch: list[Row] = []
        text, start, depth = self._text, 0, self._depth
        line, counted = self._line, 0
        at, is_end = self._at, False
        for token in _TOKEN.finditer(text, at):
            char = text[token.start()]
            if token.end() - token.start() > 1:
                pass  # a whole string, or a whole object or list
            elif char == _QUOTE:  # of a string that goes on in what has not been read yet
                at = token.start()
                break
            elif char in _OPENING:
                depth += 1
            elif char != _COMMA and depth:
                depth -= 1
            elif not depth:
                end = token.start()
                begin = min(self._blank(start), end)
                line, counted = line + text.count(b"\n", counted, begin), begin
                is_end = char != _COMMA
                element = text[begin:end].rstrip(_SPACE)
                if element:
                    batch.append((line, self._offset + begin, element))
                elif not is_end or self._count:
                    message = "expected an element in front of the comma" if not is_end else "a comma too many"
                    batch.append((line, self._offset + begin, bad(line, message)))
                self._count += 1
                start = token.end()
                if is_end:
                    if char != _CLOSE:
                        raise SourceFlaw("expected ], got }", line)
                    break
            at = token.end()
        else:
            at = len(text)
        self._depth, self._at = depth, at
        self._drop(start)
        return batch, is_end

    def _finish(self) -> None:
        while True:
            if self._text.strip(_SPACE):
                self._drop(self._blank(0))
                raise SourceFlaw("there is more behind the end of the list", self._line)
            self._drop(len(self._text))
            self._text = self._read(self._chunk_bytes)
            if not self._text:
                return

    def _blank(self, start: int) -> int:
        """Where the first thing that is no space stands, from `start` on."""
        found = _NOT_SPACE.search(self._text, start)
        return found.start() if found else len(self._text)

    def _drop(self, count: int) -> None:
        self._line += self._text.count(b"\n", 0, count)
        self._offset += count
        self._text = self._text[count:]
        self._at = max(0, self._at - count)
