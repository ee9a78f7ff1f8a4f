"""A run that stopped before anything ended says what it had waited for, and what went wrong there."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.e2e.support.platform import Home


class EmptyAnswers(BaseHTTPRequestHandler):
    """A platform whose every read is an empty object."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """No README is in it."""
        self.send_response(404 if self.path.endswith("/rate_limit") else 200)
        body = b'{"message": "Not Found"}' if self.path.endswith("/rate_limit") else b"{}"
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing."""


def test_a_stopped_run_says_what_it_waited_for_and_why(tmp_path: Path) -> None:
    """The reason, the last error and its count stand in the report of a run that was stopped in an orderly way."""
    home = Home(tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), EmptyAnswers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        base_url = f"http://127.0.0.1:{server.server_address[1]}/api/v3"
        items = [{"owner": "a", "repo": "b"}, {"owner": "a", "repo": "c"}]
        readmes = {"operation": "readme.get", "items": items}
        home.manifest(base_url, {"readmes": readmes}, limits={"max_duration": "6s"})
        ran = home.run("run", "manifest.yaml", "--run-dir", "run")
        server.shutdown()
        thread.join()
    assert ran.exit_code == 3
    (wait,) = home.report("run")["waits"]
    assert wait["what"] == "next try of a read"
    assert wait["count"] == 2
    assert wait["errors"] >= 2, "each was tried"
    assert "not a file" in wait["error"]
    said = " ".join(ran.out.split())
    assert "waited for: next try of a read" in said
    assert wait["error"] in said
    page = (tmp_path / "run/report.html").read_text()
    assert f"{wait['errors']} times: " in page
