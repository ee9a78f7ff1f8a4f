"""CSV: cells become what their fields are, quoting is strict, and what the csv module writes is read back."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.items.csv_rows import rows
from bulk.items.lines import Bad, Given, lines
from tests.manifest.making import ReadThing, SecretThing


def read(text, operation=None, chunk=7):
    """(line, value or flaws) of every row."""
    file = io.BytesIO(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    batches = rows(lines(file.read, chunk_bytes=chunk), operation or ReadThing())
    return [(line, data.value if isinstance(data, Given) else data) for batch in batches for line, _, data in batch]


CELL = st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=6)


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=6), st.integers(1, 9), st.booleans())
def test_what_the_csv_module_writes_is_read_back(table, chunk, quotes_all):
    """Any text survives quoting, line breaks within cells too; an empty cell is a field not given."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL if quotes_all else csv.QUOTE_MINIMAL)
    writer.writerow(["place", "path", "person.name"])
    writer.writerows(table)
    expected = []
    for place, path, name in table:
        item = {"place": place, "path": path, "person": {"name": name} if name else ""}
        expected.append({field: value for field, value in item.items() if value})
    assert [value for _, value in read(file.getvalue(), chunk=chunk)] == expected


def test_cells_become_what_their_fields_are():
    """Numbers, booleans, JSON and text are told apart by the field, not by how the cell looks."""
    head = "place,number,share,is_new,kind,tags,person.name,person.email,extra.a,anything,short\r\n"
    row = '5,5,0.5,TRUE,small,"[""a"",""b""]",true,7,8,"{""x"": [1]}",[x]\r\n'
    assert read(head + row) == [
        (
            2,
            {
                "place": "5",
                "number": 5,
                "share": 0.5,
                "is_new": True,
                "kind": "small",
                "tags": ["a", "b"],
                "person": {"name": "true", "email": "7"},
                "extra": {"a": "8"},
                "anything": {"x": [1]},
                "short": "[x]",
            },
        )
    ]


def test_json_cells_need_no_quotes_while_they_hold_no_comma():
    """A cell of JSON may stand as it is."""
    assert read('place,tags\na,["x"]\n') == [(2, {"place": "a", "tags": ["x"]})]


def test_rows_count_lines_and_blank_ones_are_no_items():
    """A row's line is where it begins, also behind cells with line breaks, blank lines and a byte order mark."""
    found = read('\ufeffplace,path\n\na,"x\ny"\n   \nb\n')
    assert found == [(3, {"place": "a", "path": "x\ny"}), (6, {"place": "b"})]


@pytest.mark.parametrize("cell", ["5.0", "1_000", "", "0x5", "five", "٣", "5 5"])
def test_a_whole_number_is_nothing_else(cell):
    """Only digits with a sign are a whole number, whatever Python's int() would take."""
    (_, found) = read(f"place,number\na,{cell}\n")[0]
    assert found == {"place": "a"} if not cell else "expected a whole number" in found.flaws[0][1].message


@pytest.mark.parametrize("cell", ["nan", "1e999", "inf", "1_0.5", "0x1p3"])
def test_a_number_is_one_that_json_can_carry(cell):
    """No NaN, no infinity, no Python spelling."""
    assert "expected a number" in read(f"place,share\na,{cell}\n")[0][1].flaws[0][1].message


def test_a_bad_cell_of_a_secret_is_not_shown():
    """A flaw of a secret field does not repeat the cell; others do, cut and escaped."""
    operation = SecretThing()
    found = read("place,number\na,\x1b[31mhunter2\n")[0][1]
    assert isinstance(found, Bad)
    assert "\\x1b" in found.flaws[0][1].message
    object.__setattr__(operation, "secret_fields", frozenset({"number"}))
    assert "hunter2" not in read("place,number\na,hunter2\n", operation)[0][1].flaws[0][1].message


@given(st.text(st.sampled_from('a,"[{]}\n'), max_size=12))
def test_no_row_breaks_the_parser(text):
    """Any row is an item or a reason with its line."""
    for line, found in read(f"place,path,anything\n{text}"):
        assert line >= 2
        assert isinstance(found, dict) or all(at >= 2 and flaw.message for at, flaw in found.flaws)


def test_an_open_quote_is_told_at_its_own_line():
    """The rest of the file is not blamed for a quote that nobody closed."""
    assert read('place\na\n"b\nc\nd\n')[-1][0] == 3


@pytest.mark.parametrize(
    ("head", "field", "words"),
    [
        ("place,person,person.name", "person.name", "another column gives whole"),
        ("place,,path", "", "column 2 has no name"),
        ("place,person.nam", "person.nam", "did you mean name?"),
        ("place,place.x", "place.x", "a field of an object"),
        ("place,number.x", "number.x", "unknown field"),
    ],
)
def test_a_bad_header_is_told_once(head, field, words):
    """Columns that fit no field are flaws of line 1, and no row is blamed for them."""
    found = read(f"{head}\n1,2,3\n4,5,6\n")
    assert len(found) == 1
    assert [(line, flaw.field) for line, flaw in found[0][1].flaws] == [(1, field)]
    assert words in found[0][1].flaws[0][1].message
