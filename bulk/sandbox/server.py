"""The sandbox as a whole: how it is put together, opened and served.

Reading order: this file, `http/pipeline.py` (what happens to every request), then an area, for example
`areas/organizations/`.

How an area is added: write one file in `areas/` with its functions, each

    async def get_thing(call: Call) -> Answer:

and a constant that lists them

    AREA = Area("Things", routes=(
        Route("GET", "/orgs/{org}/things/{thing_id}", get_thing, access=Access(scopes=("read:org",))),
    ))

and name the file in `areas/served.py`. A function takes what it needs from the call (`call.params`, `call.query`,
`call.json_object()`, `call.context.state`), asks `rights.py` who may, raises `Refused` (by the functions of
`refusals.py`) to refuse, returns an `Answer`, and names in its `effect` what it changed. Latency, limits, validators,
headers, faults and the journal are the pipeline's. Where two writes to one thing must not overlap, the area does its
work inside `async with call.writing(key):`. What the area keeps for as long as the server lives is made in
`Area.start` and kept by `context.put`; work after the answer goes to `context.background`; work that blocks to `await
context.blocking(work)`.

The clock, and the way in which blocking work is done, are passed in; all else is decided by the requests. With a clock
in virtual time and `inline`, no thread and no socket is needed: `Sandbox.server` is a factory of protocols for
in-memory connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import anyio
from aiohttp import web

from bulk.sandbox.areas.served import AREAS
from bulk.sandbox.background import background
from bulk.sandbox.clock import Clock, SystemClock
from bulk.sandbox.http.budgets import Budgets
from bulk.sandbox.http.context import Blocking, Context, in_thread
from bulk.sandbox.http.journal import Journal
from bulk.sandbox.http.media import Vendor
from bulk.sandbox.http.observing import Observe, from_environment
from bulk.sandbox.http.pipeline import MOST_BODY_BYTES, Pipeline
from bulk.sandbox.http.routes import Area, Router
from bulk.sandbox.seeding import seeds
from bulk.sandbox.seeding.app_seeds import private_key_of
from bulk.sandbox.seeding.seeds import STANDARD_TOKENS
from bulk.sandbox.settings import SettingError, Settings
from bulk.sandbox.store.apps import Apps
from bulk.sandbox.store.state import State

SHUTDOWN_S = 2.0
STATE, LOCK = "state.db", "lock"
OWN = (f"{STATE}*", LOCK, "repositories", "*.private-key.pem", ".*", "lost+found")
"""Patterns of names that a state directory may hold before it has a state: a new volume has some, too."""


@dataclass(frozen=True, slots=True)
class ShownApp:
    """An App, for the person who starts the sandbox; `key` is its private key, where the sandbox has made it."""

    slug: str
    client_id: str
    key: Path | None


@dataclass(slots=True)
class Sandbox:
    """One open sandbox.

    Attributes:
        context: its parts.
        server: a factory of protocols, for `loop.create_server` or an in-memory connection.
        base_url: `http://HOST:PORT/api/v3`; empty while it is not served on a socket.
    """

    context: Context
    server: web.Server
    base_url: str = ""

    @property
    def journal(self) -> Path | None:
        """The journal's file, if there is one."""
        return self.context.settings.journal

    @property
    def tokens(self) -> Mapping[str, str]:
        """The tokens of the standard data that the state has, and the user of each."""
        state = self.context.state
        return {text: whose for text, whose in STANDARD_TOKENS.items() if state.token(text) is not None}

    @property
    def apps(self) -> list[ShownApp]:
        """The Apps, with the private keys that the sandbox has made."""
        found = []
        for app in self.context.apps.every:
            key = private_key_of(self.context.directory, app.slug)
            found.append(ShownApp(app.slug, app.client_id, key if key.is_file() else None))
        return found

    @property
    def state(self) -> Path:
        """The state directory."""
        return self.context.directory


@asynccontextmanager
async def opened(
    settings: Settings,
    *,
    clock: Clock | None = None,
    blocking: Blocking = in_thread,
    areas: Sequence[Area] = AREAS,
    observe: Observe | None = None,
    folder: Path | None = None,
) -> AsyncIterator[Sandbox]:
    """Make a sandbox that is ready to answer, without a socket.

    Args:
        settings: the settings of the sandbox.
        clock: its source of time; None: the machine's clock.
        blocking: how it does work that blocks.
        areas: the areas that it serves.
        observe: called with every answer (`observing.py`); None: the observer that the environment names, if any.
        folder: an empty folder for the state of a sandbox that keeps none; None: it makes one, and deletes it.

    Raises:
        SettingError: the state, the seed data or the journal can't be used.
    """
    clock = clock or SystemClock()
    observe = observe or from_environment()
    async with contextlib.AsyncExitStack() as stack:
        directory = _directory(settings, folder, stack)
        state = State.open(directory / STATE, clock, is_kept=settings.state is not None)
        stack.callback(state.close)
        seeds.plant(state, settings, clock, directory)
        journal = Journal(settings.journal)
        stack.callback(journal.close)
        context = Context(
            settings=settings,
            clock=clock,
            directory=directory,
            state=state,
            apps=Apps(state, clock, settings.mint_lag_s),
            vendor=Vendor.named(settings.vendor),
            budgets=Budgets(settings.rate_limits, settings.rate_limit_off),
            background=await stack.enter_async_context(background()),
            blocking=blocking,
        )
        for area in areas:
            if area.start is not None:
                await area.start(context)
        pipeline = Pipeline(context, Router(route for area in areas for route in area.routes), journal, observe)
        yield Sandbox(context, _server(pipeline))


@asynccontextmanager
async def running(
    settings: Settings,
    *,
    clock: Clock | None = None,
    blocking: Blocking = in_thread,
    areas: Sequence[Area] = AREAS,
    observe: Observe | None = None,
    folder: Path | None = None,
) -> AsyncIterator[Sandbox]:
    """Serve a sandbox on its address until the block ends. Arguments and errors as `opened`, and

    Raises:
        SettingError: the address can't be listened on.
    """
    async with opened(settings, clock=clock, blocking=blocking, areas=areas, observe=observe, folder=folder) as sandbox:
        runner = web.ServerRunner(sandbox.server, shutdown_timeout=SHUTDOWN_S)
        await runner.setup()
        try:
            site = web.TCPSite(runner, settings.host, settings.port)
            try:
                await site.start()
            except (OSError, UnicodeError) as error:
                raise _unusable_address(settings, error) from None
            host, port = runner.addresses[0][:2]
            sandbox.base_url = f"http://{f'[{host}]' if ':' in host else host}:{port}{settings.base_path}"
            yield sandbox
        finally:
            await runner.cleanup()


async def serve(settings: Settings, ready: Callable[[Sandbox], None], folder: Path | None = None) -> None:
    """Serve until SIGINT or SIGTERM comes, or the caller cancels; then end cleanly.

    Args:
        settings: the settings of the sandbox.
        ready: called once when requests are answered at its `base_url`.
        folder: as for `opened`.

    Raises:
        SettingError: the sandbox can't be started with these settings.
    """
    async with running(settings, folder=folder) as sandbox:
        # The signals are caught before `ready` is called, because the program that learns the address may stop the
        # server at once.
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            ready(sandbox)
            async for _ in signals:
                return


def _server(pipeline: Pipeline) -> web.Server:
    def make_request(
        message: object, payload: object, protocol: object, writer: object, task: object
    ) -> web.BaseRequest:
        return web.BaseRequest(
            message,  # type: ignore[arg-type]
            payload,  # type: ignore[arg-type]
            protocol,  # type: ignore[arg-type]
            writer,  # type: ignore[arg-type]
            task,  # type: ignore[arg-type]
            asyncio.get_running_loop(),
            client_max_size=MOST_BODY_BYTES,
        )

    return web.Server(pipeline, request_factory=make_request, access_log=None)


def _directory(settings: Settings, folder: Path | None, stack: contextlib.AsyncExitStack) -> Path:
    if settings.state is None:
        return folder or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="sandbox-", ignore_cleanup_errors=True))
        )
    directory = settings.state
    try:
        _refuse_foreign(directory, settings)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (directory / LOCK).open("w")
    except OSError as error:
        raise SettingError(f"--state {directory}: {error.strerror}: name a directory that can be written") from None
    stack.callback(lock.close)
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SettingError(
                f"--state {directory}: another sandbox uses it: stop that one, or name another"
            ) from None
    return directory


def _refuse_foreign(directory: Path, settings: Settings) -> None:
    """Refuse a directory with files of somebody else, and without a state.

    Raises:
        SettingError: there are such files. OSError: the directory can't be listed.
    """
    if not directory.is_dir() or (directory / STATE).exists():
        return
    named = {path.resolve() for path in (settings.seed_data, settings.journal) if path is not None}
    foreign = [
        path.name
        for path in sorted(directory.iterdir())
        if path.resolve() not in named and not any(fnmatch(path.name, pattern) for pattern in OWN)
    ]
    if foreign:
        raise SettingError(
            f"--state {directory}: is not a sandbox's: it holds {foreign[0]!r} and no {STATE}: name an empty or a "
            "new directory"
        )


def _unusable_address(settings: Settings, error: OSError | UnicodeError) -> SettingError:
    where = f"{settings.host}:{settings.port}"
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return SettingError(f"{where} is in use by another program: choose another --port, or 0 for any free one")
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return SettingError(f"can't listen on {where}: {reason}: use --host 127.0.0.1 and --port 0")
