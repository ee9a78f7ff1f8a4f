"""Who may ask: nobody but the page itself, with the key; and nothing that was refused has changed anything."""

import contextlib
import itertools
import socket
from pathlib import Path

import pytest

from bulk.cli.app import commands
from tests.serve.conftest import Asker, asking

FOREIGN = ("evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "", None)
OTHERS = ("http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "null", "http://localhost:{port}")
PAGES = (
    "/",
    "/run/small",
    "/run/small/items",
    "/audits",
    "/audit/fleet",
    "/workers",
    "/page.js",
    "/page.css",
    "/icon.svg",
)
DATA = (
    "/api/runs",
    "/api/budgets",
    "/api/audits",
    "/api/audits/fleet/changes",
    "/api/cluster",
    "/api/runs/small",
    "/api/runs/small/plots",
    "/api/runs/small/items",
)
TABS = 300
VERBS = ("pause", "resume", "stop", "set", "retry", "gate")


@pytest.mark.parametrize(("host", "path"), list(itertools.product(FOREIGN, ("/", "/api/runs", "/metrics"))))
def test_another_name_of_this_address_is_refused(asker: Asker, host: str | None, path: str) -> None:
    """DNS rebinding: a name that was pointed at loopback reads nothing, not even with the key (failures.md row 70)."""
    name = None if host is None else host.format(port=asker.port)
    answer = asker.send("GET", path, {**asker.key, "Host": name})
    assert answer.status in (400, 421)
    assert b"small" not in answer.body


@pytest.mark.parametrize("origin", OTHERS)
def test_another_page_may_neither_ask_nor_tell(asker: Asker, origin: str) -> None:
    """Another site's fetch and its form are refused, with the key and without it; so is a page without an origin
    (failures.md row 70).
    """
    origin = origin.format(port=asker.port)
    for key in ({}, asker.key):
        headers: dict[str, str | None] = {**key, "Origin": origin}
        assert asker.send("GET", "/api/runs", headers).status == 403
        form = {**headers, "Content-Type": "application/x-www-form-urlencoded"}
        assert asker.send("POST", "/api/runs/small/stop", form, "now=true").status == 403
        text = {**headers, "Content-Type": "text/plain"}
        assert asker.send("POST", "/api/runs/small/stop", text, '{"now": true}').status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_a_browser_says_of_another_site_counts(asker: Asker, site: str) -> None:
    """`Sec-Fetch-Site` of another site is refused where no `Origin` is sent, as for images and links."""
    for path in ("/", "/api/runs", "/page.js"):
        assert asker.send("GET", path, {**asker.key, "Sec-Fetch-Site": site}).status == 403


@pytest.mark.parametrize("path", [*DATA, "/metrics"])
def test_without_the_key_nothing_is_told(asker: Asker, path: str) -> None:
    """No key, a wrong one, one in the query, in a cookie, or as a password: 401, and nothing of it comes back."""
    key = asker.served.key
    for sent, query in (
        ({}, ""),
        ({"Authorization": f"Bearer {key[:-1]}"}, ""),
        ({"Authorization": f"Basic {key}"}, ""),
        ({"Cookie": f"key={key}"}, ""),
        ({}, f"?key={key}&access_token={key}"),
        ({"Authorization": "Bearer ü"}, ""),
    ):
        answer = asker.send("GET", path + query, {**sent})
        assert answer.status == 401, sent
        assert key.encode() not in answer.body
        assert b"small" not in answer.body


def test_the_key_of_the_metrics_opens_nothing_else(asker: Asker) -> None:
    """A collector of metrics reads no run; and the key of the page is not for collectors."""
    metrics: dict[str, str | None] = {"Authorization": f"Bearer {asker.served.metrics_key}"}
    assert asker.send("GET", "/metrics", metrics).status == 200
    for path in DATA:
        assert asker.send("GET", path, metrics).status == 401
    assert asker.send("GET", "/metrics", {**asker.key}).status == 401


@pytest.mark.parametrize("verb", VERBS)
def test_no_get_changes_anything(asker: Asker, verb: str) -> None:
    """What changes a run is a POST with JSON, the key and this page's origin; all else is refused before it is read."""
    path = f"/api/runs/small/{verb}"
    own: dict[str, str | None] = {**asker.key, "Origin": asker.served.url, "Content-Type": "application/json"}
    for method in ("GET", "HEAD"):
        assert asker.send(method, path, own).status in (404, 405)
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert asker.send(method, path, own, "{}").status == 405
    assert asker.send("POST", path, {**own, "Authorization": None}, "{}").status == 401
    assert asker.send("POST", path, {**own, "Origin": None}, "{}").status == 403
    assert asker.send("POST", path, {**own, "Content-Type": "text/plain"}, "{}").status == 415
    assert asker.send("POST", path, own, "[]").status == 400
    assert asker.send("POST", path, own, '"' + "x" * 20_000 + '"').status == 413


@pytest.mark.parametrize("verb", VERBS)
def test_read_only_means_it(fleet: Path, tmp_path: Path, verb: str) -> None:
    """With `--read-only` no verb does anything, and the page knows."""
    with asking(fleet, cache=tmp_path, is_read_only=True) as asker:
        assert asker.post(f"/runs/small/{verb}", {}).status == 403
        assert asker.get("/runs/small").data["is_read_only"] is True


@pytest.mark.parametrize(
    "name",
    [
        "..",
        "../small",
        "%2e%2e",
        "..%2f..%2fetc",
        "small%2f..%2fhostile",
        "%2fetc%2fpasswd",
        "small%00",
        "2:small",
        ".",
    ],
)
def test_no_address_names_a_path(asker: Asker, name: str) -> None:
    """A run is found by its name in the list alone; what would be a path is nothing."""
    for rest in ("", "/plots", "/items", "/items/readmes/0"):
        assert asker.get(f"/runs/{name}{rest}").status in (404, 405)


@pytest.mark.parametrize("item", ["readmes/-1", "readmes/1e3", "readmes/99999999999999", "nothing/0", "readmes/..%2f0"])
def test_no_address_of_an_item_names_anything_else(asker: Asker, item: str) -> None:
    """An item is a job of the run and a number."""
    assert asker.get(f"/runs/small/items/{item}").status == 404


@pytest.mark.parametrize("path", [*PAGES, *DATA, "/nothing", "/api/nothing", "/api/runs/small/items/readmes/0"])
def test_every_answer_is_locked_down(asker: Asker, path: str) -> None:
    """Whatever is answered, errors included, runs no script but the page's own, is framed, sniffed and kept by nobody,
    and sends no address on.
    """
    for headers in ({}, asker.key):
        answer = asker.send("GET", path, {**headers})
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; ")
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers
        assert "set-cookie" not in answer.headers


def test_hostile_requests_change_nothing(asker: Asker, fleet: Path) -> None:
    """Whatever is tried, by another name, another page, a path, or without the key: all of it is refused, and no file
    of a run is another one afterwards.
    """
    own: dict[str, str | None] = {**asker.key, "Origin": asker.served.url, "Content-Type": "application/json"}
    evil = "http://evil.example"
    tries: list[dict[str, str | None]] = [{**own, "Host": name} for name in ("evil.example", "127.0.0.1:1", None)]
    tries += [{**own, "Origin": origin} for origin in (evil, "null", None)]
    tries += [{**own, "Sec-Fetch-Site": "cross-site"}, {**own, "Authorization": None}]
    tries += [{**own, "Content-Type": "text/plain", "Referer": f"{evil}/x"}, {**own, "Authorization": "Bearer guess"}]
    before, statuses = _files(fleet), list[int]()
    for verb, headers in itertools.product(VERBS, tries):
        statuses.append(asker.send("POST", f"/api/runs/small/{verb}", headers, "{}").status)
    for place in ("..%2fsmall", "%2e%2e", "small%2f..%2fhostile", "%2fetc%2fpasswd"):
        statuses.append(asker.send("POST", f"/api/runs/{place}/stop", own, "{}").status)
        statuses.append(asker.send("GET", f"/api/runs/{place}/items", {**asker.key, "Referer": f"{evil}/x"}).status)
    assert len(statuses) >= 68
    assert set(statuses) <= {400, 401, 403, 404, 405, 415, 421}
    assert _files(fleet) == before


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_page_itself_holds_no_data(asker: Asker) -> None:
    """What is served without the key is the same for everybody: no run is named in it, and no key."""
    for path in PAGES:
        body = asker.send("GET", path).body
        assert asker.served.key.encode() not in body
        assert b"hostile" not in body
        assert b"code.example.com" not in body


def test_an_error_repeats_nothing_that_was_sent(asker: Asker) -> None:
    """Neither a path nor a header of a request stands in its refusal."""
    answer = asker.send("GET", "/api/runs/<script>alert(1)<script>", {**asker.key, "X-Told": "told-to-nobody"})
    assert answer.status == 404
    assert b"script" not in answer.body
    assert b"told-to-nobody" not in answer.body


def test_it_listens_on_loopback_alone(asker: Asker) -> None:
    """No other address of the machine answers, and no option makes one (failures.md row 69)."""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", asker.port), timeout=60)
    assert not any("--host" in parameter.opts for parameter in commands.commands["serve"].params)


def test_who_reads_slowly_holds_nobody_up(asker: Asker) -> None:
    """Three hundred tabs that ask and never read take no answer from anybody else (failures.md row 71)."""
    with contextlib.ExitStack() as stack:
        for _ in range(TABS):
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", asker.port), timeout=60))
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            request = f"GET /page.js HTTP/1.1\r\nHost: 127.0.0.1:{asker.port}\r\n\r\n"
            slow.sendall(request.encode() * 4)
        for path in ("/runs", "/runs/small", "/runs/small/plots"):
            assert asker.get(path).status == 200
