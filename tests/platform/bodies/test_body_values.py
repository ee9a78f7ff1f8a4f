"""Bodies made into values, and text made safe to show: never an exception, never a page for JSON."""

import unicodedata
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.model import Media
from bulk.platform.bodies.body_values import Unreadable, read_body
from bulk.redaction.printable import JOINERS, printable

JSON, HTML = {"content-type": "application/json"}, {"content-type": "Text/HTML; charset=utf-8"}


@pytest.mark.parametrize(
    ("media", "status", "headers", "raw", "body"),
    [
        (Media.JSON, 200, JSON, b'{"a":1}', {"a": 1}),
        (Media.JSON, 200, JSON, b"", None),
        (Media.JSON, 204, JSON, b'{"a":1}', None),
        (Media.JSON, 205, JSON, b"1", None),
        (Media.JSON, 304, JSON, b"1", None),
        (Media.RAW, 200, JSON, b"<a>", b"<a>"),
        (Media.RAW, 200, JSON, b"", b""),
        (Media.HTML, 299, HTML, b"<a>", b"<a>"),
        (Media.RAW, 404, JSON, b'{"message":"m"}', {"message": "m"}),
        (Media.HTML, 199, JSON, b"[]", []),
        (Media.JSON, 300, JSON, b"<", None),
        (Media.JSON, 502, HTML, b"<html>", None),
        (Media.JSON, 502, HTML, b"{}", None),
        (Media.JSON, 502, {}, b"oops", None),
        (Media.JSON, 200, HTML, b"{}", Unreadable("a web page came instead of JSON")),
        (Media.JSON, 200, {}, b" \n<html>", Unreadable("a web page came instead of JSON")),
        (Media.JSON, 200, JSON, b"\xef\xbb\xbf{}", {}),
        (Media.JSON, 200, JSON, b'"\xff"', Unreadable("it is not UTF-8")),
        (Media.JSON, 200, JSON, b"{", Unreadable("it is not valid JSON")),
        (Media.JSON, 200, JSON, b"NaN", Unreadable("it is not valid JSON")),
    ],
)
def test_what_a_body_becomes(media: Media, status: int, headers: dict[str, str], raw: bytes, body: Any) -> None:
    """failures.md rows 15, 24, 26: values, nothing, or the reason why it can't be used."""
    assert read_body(media, status, headers, raw) == body


@given(
    media=st.sampled_from(Media),
    status=st.integers(100, 599),
    kind=st.sampled_from(["application/json", "text/html", "", "x"]),
    raw=st.binary(max_size=60) | st.sampled_from([b"[" * 3_000, b"9" * 400, b'{"a":1,"a":2}', b"1e999"]),
)
def test_no_body_makes_it_raise(media: Media, status: int, kind: str, raw: bytes) -> None:
    """failures.md row 26: any bytes; and the reason holds nothing of them."""
    body = read_body(media, status, {"content-type": kind}, raw)
    if isinstance(body, Unreadable):
        assert 200 <= status < 300
        assert not body.is_too_large
        assert body.why in {
            "a web page came instead of JSON", "it is not UTF-8",
            "it is not valid JSON",
        }  # fmt: skip
    elif body is not None and not isinstance(body, bytes):
        assert body == orjson.loads(raw)


@given(
    text=st.text(max_size=40) | st.text("\x1b[]0;m\x07\\\x9b\x9c\u202e\u2066 \nab", max_size=40),
    most=st.none() | st.integers(1, 20),
)
def test_what_is_shown_obeys_nothing(text: str, most: int | None) -> None:
    """failures.md row 66: one line, no control, format or unassigned character but joiners; never too long."""
    shown = printable(text, most)
    for char in shown:
        category = unicodedata.category(char)
        assert char in JOINERS or (category[0] != "C" and category not in ("Zl", "Zp"))
        assert char == " " or category != "Zs"
    assert most is None or len(shown) <= most
    assert printable(shown) == shown


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("plain", None, "plain"), ("plain", 5, "plain"), ("plain", 4, "pla…"), ("plain", 1, "…"),
        ("\x1b[31mred\x1b[0m", None, "red"), ("\x9b1;2Hmoved", None, "moved"), ("a\x1b]0;title\x07b", None, "ab"),
        ("a\x1b]0;title\x1b\\b", None, "ab"), ("a\x9dtitle\x9cb", None, "ab"), ("a\x1b]0;never ends", None, "a"),
        ("a\x1bPq\x1b\\b", None, "ab"), ("a\x90q\x9cb", None, "ab"), ("a\x1bcb", None, "ab"), ("a\x1b(Bb", None, "ab"),
        ("a\nb\tc\r\vd\fe", None, "a b c  d e"),
        ("a\u00a0b\u2028c\u3000d", None, "a b c d"), ("a\x00b\x7fc", None, "abc"),
        ("pay\u202egpj", None, "paygpj"), ("a\u200bb\ufeffc\u00add", None, "abcd"),
        ("\u200d\u200c\x00", None, "\u200d\u200c"),
        ("a\ud800b", None, "ab"), ("a\ue000b", None, "ab"), ("a\u0378b", None, "ab"), ("é→漢\x00", None, "é→漢"),
    ],
)  # fmt: skip
def test_how_text_is_shown(text: str, most: int | None, shown: str) -> None:
    """failures.md row 66: sequences and marks are gone, every kind of space is a space, the rest stays."""
    assert printable(text, most) == shown
