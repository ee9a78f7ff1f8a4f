"""The file of lines that is looked at for what types don't foresee."""

import json

import pytest

from benchmarks.audits import tables
from bulk.audit.tables import source
from bulk.audit.tables.source import sample_of
from bulk.audit.tables.writing import answering

BLOCK = 256
SIZES = [*range(20, 90, 7), 3 * BLOCK, *range(20, 90, 7), 9 * BLOCK]


@pytest.fixture
def small(monkeypatch):
    """So that few lines are many."""
    for name, value in (("WHOLE_BYTES", 4 * BLOCK), ("BLOCK_BYTES", BLOCK), ("EVERY", 3), ("MOST_BLOCKS", 8)):
        monkeypatch.setattr(source, name, value)


@pytest.mark.parametrize("count", [10, 30, 40, 60, 200, 5_000])
def test_a_sample_holds_whole_lines(tmp_path, small, count):
    """The first ones, and of the others about a third, or as many as fit; all of them where they are few."""
    path = tmp_path / "results.jsonl"
    lines = [json.dumps({"index": number, "x": "x" * SIZES[number % len(SIZES)]}) for number in range(count)]
    path.write_text("".join(f"{line}\n" for line in lines))
    whole = path.stat().st_size <= 4 * BLOCK
    with sample_of(path) as sample:
        assert (sample == path) == whole
        found = sample.read_text().splitlines()
    numbers = [json.loads(line)["index"] for line in found]
    assert [lines[number] for number in numbers] == found
    assert numbers == sorted(set(numbers))
    first = next((place for place, number in enumerate(numbers) if place != number), len(numbers))
    assert sum(len(line) + 1 for line in found[:first]) >= min(4 * BLOCK, path.stat().st_size)
    size = sum(len(line) + 1 for line in found)
    assert size <= 4 * BLOCK + 8 * BLOCK + 9 * max(len(line) + 1 for line in lines)
    assert whole or numbers[-1] >= count / 2
    assert not sample.exists() or whole


def test_without_room_for_a_sample_all_lines_are_looked_at(tmp_path, small, monkeypatch):
    """The disk for files that are needed for a while is full, or its path is one that can't be used."""
    path = tmp_path / "results.jsonl"
    path.write_text('{"index": 1}\n' * 1_000)

    places = tmp_path / "for a while"
    places.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(places))

    def full(*_):
        assert [*places.iterdir()]
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(source, "_copy_lines", full)
        with sample_of(path) as sample:
            assert (sample, [*places.iterdir()]) == (path, [])
    with sample_of(path) as sample:
        assert sample.is_relative_to(places)
    assert not [*places.iterdir()]
    odd = tmp_path / "a[b]"
    odd.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(odd))
    with sample_of(path) as sample:
        assert sample == path


def test_what_is_not_foreseen_is_found_in_a_sample(tmp_path, small, monkeypatch):
    """A field of every result, and a value of another type in the first of them; a line that is damaged is none of
    the sample's."""

    def odd(number):
        return {**tables.readme(number), "size": "large" if number == 1 else 7, "odd": number}

    monkeypatch.setitem(tables.KINDS, "readme.get", (odd, tables.KINDS["readme.get"][1]))
    view = tables.made(tmp_path / "run", "readme.get", 400)
    path = tmp_path / "run" / "results.jsonl"
    at = path.read_bytes().index(b'"name"')
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\n")  # neither half of the first line is JSON
    with answering(view, "SELECT field, problem, count FROM schema_drift ORDER BY field") as answer:
        rows = [row for line in answer for row in line.get("rows", ())]
    (field, problem, count), *more = rows
    assert (field, problem, more) == ("result.odd", "unknown", [["result.size", "type", 1]])
    assert 5 <= count <= 20
