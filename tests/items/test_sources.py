"""Every kind of items file gives the same items, read twice, compressed or not."""

import gzip
import io
import itertools
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from bulk.bundle.checked import MOST_MARKS, Checked, Marks, load_checked
from bulk.bundle.streams import EntryStream
from bulk.errors import ManifestError, RunDirectoryError
from bulk.items.lines import SourceFlaw
from bulk.items.sources import ItemsFile, _expanded, digest_of, format_of
from tests.manifest.making import Person, ReadThing, WriteThing, a_job, check_in, lanes_of, stream, thing

ITEMS = [{"place": f"p{number}", "number": number, "person": {"name": "é", "email": 'x,\n"y'}} for number in range(7)]
JSONL = "".join(json.dumps(item) + "\n" for item in ITEMS)
CSV = "place,number,person.name,person.email\n" + "".join(f'p{n},{n},é,"x,\n""y"\n' for n in range(7))
YAML = '- place: p{0}\n  number: {0}\n  person: {{name: é, email: "x,\\n\\"y"}}\n'
TEXTS = {
    "a.jsonl": JSONL,
    "b.ndjson": "\n\n" + JSONL.replace("\n", "\r\n\r\n").rstrip(),
    "c.json": json.dumps(ITEMS),
    "d.json": "\ufeff" + json.dumps(ITEMS, indent=2, ensure_ascii=False) + "\n",
    "e.csv": CSV,
    "f.csv": "\ufeff" + CSV.replace("\n", "\r\n").replace("x,\r\n", "x,\n").rstrip(),
    "g.yaml": json.dumps(ITEMS),
    "h.yml": "\ufeff" + "".join(map(YAML.format, range(7))),
}
PACKED = {
    "": lambda data: data,
    ".gz": lambda data: gzip.compress(data[:50]) + gzip.compress(data[50:]),
    ".zst": lambda data: b"".join(zstandard.ZstdCompressor().compress(part) for part in (data[:50], b"", data[50:])),
}


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("name", TEXTS)
def test_every_format_gives_the_same_items(tmp_path, name, packing):
    """JSON lines, JSON, CSV and YAML, plain, gzip and zstd: the same items, for reads and writes, once and again."""
    path = tmp_path / (name + packing)
    path.write_bytes(PACKED[packing](TEXTS[name].encode()))
    read, write = a_job(ReadThing(), path), a_job(WriteThing(), path, number=1, name="y")
    checked, workspace = check_in(tmp_path, read, write)
    assert [job.items for job in checked.jobs] == [7, 7]
    for _ in range(2):
        for number in (0, 1):
            entries = stream(checked, workspace, number)
            assert [entry.index for entry in entries] == list(range(7))
            assert [thing(entry).place for entry in entries] == [item["place"] for item in ITEMS]
            assert [thing(entry).person for entry in entries] == [Person(name="é", email='x,\n"y')] * 7
        assert [label for _, label, _ in lanes_of(checked, workspace)] == [item["place"] for item in ITEMS]


@pytest.mark.parametrize("name", ["a.txt", "a", "gz", "a.gz", "a.jsonl.bz2", "jsonl", ".jsonl", ""])
def test_other_names_are_refused(tmp_path, name):
    """A name that does not say what the file holds is refused with what was expected."""
    with pytest.raises(ValueError, match="expected the name of a "):
        format_of(tmp_path / name)


FRAMES: dict[str, tuple[Callable[[bytes], bytes], Callable[[], Any]]] = {
    "gzip": (gzip.compress, lambda: zlib.decompressobj(31)),
    "zstd": (zstandard.ZstdCompressor().compress, zstandard.ZstdDecompressor().decompressobj),
}


@given(st.binary(max_size=3000), st.integers(1, 700), st.sampled_from(sorted(FRAMES)))
def test_compressed_data_in_small_steps(data, count, kind):
    """Frames in a row come out whole, in whatever parts they are read, and with zeros behind; a cut one is noticed."""
    compress, frame_of = FRAMES[kind]
    packed = compress(data) + compress(data[::-1])
    whole, cut = io.BytesIO(packed + b"\0" * count), io.BytesIO(packed[:-1])
    assert b"".join(_expanded(lambda _: whole.read(count), frame_of, kind)) == data + data[::-1]
    with pytest.raises(SourceFlaw, match="ends too early"):
        list(_expanded(lambda _: cut.read(count), frame_of, kind))


@pytest.mark.parametrize("packing", [".gz", ".zst"])
def test_a_bomb_does_not_fill_the_memory(tmp_path, packing):
    """A gigabyte in one line is refused at the line's cap, with little memory (failures.md row 29)."""
    import resource

    path = tmp_path / f"a.jsonl{packing}"
    block = b" " * (1 << 20)
    if packing == ".gz":
        with gzip.open(path, "wb", compresslevel=1) as file:
            for _ in range(200):
                file.write(block)
    else:
        with zstandard.open(path, "wb") as file:
            for _ in range(1024):
                file.write(block)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ManifestError, match=r"a\.jsonl\.(gz|zst):1: longer than 16 MiB"):
        check_in(tmp_path, a_job(ReadThing(), path))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_the_hash_is_of_the_whole_file(tmp_path):
    """Size, time and hash are those of the file as it lies there, even where only its first items are read."""
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(JSONL.encode()))
    checked, _ = check_in(tmp_path, a_job(ReadThing(), path), limit=1)
    source = checked.jobs[0].source
    assert source is not None
    assert (source.size, source.mtime_ns, source.sha256) == digest_of(path)
    assert checked.jobs[0].items == 1


def test_a_fifo_is_not_waited_for(tmp_path):
    """Only regular files are read: a FIFO is refused at once."""
    os.mkfifo(tmp_path / "a.jsonl")
    with pytest.raises(ManifestError, match="is not a regular file"):
        check_in(tmp_path, a_job(ReadThing(), tmp_path / "a.jsonl"))


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path):
    """What was checked is what was hashed: a file that grows meanwhile is refused."""
    path = tmp_path / "a.jsonl"
    path.write_text(JSONL)
    with ItemsFile(path, ReadThing()) as file:
        list(file.rows())
        with path.open("a") as more:
            more.write("\n")
        with pytest.raises(SourceFlaw, match="changed while it was read"):
            file.finish()


@pytest.mark.parametrize("operation", [ReadThing(), WriteThing()])
def test_a_source_that_changes_during_the_run_stops_it(tmp_path, operation):
    """A worker never gets an item that was not checked: the run stops with exit 5 (failures.md row 55)."""
    path = tmp_path / "a.jsonl"
    path.write_text(JSONL)
    checked, workspace = check_in(tmp_path, a_job(operation, path))
    source = EntryStream(checked, 0, workspace)
    assert len(source.take(2, lambda index: index) or ()) == 2
    path.write_text(JSONL.replace("p5", "q5") + "\n")
    with pytest.raises(RunDirectoryError, match="edited while it was in use"):
        source.take(2, lambda index: index)
    with pytest.raises(RunDirectoryError, match="edited while it was in use"):
        EntryStream(checked, 0, workspace).take(2, lambda index: index)
    if not operation.is_read:
        with pytest.raises(RunDirectoryError, match="edited while it was in use"):
            lanes_of(checked, workspace)
    path.unlink()
    with pytest.raises(RunDirectoryError, match="there is no such file"):
        EntryStream(checked, 0, workspace).take(2, lambda index: index)


def test_what_is_done_is_passed_by(tmp_path):
    """A stream gives the items that are not done, in order, with their own numbers, and then nothing."""
    path = tmp_path / "a.jsonl"
    path.write_text(JSONL)
    checked, workspace = check_in(tmp_path, a_job(ReadThing(), path))
    source = EntryStream(checked, 0, workspace)

    def next_left(index: int) -> int:
        return next((left for left in (3, 4, 6) if left >= index), 7)

    found = [source.take(2, next_left) or [], source.take(2, next_left) or []]
    assert [[entry.index for entry in some] for some in found] == [[3, 4], [6]]
    assert source.take(2, next_left) == []
    assert source.take(2, next_left) == []


def far_items(tmp_path: Path, name: str, count: int) -> tuple[Checked, Path]:
    """A checked job of `count` items, of some 40 bytes each, in a file of that name."""
    path = tmp_path / name
    text = "".join(f'{{"place":"place-{number:020}"}}\n' for number in range(count)).encode()
    path.write_bytes(gzip.compress(text, 1) if name.endswith(".gz") else text)
    return check_in(tmp_path, a_job(ReadThing(), path))


def test_what_is_done_is_jumped_over(tmp_path):
    """The check keeps offsets of JSON lines here and there: an item behind many done ones is read from the nearest."""
    checked, workspace = far_items(tmp_path, "a.jsonl", 40_000)
    assert load_checked(checked.manifest, workspace) == checked
    assert checked.jobs[0].source is not None
    assert len(checked.jobs[0].source.marks) >= 4
    left = [20, 9_000, 9_001, 39_999]
    source = EntryStream(checked, 0, workspace)
    found = source.take(10, lambda index: next((one for one in left if one >= index), 40_000), near=20_000)
    assert found is not None
    assert [(entry.index, entry.item) for entry in found] == [
        (number, ReadThing.Item(place=f"place-{number:020}")) for number in left
    ]


def test_a_far_item_without_an_offset_is_looked_for_in_parts(tmp_path):
    """Where a source has no offsets, no call passes by more rows than `near`, and nothing is read twice."""
    checked, workspace = far_items(tmp_path, "a.jsonl.gz", 3_000)
    source = EntryStream(checked, 0, workspace)

    def next_left(index: int) -> int:
        return 5 if index <= 5 else max(index, 2_995)

    first = source.take(2, next_left, near=1_000)
    assert [entry.index for entry in first or ()] == [5]
    assert source.take(2, next_left, near=1_000) is None
    later = source.take(2, next_left, near=1_000)
    assert [entry.index for entry in later or ()] == [2_995, 2_996]


@given(batches=st.integers(0, 5 * MOST_MARKS))
def test_marks_are_few_and_evenly_spread(batches: int) -> None:
    """However long a source is, at most `MOST_MARKS` places are kept, in order, at one distance, from the beginning."""
    marks = Marks()
    for number in range(batches):
        marks.add(number * 10, number * 400)
    kept = marks.kept
    assert len(kept) <= MOST_MARKS
    steps = {after[0] - before[0] for before, after in itertools.pairwise(kept)}
    assert len(steps) <= 1
    assert batches == 0 or kept[0] == (0, 0)
    assert len(kept) >= min(batches, MOST_MARKS // 2)
