"""YAML 1.2 as plain data: what is read, with which lines, and what is refused."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.items.lines import Given, SourceFlaw
from bulk.items.yaml_text import Node, read_document, stream_list
from bulk.operation import ItemFlaw
from tests.items.test_lines import JSON


def read(text: str) -> tuple[Node | None, list[tuple[int, ItemFlaw]]]:
    return read_document(io.BytesIO(text.encode()).read)


def value_of(text):
    node, _ = read(text)
    assert node is not None
    return node.plain()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"), ("yes", "yes"), ("on", "on"), ("NO", "NO"), ("True", True), ("false", False), ("tRue", "tRue"),
        ("~", None), ("null", None), ("", None), ("'null'", "null"), ("''", ""),
        ("5", 5), ("-5", -5), ("010", 10), ("0o10", 8), ("0x1F", 31), ("1_000", "1_000"), ("1:30", "1:30"),
        ("5.", 5.0), (".5", 0.5), ("1e3", 1000.0), ("1e", "1e"), ("1.2.3", "1.2.3"), ("5%", "5%"),
        ("2026-03-10", "2026-03-10"), ("2026-11-21T08:00:00Z", "2026-11-21T08:00:00Z"), ('"5"', "5"),
        ("-", [None]), ("=", "="), (".", "."), ("+", "+"), ('"\\ud83d\\ude00"', "😀"),
    ],
)  # fmt: skip
def test_scalars_are_those_of_yaml_1_2(text, value):
    """Without quotes only null, true, false and plain numbers are not strings (failures.md row 60)."""
    found = value_of(f"a: {text}\n") if text != "-" else {"a": value_of("- \n")}
    assert found["a"] == value
    assert type(found["a"]) is type(value)


@given(JSON)
def test_json_is_yaml(value):
    """Any JSON text is read as what it is."""
    node, repeated = read(json.dumps(value).replace("\x7f", "\\u007f"))
    assert node is not None
    assert node.plain() == value
    assert not repeated


@pytest.mark.parametrize(("text", "value"), [("a: |\n  x", "x"), ("a: |\n  x\n", "x\n"), ("a: |+\n  x\n\n", "x\n\n")])
def test_the_last_line_end_is_what_was_written(text, value):
    """A value at the end of a file ends in a line end only where the file does."""
    assert value_of(text) == {"a": value}


def test_every_value_knows_its_line():
    """Fields of objects, entries of lists and what is within them have the line of their key or start."""
    text = "a: 1\nb:\n  c: [x,\n    y]\n  d:\n    - e: 1\n      f: 2\ng:\n  h\n"
    node, repeated = read(text)
    assert not repeated
    assert node is not None
    assert node.places() == {
        "": 1, "a": 1, "b": 2, "b.c": 3, "b.c[0]": 3, "b.c[1]": 4, "b.d": 5, "b.d[0]": 6, "b.d[0].e": 6, "b.d[0].f": 7,
        "g": 8,
    }  # fmt: skip


def test_repeated_keys_are_all_named():
    """Each key that is given twice is named with its dotted name, its line and where it stood first."""
    _, repeated = read("a: 1\nb: {c: 1, c: 2}\na: 2\n")
    assert [(line, flaw.field, flaw.message) for line, flaw in repeated] == [
        (2, "b.c", "given twice; first on line 2"),
        (3, "a", "given twice; first on line 1"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: .nan", 1, "JSON has no such number"),
        ("a: -.inf", 1, "JSON has no such number"),
        ("a: 1e999", 1, "too large"),
        ('a: "\\ud800"', 1, "lone surrogate"),
        ('"\\ud800": a', 1, "lone surrogate"),
        ("a:\n  ? [x]\n  : y", 2, "a key must be a word"),
        ("a:\n  ? {x: 1}\n  : y", 2, "a key must be a word"),
        ("a: &x 1", 1, "anchors"),
        ("&x a: 1", 1, "anchors"),
        ("a: !!str 1", 1, "tags"),
        ("a: !<tag:x> 1", 1, "tags"),
        ("%TAG ! tag:x:\n--- \na: 1", 2, "directives"),
        ("a: \x07", 1, "U+0007"),
        ("a: \x07\nb: 1\nc: 2\n", 1, "U+0007"),
        ("a: 1\nb: \x07\nc: 2\n", 2, "U+0007"),
        ("a: 'x", 1, "not YAML"),
        ('a: "\\x"', 1, "not YAML"),
        ('a: "\\UFFFFFFFF"', 1, "not YAML"),
        ("%YAML 9.9\n---\na: 1", 1, ""),
    ],
)
def test_what_is_dangerous_or_unclear_is_refused(text, line, words):
    """Each is refused with its line, before anything is built from it."""
    with pytest.raises(SourceFlaw) as caught:
        read(text)
    assert words in caught.value.message
    assert caught.value.line in (line, line + 1) if "YAML" in words or not words else caught.value.line == line


@given(st.text(max_size=40))
def test_no_text_breaks_the_reader(text):
    """Any text is a document or a flaw with a line."""
    try:
        read(text)
    except SourceFlaw as error:
        flaw = error
    else:
        return
    assert flaw.line >= 1
    assert flaw.message


def test_a_list_is_streamed():
    """The elements of a list come one by one, before the rest is read."""

    class Endless:
        number = 0

        def read(self, count):
            self.number += 1
            return f"- {{a: {self.number}}}\n".encode()

    source = Endless()
    elements = stream_list(source.read)
    assert [next(elements) for _ in range(3)] == [
        [(number, 0, Given({"a": number}, {"": number, "a": number}))] for number in (1, 2, 3)
    ]
    assert source.number < 20
