"""JSON as text: lines of fields, repeated keys, syntax errors with their place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.items.decoding import UNREADABLE, ItemReader, line_of
from bulk.items.json_text import flaw_of, places, refuse_repeats
from bulk.items.lines import SourceFlaw
from tests.items.test_lines import JSON
from tests.manifest.making import ReadThing, thing

KEYS = st.text(st.characters(exclude_characters='.["\\', exclude_categories=["Cs", "Cc"]), min_size=1, max_size=4)
TREE = st.recursive(
    st.none() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)


def paths(value, prefix=""):
    """Every dotted name within a value, in order."""
    yield prefix
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from paths(inner, f"{prefix}.{name}" if prefix else name)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from paths(inner, f"{prefix}[{number}]")


@given(st.dictionaries(KEYS, TREE, max_size=4))
def test_every_field_has_its_line(value):
    """In JSON over many lines each field is found at the line of its key."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    found = places(text.encode())
    wanted = set(paths(value))
    assert wanted <= set(found)
    lines = text.split("\n")
    for name in wanted - {""}:
        key = name.rpartition(".")[2]
        if "[" not in key:
            assert json.dumps(key, ensure_ascii=False) + ":" in lines[found[name] - 1]


def test_the_nearest_line_is_taken():
    """A field that is not there has the line of what is around it."""
    lines = {"": 1, "a": 2, "a[1]": 4}
    assert [line_of(field, lines, 9) for field in ("a.b", "a[1].c.d", "a[1]", "x.y", "")] == [2, 4, 4, 1, 1]
    assert line_of("a", {}, 9) == 9


@given(JSON)
def test_good_json_has_no_flaw(value):
    """What json writes is not refused."""
    assert flaw_of(json.dumps(value).encode()) is None


@given(st.dictionaries(KEYS, st.integers() | st.text(max_size=3), min_size=1, max_size=4), st.data())
def test_a_repeated_key_never_passes(value, data):
    """However an item is spelled, a key that stands twice in one object is refused."""
    text = json.dumps(value)
    key = data.draw(st.sampled_from(sorted(value)))
    spelled = (
        json.dumps(key)
        if data.draw(st.booleans())
        else '"' + "".join(f"\\u{ord(c):04x}" for c in key if ord(c) < 65536) + '"'
    )
    if json.loads(spelled) == key:
        again = text[:-1] + f", {spelled} :1}}"
        with pytest.raises(SourceFlaw):
            refuse_repeats(again.encode())
        flaw = flaw_of(again.encode())
        assert flaw is not None
        assert flaw.field == key
    refuse_repeats(text.encode())


def test_a_repeated_key_is_refused_with_and_without_defaults():
    """msgspec would take the last of two: the reader does not, with `with` and without; equal values are fine."""
    for defaults in ({}, {"number": 1}):
        reader = ItemReader(ReadThing(), defaults)
        for raw in (
            b'{"place":"a","place":"b"}',
            b'{"place":"a","pl\\u0061ce":"b"}',
            b'{"place":"a","person":{"name":"n","email":"e","name":"n"}}',
        ):
            try:
                reader.from_json(raw)
            except UNREADABLE:
                continue
            raise AssertionError(raw)
        assert thing(reader.from_json(b'{"place":"place","path":"place"}')).path == "place"


@given(st.binary(max_size=40))
def test_no_bytes_break_the_explanation(raw):
    """Whatever the reader refuses is explained with a line and words."""
    reader = ItemReader(ReadThing(), {})
    try:
        reader.from_json(raw)
    except UNREADABLE:
        found = reader.explain_json(raw)
        assert found
        assert all(line >= 0 and flaw.message for line, flaw in found)


def test_syntax_errors_have_a_place():
    """Line and column of what is wrong."""
    for raw, line, words in (
        (b'{"a" 1}', 1, "column 6"),
        (b'{"a":\n 1, 2}', 2, "column 5"),
        (b'{"a":1} x', 1, "more after the end"),
        (b'{"a":', 1, "ends too early"),
        (b"", 1, "ends too early"),
        (b'{"a":Infinity}', 1, "no number Infinity"),
        (b'{"a":\n"\xff"}', 2, "0xFF in column 2"),
        (b'{"a":"\n"}', 1, "invalid control character"),
        (b"1" * 5000, 1, "too many digits"),
    ):
        flaw = flaw_of(raw)
        assert flaw is not None
        assert (flaw.line, words in flaw.message) == (line, True), flaw.message
