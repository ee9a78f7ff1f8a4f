"""A server of the page over runs that were made for it, and somebody who asks."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest

from bulk.clock import Clock
from bulk.ledger.database import open_reader
from bulk.serve.server import Served, Settings, serving
from tests.browser.runs import write_hostile, write_small


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        """The JSON of it."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Asker:
    """Sends requests as they are written here, headers included; a header that is None is left out."""

    served: Served

    @property
    def port(self) -> int:
        """Of the server."""
        return int(self.served.url.rpartition(":")[2])

    @property
    def key(self) -> dict[str, str]:
        """What opens the page."""
        return {"Authorization": f"Bearer {self.served.key}"}

    def send(
        self, method: str, path: str, headers: dict[str, str | None] | None = None, body: str | None = None
    ) -> Answer:
        """Send one request, without the key."""
        sent: dict[str, str | None] = {"Host": f"127.0.0.1:{self.port}", **(headers or {})}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(None if body is None else body.encode())
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        """Ask as the page does."""
        return self.send("GET", f"/api{path}", {**self.key, **headers})

    def post(self, path: str, args: object) -> Answer:
        """Tell as the page does."""
        sent: dict[str, str | None] = {"Origin": self.served.url, "Content-Type": "application/json"}
        return self.send("POST", f"/api{path}", {**self.key, **sent}, json.dumps(args))


@contextmanager
def asking(*folders: Path, cache: Path, **options: Any) -> Iterator[Asker]:
    """A server, in a thread of its own; `options`: of its settings."""
    settings = Settings(folders, cache, **options)
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serving(settings, Clock())) as served,
    ):
        yield Asker(served)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs: `small`, and `hostile` whose every name is so."""
    folder = tmp_path_factory.mktemp("fleet")
    write_small(folder / "small")
    write_hostile(folder / "hostile")
    return folder


@pytest.fixture(scope="module")
def asker(fleet: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """Who asks a server of that folder."""
    with asking(fleet, cache=tmp_path_factory.mktemp("cache")) as asker:
        yield asker


@contextmanager
def counted() -> Iterator[list[int]]:
    """An entry for every ten steps of SQLite within the block."""
    steps = list[int]()

    @contextmanager
    def counting(path: Path) -> Iterator[Any]:
        with open_reader(path) as connection:
            connection.set_progress_handler(lambda: steps.append(1), 10)
            yield connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bulk.ledger.view.open_reader", counting)
        yield steps
