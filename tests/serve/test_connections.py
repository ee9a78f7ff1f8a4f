"""Whoever opens connections and says nothing, says it slowly, or says what is not a request, keeps nobody out."""

import logging
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from bulk.serve import connections, server
from bulk.serve.guard import HEADERS
from tests.browser.runs import write_small
from tests.serve.conftest import Asker, asking

WAIT_S = 10.0


def opened(asker: Asker, sent: bytes) -> socket.socket:
    """A connection on which `sent` was sent."""
    made = socket.create_connection(("127.0.0.1", asker.port), timeout=WAIT_S)
    made.sendall(sent)
    return made


def told(asker: Asker, sent: bytes) -> bytes:
    """All that comes until the other side closes."""
    with opened(asker, sent) as made:
        parts = []
        while part := made.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def heads(asker: Asker, first: str, *more: str) -> bytes:
    """A head with the key."""
    own = (f"Host: 127.0.0.1:{asker.port}", f"Authorization: Bearer {asker.served.key}")
    return "\r\n".join((first, *own, *more, "", "")).encode()


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: x"])
def test_who_does_not_ask_is_sent_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """A connection without a whole head of a request is closed."""
    monkeypatch.setattr(connections, "FIRST_S", 0.2)
    with asking(tmp_path, cache=tmp_path / "cache") as asker:
        assert told(asker, sent) == b""


def test_who_asks_no_more_is_sent_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that has asked stays for a while, and then is closed, whether half a head follows or nothing."""
    monkeypatch.setattr(connections, "FIRST_S", 1.0)  # the request comes within this time
    monkeypatch.setattr(connections, "IDLE_S", 0.2)
    with asking(tmp_path, cache=tmp_path / "cache") as asker:
        for more in (b"", b"GET / HT"):
            answer = told(asker, heads(asker, "GET /api/runs HTTP/1.1") + more)
            assert answer.startswith(b"HTTP/1.1 200")
            assert answer.count(b"HTTP/1.1") == 1


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verb whose body is promised and not sent changes nothing, and is answered."""
    monkeypatch.setattr(server, "BODY_S", 0.2)
    write_small(tmp_path / "small")
    with asking(tmp_path, cache=tmp_path / "cache") as asker:
        sent = heads(
            asker,
            "POST /api/runs/small/pause HTTP/1.1",
            f"Origin: {asker.served.url}",
            "Content-Type: application/json",
            "Content-Length: 9",
            "Connection: close",
        )
        assert told(asker, sent + b"{").startswith(b"HTTP/1.1 408")


def test_many_silent_connections_keep_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are never more than so many, and who comes and asks is answered: the oldest that says nothing goes."""
    monkeypatch.setattr(connections, "MOST", 20)
    write_small(tmp_path / "small")
    with asking(tmp_path, cache=tmp_path / "cache") as asker, ExitStack() as stack:
        silent = [stack.enter_context(opened(asker, b"GET / HTTP/1.1\r\nHost: x")) for _ in range(60)]
        for _ in range(5):
            assert asker.get("/runs/small").status == 200
        for each in silent[:40]:
            with suppress(ConnectionResetError):
                assert each.recv(1) == b""


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /api/runs HTTP/1.1\r\nAuthorization: Bearer known-to-nobody-4711\x7f\r\n\r\n",
        b"GET /known-to-nobody-4711" + b"a" * 9_000 + b" HTTP/1.1\r\n\r\n",
        b"known-to-nobody-4711 \xff\xfe\r\n\r\n",
        b"GET / HTTP/1.1\r\nknown-to-nobody-4711\r\n\r\n",
    ],
)
def test_what_is_no_request_is_neither_repeated_nor_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    """It may hold a key that was pasted with a letter too many."""
    with caplog.at_level(logging.DEBUG), asking(tmp_path, cache=tmp_path / "cache") as asker:
        answer = told(asker, sent)
    assert b" 400 " in answer
    assert b"known-to-nobody" not in answer
    assert "known-to-nobody" not in caplog.text
    for name in HEADERS:
        assert name.encode() in answer


def test_numbers_that_no_item_has_are_no_page(tmp_path: Path) -> None:
    """A page is asked for behind an item that can't be: refused, and not taken for a run that can't be read."""
    write_small(tmp_path / "small")
    with asking(tmp_path, cache=tmp_path / "cache") as asker:
        for after in ("9" * 30 + ":1", "1:" + "9" * 30, "x", "%ff:1"):
            assert asker.get(f"/runs/small/items?after={after}").status == 400
            assert asker.get(f"/runs/small/items?after={after}&outcome=failed").status == 400
