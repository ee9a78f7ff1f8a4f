"""Items of one job in order: how many are read together."""

import json

import pytest

from bulk.bundle.streams import AHEAD_BYTES, EntryStream
from tests.manifest.making import ReadThing, a_job, check_in


@pytest.mark.parametrize("is_inline", [True, False])
@pytest.mark.parametrize(("size", "together"), [(10, 7), (AHEAD_BYTES // 4, 4), (2 * AHEAD_BYTES, 1)])
def test_few_large_items_are_read_together(tmp_path, is_inline, size, together):
    """At most as many as were asked for, and no more once they are long: memory does not grow with what items hold."""
    items = [{"place": str(number), "text": "x" * size} for number in range(7)]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    checked, workspace = check_in(tmp_path, a_job(ReadThing(), items if is_inline else tmp_path / "items.jsonl"))
    stream, found = EntryStream(checked, 0, workspace), []
    while some := stream.take(256, lambda index: index):
        found.append([entry.index for entry in some])
    assert len(found[0]) == together
    assert [index for some in found for index in some] == list(range(7))
