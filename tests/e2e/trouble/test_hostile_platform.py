"""A platform, and items, that write to the reader's terminal and spreadsheet: nothing of it gets through."""

import csv
import io
import json
import threading
import unicodedata
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bulk import cli
from tests.e2e.support.platform import ADMIN

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\u2066\u200b\r\n\x00"
FORMULA = '=HYPERLINK("http://evil.example";"x")'


class Hostile(BaseHTTPRequestHandler):
    """Refuses everything, with words that a terminal would obey."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """404 for the limits, which are off; 422 for the rest."""
        body = json.dumps({"message": HOSTILE + FORMULA, "errors": [HOSTILE]}).encode()
        self.send_response(404 if self.path.endswith("/rate_limit") else 422)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Service-Request-Id", "\x1b[31m=1+1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def base_url() -> Iterator[str]:
    """Where it is served."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Hostile) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/api/v3"
        server.shutdown()
        thread.join()


def obeyed(text: str) -> set[str]:
    """Characters that a terminal obeys or that turn the direction of reading."""
    return {char for char in text if char not in "\n\t" and unicodedata.category(char) in ("Cc", "Cf")}


def test_nothing_reaches_terminal_or_spreadsheet(
    tmp_path: Path, base_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever names and messages hold, no command prints what a terminal would obey, no cell of a table is a formula,
    and JSON lines keep every character (failures.md rows 63, 65, 66)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BULK_TOKEN", ADMIN)
    ids = [f"{sign}{HOSTILE}{FORMULA}" for sign in ("", *"=+-@\t\r＝")]
    items = [{"id": name, "owner": "acme", "repo": "api", "path": f"\u202e{n}\u200b.txt"} for n, name in enumerate(ids)]
    manifest = {
        "version": 1,
        "platform": {"base_url": base_url},
        "jobs": {"reads": {"operation": "contents.get", "items": items}},
    }
    Path("m.yaml").write_text(json.dumps(manifest))
    said = {}
    for command in (
        "run m.yaml --run-dir a --progress plain --log-level debug",
        "run m.yaml --run-dir b --progress none --log-format json",
        "retry a --progress plain",
        "status a",
        "report a",
        "report a --only failed",
        "report a --format html",
        "diff a b",
        "plan m.yaml",
        "rate-limit --base-url " + base_url,
    ):
        assert cli.main(command.split()) in (0, 1), command
        out, err = capsys.readouterr()
        said[command] = out + err
        assert obeyed(said[command]) == set(), command
    assert "HYPERLINK" in said["report a"]
    for command in ("report a --format csv", "report a --format csv --only failed"):
        assert cli.main(command.split()) == 0
        rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
        assert len(rows) == len(ids) + 1
        assert [cell for row in rows for cell in row if cell[:1] in tuple("=+-@\t\r＝＋－＠")] == []
    assert cli.main(["report", "a", "--format", "jsonl"]) == 0
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == ids
