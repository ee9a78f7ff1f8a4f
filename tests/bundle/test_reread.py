"""Where items are read again: any job at any time, with few files open."""

import hashlib
import json
from pathlib import Path

import pytest

from bulk.bundle.reread import OPEN_MOST, Places
from bulk.errors import RunDirectoryError
from bulk.manifest.manifest import CheckedFile
from tests.manifest.making import ThingItem, WriteThing, a_job, check_in


def open_files() -> int:
    """Of this process (count)."""
    return sum(1 for _ in Path("/dev/fd").iterdir())


def test_few_sources_are_open_and_all_can_be_read(tmp_path):
    """Of three times as many jobs as may be open items are read in turns: items and hashes of files are right."""
    count, spots = 3 * OPEN_MOST, {}
    jobs = []
    for number in range(count):
        (tmp_path / f"{number}.txt").write_text(f"text {number}")
        lines = [json.dumps({"place": f"{number}-{item}", "text_file": f"{number}.txt"}) for item in range(3)]
        (tmp_path / f"{number}.jsonl").write_text("\n".join(lines) + "\n")
        spots[number] = [(item, sum(len(line) + 1 for line in lines[:item]), len(lines[item])) for item in range(3)]
        jobs.append(a_job(WriteThing(), tmp_path / f"{number}.jsonl", number=number, name=f"j{number}"))
    checked, workspace = check_in(tmp_path, *jobs)
    places, before, most = Places(checked, workspace), open_files(), 0
    for item in (0, 2, 1):
        for number in range(count):
            entry = places.of(number).entry(*spots[number][item])
            most = max(most, open_files())
            assert (entry.job, entry.index) == (number, item)
            assert entry.item == ThingItem(place=f"{number}-{item}", text_file=f"{number}.txt")
            assert entry.files == {"text_file": CheckedFile(hashlib.sha256(f"text {number}".encode()).digest())}
    assert before + OPEN_MOST <= most <= before + 2 * OPEN_MOST + 1
    places.close()
    assert open_files() == before


def test_a_source_that_is_gone_is_told(tmp_path):
    """What can't be opened is said as that, not as an edit."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"place": "a"}\n')
    checked, workspace = check_in(tmp_path, a_job(WriteThing(), path))
    path.unlink()
    with pytest.raises(RunDirectoryError, match=r"a\.jsonl: its items are needed to go on: there is no such file"):
        Places(checked, workspace).of(0).entry(0, 0, 14)


@pytest.mark.parametrize("portion", [(1,), (3, 1), (4, 2, 0)])
def test_what_was_edited_after_it_was_opened_is_never_read_as_something_else(tmp_path, portion):
    """The file has the same size and is open already: each portion that is read anew is looked at before any of its
    items is given out."""
    path = tmp_path / "a.jsonl"
    line, many = '{"place": "%d"}\n', 5
    path.write_text("".join(line % number for number in range(many)))
    checked, workspace = check_in(tmp_path, a_job(WriteThing(), path))
    places, size = Places(checked, workspace), len(line % 0)
    place = places.of(0)
    at = {number: (number, number * size, size - 1) for number in range(many)}
    assert [entry.item for entry in place.entries([at[2]])] == [ThingItem(place="2")]
    with path.open("r+") as file:
        file.write((line % 9) * many)
    with pytest.raises(RunDirectoryError, match=r"a\.jsonl"):
        place.entries([at[number] for number in portion])
    places.close()
