"""Bytes become the same rows however they are cut into chunks."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.items.json_array import elements
from bulk.items.lines import Bad, SourceFlaw, lines

TEXT = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r\n", b"\xef\xbb\xbf", b"{}", b" ", b"\xff"]), max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


class Cut:
    """Gives a text in chunks of the sizes that were drawn, again and again."""

    def __init__(self, text: bytes, sizes: list[int]) -> None:
        self._file, self._sizes, self._turn = io.BytesIO(text), sizes, 0

    def read(self, count: int) -> bytes:
        self._turn += 1
        return self._file.read(min(count, self._sizes[self._turn % len(self._sizes)]))


SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=5)


def rows_of(batches):
    return [row for batch in batches for row in batch]


@given(TEXT, SIZES)
def test_lines_do_not_depend_on_chunks(parts, sizes):
    """Every line comes once, with its number and offset, wherever the chunks end."""
    text = b"".join(parts)
    mark = 3 if text.startswith(b"\xef\xbb\xbf") else 0
    expected = text[mark:].split(b"\n")
    if not expected[-1]:
        expected.pop()
    found = rows_of(lines(Cut(text, sizes).read, most_bytes=1000, chunk_bytes=8))
    assert [data for _, _, data in found] == expected
    assert [line for line, _, _ in found] == list(range(1, len(expected) + 1))
    assert all(text[offset : offset + len(data)] == data for _, offset, data in found)


@given(st.lists(st.integers(0, 30), max_size=12), SIZES)
def test_a_line_that_is_too_long_costs_only_itself(lengths, sizes):
    """A line above the cap is one bad row at its line; the others come as they are, at their places."""
    text = b"\n".join(b"x" * length for length in lengths)
    found = rows_of(lines(Cut(text, sizes).read, most_bytes=10, chunk_bytes=8))
    expected = text.split(b"\n")
    if expected and not expected[-1]:
        expected.pop()
    assert [data if isinstance(data, bytes) else "bad" for _, _, data in found] == [
        line if len(line) <= 10 else "bad" for line in expected
    ]
    assert [line for line, _, _ in found] == list(range(1, len(expected) + 1))
    assert all(text[offset : offset + len(data)] == data for _, offset, data in found if isinstance(data, bytes))


def test_a_long_line_is_not_held():
    """Of a line of 50 MB no more than the cap and a chunk is ever held (failures.md row 53)."""
    import tracemalloc

    class Endless:
        left = 50_000_000

        def read(self, count):
            size = min(count, self.left)
            self.left -= size
            return b"x" * size

    tracemalloc.start()
    found = rows_of(lines(Endless().read, most_bytes=1_000_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [type(data) for _, _, data in found] == [Bad]
    assert peak < 4_000_000


@given(st.lists(JSON, max_size=6), SIZES, st.sampled_from([None, 1]), st.booleans())
def test_json_elements_do_not_depend_on_chunks(values, sizes, indent, has_mark):
    """Whatever a JSON list holds and wherever the chunks end, each element comes once, with its own line."""
    text = json.dumps(values, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    text = b"\xef\xbb\xbf" + text if has_mark else text
    found = rows_of(elements(Cut(text, sizes).read, chunk_bytes=8))
    assert [json.loads(data) for _, _, data in found] == values
    at = 0
    for line, _, data in found:
        at = text.index(data, at)
        assert line == 1 + text.count(b"\n", 0, at)
        at += len(data)


@given(st.lists(JSON, max_size=3), SIZES)
def test_what_stands_behind_a_json_list_is_noticed(values, sizes):
    """Wherever the chunks end, a list that goes on behind its end is refused, with the line."""
    text = json.dumps(values, indent=1).encode()
    with pytest.raises(SourceFlaw, match="more after the end") as caught:
        rows_of(elements(Cut(text + b"\n ,", sizes).read, chunk_bytes=8))
    assert caught.value.line == 2 + text.count(b"\n")


@given(st.binary(max_size=60), SIZES)
def test_no_bytes_break_the_splitter(data, sizes):
    """Any bytes give rows or one flaw with a line, and an end."""
    for prefix in (b"", b"["):
        line = 1
        try:
            rows_of(elements(Cut(prefix + data, sizes).read, chunk_bytes=8))
        except SourceFlaw as flaw:
            line = flaw.line
        assert line >= 1


def test_an_element_that_is_too_long_ends_the_reading():
    """An element above the cap is refused at its line and not held."""
    text = b'[1,\n2,\n"' + b"x" * 5000 + b'"]'
    batches = elements(io.BytesIO(text).read, most_bytes=1000, chunk_bytes=100)
    assert [data for _, _, data in next(batches)] == [b"1", b"2"]
    with pytest.raises(SourceFlaw, match="longer than 16 MiB") as caught:
        next(batches)
    assert caught.value.line == 3
