"""A platform of canned answers, run as a program of its own: every README is the same, limits are off.

Faster than the sandbox, so that a test of a million items measures the engine. Speaks HTTP/1.1 with keep-alive, no
pipelining. Its first line on standard output is its base URL; it ends with its standard input.

    python canned.py [--log FILE] [--refuse N SECONDS] [--certificate FILE] [--cookie BYTES]

--log: one line for each request, `SECONDS PATH`, by this machine's monotonic clock.
--refuse: the N-th README is answered 429 with `Retry-After: SECONDS`.
--certificate: speak TLS, with the key and certificates of this PEM file.
--cookie: every answer sets a cookie of this length.
"""

import argparse
import asyncio
import base64
import hashlib
import json
import ssl
import sys
import time
from pathlib import Path
from typing import TextIO

README = b"# A canned README\n\nThe same for every repository.\n"
FILE = {
    "type": "file",
    "encoding": "base64",
    "size": len(README),
    "name": "README.md",
    "path": "README.md",
    "content": base64.b64encode(README).decode(),
    "sha": hashlib.sha1(b"blob %d\0%b" % (len(README), README)).hexdigest(),
}


def answer(status: str, body: object, *headers: str) -> bytes:
    """A whole HTTP answer."""
    raw = json.dumps(body).encode()
    lines = (f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(raw)}", *headers)
    return "\r\n".join((*lines, "", "")).encode() + raw


class Script:
    """What is answered, and the log."""

    def __init__(self, refused: int, seconds: int, log: TextIO | None = None, cookie: int = 0) -> None:
        self.log, self.refused, self.readmes = log, refused, 0
        cookies = (f"Set-Cookie: a={'x' * cookie}",) if cookie else ()
        self.off = answer("404 Not Found", {"message": "Rate limiting is not enabled."}, *cookies)
        self.readme = answer("200 OK", FILE, 'ETag: "canned"', *cookies)
        self.unchanged = b'HTTP/1.1 304 Not Modified\r\nETag: "canned"\r\n\r\n'
        body = {"message": "You have exceeded a secondary rate limit. Please wait."}
        self.wait = answer("429 Too Many Requests", body, f"Retry-After: {seconds}")

    def reply(self, head: bytes) -> bytes:
        """The answer to one request."""
        path = head.split(b" ", 2)[1]
        if self.log is not None:
            self.log.write(f"{time.monotonic():.6f} {path.decode()}\n")
            self.log.flush()
        if path.endswith(b"/rate_limit"):
            return self.off
        self.readmes += 1
        if self.readmes == self.refused:
            return self.wait
        return self.unchanged if b"\r\nIf-None-Match: " in head else self.readme


class Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, script: Script) -> None:
        self._script, self._data = script, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer what is complete; no request here has a body."""
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head, self._data = self._data[: end + 2], self._data[end + 4 :]
            self._transport.write(self._script.reply(head))


async def serve(script: Script, certificate: Path | None) -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    server = await loop.create_server(lambda: Connection(script), "127.0.0.1", 0, ssl=context)
    scheme = "https" if context else "http"
    sys.stdout.write(f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/api/v3\n")
    sys.stdout.flush()
    async with server:
        await loop.run_in_executor(None, sys.stdin.read)


def main() -> None:
    """Parse, serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path)
    parser.add_argument("--refuse", nargs=2, type=int, default=(0, 0))
    parser.add_argument("--certificate", type=Path)
    parser.add_argument("--cookie", type=int, default=0)
    given = parser.parse_args()
    log = given.log.open("w") if given.log else None
    script = Script(given.refuse[0], given.refuse[1], log, given.cookie)
    asyncio.run(serve(script, given.certificate))


if __name__ == "__main__":
    main()
