"""The server of the page: its addresses and their answers.

    GET  /, /run/…, /audit/…, …   the page itself: the same for every user, without data
    GET  /page.js, /page.css      its module and its style sheet; /icon.svg
    GET  /api/runs                the runs
    GET  /api/runs/NAME           one run; …/plots, …/items, …/items/JOB/INDEX
    GET  /api/budgets, /cluster   budgets of runs; workers, shards and shared budgets of a store
    GET  /api/audits/…            audits (`audits/answers.py`)
    POST /api/runs/NAME/VERB      steering
    GET  /metrics                 OpenMetrics

Answers carry an ETag, and a page that asks every second mostly gets 304. Ledgers are read in threads; pages that ask
for the same address at the same moment share one answer.
"""

import contextlib
import functools
import hashlib
import secrets
import socket
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import msgspec
from aiohttp import web

from bulk.clock import Clock
from bulk.errors import UNDECODABLE, BulkError
from bulk.ledger.directory import ORIGIN
from bulk.redaction import redact_json
from bulk.report.render.json_data import as_data, encoded
from bulk.serve import page_files
from bulk.serve.audits.answers import AuditAnswers
from bulk.serve.audits.audit_pages import AuditPages
from bulk.serve.audits.histories import Histories
from bulk.serve.connections import BODY_S, listen
from bulk.serve.fleet import STORED, Fleet, Opened
from bulk.serve.guard import METRICS, Guard, add_headers, middleware
from bulk.serve.items import Filter, Items, item
from bulk.serve.metrics import metrics
from bulk.serve.metrics.metrics_source import Latencies, fleet_text
from bulk.serve.plots import Plots
from bulk.serve.run_page import RunPages
from bulk.serve.steer import VERBS, Done, NotDone, Steer

if TYPE_CHECKING:
    from bulk.serve.stored.stored_runs import StoredRuns

T = TypeVar("T")

HOST = "127.0.0.1"
MOST_BODY_BYTES = 16 * 1024
SHARED_S, MOST_SHARED = 0.3, 64
"""How long an answer is reused for requests to the same address (seconds), and how many are kept (count)."""
THREADS, STORE_THREADS = 4, 2
KEY_BYTES = 32
SHUTDOWN_S = 1.0
CLUSTER = "/api/cluster"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a server.

    Attributes:
        folders: folders of runs. audits: folders of histories of audits. cache: folder for search indexes.
        store: address of a store; empty: none. port: TCP port; 0: any free port.
        metrics_key: opens `/metrics` and nothing else; empty: a new key is made.
    """

    folders: Sequence[Path]
    cache: Path
    audits: Sequence[Path] = ()
    store: str = ""
    port: int = 0
    is_read_only: bool = False
    metrics_key: str = ""


@dataclass(frozen=True, slots=True)
class Served:
    """A running server: its address, the key of the page, and the key of the metrics."""

    url: str
    key: str
    metrics_key: str

    @property
    def address(self) -> str:
        """Return the address that a person opens; no browser sends the part after `#`, which has the key."""
        return f"{self.url}/#key={self.key}"


@contextlib.asynccontextmanager
async def serving(settings: Settings, clock: Clock) -> AsyncIterator[Served]:
    """Serve the page within the block.

    Raises:
        OSError: the port is taken, or can't be used.
    """
    listener = socket.socket()
    with listener, contextlib.ExitStack() as stack:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, settings.port))
        port = listener.getsockname()[1]
        guard = Guard(
            port=port,
            key=secrets.token_urlsafe(KEY_BYTES),
            metrics_key=settings.metrics_key or secrets.token_urlsafe(KEY_BYTES),
            is_read_only=settings.is_read_only,
        )
        items, stored = Items(settings.cache, clock), _stored(settings.store, clock)
        try:
            histories = Histories(settings.audits, clock)
            fleet = Fleet(settings.folders, ORIGIN, clock, histories, stored)
            answers = Answers(fleet, histories, stored, items, guard, clock)
            runner = web.AppRunner(answers.application(), access_log=None, shutdown_timeout=SHUTDOWN_S)
            await runner.setup()
            try:
                server = await listen(runner, listener, refused)
                stack.callback(server.close)
                yield Served(f"http://{HOST}:{port}", guard.key, guard.metrics_key)
            finally:
                await runner.cleanup()
        finally:
            items.close()
            if stored is not None:
                stored.close()


def _stored(text: str, clock: Clock) -> "StoredRuns | None":
    if not text:
        return None
    from bulk.serve.stored.stored_runs import StoredRuns  # the client of the store is an extra
    from bulk.store import address

    return StoredRuns(address.read(text), clock)


class NoSuchRun(LookupError):
    """There is no run of that name."""


class Answers:
    """Answers the requests that the guard has let in."""

    def __init__(
        self,
        fleet: Fleet,
        histories: Histories,
        stored: "StoredRuns | None",
        items: Items,
        guard: Guard,
        clock: Clock,
    ) -> None:
        self._fleet, self._stored, self._items, self._guard, self._clock = fleet, stored, items, guard, clock
        self._histories = histories
        self._audits = AuditAnswers(
            histories, AuditPages(histories, fleet), functools.partial(self._told, is_dated=False)
        )
        self._pages = RunPages(fleet, clock, is_read_only=guard.is_read_only)
        self._plots, self._latencies, self._steer = Plots(), Latencies(), Steer(_wait)
        self._threads, self._store_threads = anyio.CapacityLimiter(THREADS), anyio.CapacityLimiter(STORE_THREADS)
        self._shared: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self._sharing: dict[str, anyio.Lock] = {}

    def application(self) -> web.Application:
        """Return the aiohttp application with all addresses."""
        app = web.Application(middlewares=[middleware(self._guard, refused), _telling], client_max_size=MOST_BODY_BYTES)
        app.on_response_prepare.append(add_headers)
        app.router.add_routes(page_files.routes(has_store=self._stored is not None))
        app.router.add_routes(self._audits.routes())
        app.router.add_get("/api/runs", self._runs)
        app.router.add_get("/api/budgets", self._budgets)
        app.router.add_get(CLUSTER, self._cluster)
        app.router.add_get("/api/runs/{name}", self._run)
        app.router.add_get("/api/runs/{name}/plots", self._curves)
        app.router.add_get("/api/runs/{name}/items", self._items_page)
        app.router.add_get("/api/runs/{name}/items/{job}/{index}", self._item)
        app.router.add_post("/api/runs/{name}/{verb}", self._do)
        app.router.add_get(METRICS, self._metrics)
        return app

    async def _runs(self, request: web.Request) -> web.Response:
        query, state = request.query.get("q", ""), request.query.get("state", "")
        return await self._told(request, lambda: self._pages.listed(query, state))

    async def _budgets(self, request: web.Request) -> web.Response:
        return await self._told(request, self._pages.budgets)

    async def _run(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        return await self._told(request, lambda: self._pages.of(self._opened(name)))

    async def _curves(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]

        def made() -> Any:
            run = self._opened(name)
            return self._plots.of(run.view, run.look.run_state, self._clock.now())

        return await self._told(request, made, is_dated=False)

    async def _items_page(self, request: web.Request) -> web.Response:
        name, asked = request.match_info["name"], request.query
        wanted = Filter(
            job=asked.get("job", ""),
            outcome=asked.get("outcome", ""),
            code=asked.get("code", ""),
            text=" ".join(asked.get("q", "").split()),
        )
        after = asked.get("after", "")
        try:
            return await self._told(
                request, lambda: self._items.page(self._opened(name).view, wanted, after), is_dated=False
            )
        except ValueError:
            return refused(400, "there is no such page")

    async def _item(self, request: web.Request) -> web.Response:
        name, job, index = (request.match_info[part] for part in ("name", "job", "index"))
        if not index.isdecimal() or len(index) > 12:
            return refused(404, "there is no such item")
        line = await self._blocking(lambda: item(self._opened(name).view, job, int(index)), self._threads_of(name))
        return refused(404, "that item has not ended, or is none of the run") if line is None else _json(request, line)

    async def _do(self, request: web.Request) -> web.Response:
        name, verb = request.match_info["name"], request.match_info["verb"]
        if verb not in VERBS:
            return refused(404, "there is no such verb")
        try:
            with anyio.fail_after(BODY_S):
                body = await request.read()
            args = msgspec.json.decode(body, type=dict[str, Any])
        except TimeoutError:
            return refused(408, "the rest of it did not come")
        except UNDECODABLE:
            return refused(400, "that is not a JSON object")
        try:
            done = await self._blocking(lambda: self._steered(name, verb, args), self._threads_of(name))
        except NotDone as reason:
            return refused(409, str(reason), reason.command)
        self._shared.clear()
        return _json(request, msgspec.json.encode(done))

    def _steered(self, name: str, verb: str, args: Mapping[str, Any]) -> Done:
        run = self._opened(name)
        try:
            if run.directory is not None:
                return self._steer.do(run.directory, verb, args, self._clock.now())
            assert self._stored is not None, "it has opened the run"
            return self._stored.do(name, verb, args)
        finally:
            self._fleet.forget(run)

    def _opened(self, name: str) -> Opened:
        run = self._fleet.opened(name)
        if run is None:
            raise NoSuchRun(name)
        return run

    async def _cluster(self, request: web.Request) -> web.Response:
        if self._stored is None:
            return refused(404, "this page has no store: bulk serve --store STORE")
        return await self._told(request, self._stored.cluster)

    async def _metrics(self, _: web.Request) -> web.Response:
        text = await self._blocking(
            lambda: fleet_text(self._fleet, self._histories.all(), self._clock.now(), self._latencies)
        )
        return web.Response(body=text.encode(), headers={"Content-Type": metrics.CONTENT_TYPE})

    async def _told(self, request: web.Request, look: Callable[[], Any], *, is_dated: bool = True) -> web.Response:
        """Answer with the data that `look` returns, as JSON; `is_dated`: write its moments as in all JSON of Bulk."""
        asked = request.path_qs
        lock = self._sharing.setdefault(asked, anyio.Lock())
        try:
            async with lock:
                made_at, body = self._shared.get(asked, (float("-inf"), b""))
                if self._clock.monotonic() - made_at > SHARED_S:
                    of_store = STORED if request.path == CLUSTER else ""
                    limiter = self._threads_of(request.match_info.get("name", of_store))
                    body = await self._blocking(lambda: _encoded(look(), is_dated=is_dated), limiter)
                    self._shared[asked] = self._clock.monotonic(), body
                    while len(self._shared) > MOST_SHARED:
                        self._shared.popitem(last=False)
        finally:
            if not lock.locked():
                self._sharing.pop(asked, None)
        return _json(request, body)

    async def _blocking(self, work: Callable[[], T], limiter: anyio.CapacityLimiter | None = None) -> T:
        return await anyio.to_thread.run_sync(work, limiter=limiter or self._threads)

    def _threads_of(self, name: str) -> anyio.CapacityLimiter:
        """Return the threads for a run: runs of a store have their own, as a silent store must hold up nothing else."""
        return self._store_threads if name.startswith(STORED) else self._threads


def refused(status: int, why: str, command: str = "") -> web.Response:
    """Return the answer of a refusal; it must repeat nothing of the request."""
    body = encoded({"error": why, "command": command})
    return web.Response(status=status, body=body, content_type="application/json")


@web.middleware
async def _telling(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
    """Turn errors into answers of one form, which repeat nothing of the request."""
    try:
        answer: web.StreamResponse = await handler(request)
    except web.HTTPException as error:
        return refused(error.status, {404: "there is nothing here"}.get(error.status, error.reason))
    except NoSuchRun:
        return refused(404, "there is no such run")
    except BulkError as error:
        return refused(503, str(error))
    except ConnectionError:  # whoever asked has left
        raise
    except OSError as error:  # a full disk, as where an index is made
        return refused(503, f"this machine can't do that: {error.strerror or type(error).__name__}")
    return answer


def _encoded(found: Any, *, is_dated: bool) -> bytes:
    return redact_json(encoded(as_data(found) if is_dated else found))


def _json(request: web.Request, body: bytes) -> web.Response:
    tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers={"ETag": tag})
    return web.Response(body=body, content_type="application/json", headers={"ETag": tag})


def _wait(seconds: float) -> None:
    """Hold the calling thread for that time (seconds)."""
    anyio.from_thread.run(anyio.sleep, seconds)
