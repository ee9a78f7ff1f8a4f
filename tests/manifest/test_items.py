"""Items and the `with` of their job become one, the quick way as the slow one."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.manifest.items import UNREADABLE, ItemReader
from tests.manifest.making import WriteThing

FIELDS: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {},
    optional={
        "place": st.sampled_from(["a", "", 5, None]),
        "also": st.none() | st.text(max_size=3),
        "number": st.integers(-3, 3) | st.sampled_from(["1", None, {}]),
        "share": st.sampled_from([0.5, 1, float("inf")]),
        "id": st.text(max_size=2),
        "foreign": st.just(1),
    },
)


@given(FIELDS, FIELDS, st.sampled_from([b"", b" ", b"\r\n\t"]))
def test_an_item_replaces_what_with_says(defaults, item, blanks):
    """An item in JSON is the item merged over `with`, field by field; what that can't be is refused."""
    reader = ItemReader(WriteThing(), defaults)
    text = blanks + msgspec.json.encode(item) + blanks
    item = msgspec.json.decode(text)
    try:
        merged = msgspec.convert({**defaults, **item}, WriteThing.Item)
    except msgspec.ValidationError:
        for read in (reader.from_json, reader.again):
            with pytest.raises(UNREADABLE):
                read(text)
    else:
        assert reader.from_json(text) == reader.again(text) == merged
