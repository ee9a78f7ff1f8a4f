"""A platform of files of any size, a program of its own: `GET …/contents/SIZE/NUMBER` answers with SIZE bytes.

What a file holds follows from its number alone, so that whoever has it can tell whether it is whole. Nothing is read
from a disk, limits are off. Its first line on standard output is its base URL; it ends with its standard input.

    python canned_files.py [--chunked] [--gzip] [--break-first]

--chunked: answers don't say how long they are.
--gzip: answers are compressed, and don't say how long they are.
--break-first: the first answer for each file ends after half of it, with its connection.
"""

import argparse
import asyncio
import base64
import hashlib
import json
import sys
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

PERIOD_BYTES = 1_000_003
"""No block size divides it, so blocks in another order make another file."""
BLOCK_BYTES = 256 * 1024


@lru_cache(maxsize=4)
def _pattern(number: int) -> bytes:
    return hashlib.shake_256(b"%d" % number).digest(PERIOD_BYTES)


def blocks(number: int, size: int) -> Iterator[bytes]:
    """What file `number` holds when it has `size` bytes, in parts."""
    pattern = _pattern(number)
    for start in range(0, size, PERIOD_BYTES):
        yield pattern[: size - start]


def is_whole(path: Path, number: int, size: int) -> bool:
    """Whether the file at `path` is that one."""
    with path.open("rb") as file:
        return all(file.read(len(block)) == block for block in blocks(number, size)) and not file.read(1)


class Server:
    """What is answered, and how."""

    def __init__(self, coding: str, breaks_first: bool) -> None:
        self._coding, self._breaks_first = coding, breaks_first
        self._broken: set[str] = set()

    async def serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until it ends."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if not await self._answer(head, writer):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, head: bytes, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection goes on."""
        path = head.split(b" ", 2)[1].decode()
        if path.endswith("/rate_limit"):
            return await _write_json(writer, "404 Not Found", {"message": "Rate limiting is not enabled."})
        size, number = (int(part) for part in path.rsplit("/", 2)[1:])
        if b".raw" not in head:
            content = base64.b64encode(b"".join(blocks(number, size))).decode()
            body = {"type": "file", "encoding": "base64", "size": size, "path": f"{size}/{number}", "content": content}
            return await _write_json(writer, "200 OK", body)
        length = f"Content-Length: {size}" if not self._coding else "Transfer-Encoding: chunked"
        coding = "\r\nContent-Encoding: gzip" if self._coding == "gzip" else ""
        kind = "Content-Type: application/octet-stream"
        writer.write(f'HTTP/1.1 200 OK\r\n{kind}\r\nETag: "{number}"\r\n{length}{coding}\r\n\r\n'.encode())
        sent, most = 0, 2 * size
        if self._breaks_first and path not in self._broken:
            self._broken.add(path)
            most = size // 2
        for block in self._coded(number, size):
            sent += len(block)
            writer.write(b"%x\r\n%b\r\n" % (len(block), block) if self._coding else block)
            await writer.drain()
            if sent > most:
                return False
        if self._coding:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    def _coded(self, number: int, size: int) -> Iterator[bytes]:
        packer = zlib.compressobj(1, wbits=31)
        for block in blocks(number, size):
            for start in range(0, len(block), BLOCK_BYTES):
                part = block[start : start + BLOCK_BYTES]
                if self._coding == "gzip":
                    part = packer.compress(part)
                if part:
                    yield part
        if self._coding == "gzip":
            yield packer.flush()


async def _write_json(writer: asyncio.StreamWriter, status: str, body: object) -> bool:
    raw = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n"
    writer.write(head.encode() + raw)
    await writer.drain()
    return True


async def serve(server: Server) -> None:
    """Serve until standard input ends."""
    listening = await asyncio.start_server(server.serve_client, "127.0.0.1", 0)
    sys.stdout.write(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/api/v3\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def main() -> None:
    """Parse, serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunked", action="store_const", dest="coding", const="chunked", default="")
    parser.add_argument("--gzip", action="store_const", dest="coding", const="gzip")
    parser.add_argument("--break-first", action="store_true")
    given = parser.parse_args()
    asyncio.run(serve(Server(given.coding, given.break_first)))


if __name__ == "__main__":
    main()
