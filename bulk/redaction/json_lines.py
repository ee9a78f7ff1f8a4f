"""JSON without secrets that stays JSON: masks are put into strings only, between whole characters of theirs.

Whatever the secret is (`"job"`, `null,`, `1`), the structure is never touched, nor is what this program says itself:
the names and words of a line of results that everybody relies on.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Collection

from bulk.redaction.known import MASK

_TOKEN = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?|([{\[])|([}\]])|(-?[0-9][0-9.eE+-]*)')
_UNIT = re.compile(rb"\\u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\.")
_MARK = MASK.encode()

FOREIGN = frozenset((b"id", b"item", b"request_id", b"result", b"error"))
"""Members of a line of results that hold what others said; of `error` only the message."""

Spans = Callable[[bytes, bool], list[tuple[int, int]]]
"""Where secrets stand in a text; True: short ones too, which are taken for words."""


def line_without(line: bytes, spans: Spans) -> bytes:
    """A line of results without secrets: in values, in names of members and in numbers."""
    pieces: list[bytes] = []
    at = depth = 0
    top = name = b""
    for found in _TOKEN.finditer(line):
        text, colon, opens, closes, number = found.groups()
        if opens or closes:
            depth += 1 if opens else -1
            continue
        is_name = colon is not None
        if is_name:
            name = text
            if depth == 1:
                top = text
                continue
        if top not in FOREIGN or (top == b"error" and (is_name or name != b"message")):
            continue
        if number is not None:
            if spans(number, False):
                pieces += [line[at : found.start()], b'"', _MARK, b'"']
                at = found.end()
            continue
        masked = text_without(text, spans(text, not is_name))
        if masked is not text:
            pieces += [line[at : found.start(1)], masked]
            at = found.end(1)
    return b"".join((*pieces, line[at:])) if pieces else line


def values_without(data: bytes, spans: Spans, own: Collection[bytes]) -> bytes:
    """JSON of ours whose texts hold no secret; names of members, numbers and the words in `own` are as they were."""
    pieces: list[bytes] = []
    at = 0
    for found in _TOKEN.finditer(data):
        text = found[1]
        if text is None or found[2] is not None or text in own:
            continue
        masked = text_without(text, spans(text, True))
        if masked is not text:
            pieces += [data[at : found.start(1)], masked]
            at = found.end(1)
    return b"".join((*pieces, data[at:])) if pieces else data


def text_without(text: bytes, spans: list[tuple[int, int]]) -> bytes:
    """The inside of a JSON string with a mask in place of these spans, and of escapes that one of them cuts."""
    if not spans:
        return text
    units = [found.span() for found in _UNIT.finditer(text)]
    starts = [start for start, _ in units]
    pieces: list[bytes] = []
    at = 0
    for start, end in spans:
        start, end = _whole(units, starts, start)[0], _whole(units, starts, end)[1]
        if start >= at:
            pieces += [text[at:start], _MARK]
        at = max(at, end)
    return b"".join((*pieces, text[at:]))


def _whole(units: list[tuple[int, int]], starts: list[int], at: int) -> tuple[int, int]:
    """Begin and end of the escape that `at` stands within; twice `at` where that is none."""
    found = bisect_right(starts, at) - 1
    if found >= 0 and units[found][0] < at < units[found][1]:
        return units[found]
    return at, at
