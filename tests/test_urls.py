"""Paths and queries: encoded once, read back as they were, nothing that climbs or injects (failures.md rows 57, 58)."""

from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.urls import file_path, flaw_of_path, flaw_of_segment, query, segment

NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20) | st.sampled_from(
    ["%2e%2e", "a/b", "a?b", "a#b", "a%00", "..", ".", "\\", "é", "ent:platform", "-", "_x", "a..b", "~", "a b"]
)
SAFE = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=@%")


@given(name=NAMES)
def test_a_segment_is_encoded_once(name: str) -> None:
    """failures.md row 57: it stays one segment, holds only what a path may, and is the same when it is read back."""
    if flaw_of_segment(name):
        with pytest.raises(ValueError, match="leave"):
            segment(name)
        assert name in (".", "..")
        return
    encoded = segment(name)
    assert set(encoded) <= SAFE
    assert encoded not in (".", "..")
    assert unquote(encoded) == name


@pytest.mark.parametrize(
    ("name", "encoded"),
    [
        ("hello-world", "hello-world"), (".github", ".github"), ("a.b_c", "a.b_c"), (7, "7"), ("...", "..."),
        ("ent:platform", "ent%3Aplatform"), ("a/b", "a%2Fb"), ("%2e%2e", "%252e%252e"), ("a b", "a%20b"),
        ("é", "%C3%A9"),
        ("a\\b", "a%5Cb"), ("-._~!$&'()*+,;=@", "-._~!$&'()*+,;=@"), ("?#", "%3F%23"),
    ],
)  # fmt: skip
def test_how_names_look_in_a_path(name: str | int, encoded: str) -> None:
    """What is plain stays as it is, everything else is percent-encoded, also a percent sign."""
    assert segment(name) == encoded


@pytest.mark.parametrize(
    ("name", "flaw"),
    [
        ("", "is empty"), (".", "would leave its folder"), ("..", "would leave its folder"),
        ("a\r\nX: y", "holds a control character"), ("\x00", "holds a control character"),
        ("a\x1f", "holds a control character"), ("\x7f", "holds a control character"),
        ("a\ud800", "holds a lone surrogate, which no file name can carry"),
        ("\udfffa", "holds a lone surrogate, which no file name can carry"),
        ("a ", ""), ("\x80", ""), ("\ud7ff", ""), ("\ue000", ""), ("...", ""),
    ],
)  # fmt: skip
def test_what_can_not_be_a_segment(name: str, flaw: str) -> None:
    """failures.md rows 57, 58: empty, climbing, control characters, lone surrogates; and the neighbours that can."""
    assert flaw_of_segment(name) == flaw
    if flaw:
        with pytest.raises(ValueError, match=flaw.partition(",")[0]):
            segment(name)


@given(parts=st.lists(NAMES.filter(lambda name: "/" not in name and name not in (".", "..")), min_size=1, max_size=5))
def test_the_slashes_of_a_file_path_stay(parts: list[str]) -> None:
    """Each segment is encoded, the slashes between them are not."""
    encoded = file_path("/".join(parts))
    assert [unquote(part) for part in encoded.split("/")] == parts


EMPTY = "has an empty segment (a slash at an end, or two in a row)"


@pytest.mark.parametrize(
    ("path", "flaw"),
    [
        ("a/b.txt", ""), ("a", ""), ("a/../b", "has a segment that would leave its folder"),
        ("/a", "begins with a slash: leave that out, a path counts from the root of the repository"),
        ("a/", EMPTY),
        ("a//b", EMPTY), ("", EMPTY),
        ("a\\b", "holds a backslash"), ("a/\x01", "has a segment that holds a control character"),
    ],
)  # fmt: skip
def test_what_can_not_name_a_file(path: str, flaw: str) -> None:
    """failures.md row 57: said in words, before anything is sent."""
    assert flaw_of_path(path) == flaw


def test_queries() -> None:
    """None is left out, booleans are words of the platform, zero and empty text are values."""
    assert query() == ""
    assert query(ref=None) == ""
    assert (
        query(ref="a b&c", page=0, all=True, no=False, empty="", none=None)
        == "ref=a+b%26c&page=0&all=true&no=false&empty="
    )


@given(value=st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_a_query_is_read_back(value: str) -> None:
    """Whatever the value: one parameter, the same value."""
    assert parse_qsl(query(name=value), keep_blank_values=True) == [("name", value)]
