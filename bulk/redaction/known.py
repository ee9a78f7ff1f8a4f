"""Finds secrets that are known, as they are, in hex and in Base64 at any offset, in a text that is written plainly.

For long needles the text is cut into blocks of equal size, and one look tells whether any block is a piece of any
secret: that costs the same for hundreds of secrets and for ten thousand, half of it for a few, and nothing more for
those inside of two encodings. A few short needles are searched for one by one.

Where a search is done for each item, it is `text.find(needle) >= 0`: for `needle in text`, Python first makes an error
that says that bytes are not a number, which takes longer than the search of a line.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

from bulk.redaction.encodings import encoded, encoded_keys, nested, nested_keys
from bulk.redaction.spellings import meant

MASK = "***"
SHORTEST_CHARS = 4
"""A shorter secret can't be told from ordinary text, and taking it out would spoil every message."""
WORD_CHARS = 8
"""A secret shorter than this is taken out if it stands as a word of its own, and not as a part of another word."""

LONG_CHARS = 31
"""Needles from this length on are always searched for by their pieces."""
FEW = 24
"""At most this many shorter needles are searched for one by one (count)."""
MOST_STRIDE, MOST_STRIDE_OF_FOUR = 3, 7
"""One in this many blocks of a text is looked at, if the secrets are long enough: for blocks of 8 bytes, and of 4
(count)."""
FEW_LONG = 400
"""Up to this many long needles are told apart by blocks of 4 bytes, which takes half the time (count)."""

_WORD = rb"[0-9A-Za-z_]"
_ENDS = re.compile(rb"[0-9A-Za-z+/=_-]{0,4}")
_ALL = re.compile(rb"[0-9A-Za-z+/=_-]*")


class _Table:
    """The pieces of needles, by which the needles are found."""

    def __init__(self, size: int, code: Literal["I", "Q"], stride: int) -> None:
        self.size, self.code, self._most_stride = size, code, stride
        self.stride = stride
        self.needles: dict[int, bytes | list[bytes]] = {}
        self.pieces: set[int] = set()  # its keys: a set is looked through in three quarters of the time

    def add(self, needle: bytes) -> None:
        self.stride = max(1, min(self.stride, (len(needle) - self.size + 1) // self.size))
        for piece in self._pieces_of(needle):
            known = self.needles.setdefault(piece, needle)
            if known is not needle and needle not in _listed(known):
                self.needles[piece] = [*_listed(known), needle]
            self.pieces.add(piece)

    def remove(self, needle: bytes) -> None:
        for piece in self._pieces_of(needle):
            # a thread that searches may hold the former list
            rest = [other for other in _listed(self.needles.get(piece, [])) if other != needle]
            if rest:
                self.needles[piece] = rest
            else:
                self.needles.pop(piece, None)
                self.pieces.discard(piece)

    def _pieces_of(self, needle: bytes) -> Iterator[int]:
        size = self.size
        for at in range(min(size * self._most_stride, len(needle) - size + 1)):
            yield int.from_bytes(needle[at : at + size], sys.byteorder)


class Blocks:
    """Needles that are found by one of their pieces; each has at least `2 * size - 1` bytes, of `size` 4 or 8.

    Of any place where a needle of n bytes stands, an aligned block lies within its first `size * stride + size - 1`
    bytes, if only every `stride`-th block is looked at.

    Args:
        is_long: each has at least `LONG_CHARS` bytes, so that there may be many of them.
    """

    def __init__(self, *, is_long: bool) -> None:
        self._uses: Counter[bytes] = Counter()
        self._may_widen = is_long
        self._table = _Table(4, "I", MOST_STRIDE_OF_FOUR if is_long else MOST_STRIDE)

    def add(self, needle: bytes) -> None:
        """Find `needle` from now on, until it has been removed as often as added."""
        self._uses[needle] += 1
        if self._uses[needle] > 1:
            return
        self._table.add(needle)
        if self._may_widen and len(self._uses) > FEW_LONG:
            self._may_widen = False
            wide = _Table(8, "Q", MOST_STRIDE)
            for each in self._uses:
                wide.add(each)
            self._table = wide  # at once: others may be searching

    def remove(self, needle: bytes) -> None:
        """Stop finding `needle`, if it has now been removed as often as added."""
        self._uses[needle] -= 1
        if self._uses[needle] > 0:
            return
        del self._uses[needle]
        self._table.remove(needle)

    def may_be_in(self, text: bytes | bytearray) -> Iterable[bytes]:
        """Return the needles of which a piece is in `text`: all needles that are in it, and few others."""
        table = self._table
        blocks = memoryview(text)[: len(text) // table.size * table.size].cast(table.code)[:: table.stride]
        pieces = table.pieces.intersection(blocks)
        if not pieces:
            return ()
        return {needle for piece in pieces for needle in _listed(table.needles.get(piece, []))}


def _listed(needles: bytes | list[bytes]) -> list[bytes]:
    """Return needles as a list; nearly every piece is of one needle alone, for which no list is kept."""
    return [needles] if isinstance(needles, bytes) else needles


class Known:
    """All known secrets, as needles. `add` and `remove` may be called while another thread searches.

    Args:
        long: table of the long needles; another `Known` of the same secrets has nearly the same long needles, and may
            share it. A token that is searched for inside of two encodings takes 150 kB of it.
        without: letters that are left out of every needle, as they are of the texts that are searched.

    The words around a private key in Base64 are found as well, but are not secret: where they stand, `shapes.py` looks.

    Attributes:
        is_complete: without those letters, each needle is still long enough to be searched for.
    """

    def __init__(self, long: Blocks, *, without: bytes = b"") -> None:
        self._without = without
        self.is_complete = True
        self._one_by_one: list[bytes] = []
        self._long, self._middle = long, Blocks(is_long=False)
        self._searched = 0
        self._words: list[bytes] = []
        self._encoded: set[bytes] = set()
        self._nested = Counter(map(self._needle, nested_keys()))
        self._beginnings = frozenset(self._nested)
        self._signs = frozenset(map(self._needle, encoded_keys()))
        for needle in {*self._nested, *self._signs}:
            self._search(needle)

    def add(self, text: str, *, is_deep: bool = False) -> None:
        """Find `text` from now on, which is no shorter than `SHORTEST_CHARS`.

        `is_deep`: find it inside of two encodings too, which takes five times the memory.
        """
        plain, others = _forms(text)
        self._words += [form for form in plain if SHORTEST_CHARS <= len(form) < WORD_CHARS]
        self._encoded.update(map(self._needle, others))
        needles = {self._needle(form) for form in (*plain, *others) if len(form) >= WORD_CHARS}
        for needle in map(self._needle, nested(text)) if is_deep else ():
            self._nested[needle] += 1  # a piece of one secret may be one of another
            if self._nested[needle] == 1:
                needles.add(needle)
        for needle in needles:
            self._search(needle)

    def remove(self, text: str, *, is_deep: bool = False) -> None:
        """Stop finding `text`, which was added once and with the same `is_deep`."""
        plain, others = _forms(text)
        self._words = [word for word in self._words if word not in plain]
        self._encoded.difference_update(map(self._needle, others))
        needles = {self._needle(form) for form in (*plain, *others) if len(form) >= WORD_CHARS}
        for needle in map(self._needle, nested(text)) if is_deep else ():
            self._nested[needle] -= 1
            if not self._nested[needle]:
                del self._nested[needle]
                needles.add(needle)
        for needle in needles:
            if len(needle) >= WORD_CHARS:
                self._blocks_of(needle).remove(needle)
        self._one_by_one = [needle for needle in self._one_by_one if needle not in needles]

    def _needle(self, form: bytes) -> bytes:
        return form.translate(None, self._without) if self._without else form

    def _search(self, needle: bytes) -> None:
        if len(needle) < WORD_CHARS:
            self.is_complete = False
            return
        # all are in the blocks, so that they are complete when there are more than a few
        self._blocks_of(needle).add(needle)
        if len(needle) < LONG_CHARS:
            self._searched += 1
            if self._searched <= FEW:
                self._one_by_one.append(needle)

    def _blocks_of(self, needle: bytes) -> Blocks:
        return self._long if len(needle) >= LONG_CHARS else self._middle

    def is_in(self, text: bytes | bytearray) -> bool:
        """Return whether any secret stands in `text` as it is written."""
        return any(text.find(word) >= 0 and _word(word).search(text) for word in self._words) or any(
            text.find(needle) >= 0 for needle in self._candidates(text)
        )

    def hits(self, text: bytes) -> Iterator[int]:
        """Yield where `is_in` may find something, in no order."""
        for needle in (*self._words, *self._candidates(text)):
            yield from places(text, needle)

    def encoded_is_in(self, text: bytes | bytearray) -> bool:
        """Return whether any secret stands in `text` in hex or Base64."""
        return any(text.find(needle) >= 0 for needle in self._candidates(text) if self._is_encoded(needle))

    def _is_encoded(self, needle: bytes) -> bool:
        return needle in self._encoded or needle in self._nested or needle in self._signs

    def spans(self, text: bytes, with_words: bool) -> Iterator[tuple[int, int]]:
        """Yield where secrets stand in `text`.

        In Base64 that includes the letters around a secret, which hold some of its bits; inside of two encodings it
        includes all of the encoded text.

        Args:
            with_words: yield short secrets too.
        """
        for needle in self._candidates(text):
            for at in places(text, needle) if needle not in self._signs else ():
                end = at + len(needle)
                if self._is_encoded(needle):
                    is_deep = needle in self._nested
                    behind = (_ALL if is_deep else _ENDS).match(text, end)
                    if is_deep and needle not in self._beginnings:
                        before = _ALL.match(text[:at][::-1])
                    else:
                        before = _ENDS.match(text[max(0, at - 4) : at][::-1])
                    yield at - (before.end() if before else 0), behind.end() if behind else end
                else:
                    yield at, end
        for word in self._words if with_words else ():
            if word in text:
                yield from (found.span() for found in _word(word).finditer(text))

    def _candidates(self, text: bytes | bytearray) -> Iterable[bytes]:
        if self._searched <= FEW:
            return [*self._one_by_one, *self._long.may_be_in(text)]
        return {*self._long.may_be_in(text), *self._middle.may_be_in(text)}


def _forms(text: str) -> tuple[list[bytes], list[bytes]]:
    """Return the plain forms of a secret, and its forms in hex and Base64 that are long enough."""
    raw = text.encode("utf-8", "surrogatepass")
    plain = sorted({raw, meant(raw), raw.replace(b" ", b"+")})
    return plain, [form for form in dict.fromkeys(encoded(raw)) if len(form) >= WORD_CHARS]


def places(text: bytes, needle: bytes) -> Iterator[int]:
    """Yield where `needle` stands in `text`, in order; it may overlap itself."""
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + 1)


def _word(word: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?<!" + _WORD + rb")" + re.escape(word) + rb"(?!" + _WORD + rb")")
