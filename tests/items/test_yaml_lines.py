"""Simple elements of a YAML list are read as a YAML parser reads them, and without it."""

import io
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bulk.items.lines import Given, Row, SourceFlaw
from bulk.items.yaml_lines import SimpleItems
from bulk.items.yaml_text import stream_list

BY_THE_PARSER = "#\ta comment that is not simple\n"
SCALARS = (
    "api", "acme corp", "5", "-5", "0x1f", "1e3", "1e999", ".5", ".nan", "yes", "true", "Null", "~", "2026-11-21",
    "a.b/c", "a,b", "a, b", "a: b", "a:b", "https://a.example/b?c=d", "a #b", "a#b", "#b", "- a", "-a", "a - b",
    "*a", "a *b", "&a", "!a", "a!", "?a", "a?", "a%", "%a", "@a", "a@b", "`a", "[a]", "[", "{}", "{b: c}", "}",
    "a}", "\"a\"", "\"a: b\"", "\"a\\n\"", "\"a", "\"a\"\"b\"", "'a'", "'it''s'", "'a", "''", "\"\"", "'5'", "|",
    ">", "|\n    x", "gr\u00f6\u00dfe", "\u2026", "a\tb", "<<", "...", "---", "x" * 2000, "a  b", "a ", "=", "a=b",
    "a(b) c", ":", "a:", "::", ":a", "\u0007", "\ufeff", "\u2028", "a\n    b", "",
)  # fmt: skip
KEYS = ("a", "b", "c.d", "owner", "1", "a b", '"a"', "-a", "<<", "true", "?", "k" * 1100, "größe", "", "a\n ")
KEY, SCALAR = st.sampled_from(KEYS), st.sampled_from(SCALARS)
GOOD_KEY, GOOD_SCALAR = st.sampled_from(KEYS[:5]), st.sampled_from(SCALARS[:16])
SPACE = st.sampled_from(["", "", "", " ", "\r", " # why", "\t"])


@st.composite
def elements(draw: st.DrawFn, key: st.SearchStrategy[str], scalar: st.SearchStrategy[str]) -> str:
    pairs = [f"{draw(key)}:{' '} {draw(scalar)}".replace(":  ", ": ") for _ in range(draw(st.integers(0, 3)))]
    if draw(st.booleans()):
        return "- {" + ", ".join(pairs) + "}" + draw(SPACE)
    return "- " + "\n  ".join(pair + draw(SPACE) for pair in pairs)


LINE = st.sampled_from(
    [
        "",
        "---",
        "...",
        "# a note",
        "  # a note",
        "   ",
        "-",
        "- - a: b",
        "a: b",
        "  a: b",
        "    a: b",
        " x",
        "%YAML 1.2",
    ]
)
GOOD = elements(GOOD_KEY, GOOD_SCALAR)
TEXT = st.lists(st.one_of(GOOD, GOOD, GOOD, elements(KEY, SCALAR), LINE), max_size=6).map("\n".join)


def read(text: str) -> tuple[list[tuple[int, object]], tuple[str, int, str] | None]:
    """The rows of a text, and the flaw that ended it."""
    rows: list[tuple[int, object]] = []
    try:
        for batch in stream_list(io.BytesIO(text.encode()).read):
            rows += [(line, row) for line, _, row in batch]
    except SourceFlaw as flaw:
        return rows, (flaw.message, flaw.line, flaw.field)
    return rows, None


def moved(row: object, by: int) -> object:
    """A row whose text had `by` lines more before it."""
    return Given(row.value, {name: line - by for name, line in row.lines.items()}) if isinstance(row, Given) else "bad"


@given(TEXT)
@example("---\n- a: 1\n---\n- a: 2\n")
@example("- a: 1\n  # a note\n\n    more\n")
@example("- {a: 1}\n- {a: x\n- {b: 1}\n")
@example("- a: 'x\n- b: 1'\n")
@example("- a: 1\n  a: 2\n")
def test_a_simple_element_is_what_the_parser_says(text: str) -> None:
    """Values, lines of fields and flaws are the same, whatever stands among the simple elements."""
    rows, flaw = read(text)
    expected, other = read(BY_THE_PARSER + text)
    found = [(line, repr(moved(row, 0))) for line, row in rows]
    told = [(line - 1, repr(moved(row, 1))) for line, row in expected]
    assert (found[: len(told)] if flaw else found) == told  # a parser looks ahead, and meets a flaw earlier
    assert (flaw and flaw[1:]) == (other and (other[1] - 1, other[2]))


@pytest.mark.parametrize(
    "elements",
    [
        ["- {owner: acme, repo: api}", "- {owner: acme, repo: 'it is', number: 5}"],
        ["- owner: acme\n  repo: api", "# a note\n\n- owner: acme\n  url: https://a.example/b"],
        ["---\n- repo: größe", '- repo: "5: #"\r', "- repo:"],
    ],
)
def test_what_is_simple_needs_no_parser(elements: Sequence[str]) -> None:
    """Every element is read without it, to the end of the text."""
    lines = "\n".join(elements).split("\n")
    batches: list[list[Row]] = [[(number, 0, line.encode()) for number, line in enumerate(lines, 1)]]
    simple = SimpleItems(lambda text, _line, _name: text)
    stream = simple.stream(iter(batches))
    rows = [row for batch in stream for row in batch]
    assert len(rows) == len(elements)
    assert simple.rows == []
