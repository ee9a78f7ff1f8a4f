"""A platform of canned answers: a static nginx on a core of its own, many times faster than any client.

Every README is the same 3 kB of JSON, which has not changed for who sends a validator; every write of a file is new;
`/rate_limit` is 404, so that limits are off. One worker, no log, connections that stay open.
"""

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness.measuring import SERVER_CORE, on_core

CONTENT = "QUJD" * 690
README = {
    "type": "file",
    "encoding": "base64",
    "size": 2070,
    "name": "README.md",
    "path": "README.md",
    "content": CONTENT,
    "sha": "8778e29a84251f8d44dbf7f8abe4b859fa811d6f",
    "url": "https://code.example.com/api/v3$repository/contents/README.md?ref=main",
    "html_url": "https://code.example.com/acme/api/blob/main/README.md",
}
WRITTEN = {
    "content": {"path": "CODEOWNERS", "sha": "8778e29a84251f8d44dbf7f8abe4b859fa811d6f", "size": 2070},
    "commit": {"sha": "7638417db6d59f3c431d3e1f261cc637155684cd", "message": "Add CODEOWNERS"},
}

CONFIGURATION = """
daemon off; worker_processes 1; pid FOLDER/nginx.pid; error_log FOLDER/error.log error;
events { worker_connections 8192; }
http {
    access_log off; server_tokens off; tcp_nodelay on; keepalive_timeout 600s; keepalive_requests 100000000;
    client_body_temp_path FOLDER/body; proxy_temp_path FOLDER/proxy; fastcgi_temp_path FOLDER/fastcgi;
    uwsgi_temp_path FOLDER/uwsgi; scgi_temp_path FOLDER/scgi;
    client_body_buffer_size 256k; default_type 'application/json; charset=utf-8';
    server {
        listen 127.0.0.1:PORT backlog=4096;
        add_header ETag '"0123456789abcdef0123456789abcdef"' always;
        add_header X-Service-Request-Id 'A1B2:3C4D:5E6F:7890' always;
        location /api/v3/rate_limit { return 404 '{"message":"Rate limiting is not enabled."}'; }
        location ~ ^/api/v3(?<repository>/repos/[^/]+/[^/]+)/readme$ {
            if ($http_if_none_match) { return 304; }
            return 200 'README';
        }
        location ~ /contents/ { if ($request_method = PUT) { return 201 'WRITTEN'; } return 404 '{}'; }
    }
}
"""


@contextlib.contextmanager
def canned_platform() -> Iterator[str]:
    """Serve until the block ends: the base URL."""
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if nginx is None:
        sys.exit("this benchmark needs nginx; on Debian and Ubuntu: apt-get install nginx-light")
    with tempfile.TemporaryDirectory(prefix="bulk-nginx-") as folder, socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
        chosen.close()
        text = CONFIGURATION.replace("FOLDER", folder).replace("PORT", str(port))
        text = text.replace("'README'", f"'{json.dumps(README)}'").replace("'WRITTEN'", f"'{json.dumps(WRITTEN)}'")
        path = Path(folder) / "nginx.conf"
        path.write_text(text)
        command = [nginx, "-p", folder, "-c", str(path), "-e", f"{folder}/error.log"]
        with on_core(SERVER_CORE):
            started = subprocess.Popen(command)
        with started as server:
            try:
                _wait_until_it_answers(port)
                yield f"http://127.0.0.1:{port}/api/v3"
            finally:
                server.terminate()


def _wait_until_it_answers(port: int) -> None:
    until = time.monotonic() + 10.0
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
        except OSError:
            if time.monotonic() > until:
                raise
        else:
            return
