"""The ways in which a text may be written: escaped for JSON, as HTML entities, percent-encoded, several at once.

Not every spelling of every secret is searched for. Instead, a text is read as it is meant, step by step until nothing
changes, and the plain secret is searched for in each step. `plain` does so quickly; `views` also knows where each byte
came from. Characters that are not shown are read as nothing, because they are left out wherever text is shown; so a NUL
is, and UTF-16 is read as its letters.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from html.entities import html5
from typing import TypeAlias

from bulk.redaction.printable import is_hidden

MARK = re.compile(rb"[\\%&\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\xff]")
"""A text without any of these is written plainly."""
ROUNDS = 6
"""Encodings that may lie inside each other (count); a run of the same one (`%2525…`, `&amp;amp;…`) is one."""

_BYTE = {f"{value:02x}".encode(): bytes((value,)) for value in range(256)}
_SIMPLE = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_NAMED = {
    name.rstrip(";").encode(): meant.encode() for name, meant in html5.items() if len(meant) == 1 and meant.isascii()
}
_MOST_CODE = 0x10FFFF


def _of_code(code: int) -> bytes:
    return chr(code).encode("utf-8", "surrogatepass") if 0 < code <= _MOST_CODE else b""


def _percent(found: re.Match[bytes]) -> bytes:
    return _BYTE[found[1].lower()] if found[1] else _of_code(int(found[2], 16))


def _entity(found: re.Match[bytes]) -> bytes:
    digits, hexadecimal, name = found.groups()
    if name:
        return _NAMED.get(name, b"&%s;" % name)  # an unknown name may still be behind an escaped ampersand
    return _of_code(int(digits) if digits else int(hexadecimal, 16))


def _backslash(found: re.Match[bytes]) -> bytes:
    high, low, four, two, simple = found.groups()
    if high:
        return _of_code(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
    if simple:
        return _SIMPLE.get(simple, simple)
    return _of_code(int(four or two, 16))


def _seen(found: re.Match[bytes]) -> bytes:
    if found[1] is None:
        return b""
    try:
        return b"" if is_hidden(found[1].decode("utf-8", "surrogatepass")) else found[1]
    except UnicodeDecodeError:
        return found[1]


Step: TypeAlias = tuple[Callable[[bytes], bool], re.Pattern[bytes], Callable[[re.Match[bytes]], bytes]]
"""Whether there may be something to do, the pattern of a spelling, and a function that returns its meaning."""

_CODES = (
    rb"\\(?:\\*(?:u([dD][89abAB][0-9A-Fa-f]{2})\\+u([dD][c-fC-F][0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})"
)
_SHOWN = bytes((*b"\t\n\r", *range(0x20, 0x7F)))
_HIDDEN = re.compile(
    rb"(?:\x1b\[|\xc2\x9b)[0-?]*[ -/]*[@-~]"  # sequences that a terminal obeys, and the text that goes with them
    rb"|(?:\x1b[\]PX^_]|\xc2[\x90\x98\x9d-\x9f])[^\x07\x1b\"]*(?:\x07|\x1b\\|\xc2\x9c)|\x1b[ -/]*[0-~]?"
    rb"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
    rb"|([\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})"
)
"""What may not be shown, and every character that is not ASCII (group 1). No quote ends a text of JSON within it."""


def hides(text: bytes | bytearray) -> bool:
    """Return whether characters that are not shown may stand in `text`."""
    if text.isascii():
        return bool(text.translate(None, _SHOWN))
    try:
        return not text.translate(None, b"\t\n\r").decode("utf-8", "surrogatepass").isprintable()
    except UnicodeDecodeError:
        return True


_PERCENT: Step = (lambda text: b"%" in text, re.compile(rb"%(?:25)*(?:([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4}))"), _percent)
_ENTITY: Step = (
    lambda text: b"&" in text,
    re.compile(rb"&(?:amp;)*(?:#0*([0-9]{1,7})(?![0-9]);?|#[xX]0*([0-9A-Fa-f]{1,6});?|([A-Za-z][A-Za-z0-9]{1,30});)"),
    _entity,
)
_UNSEEN: Step = (hides, _HIDDEN, _seen)
_STEPS: tuple[Step, ...] = (
    _PERCENT,
    _ENTITY,
    (lambda text: b"\\" in text, re.compile(_CODES + rb")|([\\/\"'bfnrt]))"), _backslash),
    _UNSEEN,
)
_QUICK_STEPS: tuple[Step, ...] = (
    _PERCENT,
    _ENTITY,
    (lambda text: b"\\" in text, re.compile(_CODES + rb"|(/)))"), _backslash),
    _UNSEEN,
)
"""Without the escapes that a text is full of (`\\n`, `\\"`): only a secret that holds such a character needs them."""

_BREAKS = re.compile(rb"[\r\n\t ]+")


_EXACT = re.compile(
    rb"\\(?:u([dD][89abAB][0-9A-Fa-f]{2})\\u([dD][c-fC-F][0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})"
    rb"|([\\/\"'bfnrt]))"
)
"""Escapes as JSON reads them, one backslash at a time: a secret may hold a backslash before a seeming escape."""


def plain(text: bytes, *, is_quick: bool = False) -> Iterator[bytes]:
    """Yield `text` as it is meant, after each step that changed it; yield nothing if it is written plainly.

    Args:
        is_quick: quotes, backslashes and control characters may stay escaped.
    """
    yield from _plain(text, _QUICK_STEPS if is_quick else _STEPS)
    if not is_quick and b"\\" in text:
        exact = _EXACT.sub(_backslash, text)
        yield exact
        yield from _plain(exact, _STEPS)


def _plain(text: bytes, steps: tuple[Step, ...]) -> Iterator[bytes]:
    for _ in range(ROUNDS):
        before = text
        for applies, pattern, meant in steps:
            if applies(text):
                changed = pattern.sub(meant, text)
                if changed != text:
                    text = changed
                    yield text
        if text == before:
            return


def meant(text: bytes) -> bytes:
    """Return `text` after all steps, as it is meant."""
    for step in _plain(text, _STEPS):
        text = step
    return text


def unbroken(text: bytes) -> bytes:
    """Return `text` without blanks and line breaks, as Base64 and hex are read."""
    return text.translate(None, b"\r\n\t ")


class View:
    """One reading of a text.

    Attributes:
        text: as it is read.
    """

    def __init__(self, text: bytes, before: "View | None" = None) -> None:
        self.text, self._before = text, before
        self._new: list[int] = []  # where each piece begins in this reading,
        self._old: list[int] = []  # where in the one before,
        self._is_unit: list[bool] = []  # and whether it is one spelled character, or plain text

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return where bytes `start` to `end` (> `start`) of this reading stand in the original text; whole units."""
        if self._before is None:
            return start, end
        first = bisect_right(self._new, start) - 1
        last = bisect_right(self._new, end - 1) - 1
        old_start = self._old[first] + (0 if self._is_unit[first] else start - self._new[first])
        is_inside = not self._is_unit[last] or last + 1 == len(self._old)
        old_end = self._old[last] + end - self._new[last] if is_inside else self._old[last + 1]
        return self._before.original(old_start, old_end)

    def after(self, pattern: re.Pattern[bytes], meant: Callable[[re.Match[bytes]], bytes]) -> "View | None":
        """Return the reading in which each match of `pattern` is replaced by `meant`; None if nothing changes."""
        pieces: list[bytes] = []
        view = View(b"", self)
        at = size = 0
        for found in pattern.finditer(self.text):
            became = meant(found)
            if became == found[0]:
                continue
            start, end = found.span()
            if start > at:
                view._add(size, at, is_unit=False)
                pieces.append(self.text[at:start])
                size += start - at
            if became:
                view._add(size, start, is_unit=True)
                pieces.append(became)
                size += len(became)
            at = end
        if not at:
            return None
        view._add(size, at, is_unit=False)
        pieces.append(self.text[at:])
        view.text = b"".join(pieces)
        return view

    def _add(self, new: int, old: int, *, is_unit: bool) -> None:
        self._new.append(new)
        self._old.append(old)
        self._is_unit.append(is_unit)


def views(text: bytes) -> Iterator[View]:
    """Yield every reading of `text` but the text itself.

    The last reading of each order of steps is also yielded without blanks.
    """
    first = View(text)
    yield from _views(first)
    exact = first.after(_EXACT, _backslash)
    if exact is not None:
        yield exact
        yield from _views(exact)


def _views(view: View) -> Iterator[View]:
    for _ in range(ROUNDS):
        before = view
        for applies, pattern, meant in _STEPS:
            changed = view.after(pattern, meant) if applies(view.text) else None
            if changed is not None:
                view = changed
                yield view
        if view is before:
            break
    whole = view.after(_BREAKS, lambda _: b"")
    if whole is not None:
        yield whole
