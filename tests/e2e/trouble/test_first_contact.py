"""A platform that was never reached: the run ends within ten seconds, and says the cause and the way out once."""

import base64
import contextlib
import hashlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from bulk.errors import RunStopped
from tests.e2e.support.platform import Home, served
from tests.tries import quickest

CANNED = Path(__file__).parents[1] / "support/canned.py"
COMMAND = ("run", "manifest.yaml", "--run-dir", "run")
ENDS_S = 10.0
STARTS_S = 4.0
"""What starting Python takes at most on a busy machine (seconds)."""


class NoPlatform(BaseHTTPRequestHandler):
    """Some other web server."""

    protocol_version = "HTTP/1.1"
    answers = (404, "text/html", "")

    def do_GET(self) -> None:
        """The same for every path."""
        status, kind, location = self.answers
        self.send_response(status)
        self.send_header("Content-Type", kind)
        body = b'{"message": "Not Found"}' if "json" in kind else b"<p>no</p>"
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing."""


@contextlib.contextmanager
def web_server(*answers: object) -> Iterator[str]:
    """Where it is served."""
    kind = type("Other", (NoPlatform,), {"answers": answers})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/api/v3"
        server.shutdown()
        thread.join()


@contextlib.contextmanager
def canned(*options: str) -> Iterator[str]:
    """The base URL of canned answers."""
    with subprocess.Popen([sys.executable, CANNED, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip()
        process.communicate()


@contextlib.contextmanager
def closed_port(_: Path) -> Iterator[str]:
    """Nothing listens there."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}/api/v3"


@contextlib.contextmanager
def no_hello(_: Path) -> Iterator[str]:
    """Somebody takes the connection and never says a word of TLS."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as held:
        yield f"https://127.0.0.1:{held.getsockname()[1]}/api/v3"


@contextlib.contextmanager
def unknown_name(_: Path) -> Iterator[str]:
    """A name that no resolver knows."""
    yield "http://code.invalid/api/v3"


@contextlib.contextmanager
def tls_where_none_is(folder: Path) -> Iterator[str]:
    """https to a port that speaks http."""
    with served(folder / "sandbox") as sandbox:
        yield sandbox.base_url.replace("http:", "https:")


@contextlib.contextmanager
def no_tls_where_it_is(folder: Path) -> Iterator[str]:
    """http to a port that speaks https."""
    with canned("--certificate", str(certificate(folder))) as base_url:
        yield base_url.replace("https:", "http:")


@contextlib.contextmanager
def untrusted(folder: Path) -> Iterator[str]:
    """A certificate that nobody knows."""
    with canned("--certificate", str(certificate(folder))) as base_url:
        yield base_url


@contextlib.contextmanager
def another_server(_: Path) -> Iterator[str]:
    """A web server without an API."""
    with web_server(404, "text/html", "") as base_url:
        yield base_url


@contextlib.contextmanager
def login_page(_: Path) -> Iterator[str]:
    """A page to log in, whatever is asked for."""
    with web_server(200, "text/html", "") as base_url:
        yield base_url


@contextlib.contextmanager
def another_path(folder: Path) -> Iterator[str]:
    """The platform itself, which answers to a path that it does not have as to what is missing."""
    with served(folder / "sandbox") as sandbox:
        yield sandbox.base_url.replace("/api/v3", "/api/v4")


@contextlib.contextmanager
def missing(_: Path) -> Iterator[str]:
    """A server to which everything is missing, in the platform's own words."""
    with web_server(404, "application/json", "") as base_url:
        yield base_url


@contextlib.contextmanager
def leads_to_https(_: Path) -> Iterator[str]:
    """A server that wants https."""
    with web_server(301, "text/html", "https://code.example.com/api/v3/rate_limit") as base_url:
        yield base_url


def certificate(folder: Path) -> Path:
    """A file with a key and a certificate of an authority of its own."""
    issued, path = trustme.CA().issue_cert("127.0.0.1"), folder / "certificate.pem"
    path.write_bytes(issued.private_key_pem.bytes() + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    return path


Where = Callable[[Path], contextlib.AbstractContextManager[str]]
MISSING: dict[Where, tuple[int, ...]] = {another_path: (1,), missing: (3, 4)}
"""Where it takes some items until it is known that no API is there, and how many; there are 2 and 40."""


@pytest.mark.parametrize(
    ("where", "cause", "way_out"),
    [
        (closed_port, "(Connection refused)", "is the port in platform.base_url right?"),
        (no_hello, "within 2.5 s", "are scheme, name and port in platform.base_url right?"),
        (unknown_name, "the name of code.invalid:80 can't be resolved", "is the name in platform.base_url right?"),
        (tls_where_none_is, "no TLS with 127.0.0.1:", "does platform.base_url have the right scheme and port?"),
        (no_tls_where_it_is, "was lost before an answer came", "have the right scheme (https or http) and port?"),
        (untrusted, "is not trusted", "set platform.ca_bundle"),
        (another_server, "was answered with 404", "have the right scheme, port and path (mostly /api/v3)?"),
        (login_page, "answered with web pages alone", "have the right host, port and path (mostly /api/v3)?"),
        (another_path, "were all answered with 404", "have the right path (mostly /api/v3)?"),
        (missing, "were all answered with 404", "have the right path (mostly /api/v3)?"),
        (leads_to_https, "a redirect to https://code.example.com", "write https:// in platform.base_url"),
    ],
)  # fmt: skip
def test_a_first_contact_that_fails_for_good_ends_the_run(
    tmp_path: Path, where: Where, cause: str, way_out: str, figure: Callable[[str], None]
) -> None:
    """Exit 3 within ten seconds, no item failed, or the very first ones; cause and way out are said once on each stream
    and in the report (failures.md rows 1, 2)."""
    took_s = quickest(lambda number: _ended(where, tmp_path / str(number), cause, way_out), ENDS_S)
    figure(f"{where.__name__}: ended after {took_s:.1f} s")
    assert took_s <= ENDS_S


def _ended(where: Where, folder: Path, cause: str, way_out: str) -> float:
    """How long it takes without the start of Python (seconds)."""
    folder.mkdir()
    home = Home(folder)
    items = 2 if where is another_path else 40
    home.lines("items.jsonl", [{"owner": "acme", "repo": f"r{number}"} for number in range(items)])
    with where(folder) as base_url:
        platform = {"base_url": base_url, "allow_insecure_http": True}
        home.manifest(base_url, {"readmes": {"operation": "readme.get", "items": "items.jsonl"}}, platform=platform)
        since = time.monotonic()
        ran = home.run(*COMMAND)
        took_s = time.monotonic() - since - STARTS_S
    assert ran.exit_code == RunStopped.exit_code, ran.err
    report = home.report("run")
    assert cause in report["why"]
    assert way_out in report["why"]
    last = [line for line in ran.err.splitlines() if line.startswith("stopped")]
    assert len(last) == 1
    assert report["why"] in last[0]
    assert " ".join(ran.out.split()).count(report["why"]) == 1
    assert len(home.results("run")) in MISSING.get(where, (0,))
    return max(took_s, float(report["active_s"]))


def test_a_status_says_why_it_waits(tmp_path: Path) -> None:
    """While it tries, the status names the last error, how often it was met, and the kind of the wait."""
    home = Home(tmp_path)
    with closed_port(tmp_path) as base_url:
        home.manifest(base_url, {"readmes": {"operation": "readme.get", "items": [{"owner": "a", "repo": "b"}]}})
        ran = home.run(*COMMAND, "--progress", "json")
    waits = [wait for line in ran.err.splitlines() if line.startswith("{") for wait in _waits(line)]
    tries = [wait["errors"] for wait in waits if wait["kind"] == "unreachable"]
    assert max(tries) >= 3
    assert tries == sorted(tries)
    assert {wait["error"].partition(" to ")[0] for wait in waits if wait["errors"]} == {"can't connect"}


def _waits(line: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(line).get("waits", [])
    return found


class OnceOdd(BaseHTTPRequestHandler):
    """A platform without limits; its very first answer is `first`: of something in front of it, or one that broke.

    Where it `stays`, `/rate_limit` never gets another one.
    """

    protocol_version = "HTTP/1.1"
    first, stays = b"", False
    asked: list[str]

    def do_GET(self) -> None:
        """The first answer, then those of the platform."""
        self.asked.append(self.path)
        if len(self.asked) == 1 or (self.stays and self.path.endswith("/rate_limit")):
            self.wfile.write(self.first)
            self.close_connection = True
            return
        text = b"hello"
        blob = hashlib.sha1(b"blob 5\0" + text, usedforsecurity=False).hexdigest()
        readme = {"type": "file", "name": "README.md", "path": "README.md", "sha": blob, "size": 5}
        readme |= {"encoding": "base64", "content": base64.b64encode(text).decode()}
        is_readme = self.path.endswith("/readme")
        body = json.dumps(readme if is_readme else {"message": "Not Found"}).encode()
        self.send_response(200 if is_readme else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing."""


PAGE = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\n<p>no</p>"
MOVED = b"HTTP/1.1 301 Moved\r\nLocation: https://login.example.com/\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("first", "stays"),
    [
        (PAGE, False),
        (b'HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n{"message": "Not Found"}', False),
        (MOVED, False),
        (b"", True),
        (PAGE, True),
        (MOVED, True),
        (b"HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\n\r\n", True),
    ],
)
def test_one_odd_answer_is_not_enough_to_end_a_run(tmp_path: Path, first: bytes, stays: bool) -> None:
    """What something in front of the platform says once, or what ends with its connection, is asked again; and where
    `/rate_limit` alone never says anything of use, other requests do."""
    asked: list[str] = []
    kind = type("Once", (OnceOdd,), {"first": first, "stays": stays, "asked": asked})
    home = Home(tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        base_url = f"http://127.0.0.1:{server.server_address[1]}/api/v3"
        home.manifest(base_url, {"readmes": {"operation": "readme.get", "items": [{"owner": "a", "repo": "b"}]}})
        ran, requests = home.run(*COMMAND), [*asked]
        planned = home.run("plan", "manifest.yaml")
        server.shutdown()
        thread.join()
    assert ran.exit_code == 0, ran.err
    assert requests[0].endswith("/rate_limit")
    assert requests[-1].endswith("/readme")
    assert planned.exit_code == 0, planned.err
