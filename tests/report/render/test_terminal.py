"""Nothing that a terminal obeys gets through (failures.md row 66)."""

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.report.render.terminal import Ink, column, cut, safe, wants_colour, width, wrapped

hostile = st.text(
    st.characters() | st.sampled_from("\x1b\x9b\x9d\x07\x00\r\n\t]0;[31m\u202e\u2066\u200f\u200b\u2028\ufeff\x7f\x85")
)


@given(text=hostile)
def test_what_is_safe_holds_nothing_that_acts(text):
    """No control character, escape, bidirectional mark, invisible or lone surrogate survives; it is one line."""
    shown = safe(text)
    for char in shown:
        assert unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp")
        assert unicodedata.category(char) != "Cf" or char in "\u200c\u200d"
        assert unicodedata.bidirectional(char) not in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    assert len(shown.splitlines()) <= 1
    shown.encode()
    assert safe(shown) == shown


@given(text=st.text(st.characters(categories=("L", "N", "P", "S"))))
def test_plain_text_is_untouched(text):
    """Letters, digits, punctuation and symbols of every script stay as they are."""
    assert safe(text) == text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[2J\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07name", "name"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("\x1bP1$r0m\x1b\\x", "x"),
        ("\x1b]0;never ends", ""),
        ("exe.gpj\u202e", "exe.gpj"),
        ("a\r\nb\tc", "a  b c"),
        ("zero\u200bwidth", "zerowidth"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("\ud800", ""),
    ],
)
def test_sequences_go_as_a_whole(raw, shown):
    """An escape sequence goes with its parameters and its text, so that no residue is read as part of a name."""
    assert safe(raw) == shown


@given(text=hostile, columns=st.integers(1, 40))
def test_a_column_is_exactly_as_wide(text, columns):
    """Cut and padded text takes the columns that it was given, also with wide characters."""
    assert width(column(text, columns)) == columns
    assert width(column(text, columns, is_right=True)) == columns
    assert width(cut(text, columns)) <= columns


@given(text=st.text(), columns=st.integers(20, 60), indent=st.sampled_from(["", "  "]))
def test_wrapping_loses_nothing(text, columns, indent):
    """Wrapped text fits, and has the same characters in the same order."""
    lines = list(wrapped(text, columns, indent))
    assert all(width(line) <= columns for line in lines)
    assert "".join("".join(lines).split()) == "".join(safe(text).split())


def test_wide_characters_count_twice():
    """East Asian characters take two columns, combining marks none."""
    assert (width("漢字"), width("e\u0301"), width("abc")) == (4, 1, 3)
    assert column("漢字", 3) == "漢…"
    assert safe("abcdef", 4) == "abc…"


class _Stream(io.StringIO):
    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def isatty(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "environ", "expected"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (False, {}, False),
        (ValueError("I/O operation on closed file"), {}, False),
    ],
)
def test_colour_is_for_terminals(answer, environ, expected):
    """Colour appears on a terminal only, never where NO_COLOR is set, and a closed stream is not a terminal."""
    assert wants_colour(_Stream(answer), environ) is expected


def test_ink_without_colour_is_invisible():
    """Without colour a text comes back as it was."""
    assert Ink(is_on=False)("bad", "x") == "x"
    assert Ink(is_on=True)("bad", "x") == "\x1b[31mx\x1b[0m"
