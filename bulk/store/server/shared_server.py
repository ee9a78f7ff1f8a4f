"""A server that lives as long as at least one process uses it: for tests, and for several workers on one machine.

Each process that uses the server holds the writing end of a named pipe; when the last one lets go, or is killed, the
server ends. Its data goes with it, or stays in the folder where its users meet (for root in a folder below `/var/tmp`)
until `remove` deletes it. A server that crashes is started again.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from bulk.errors import UNDECODABLE, BulkError, RunStopped
from bulk.storage.child_process import python
from bulk.storage.private_files import write_whole
from bulk.store.server.private_server import Place, Server

_LOCK, _USERS, _ADDRESS, _KEEPER, _KEPT = "lock", "users", "address.json", "keeper", "kept.json"

_LASTING = "/var/tmp"
"""Where a server that root starts keeps its data, because the server's user can't open most folders of root."""

AGAIN_S = 1.0
"""How long after a failed start a server is started again (seconds)."""

DURABLE, FORGETFUL, KEPT = "durable", "forgetful", "kept"
"""What the data survives: DURABLE: a crash of the machine; FORGETFUL: a crash of the server alone; KEPT: a crash of the
machine, and also the end of the last user."""


@contextlib.contextmanager
def shared_server(meeting: Path, survival: str = DURABLE) -> Iterator[Place]:
    """Use the server that all processes with this meeting folder share; the first one starts it, the last one ends it.

    Args:
        meeting: a folder of this user.
        survival: `DURABLE`, `FORGETFUL` or `KEPT`.

    Raises:
        RunStopped: the server did not start; the message has the reason.
    """
    meeting.mkdir(parents=True, exist_ok=True)
    with _locked(meeting / _LOCK):
        users = _join(meeting) or _start(meeting, survival)
        place = msgspec.json.decode((meeting / _ADDRESS).read_bytes(), type=Place)
    try:
        yield place
    finally:
        users.close()


def remove(meeting: Path) -> None:
    """Wait until the server of that folder, which is not used any more, has ended, and delete all of its data."""
    with _locked(meeting / _KEEPER):
        data = _kept_data(meeting, is_to_make=False)
        if data is not None:
            Server.end_left_over(data)
            _take_away(data)
        _forget_place(meeting)
        shutil.rmtree(meeting, ignore_errors=True)


def _take_away(data: Path) -> None:
    """Delete the data; a process that is killed meanwhile leaves nothing that the next one takes for a database."""
    gone = data.with_name(data.name + ".gone")
    shutil.rmtree(gone, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        data.rename(gone)
    shutil.rmtree(data.parent, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _join(meeting: Path) -> IO[bytes] | None:
    """Return the writing end of the pipe of a running server; None where no process reads it, so that none runs."""
    try:
        return open(os.open(meeting / _USERS, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC), "wb")
    except OSError:
        return None


def _start(meeting: Path, survival: str) -> IO[bytes]:
    (meeting / _USERS).unlink(missing_ok=True)
    os.mkfifo(meeting / _USERS, 0o600)
    # Held until the server is ready: if this process is killed meanwhile, the keeper finds that the pipe has no user.
    reading = os.open(meeting / _USERS, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    writing = os.open(meeting / _USERS, os.O_WRONLY | os.O_CLOEXEC)
    starting = subprocess.run(
        python(__name__, str(meeting.absolute()), survival),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    os.close(reading)
    users = _join(meeting)
    os.close(writing)
    if users is None:
        said = starting.stdout.decode(errors="replace").strip()
        raise RunStopped(f"PostgreSQL did not start: {said[-2000:]}")
    return users


def _kept_data(meeting: Path, *, is_to_make: bool) -> Path | None:
    """Return the folder of the data that is kept; None where there is none and none is to be made."""
    noted = meeting / _KEPT
    if noted.exists():
        return Path(msgspec.json.decode(noted.read_bytes(), type=str))
    if not is_to_make:
        return None
    if os.geteuid() == 0:
        folder = Path(tempfile.mkdtemp(prefix="bulk-store-", dir=_LASTING))
    else:
        folder = meeting.absolute() / "database"
    try:
        write_whole(noted, msgspec.json.encode(str(folder / "data")))
    except OSError:
        with contextlib.suppress(OSError):  # only the folder of a server that root starts exists already
            folder.rmdir()
        raise
    return folder / "data"


@contextlib.contextmanager
def looked_at(meeting: Path) -> Iterator[Place | None]:
    """Yield where the server of a folder listens, without keeping it alive; None: the folder never had a server.

    If the server has ended and its data was kept, it is started again for the time of the block.
    """
    users = _join(meeting)
    if users is not None:
        users.close()
    if users is None and (meeting / _KEPT).is_file():
        with shared_server(meeting, KEPT) as place:
            yield place
    else:
        yield place_of(meeting)


def place_of(meeting: Path) -> Place | None:
    """Return where the server of a folder listens, or has listened; None: the folder never had a server."""
    try:
        return msgspec.json.decode((meeting / _ADDRESS).read_bytes(), type=Place)
    except (OSError, *UNDECODABLE):
        return None


def _forget_place(meeting: Path) -> None:
    """Delete the folder of a server that has ended without deleting it."""
    place = place_of(meeting)
    if place is not None:
        shutil.rmtree(place.folder, ignore_errors=True)


def keep(meeting: Path, survival: str) -> None:
    """Run the server until no process holds the pipe any more, in the separate process that `shared_server` starts."""
    with _locked(meeting / _KEEPER):  # the keeper before this one has ended, or was killed
        data = _kept_data(meeting, is_to_make=True) if survival == KEPT else None
        if data is not None:
            Server.end_left_over(data)
        _forget_place(meeting)
        server = Server(is_durable=survival != FORGETFUL, data=data)
        ending, changing = threading.Event(), threading.Lock()
        try:
            server.start()
            users = os.open(meeting / _USERS, os.O_RDONLY | os.O_NONBLOCK)
            (meeting / _ADDRESS).write_bytes(msgspec.json.encode(Place(str(server.folder))))
            _fall_silent()
            threading.Thread(target=_start_again, args=(server, ending, changing), daemon=True).start()
            os.set_blocking(users, True)  # from now on the end of the file says that the pipe has no user any more
            with open(users, "rb", buffering=0) as pipe:
                while not _is_over(meeting, pipe):
                    pass
        finally:
            ending.set()
            with changing:
                server.stop(signal.SIGINT if survival == KEPT else signal.SIGQUIT)
                server.remove()


def _start_again(server: Server, ending: threading.Event, changing: threading.Lock) -> None:
    """Start the server again each time that it has crashed, until it is to end."""
    while server.wait():
        with changing:
            if ending.is_set():
                return
            with contextlib.suppress(BulkError):  # its log says why
                server.start()
                continue
        ending.wait(AGAIN_S)


def _is_over(meeting: Path, pipe: IO[bytes]) -> bool:
    """Wait until no process holds the pipe; returns False where another process has opened it meanwhile."""
    pipe.read()
    with _locked(meeting / _LOCK):
        os.set_blocking(pipe.fileno(), False)
        try:
            is_used = pipe.read(1) is None
        finally:
            os.set_blocking(pipe.fileno(), True)
        if not is_used:
            (meeting / _USERS).unlink(missing_ok=True)  # a process that comes now starts another server
        return not is_used


def _said_by(error: OSError) -> str:
    """Return the message of an error of the file system, with the path of its file (the first of several)."""
    if isinstance(error, shutil.Error):
        _, place, why = error.args[0][0]
        return f"{place}: {why}"
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def _fall_silent() -> None:
    """Close standard output and standard error: their end tells the starting process that the server is ready."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


if __name__ == "__main__":
    if os.fork():
        os._exit(0)  # the process that started the keeper has no child to wait for
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the server ends with its keeper
    os.setsid()  # Ctrl-C is meant for the process that uses the server
    try:
        keep(Path(sys.argv[1]), sys.argv[2])
    except BulkError as flaw:
        sys.exit(str(flaw))
    except OSError as flaw:
        sys.exit(
            f"{_said_by(flaw)}; correct that or free some space (TMPDIR names another folder for what is temporary)"
        )
