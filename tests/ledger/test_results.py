import json
import math
import os
import re
import tracemalloc
from dataclasses import replace
from types import MappingProxyType

import msgspec
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bulk.clock import iso_utc
from bulk.errors import RunDirectoryError
from bulk.ledger import results
from bulk.ledger.records import Finished
from bulk.ledger.results import ResultsFile
from bulk.model import Encoded, ErrorCode, ItemError, OutcomeKind
from tests.ledger.samples import finished

EXAMPLE = (
    '{"job":"codeowners","index":0,"id":null,"item":{"owner":"acme","repo":"api","path":"CODEOWNERS"},'
    '"outcome":"succeeded","http_status":201,"attempts":1,"started_at":"2026-11-21T08:00:00.123Z","elapsed_ms":41.7,'
    '"request_id":"0A1B","result":{"sha":"3d21ec5"},"error":null}\n'
)


class Stray(msgspec.Struct):
    """A struct that has no business in a result."""

    n: int
    kind: OutcomeKind


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.text(alphabet=st.characters(min_codepoint=0xD700, max_codepoint=0xE010))
    | st.binary(max_size=5)
    | st.just(object())
    | st.sampled_from(OutcomeKind),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner)
        | st.sets(st.integers(), max_size=2)
        | st.dictionaries(st.text() | st.integers() | st.just("\ud800"), inner, max_size=4)
    ),
    max_leaves=20,
)


def test_a_line_is_the_promised_one():
    """A line has the keys of the interface in their order, its time in ISO form, milliseconds to a tenth."""
    line = results.encode(
        Finished(
            job="codeowners",
            index=0,
            id=None,
            item={"owner": "acme", "repo": "api", "path": "CODEOWNERS"},
            outcome=OutcomeKind.SUCCEEDED,
            http_status=201,
            attempts=1,
            started_at=1_795_248_000.123,
            elapsed_ms=41.6512,
            request_id="0A1B",
            result={"sha": "3d21ec5"},
            error=None,
        )
    )
    assert line.decode() == EXAMPLE


@pytest.mark.parametrize("item", [{"owner": "acme"}, {"owner": "\ud800"}], ids=["plain", "what JSON can't hold"])
def test_a_result_that_is_text_already_is_the_same_line(item: dict[str, str]):
    """An Encoded stands in the line as its value would, also where the line has to be written piece by piece."""
    value = {"name": "README.md", "entries": [1, 2.5, None, "ü"]}
    encoded = Encoded.of(value)
    assert encoded is not None
    text, plain = (results.encode(replace(finished(0), item=item, result=each)) for each in (encoded, value))
    assert text == plain


def test_an_error_is_an_object_in_the_promised_order():
    """`error` has code, message, http_status and attempts."""
    ended = replace(finished(3), error=ItemError(ErrorCode.CONFLICT, "other sha", 409, 8))
    error = '"error":{"code":"conflict","message":"other sha","http_status":409,"attempts":8}}\n'
    assert results.encode(ended).decode().endswith(error)


@given(at=st.floats(min_value=0, max_value=4e9))
@example(at=562949953.5139995)
@example(at=0.9999999)
def test_times_are_those_of_the_clock(at: float):
    """`started_at` is what `iso_utc` makes of it, to the millisecond."""
    ended = replace(finished(0), started_at=at)
    assert json.loads(results.encode(ended))["started_at"] == iso_utc(at)


@given(value=anything)
def test_no_value_breaks_a_line(value: object):
    """Whatever a result holds, its line is one line of JSON that orjson reads back, with all its keys."""
    line = results.encode(replace(finished(0, result=value), id="\ud800", item={"a": value}))
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert list(orjson.loads(line)) == [
        "job", "index", "id", "item", "outcome", "http_status", "attempts", "started_at", "elapsed_ms", "request_id",
        "result", "error",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([math.nan, math.inf, -math.inf], [None, None, None]),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ([2**53 + 1, 2**64 - 1, -(2**63)], [2**53 + 1, 2**64 - 1, -(2**63)]),
        ([2**64, -(2**63) - 1], ["18446744073709551616", "-9223372036854775809"]),
        ([10**5000], ["<integer of 16610 bits>"]),
        ({1: "a", "\udfff": 2}, {"1": "a", "\ufffd": 2}),
        (b"abc", "<3 bytes>"),
        (object(), "<object>"),
        ({"a": {1}, "b": (2,)}, {"a": [1], "b": [2]}),
        (MappingProxyType({"a": MappingProxyType({})}), {"a": {}}),
        ([Stray(1, OutcomeKind.FAILED)], [{"n": 1, "kind": "failed"}]),
    ],
)
def test_what_json_can_not_hold_is_replaced_as_documented(value: object, expected: object):
    """Integers up to 64 bits are exact; everything that JSON can't hold becomes what `dump` says."""
    assert orjson.loads(results.dump(value)) == expected


def test_endless_nesting_is_cut():
    """A value that contains itself ends at a fixed depth."""
    loop: list[object] = []
    loop.append(loop)
    assert results.dump(loop).decode() == "[" * 200 + '"<nested too deeply>"' + "]" * 200


def test_the_lines_of_a_group_take_the_room_they_need():
    """A thousand lines are held as one text: all their bytes and no more, whatever an encoder keeps for itself."""
    group = [finished(index, result="x" * 100) for index in range(1_000)]
    lines, lengths = results.encode_all(group)
    assert bytes(lines) == b"".join(results.encode(each) for each in group)
    assert sum(lengths) == len(lines)
    tracemalloc.start()
    try:
        kept = results.encode_all(group)
        assert tracemalloc.get_traced_memory()[0] < 1.5 * len(kept[0])
    finally:
        tracemalloc.stop()


def test_lines_are_found_wherever_they_stand(tmp_path):
    """Lines are read back by position and length in any order, neighbours or not, larger than a read or not."""
    lines = [results.encode(finished(index, result="x" * size)) for index, size in enumerate((0, 9, 3_000_000, 1, 2))]
    file = ResultsFile.open(tmp_path / "results.jsonl", 0)
    file.append(b"".join(lines[:3]))
    file.append(b"".join(lines[3:]))
    places, position = [], 0
    for line in lines:
        places.append((position, len(line)))
        position += len(line)
    for order in ([0, 1, 2, 3, 4], [4, 2, 0, 1, 3], [3]):
        assert list(results.lines_at(file.fd, [places[at] for at in order], file.path)) == [lines[at] for at in order]
    with pytest.raises(RunDirectoryError, match=f"^{re.escape(str(file.path))} is damaged"):
        list(results.lines_at(file.fd, [(1, len(lines[0]))], file.path))
    file.close()


def test_a_torn_tail_is_cut_off_and_a_missing_part_is_refused(tmp_path):
    """What lies behind the known end is cut when the file is opened; a file that is too short is refused as it is."""
    path = tmp_path / "results.jsonl"
    path.write_bytes(b'{"a":1}\n{"torn')
    ResultsFile.open(path, 8).close()
    assert path.read_bytes() == b'{"a":1}\n'
    with pytest.raises(RunDirectoryError, match="8 bytes and the ledger knows 9"):
        ResultsFile.open(path, 9)
    assert path.read_bytes() == b'{"a":1}\n'


def is_in_memory(fd: int) -> bool:
    """Whether the system can give the beginning of that file without asking the disk."""
    try:
        return os.preadv(fd, [bytearray(4_096)], 0, os.RWF_NOWAIT) > 0
    except BlockingIOError:
        return False


def test_lines_that_are_on_disk_need_no_memory(tmp_path):
    """What was written and synced is let go of, as far as the file system does that at all; a busy disk forgets it now
    and then."""
    lines = b'{"index":0}\n' * 100_000

    def is_let_go(number: int) -> bool:
        with open(tmp_path / f"other{number}", "w+b", buffering=0) as other:
            other.write(lines)
            os.fsync(other.fileno())
            os.posix_fadvise(other.fileno(), 0, len(lines), os.POSIX_FADV_DONTNEED)
            is_kept_anyway = is_in_memory(other.fileno())
        file = ResultsFile.open(tmp_path / f"results{number}.jsonl", 0)
        file.append(lines)
        is_kept = is_in_memory(file.fd)
        file.close()
        return is_kept_anyway or not is_kept

    assert any(map(is_let_go, range(5)))


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path):
    """`results.jsonl` that is a symbolic link is refused; its target stays as it is."""
    target = tmp_path / "target"
    target.write_bytes(b"mine")
    (tmp_path / "results.jsonl").symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        ResultsFile.open(tmp_path / "results.jsonl", 0)
    assert target.read_bytes() == b"mine"


def test_lines_of_a_refused_group_are_not_written_twice(tmp_path):
    """The same group given again after the ledger refused it takes no more room; another group stands behind it."""
    file = ResultsFile.open(tmp_path / "results.jsonl", 0)
    assert file.append(b"{1}\n") == 0
    file.unclaim(0, b"{1}\n")
    assert file.append(b"{1}\n") == 0
    assert file.append(b"{2}\n") == 4
    assert os.fstat(file.fd).st_size == file.end == 8
    file.close()


def test_another_writer_is_noticed(tmp_path):
    """A file that grew by another hand is not written to."""
    file = ResultsFile.open(tmp_path / "results.jsonl", 0)
    with (tmp_path / "results.jsonl").open("ab") as other:
        other.write(b"{}\n")
    with pytest.raises(RunDirectoryError, match="another process"):
        file.append(b"{1}\n")
    assert (tmp_path / "results.jsonl").read_bytes() == b"{}\n"
    file.close()
