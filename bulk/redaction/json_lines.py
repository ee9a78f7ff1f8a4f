"""JSON without secrets that stays JSON: masks are put into strings only, between whole characters of the string.

Whatever the secret is (`"job"`, `null,`, `1`), the structure is never touched, nor are this program's own words: the
names and words of a line of results that readers rely on.
"""

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from bulk.redaction.known import MASK
from bulk.redaction.spellings import MARK

_TOKEN = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?|([{\[])|([}\]])|(-?[0-9][0-9.eE+-]*)')
_UNIT = re.compile(rb"\\u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\.")
_MARK = MASK.encode()
_NO_MORE = sys.maxsize
_RESULT, _ERROR = b',"result":', b',"error":'
"""Where the result of a line begins and ends. Within a text the quotes would be escaped; the error is a line's last
member, and has none of that name itself."""

FOREIGN = frozenset((b"id", b"item", b"request_id", b"result", b"error"))
"""Members of a line of results that hold foreign text; of `error` only the message."""

Change = tuple[int, int, bytes]
"""Begin and end of a part of a line that changes, and the new text for it."""
Spans = Callable[[bytes, bool], list[tuple[int, int]]]
"""Returns where secrets stand in a text; True: short secrets too, which are searched for as words."""


def line_without(line: bytes, spans: Spans, hits: Sequence[int]) -> bytes:
    """Return a line of results without secrets: in values, in names of members and in numbers.

    Args:
        hits: where something in `line`, as it is written, may belong to a secret, in order. Parts without a hit, and
            without a mark of another spelling, are not looked at again.
    """
    start, end = line.find(_RESULT), line.rfind(_ERROR)
    is_in_result = 0 < start < end and all(start < hit < end for hit in hits)
    if (
        is_in_result
        and line.find(_RESULT, start + 1) < 0
        and not MARK.search(line, 0, start)
        and not MARK.search(line, end)
    ):
        return _joined(line, _result_without(line, start + len(_RESULT), end, spans, hits))
    return _joined(line, _tokens_without(line, spans, hits))


def _result_without(line: bytes, at: int, end: int, spans: Spans, hits: Sequence[int]) -> Iterator[Change]:
    """Yield the changes of a result that stands from `at` to `end`, if all hits and marks of its line are in it.

    The search jumps from one to the next of them.
    """
    ahead, hit = iter(hits), -1
    while True:
        while hit < at:
            hit = next(ahead, end)
        marked = MARK.search(line, at, end)
        place = min(hit, marked.start() if marked else end)
        if place == end:
            return
        if line.count(b'"', at, place) % 2:
            found = _TOKEN.match(line, line.rfind(b'"', at, place))
        else:
            found = _TOKEN.search(line, 1 + max(line.rfind(char, at - 1, place) for char in (b",", b":", b"[", b"{")))
        if found is None or found.start() >= end:
            return
        yield from _change(found, spans)
        at = found.end()


def _tokens_without(line: bytes, spans: Spans, hits: Sequence[int]) -> Iterator[Change]:
    """Yield the changes of a line, which is read from its beginning."""
    ahead, hit = iter(hits), -1
    depth = 0
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
        while hit < found.start():
            hit = next(ahead, _NO_MORE)
        if found.start() <= hit < found.end() or (number is None and MARK.search(text)):
            yield from _change(found, spans)


def _change(found: re.Match[bytes], spans: Spans) -> Iterator[Change]:
    text, colon, _, _, number = found.groups()
    if number is not None:
        if spans(number, False):
            yield *found.span(), b'"' + _MARK + b'"'
    elif text is not None:
        masked = text_without(text, spans(text, colon is None))
        if masked is not text:
            yield *found.span(1), masked


def _joined(line: bytes, changes: Iterable[Change]) -> bytes:
    pieces: list[bytes] = []
    at = 0
    for start, end, became in changes:
        pieces += [line[at:start], became]
        at = end
    return b"".join((*pieces, line[at:])) if pieces else line


def values_without(data: bytes, spans: Spans, own: Collection[bytes]) -> bytes:
    """Return this program's JSON without secrets in its texts.

    Names of members, numbers and the words in `own` stay as they were.
    """
    values = (found for found in _TOKEN.finditer(data) if found[1] is not None and found[2] is None)
    return _joined(data, (change for found in values if found[1] not in own for change in _change(found, spans)))


def text_without(text: bytes, spans: list[tuple[int, int]]) -> bytes:
    """Return the inside of a JSON string with a mask in place of these spans, and of escapes that one of them cuts."""
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
    """Return begin and end of the escape that `at` stands within; twice `at` if it stands in none."""
    found = bisect_right(starts, at) - 1
    if found >= 0 and units[found][0] < at < units[found][1]:
        return units[found]
    return at, at
