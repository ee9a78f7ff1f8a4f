"""The secrets of this process, and how a text, a JSON value or lines of results are written without them."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import accumulate

from bulk.redaction import json_lines, shapes, spellings
from bulk.redaction.known import MASK, SHORTEST_CHARS, WORD_CHARS, Blocks, Known

GROUP_BYTES = 64 * 1024
"""How many bytes of lines are searched at once: more would not stay in the processor's cache."""

BLOCK_BYTES, OVERLAP_BYTES = 1024 * 1024, 64 * 1024
"""How many bytes of a file are searched at once, and how many of the bytes behind them: a key is shorter, in any
spelling."""

FEW = 16
"""A file with fewer NULs than this is text (count)."""

_MARK = MASK.encode()
_MARKS = tuple(b"%&\0\x7f")
"""Without any of these bytes, a backslash, and other characters that are not shown, a text is written plainly."""
_BREAKS = tuple(b"\n\r")
_BACKSLASH = ord("\\")
_CONTENT = b'"content":"'
"""Mark before a content, mostly in Base64: several kilobytes that hold nothing by which a shape is found."""
_KEYS = (b"MII", b"3082", b"2d2d", b"2D2D")
"""Beginnings of a content that may be a key: DER in Base64 or in hex, or PEM in hex."""
_ESCAPED_BREAK = b"\\n"
_OTHER_ESCAPE = re.compile(rb"\\(?!n)")
_ESCAPED = frozenset("\"\\\b\f\n\r\t'")
"""Characters that are written as an escape of one letter."""


class Registry:
    """The secrets of a process, and the search for them. One registry serves all; any thread may use it."""

    def __init__(self) -> None:
        self._texts: dict[str, bool] = {}
        long = Blocks(is_long=True)
        self._known, self._known_between_breaks = Known(long), Known(long, without=_ESCAPED_BREAK)
        self._has_escapes = False

    def add(self, text: str, *, is_deep: bool = False) -> None:
        """Take `text` for a secret from now on, unless it is shorter than `SHORTEST_CHARS`.

        Args:
            is_deep: search for `text` inside of two encodings as well, such as JSON that holds Base64 of Base64. This
                is for tokens only, as it takes memory for each.
        """
        if len(text) >= SHORTEST_CHARS and text not in self._texts:
            self._texts[text] = is_deep
            self._has_escapes = self._has_escapes or len(text) < WORD_CHARS or any(char in _ESCAPED for char in text)
            self._known.add(text, is_deep=is_deep)
            self._known_between_breaks.add(text, is_deep=is_deep)
            self._has_escapes = self._has_escapes or not self._known_between_breaks.is_complete

    def forget(self, text: str) -> None:
        """Stop taking `text` for a secret, such as a token that ended long ago. Its shape is still taken out."""
        is_deep = self._texts.pop(text, None)
        if is_deep is not None:
            self._known.remove(text, is_deep=is_deep)
            self._known_between_breaks.remove(text, is_deep=is_deep)

    def holds(self, text: str) -> bool:
        """Return whether exactly `text` is a known secret."""
        return text in self._texts

    def is_in(self, data: bytes | bytearray, *, is_json: bool = False, is_content: bool = False) -> bool:
        """Return whether a secret, or a text that looks like one, may stand in `data`, in any spelling.

        The search is quick where none does.
        Args:
            is_json: it is JSON, in which line breaks stand between values only.
            is_content: see `shapes.is_encoded_in`.
        """
        text: bytes | bytearray = data
        is_escaped = _BACKSLASH in data
        if is_escaped and not self._has_escapes:
            # most escapes of most texts are line breaks, between which Base64 goes on
            if not _OTHER_ESCAPE.search(data):
                return self._is_between_breaks(data, is_json=is_json, is_content=is_content)
            if b"\\\\n" not in data:
                text = b"".join(data.split(_ESCAPED_BREAK))
        if self._is_read_in(text, is_content=is_content):
            return True
        is_plain = is_json
        if is_escaped or any(mark in text for mark in _MARKS) or _hides(text, is_json=is_json):
            for step in spellings.plain(bytes(text), is_quick=not self._has_escapes):
                text, is_plain = step, False
                if self._is_read_in(text, is_content=is_content):
                    return True
        is_broken = not is_plain and any(mark in text for mark in _BREAKS)
        if not is_broken:
            return False
        whole = spellings.unbroken(bytes(text))
        return self._known.encoded_is_in(whole) or shapes.is_encoded_in(whole)

    def _is_between_breaks(self, data: bytes | bytearray, *, is_json: bool, is_content: bool) -> bool:
        """Return the same as `is_in` for a text whose only escapes are those of line breaks.

        Both characters of these escapes are left out wherever they stand, in the secrets as well: that takes half the
        time of leaving out just the escapes, and hardly ever says yes wrongly.
        """
        squeezed = data.translate(None, _ESCAPED_BREAK)
        if self._known_between_breaks.is_in(squeezed) or shapes.is_in(squeezed):
            return True
        if shapes.is_encoded_in(squeezed, is_content=is_content):
            return True
        if is_json and not any(mark in data for mark in _MARKS) and not _hides(data, is_json=True):
            return False
        return self.is_in(b"".join(data.split(_ESCAPED_BREAK)), is_json=is_json, is_content=is_content)

    def taints(self, data: bytes) -> bool:
        """Return whether a file, whatever its bytes are, holds a known secret or a private key in any spelling.

        Other texts that look like secrets are a user's own. The file is searched a block at a time, because each
        reading of a block takes as much memory again.
        """
        last = max(1, len(data) - OVERLAP_BYTES)
        blocks = range(0, last, BLOCK_BYTES)
        return any(self._block_taints(data[at : at + BLOCK_BYTES + OVERLAP_BYTES]) for at in blocks)

    def _block_taints(self, data: bytes) -> bool:
        if self._known.is_in(data):
            return True
        nul, plain = data.count(b"\0"), data
        # text, or UTF-16: other data full of NULs is full of bytes that look like escapes and mean nothing
        is_text = nul < FEW or nul * 1_000 < len(data) or nul * 4 > len(data)
        if is_text and (_BACKSLASH in data or any(mark in data for mark in _MARKS) or not data.isascii()):
            plain = spellings.meant(data)  # the last of many steps, which is the plainest
        return (plain != data and self._known.is_in(plain)) or shapes.has_key_in(plain, spellings.unbroken(plain))

    def _is_read_in(self, data: bytes | bytearray, *, is_content: bool) -> bool:
        is_there = self._known.is_in(data) or shapes.is_in(data)
        return is_there or shapes.is_encoded_in(data, is_content=is_content)

    def hits(self, data: bytes) -> list[int]:
        """Return where something in `data`, as it is written, may belong to a secret, in order."""
        return sorted((*self._known.hits(data), *shapes.hits(data)))

    def spans(self, data: bytes, with_words: bool = True) -> list[tuple[int, int]]:
        """Return where secrets stand in `data`, in any spelling: in order, no two of them touch.

        Args:
            with_words: return short secrets too, which are searched for as words.
        """
        is_marked = spellings.MARK.search(data) is not None
        if is_marked and not self.is_in(data):
            return []
        found = self._spans_as_written(data, with_words)
        if is_marked or any(mark in data for mark in _BREAKS):
            for view in spellings.views(data):
                found += [view.original(*span) for span in self._spans_as_written(view.text, with_words)]
        merged: list[tuple[int, int]] = []
        for start, end in sorted(found):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def _spans_as_written(self, text: bytes, with_words: bool) -> list[tuple[int, int]]:
        kinds = self._known.spans(text, with_words), shapes.spans(text)
        return [span for spans in kinds for span in spans if span[1] > span[0]]

    def redact(self, text: str) -> str:
        """Return `text` with `***` in place of every secret, known or by its shape, in any spelling."""
        data = text.encode("utf-8", "surrogatepass")
        pieces, at = [], 0
        for start, end in self.spans(data):
            pieces += [data[at:start], _MARK]
            at = end
        return b"".join((*pieces, data[at:])).decode("utf-8", "replace") if pieces else text

    def redact_json(self, data: bytes, own: Collection[bytes] = ()) -> bytes:
        """Return this program's JSON with `***` where a text of it holds a secret; it is as valid as before.

        Args:
            own: texts that are this program's own words, and stay.
        """
        return json_lines.values_without(data, self.spans, own) if self.is_in(data, is_json=True) else data

    def redact_lines(
        self, lines: bytearray, lengths: Sequence[int], clean: Sequence[int]
    ) -> tuple[bytearray, list[int]]:
        """Return lines of results without secrets, one behind the other, and the length of each line.

        Each line is as valid as before. This program's own words in it (job, outcome, code of an error) stay.

        Args:
            clean: for each line, how many bytes at its end are known to hold no secret.
        """
        changed: dict[int, bytes] = {}
        first = start = end = known = 0
        for number, length in enumerate(lengths):
            end += length
            known += clean[number]
            if end - start - known < GROUP_BYTES and number + 1 < len(lengths):
                continue
            group = bytes(memoryview(lines)[start:end])
            if known:
                group = _without_clean(group, lengths[first : number + 1], clean[first : number + 1])
            is_around, is_inside = self._is_in_lines(group)
            if is_around or is_inside:
                # what is clean at an end was not looked at here, so that nothing is known about each content
                search = self._line_without if is_inside or known else self._line_around_contents
                changed.update(_changed(memoryview(lines)[start:end], first, lengths[first : number + 1], search))
            first, start, known = number + 1, end, 0
        if not changed:
            return lines, list(lengths)
        written, sizes, start = bytearray(), list(lengths), 0
        for number, length in enumerate(lengths):
            line = changed.get(number)
            written += memoryview(lines)[start : start + length] if line is None else line
            sizes[number] = length if line is None else len(line)
            start += length
        return written, sizes

    def suspects(self, texts: Sequence[bytes]) -> set[int]:
        """Return the places of the JSON texts in which `is_in` finds something; several texts are searched at once."""
        found: set[int] = set()
        first = size = 0
        for number, text in enumerate(texts, 1):
            size += len(text)
            if size >= GROUP_BYTES or number == len(texts):
                if any(self._is_in_lines(b"\n".join(texts[first:number]))):
                    found.update(place for place in range(first, number) if self.is_in(texts[place], is_json=True))
                first, size = number, 0
        return found

    def _is_in_lines(self, lines: bytes) -> tuple[bool, bool]:
        """Return what `is_in` does for lines of results: for all that stands around their contents, and for these.

        Contents are looked at apart, because nothing in them is what most shapes are found by.
        """
        if self._has_escapes:  # such a secret may hold the quote at which a content is thought to end
            is_there = self.is_in(lines, is_json=True)
            return is_there, is_there
        texts, contents = _parted(lines)
        is_file = not any(content.startswith(_KEYS) for content in contents)
        is_around = self.is_in(b"".join(texts), is_json=True)
        return is_around, self.is_in(b'"'.join(contents), is_json=True, is_content=is_file)

    def _line_without(self, line: bytes) -> bytes | None:
        """Return a line without the secrets that it holds; None where it holds none."""
        hits = self.hits(line)
        return json_lines.line_without(line, self.spans, hits) if hits or self.is_in(line, is_json=True) else None

    def _line_around_contents(self, line: bytes) -> bytes | None:
        """Return the same of a line whose contents hold no secret, without looking at them again.

        The address of every file of a private repository holds a token, and most of such a line is the content.
        """
        texts, contents = _parted(line)
        if any(content.endswith(b"\\") for content in contents):  # behind an escaped quote the content goes on
            return self._line_without(line)
        changed = self._line_without(b"".join(texts))
        if changed is None:
            return None
        texts = changed.split(_CONTENT)
        if len(texts) != len(contents) + 1:  # the name of a member held a secret
            return self._line_without(line)
        pieces = (_CONTENT + content + text for content, text in zip(contents, texts[1:], strict=True))
        return b"".join((texts[0], *pieces))


def _hides(text: bytes | bytearray, *, is_json: bool) -> bool:
    """Return whether characters that are not shown may stand in `text`, except for those in `_MARKS`.

    In JSON an escape stands for each of them that is ASCII.
    """
    return not (is_json and text.isascii()) and spellings.hides(text)


def _parted(lines: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return what stands around the contents in `lines`, and the contents."""
    texts: list[bytes] = []
    contents: list[bytes] = []
    at, start = 0, lines.find(_CONTENT)
    while start >= 0:  # a content is passed over at once, and not searched for another one
        start += len(_CONTENT)
        end = lines.find(b'"', start)
        end = len(lines) if end < 0 else end
        texts.append(lines[at:start])
        contents.append(lines[start:end])
        at, start = end, lines.find(_CONTENT, end)
    texts.append(lines[at:])
    return texts, contents


def _changed(
    lines: memoryview, first: int, lengths: Sequence[int], search: Callable[[bytes], bytes | None]
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that `search` changes, by their number from `first` on."""
    start = 0
    for number, length in enumerate(lengths, first):
        changed = search(bytes(lines[start : start + length]))
        start += length
        if changed is not None:
            yield number, changed


def _without_clean(lines: bytes, lengths: Sequence[int], clean: Sequence[int]) -> bytes:
    """Return lines without the bytes at the end of each line that `clean` counts."""
    ends = accumulate(lengths)
    return b"".join(
        [lines[end - length : end - known] for end, length, known in zip(ends, lengths, clean, strict=True)]
    )
