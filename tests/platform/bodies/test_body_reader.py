"""Bodies of any length: in memory, by way of a file, or handed on as a file; and what goes wrong on the way."""

import errno
import gzip
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from bulk.clock import Clock
from bulk.errors import RunStopped
from bulk.model import BodyFile, Media, Reply, Request
from bulk.platform.bodies.body_reader import IN_MEMORY_BYTES, ROOM_BYTES, BodyReader
from bulk.platform.bodies.body_values import Unreadable
from bulk.platform.bodies.spool import ARRIVING
from bulk.storage.disk_threads import thread_disk
from bulk_jobs.shared.files.blobs import blob_sha
from tests.platform.raw_server import always, answer, once, serving

LONG = bytes(range(251)) * (IN_MEMORY_BYTES // 251 + 1)
RAW = Request(method="GET", path="/x", media=Media.RAW, max_bytes=len(LONG), takes_file=True)


@dataclass(eq=False)
class Item:
    """Whose answer it is."""

    is_saved: bool = True
    holds_body: bool = False


@pytest.fixture
def body_reader(tmp_path: Path) -> BodyReader:
    """Of a run in an empty directory."""
    return BodyReader(tmp_path, Clock(), thread_disk)


def left(folder: Path) -> list[str]:
    """Files that are there."""
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]


def chunked(data: bytes) -> bytes:
    """An answer that does not say how long it is."""
    blocks = [data[start : start + 100_000] for start in range(0, len(data), 100_000)]
    body = b"".join(b"%x\r\n%b\r\n" % (len(block), block) for block in blocks)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"


def zipped(data: bytes) -> bytes:
    """The same, compressed."""
    return answer(gzip.compress(data, 1), headers="Content-Encoding: gzip\r\n")


@pytest.mark.parametrize("as_sent", [answer, chunked, zipped])
async def test_a_long_raw_body_is_a_file(
    open_transport, token, body_reader, tmp_path, as_sent: Callable[[bytes], bytes]
):
    """A raw body above 8 MiB is handed on as a private file with its size and hashes, until its item has ended."""
    item = Item()
    async with (
        serving(always(as_sent(LONG))) as server,
        open_transport(server.base_url, body_reader=body_reader) as transport,
    ):
        reply = await transport.send(RAW, token, holder=item)
    assert isinstance(reply, Reply)
    body = reply.body
    assert isinstance(body, BodyFile)
    assert (body.size_bytes, body.sha256) == (len(LONG), hashlib.sha256(LONG).hexdigest())
    assert body.blob_sha == blob_sha(LONG)
    assert left(tmp_path) == [body.name]
    assert (tmp_path / body.name).read_bytes() == LONG
    assert (tmp_path / body.name).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / ARRIVING).stat().st_mode & 0o777 == 0o700
    assert item.holds_body
    await body_reader.end([item])
    assert left(tmp_path) == []


@pytest.mark.parametrize("as_sent", [answer, chunked, zipped])
async def test_what_takes_no_file_is_read_back(open_transport, token, body_reader, tmp_path, as_sent):
    """A long JSON answer, and a raw one of an operation that takes no file, are values; nothing stays on the disk."""
    value = {"text": "ab" * (IN_MEMORY_BYTES // 2)}
    answers = always(as_sent(orjson.dumps(value)))
    async with serving(answers) as server, open_transport(server.base_url, body_reader=body_reader) as transport:
        reply = await transport.send(Request(method="GET", path="/x"), token, holder=Item())
        raw = await transport.send(Request(method="GET", path="/x", media=Media.RAW), token, holder=Item())
    assert reply.body == value
    assert raw.body == orjson.dumps(value)
    assert left(tmp_path) == []


async def test_what_finds_no_room_waits_on_the_disk(open_transport, token, body_reader, tmp_path):
    """Where other items fill the room, one more answer is taken in, by way of a file; the next waits its turn."""
    data = b"x" * (IN_MEMORY_BYTES - 1)
    request = Request(method="GET", path="/x", media=Media.RAW, max_bytes=len(data))
    items = [Item() for _ in range(2 * ROOM_BYTES // len(data))]
    async with (
        serving(always(answer(data))) as server,
        open_transport(server.base_url, body_reader=body_reader) as transport,
    ):
        for item in items:
            reply = await transport.send(request, token, holder=item)
            assert reply.body == data
            if item is not items[0]:
                await body_reader.end([item])
    assert left(tmp_path) == []
    assert items[0].holds_body


@pytest.mark.parametrize("as_sent", [chunked, answer])
async def test_what_breaks_off_leaves_nothing(open_transport, token, body_reader, tmp_path, as_sent):
    """A long answer that ends early is truncated, and neither file nor room is kept."""
    item = Item()
    answers = once(as_sent(LONG)[:-1000])
    async with serving(answers) as server, open_transport(server.base_url, body_reader=body_reader) as transport:
        reply = await transport.send(RAW, token, holder=item)
    assert reply.is_truncated
    assert reply.body is None
    assert left(tmp_path) == []
    assert not item.holds_body


@pytest.mark.parametrize("as_sent", [chunked, answer, zipped])
async def test_more_than_is_allowed_is_given_up(open_transport, token, body_reader, tmp_path, as_sent):
    """failures.md row 29: a long body with one byte too many is not a file, and the reply says so."""
    answers = always(as_sent(LONG + b"x"))
    async with serving(answers) as server, open_transport(server.base_url, body_reader=body_reader) as transport:
        reply = await transport.send(RAW, token, holder=Item())
    assert isinstance(reply.body, Unreadable)
    assert reply.body.is_too_large
    assert left(tmp_path) == []


async def test_a_refusing_disk_stops_the_run(open_transport, token, tmp_path):
    """failures.md row 47: no room on the disk for a long answer is told as what it is, and not blamed on the answer."""

    async def full(_: Callable[[], None]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    body_reader = BodyReader(tmp_path, Clock(), full)
    async with (
        serving(always(answer(LONG))) as server,
        open_transport(server.base_url, body_reader=body_reader) as transport,
    ):
        with pytest.raises(RunStopped, match=f"{ARRIVING}: No space left on device"):
            await transport.send(RAW, token, holder=Item())


async def test_a_link_in_place_of_the_folder_is_not_followed(open_transport, token, body_reader, tmp_path):
    """failures.md row 64: a symbolic link where arriving files belong stops the run; nothing is written behind it."""
    behind = tmp_path / "behind"
    behind.mkdir()
    (tmp_path / ARRIVING).symlink_to(behind)
    async with (
        serving(always(answer(LONG))) as server,
        open_transport(server.base_url, body_reader=body_reader) as transport,
    ):
        with pytest.raises(RunStopped, match=ARRIVING):
            await transport.send(RAW, token, holder=Item())
    assert left(behind) == []


def test_files_of_a_killed_process_go(body_reader, tmp_path):
    """What nobody owns is removed before a run begins."""
    (tmp_path / ARRIVING).mkdir()
    (tmp_path / ARRIVING / "7").write_bytes(b"half a file")
    body_reader.clear()
    assert list(tmp_path.iterdir()) == []
