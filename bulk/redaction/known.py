"""Finds secrets that are known, as they are, in hex and in Base64 at any offset, in a text that is written plainly.

A few are searched for one by one. Where there are more, the text is cut into blocks of equal size, and one look tells
whether any block is a piece of any secret: that costs the same for two secrets and for ten thousand. Adding a secret
costs some tens of microseconds, whenever that is.
"""

import base64
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Literal

from bulk.redaction.spellings import meant

MASK = "***"
SHORTEST_CHARS = 4
"""What is shorter can't be told from ordinary text, and taking it out would spoil every message."""
WORD_CHARS = 8
"""A secret shorter than this is taken out where it stands as a word of its own, and not as a part of another one."""

FEW = 24
"""So many needles are searched for one by one (count)."""
MOST_STRIDE = 4
"""Of the blocks of a text every so many is looked at, where the secrets are long enough (count)."""

_WORD = rb"[0-9A-Za-z_]"
_ENDS = re.compile(rb"[0-9A-Za-z+/=_-]{0,4}")


class Blocks:
    """Needles that are found by one of their pieces; each has at least `2 * size - 1` bytes.

    Of any place where a needle of n bytes stands, an aligned block lies within its first `size * stride + size - 1`
    bytes, if only every `stride`-th block is looked at.
    """

    def __init__(self, size: int, code: Literal["I", "Q"]) -> None:
        self._size = size
        self._code: Literal["I", "Q"] = code
        self._stride = MOST_STRIDE
        self._needles: dict[int, list[bytes]] = {}

    def add(self, needle: bytes) -> None:
        """Find it from now on."""
        self._stride = max(1, min(self._stride, (len(needle) - self._size + 1) // self._size))
        for piece in self._pieces(needle):
            known = self._needles.setdefault(piece, [])
            if needle not in known:
                known.append(needle)

    def remove(self, needle: bytes) -> None:
        """Find it no more from now on."""
        for piece in self._pieces(needle):
            # whoever searches may hold the former list
            rest = [other for other in self._needles.get(piece, ()) if other != needle]
            if rest:
                self._needles[piece] = rest
            else:
                self._needles.pop(piece, None)

    def _pieces(self, needle: bytes) -> Iterator[int]:
        size = self._size
        for at in range(min(size * MOST_STRIDE, len(needle) - size + 1)):
            yield int.from_bytes(needle[at : at + size], sys.byteorder)

    def may_be_in(self, text: bytes | bytearray) -> Iterable[bytes]:
        """Yield the needles of which a piece is in `text`: all that are in it, and few others."""
        if not self._needles:
            return ()
        blocks = memoryview(text)[: len(text) // self._size * self._size].cast(self._code)[:: self._stride]
        if self._needles.keys().isdisjoint(blocks):
            return ()
        return {needle for piece in self._needles.keys() & set(blocks) for needle in self._needles.get(piece, ())}


class Known:
    """All known secrets, as needles. `add` and `remove` may be called while another thread searches.

    Args:
        without: letters that are left out of every needle, as they are of the texts that are searched.

    Attributes:
        is_complete: without those letters, each needle is still long enough to be searched for.
    """

    def __init__(self, without: bytes = b"") -> None:
        self._without = without
        self.is_complete = True
        self._one_by_one: list[bytes] = []
        self._long, self._middle = Blocks(8, "Q"), Blocks(4, "I")
        self._searched = 0
        self._words: list[bytes] = []
        self._encoded: set[bytes] = set()

    def add(self, text: str) -> None:
        """Find `text` from now on, which is no shorter than `SHORTEST_CHARS`."""
        plain, others = _forms(text)
        for form in plain:
            if len(form) >= WORD_CHARS:
                self._search(form)
            elif len(form) >= SHORTEST_CHARS:
                self._words.append(form)
        for form in others:
            self._encoded.add(form)
            self._search(form)

    def remove(self, text: str) -> None:
        """Find `text`, which was added once, no more from now on."""
        plain, others = _forms(text)
        self._words = [word for word in self._words if word not in plain]
        self._encoded.difference_update(others)
        needles = {form.translate(None, self._without) if self._without else form for form in (*plain, *others)}
        needles = {needle for needle in needles if len(needle) >= WORD_CHARS}
        for needle in needles:
            self._blocks_of(needle).remove(needle)
        self._one_by_one = [needle for needle in self._one_by_one if needle not in needles]

    def _search(self, needle: bytes) -> None:
        if self._without:
            needle = needle.translate(None, self._without)
            if len(needle) < WORD_CHARS:
                self.is_complete = False
                return
        # all are in the blocks, so that they are complete when there are more than a few
        self._blocks_of(needle).add(needle)
        self._searched += 1
        if self._searched <= FEW:
            self._one_by_one.append(needle)

    def _blocks_of(self, needle: bytes) -> Blocks:
        return self._long if len(needle) >= 15 else self._middle

    def is_in(self, text: bytes | bytearray) -> bool:
        """Return whether any secret stands in `text`, which is read as it is."""
        return any(word in text and _word(word).search(text) for word in self._words) or any(
            needle in text for needle in self._candidates(text)
        )

    def hits(self, text: bytes) -> Iterator[int]:
        """Yield where `is_in` may find something, in no order."""
        for needle in (*self._words, *self._candidates(text)):
            yield from places(text, needle)

    def encoded_is_in(self, text: bytes | bytearray) -> bool:
        """Return whether one stands there in hex or Base64."""
        return any(needle in text for needle in self._candidates(text) if needle in self._encoded)

    def spans(self, text: bytes, with_words: bool) -> Iterator[tuple[int, int]]:
        """Yield where secrets stand in `text`; of Base64 with the letters around it, which hold some bits of the
        secret.

        Args:
            with_words: short ones too.
        """
        for needle in self._candidates(text):
            for at in places(text, needle):
                end = at + len(needle)
                if needle in self._encoded:
                    before = text[max(0, at - 4) : at][::-1]
                    inside = _ENDS.match(before)
                    after = _ENDS.match(text, end)
                    yield at - (inside.end() if inside else 0), after.end() if after else end
                else:
                    yield at, end
        for word in self._words if with_words else ():
            if word in text:
                yield from (found.span() for found in _word(word).finditer(text))

    def _candidates(self, text: bytes | bytearray) -> Iterable[bytes]:
        if self._searched <= FEW:
            return self._one_by_one
        return {*self._long.may_be_in(text), *self._middle.may_be_in(text)}


def _forms(text: str) -> tuple[list[bytes], list[bytes]]:
    """Return a secret as it may be written plainly, and in hex and Base64 where that is long enough."""
    raw = text.encode("utf-8", "surrogatepass")
    plain = sorted({raw, meant(raw), raw.replace(b" ", b"+")})
    return plain, [form for form in encoded(raw) if len(form) >= WORD_CHARS]


def places(text: bytes, needle: bytes) -> Iterator[int]:
    """Yield where `needle` stands in `text`, in order; it may overlap itself."""
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + 1)


def encoded(raw: bytes) -> Iterator[bytes]:
    """Yield `raw` in hex and within Base64: the letters that hold only its bits, when 0, 1 or 2 bytes stand
    before it.
    """
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    for offset in range(3):
        whole = base64.b64encode(b"\0" * offset + raw)
        core = whole[-(-offset * 8 // 6) : (offset + len(raw)) * 8 // 6]
        yield core
        if b"+" in core or b"/" in core:
            yield core.replace(b"+", b"-").replace(b"/", b"_")


def _word(word: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?<!" + _WORD + rb")" + re.escape(word) + rb"(?!" + _WORD + rb")")
