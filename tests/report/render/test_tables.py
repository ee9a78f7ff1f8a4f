"""Result lines as tables: nothing that a spreadsheet runs, nothing lost in JSON lines, everything streamed."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.errors import UsageError
from bulk.model import OutcomeKind
from bulk.report.render import tables
from tests.report.ledgers import finished

FORMULAS = "=+-@＝＋－＠"
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters() | st.sampled_from(FORMULAS + "\t\r\n \u00a0\u200b\u200c0123456789.e\x00\x1b"))
    | st.sampled_from(
        ["=1+1", "\t=cmd()", "\u200b@SUM(A1)", " -2+3", "-5", "+49", "1e5", "＝HYPERLINK(1)", "-", "+1-1"]
    )
)


@given(value=scalars)
def test_no_cell_is_a_formula(value):
    """Whatever it holds, a cell begins with no character that starts a formula, unless it is a number
    (failures.md row 65)."""
    shown = tables.cell(value)
    if isinstance(shown, int | float):
        assert shown == value
        return
    first = shown.lstrip()[:1]
    if first and first in FORMULAS:
        float(shown)
    assert "\x1b" not in shown


@pytest.mark.parametrize("number", [-5, 0, 12.5, -0.001, "-5", "+49", "-1.5e-7", ".5", "007"])
def test_numbers_stay_numbers(number):
    """Negative numbers, and texts that are nothing but a number, are untouched (failures.md row 65)."""
    assert tables.cell(number) == number


@pytest.mark.parametrize(
    "text", ["=1+1", "@x", "-2+3", "+a", "\t=1", "\r=1", "＝1", "－x", " =1", "\u202e=1", "-", "1-1", "a=b"]
)
def test_formulas_get_an_apostrophe(text):
    """What a spreadsheet would run is shown instead; what only contains a sign is left alone."""
    shown = tables.cell(text)
    assert isinstance(shown, str)
    assert shown.startswith("'") == (text not in ("1-1", "a=b"))


def _csv(view, only=None):
    out = io.BytesIO()
    number = tables.write_csv(view, out, only)
    rows = list(csv.DictReader(io.StringIO(out.getvalue().decode(), newline="")))
    assert len(rows) == number
    return rows


@pytest.fixture
def view(new_run):
    """Three jobs' worth of outcomes, with hostile and awkward fields."""
    items = [
        finished(
            0,
            item={
                "owner": "=cmd()",
                "committer": {"name": "A;=1+1\nB"},
                "n": -4,
                "deep": {"a": {"b": {"c": {"d": 1}}}},
            },
        ),
        finished(1, "failed", message='said "=x", then\r\n@y', id="-mine"),
        finished(2, "unknown", code="unknown_outcome", message="lost"),
        finished(3, "unchanged", result=["a"] * 20_000, item={"late": [1, 2]}),
    ]
    return new_run(readmes=4).epoch(items, exit_code=6)


def test_csv_has_a_column_for_every_field(view):
    """Items of different fields share one table; objects become dotted columns, lists and results JSON."""
    first, second, third, fourth = _csv(view)
    assert (first["item.owner"], first["item.committer.name"], first["item.n"]) == ("'=cmd()", "A;=1+1 B", "-4")
    assert json.loads(first["item.deep.a.b.c"]) == {"d": 1}
    assert (first["outcome"], first["http_status"], json.loads(first["result"])) == ("succeeded", "200", {"size": 3})
    assert (second["id"], second["error_code"], second["item.late"]) == ("'-mine", "not_found", "")
    assert second["error_message"] == 'said "=x", then  @y'
    assert third["error_message"] == "lost"
    assert json.loads(fourth["item.late"]) == [1, 2]
    assert fourth["result"].endswith("see results.jsonl)")
    assert [row["index"] for row in (first, second, third, fourth)] == ["0", "1", "2", "3"]


def test_csv_text_is_quoted(view):
    """Texts are quoted even where they need not be, so that another separator splits no cell in two."""
    out = io.BytesIO()
    tables.write_csv(view, out)
    assert b'"A;=1+1 B"' in out.getvalue()
    assert b",-4," in out.getvalue()


def test_only_filters_every_table(view):
    """`--only` keeps the outcomes that it names, in CSV, JSON lines and the list."""
    only = tables.parse_only("failed, Unknown")
    assert only == {OutcomeKind.FAILED, OutcomeKind.UNKNOWN}
    assert [row["outcome"] for row in _csv(view, only)] == ["failed", "unknown"]
    lines, listed = io.BytesIO(), io.BytesIO()
    assert tables.write_jsonl(view, lines, only) == tables.write_list(view, listed, only) == 2
    assert [json.loads(line)["outcome"] for line in lines.getvalue().splitlines()] == ["failed", "unknown"]
    assert listed.getvalue().decode().splitlines()[1].startswith("unknown readmes #2 acme/r2: unknown_outcome: lost")


def test_json_lines_are_those_of_the_run(view):
    """JSON lines are byte for byte the current lines of `results.jsonl`: nothing is escaped or lost there
    (failures.md row 65)."""
    out = io.BytesIO()
    assert tables.write_jsonl(view, out) == 4
    assert out.getvalue() == (view.run_dir / "results.jsonl").read_bytes()


def test_the_list_is_safe_on_a_terminal(new_run):
    """The list has one line for each item whatever its names hold (failures.md row 66)."""
    item = {"owner": "\x1b[2Ja\nb", "repo": "\u202etxt"}
    view = new_run(readmes=1).epoch([finished(0, "failed", item=item, message="\x1b]0;t\x07x", id="\r\x9b1m")])
    out = io.BytesIO()
    tables.write_list(view, out)
    shown = out.getvalue().decode()
    assert shown.count("\n") == 1
    assert all(char.isprintable() or char == "\n" for char in shown)


@pytest.mark.parametrize("text", ["", ",", "broken", "failed;unknown", "\x1b[31m"])
def test_only_names_outcomes(text):
    """Anything but outcomes is refused with what was expected."""
    with pytest.raises(UsageError, match="succeeded, unchanged, failed, skipped, unknown") as refused:
        tables.parse_only(text)
    assert str(refused.value).isprintable()


def test_columns_are_bounded(new_run):
    """Items with thousands of different fields make a table of at most 200 item columns."""
    items = [finished(index, item={f"f{index}_{number}": number for number in range(30)}) for index in range(20)]
    rows = _csv(new_run(readmes=20).epoch(items))
    assert sum(name.startswith("item.") for name in rows[0]) == tables.MOST_COLUMNS
