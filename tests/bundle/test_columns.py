"""Columns of numbers in a file: they are read as they were made, and memory does not grow with them."""

import random
import tracemalloc
from array import array
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bulk.bundle.columns import Columns, NewColumn
from bulk.bundle.index import INDEX, SCHEMA, IndexBuilder, opened
from bulk.bundle.links import load_links
from bulk.model import succeeded
from bulk.schedule.job_progress import JobProgress
from bulk.schedule.keyed_needs import KeyedNeeds
from tests.schedule.test_keyed_scheduler import two


def linked(folder: Path, key_of: "dict[int, int]", needed: int, starts: list[int] | None, items: list[int]) -> None:
    """An index with one need by key."""
    with (
        NewColumn(folder, "i", needed, -1) as keys,
        NewColumn(folder, "I") as firsts,
        NewColumn(folder, "I") as found,
        IndexBuilder(folder) as builder,
    ):
        for item, key in key_of.items():
            keys[item] = key
        for item in items:
            found.append(item)
        for start in starts or ():
            firsts.append(start)
        builder.add_links(0, keys, firsts if starts else None, found)
        builder.finish({})


@settings(max_examples=25)
@given(
    keys=st.dictionaries(st.integers(0, 20_000), st.integers(0, 2**31 - 1), max_size=5),
    behind=st.lists(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=3), max_size=5),
)
def test_columns_are_read_as_they_were_made(tmp_path_factory, keys: dict[int, int], behind: list[list[int]]) -> None:
    """In order, one by one and a few at a time; what was not set is as it was filled, also beyond one block."""
    folder = tmp_path_factory.mktemp("made")
    items = [item for some in behind for item in some]
    starts = [sum(map(len, behind[:number])) for number in range(len(behind) + 1)]
    linked(folder, keys, 20_001, starts, items)
    database = opened(folder / INDEX, SCHEMA)
    (links,) = load_links(two(), Columns(database))
    expected = array("i", [-1]) * 20_001
    for item, key in keys.items():
        expected[item] = key
    assert (array("i", links.key_of), len(links.key_of), links.keys) == (expected, 20_001, len(behind))
    assert [links.key_of[item] for item in keys] == list(keys.values())
    assert [list(links.behind(key)) for key in range(len(behind))] == behind
    assert list(links.waiting()) == [(key, item) for key, some in enumerate(behind) for item in some]
    assert [file.name for file in folder.iterdir()] == [INDEX]
    database.close()


def test_needs_by_key_take_two_bytes_for_each_edge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for the key and one for what waits for it, while they are counted and when items end, in any order; beside
    them stands what is kept of the columns, however long they are.
    """
    monkeypatch.setattr("bulk.bundle.columns._KEPT_BLOCKS", 16)
    edges, dice = 200_000, random.Random(1)
    order = array("I", range(edges))
    dice.shuffle(order)
    linked(tmp_path, {item: key for key, item in enumerate(order)}, edges, None, list(order[::-1]))
    progress = [JobProgress(edges, bytearray(edges // 8 + 1)) for _ in range(2)]
    database = opened(tmp_path / INDEX, SCHEMA)
    tracemalloc.start()
    needs = KeyedNeeds(two(), load_links(two(), Columns(database)), progress, {})
    for item in order[:1_000]:
        assert needs.ended(0, item, succeeded({})) == (1,)
        needs.opened[1].take(1)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    database.close()
    assert 2 * edges < most < 2 * edges + 500_000, f"{most / edges:.2f} bytes for each"
