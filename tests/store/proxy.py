"""A link to PostgreSQL that can be cut: before a request arrives, before its answer is back, or for a while."""

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from enum import Enum

from psycopg.conninfo import conninfo_to_dict

CHUNK = 65_536


class Cut(Enum):
    """What happens to the next request."""

    NONE = "it passes"
    REQUEST = "it never arrives"
    ANSWER = "it arrives, and its answer is lost"


class Link:
    """A port that leads to a server. `next_cut` is obeyed once, by the next bytes that a client sends and that hold
    `next_place`. `is_pooler`: it leaves out the settings that a client begins its session with."""

    def __init__(self, path: str) -> None:
        self._target, self.is_pooler = path, False
        self.next_cut, self.next_place = Cut.NONE, b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._passes = threading.Event()
        self._passes.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                self._sockets += [client, server]
                threading.Thread(target=self._forward, args=(client, server), daemon=True).start()
                threading.Thread(target=self._back, args=(server, client), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(CHUNK):
                self._passes.wait()
                if self.is_pooler:
                    data = without_settings(data)
                cut = Cut.NONE
                if self.next_place in data:
                    cut, self.next_cut = self.next_cut, Cut.NONE
                if cut is Cut.REQUEST:
                    break
                if cut is Cut.ANSWER:
                    # The client hears no more. Everything that it had sent arrives, and then the end of it.
                    client.shutdown(socket.SHUT_WR)
                    client.settimeout(0.05)
                    server.sendall(data)
                    with contextlib.suppress(OSError):
                        while data := client.recv(CHUNK):
                            server.sendall(data)
                    server.shutdown(socket.SHUT_WR)
                    return
                server.sendall(data)
        hang_up(client)
        hang_up(server)

    def _back(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(CHUNK):
                self._passes.wait()
                with contextlib.suppress(OSError):
                    client.sendall(data)
        hang_up(client)

    def part(self) -> None:
        """Nothing passes until `heal`, and nobody is told: what is sent meanwhile is late."""
        self._passes.clear()

    def heal(self) -> None:
        """The partition is over."""
        self._passes.set()

    def close(self) -> None:
        """Cut everything."""
        self.heal()
        hang_up(self._listener)
        self._listener.close()
        for each in self._sockets:
            hang_up(each)
            each.close()


def without_settings(data: bytes) -> bytes:
    """The first message of a session without its options; any other bytes as they are."""
    short = re.sub(rb"\0options\0[^\0]*\0", b"\0", data[4:], count=1)
    return data if len(short) == len(data) - 4 else (len(short) + 4).to_bytes(4, "big") + short


def hang_up(end: socket.socket) -> None:
    """Nothing passes any more."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def link_to(text: str) -> Iterator[tuple[Link, str]]:
    """A link to the server of an address, and the address that leads through it."""
    found = conninfo_to_dict(text)
    link = Link(f"{found['host']}/.s.PGSQL.{found['port']}")
    try:
        yield link, f"postgresql://{found['user']}@127.0.0.1:{link.port}/{found['dbname']}?gssencmode=disable"
    finally:
        link.close()
