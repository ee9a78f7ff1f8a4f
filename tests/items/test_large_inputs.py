"""What is read costs time in proportion to its size, and little memory, however odd it is; or it is refused by name.

The sizes are chosen so that a reader that looks at everything again for each part takes minutes.
"""

import io
import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bulk.errors import ManifestError
from bulk.flaws import unknown_name
from bulk.items import csv_rows, json_text
from bulk.items.lines import CHUNK_BYTES, MOST_LINE_BYTES, Bad, Given, lines
from bulk.items.yaml_text import stream_list
from bulk.manifest.reading import Overrides, read_manifest
from tests.manifest.making import ReadThing

MOST_S = 5.0
"""Processor time that each of these may take; they take a tenth of it (seconds)."""


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    before = time.process_time()
    yield
    assert time.process_time() - before < MOST_S


def bad_rows(text: bytes, block: int = CHUNK_BYTES) -> list[tuple[int, str]]:
    """The lines and flaws of CSV text, fed in blocks."""
    found = []
    for batch in csv_rows.rows(lines(io.BytesIO(text).read, chunk_bytes=block), ReadThing()):
        for _, _, data in batch:
            if isinstance(data, Bad):
                found += [(line, flaw.message) for line, flaw in data.flaws]
    return found


@pytest.mark.parametrize(
    "name",
    [lambda number: f"c{number}", lambda number: f"person.c{number}", lambda number: "", lambda number: "place"],
    ids=["unknown", "dotted", "empty", "the same"],
)
def test_csv_of_many_columns(name: Callable[[int], str]) -> None:
    """20,000 columns, each of them wrong, are all told."""
    header = ",".join(name(number) for number in range(20_000))
    assert len(bad_rows(f"place,{header}\na\n".encode())) == 20_000


def test_csv_of_deep_columns() -> None:
    """A column that reaches too deep is refused; no name of any depth exhausts anything."""
    assert bad_rows(b"place," + b".".join([b"a"] * 100_000) + b"\na\n") == [(1, "reaches more than 64 objects deep")]
    assert bad_rows(b"place,person.name,person\na\n") == [
        (1, "a field of an object that another column gives whole"),
    ]


def test_an_open_quote_takes_little_memory() -> None:
    """A quote that nobody closes: the memory of the row as it lies there, and its own line, not that of its row."""
    text = b'place,person.name\na,"x\ny"\nb,"closed\n","open\n' + b"x\n" * 100_000
    tracemalloc.start()
    try:
        [(line, why)] = bad_rows(text, 4_096)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert line == 5
    assert "close it, and double each quote" in why
    assert peak < 2_500_000


def test_an_open_quote_is_given_up_at_16_mib() -> None:
    """More than that is not a row: the line of the quote and the way out are told."""
    text = (
        b'place,person.name\nb,"closed\n","open\n' + b"x" * 80 + (b"\n" + b"x" * 1023) * (MOST_LINE_BYTES // 1024 + 1)
    )
    [(line, why), *_] = bad_rows(text)
    assert line == 3
    assert "not closed within 16 MiB" in why
    assert "double each quote" in why


def test_json_of_many_lines() -> None:
    """The lines of 50,000 fields are found in one pass."""
    raw = json.dumps({f"f{number}": [number] for number in range(50_000)}, indent=1).encode()
    found = json_text.places(raw)
    assert (found["f0"], found["f0[0]"], found["f49999"]) == (2, 3, 149_999)


def test_yaml_of_one_long_scalar() -> None:
    """What the parser has not used it copies at each reading: of one long word there are few of them."""
    text, readings = io.BytesIO(b"- " + b"x" * 500_000 + b"\n"), 0

    def given(count: int) -> bytes:
        nonlocal readings
        readings += 1
        return text.read(count)

    [[(_, _, row)]] = list(stream_list(given))
    assert isinstance(row, Given)
    assert len(row.value) == 500_000
    assert readings < 20


def read(folder: Path, jobs: dict[str, Any]) -> None:
    """Read a manifest of these jobs."""
    manifest = {"version": 1, "platform": {"base_url": "http://127.0.0.1:9/api/v3"}, "jobs": jobs}
    (folder / "m.yaml").write_text(json.dumps(manifest))
    read_manifest(folder / "m.yaml", Overrides(), {})


def test_many_jobs_with_many_flaws(tmp_path) -> None:
    """100 jobs that need 100 unknown ones each, among names that look alike: 50 flaws are told and 9,950 counted."""
    jobs = {
        f"job-{number}": {
            "operation": "readme.get",
            "items": [],
            "needs": [f"jab-{number}-{other}" for other in range(100)],
        }
        for number in range(100)
    }
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, jobs)
    assert (len(caught.value.flaws), caught.value.more) == (50, 9_950)


def test_jobs_in_a_long_circle(tmp_path) -> None:
    """A circle of 500 jobs is told with its ends."""
    jobs = {
        f"j{number}": {"operation": "readme.get", "items": [], "needs": [f"j{(number + 1) % 500}"]}
        for number in range(500)
    }
    with pytest.raises(ManifestError, match=r"j0 needs j1 .* needs … needs j499 needs j0") as caught:
        read(tmp_path, jobs)
    assert len(str(caught.value)) < 500


def test_did_you_mean_looks_at_few() -> None:
    """Among 100,000 names the near ones are found, and a name of a megabyte is compared with none."""
    known = [f"job-{number:05d}" for number in range(100_000)]
    for _ in range(10):
        assert "did you mean job-05000" in unknown_name("job-05000x", known)
    assert unknown_name("owner" * 200_000, ["owner", "repo"]) == "unknown field; expected one of owner, repo"
