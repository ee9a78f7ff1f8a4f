"""A server that lives as long as somebody uses it: for tests, and for several workers on one machine.

Everybody who uses it holds the writing end of a pipe with a name; when the last one lets go, or is killed, the server
ends. What it keeps goes with it, or stays in the folder where its users meet, until `remove` takes that away. A server
that crashes is started again.
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

from bulk.errors import BulkError, RunStopped
from bulk.storage.private_files import replacing
from bulk.store.server.private_server import Place, Server

_LOCK, _USERS, _ADDRESS, _KEEPER, _KEPT = "lock", "users", "address.json", "keeper", "kept.json"

_LASTING = "/var/tmp"
"""Where a server of root's keeps its data: its user can't come into most folders of root's."""

AGAIN_S = 1.0
"""So long after it failed a server is started again (seconds)."""

DURABLE, FORGETFUL, KEPT = "durable", "forgetful", "kept"
"""What survives: a crash of the machine; a crash of the server; also the last user."""


@contextlib.contextmanager
def shared_server(meeting: Path, survival: str = DURABLE) -> Iterator[Place]:
    """Use the server of everybody who meets in this folder; the first one starts it, the last one ends it.

    Args:
        meeting: a folder of this user.
        survival: `DURABLE`, `FORGETFUL` or `KEPT`.

    Raises:
        UsageError, RunStopped: see `binaries`; it did not start.
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
    """Wait until the server of that folder has ended, which nobody uses any more, and take away all that it kept."""
    with _locked(meeting / _KEEPER):
        data = _kept_data(meeting, is_to_make=False)
        if data is not None:
            Server.end_left_over(data)
            _take_away(data)
        _forget_place(meeting)
        shutil.rmtree(meeting, ignore_errors=True)


def _take_away(data: Path) -> None:
    """Take away what is kept: whoever is killed meanwhile leaves nothing that the next one takes for a database."""
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
    """Return the writing end of the pipe of a server that runs; None where none does: nobody reads it."""
    try:
        return open(os.open(meeting / _USERS, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC), "wb")
    except OSError:
        return None


def _start(meeting: Path, survival: str) -> IO[bytes]:
    (meeting / _USERS).unlink(missing_ok=True)
    os.mkfifo(meeting / _USERS, 0o600)
    # Held until the server is ready: so the keeper of one that was killed meanwhile finds that nobody is left.
    reading = os.open(meeting / _USERS, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    writing = os.open(meeting / _USERS, os.O_WRONLY | os.O_CLOEXEC)
    starting = subprocess.run(
        [sys.executable, "-m", __name__, str(meeting.absolute()), survival],
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
    """Return the folder of what is kept; None where there is none and none is to be made."""
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
        with replacing(noted) as file:
            file.write(msgspec.json.encode(str(folder / "data")))
    except OSError:
        with contextlib.suppress(OSError):  # it is there where it is in a folder of root's
            folder.rmdir()
        raise
    return folder / "data"


@contextlib.contextmanager
def looked_at(meeting: Path) -> Iterator[Place | None]:
    """Look at what the server of a folder has, without keeping it alive; where it has ended and what it kept is there,
    it works again meanwhile. None: the folder never had one.
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
    """Return where the server of a folder listens, or did; None: it never had one."""
    try:
        return msgspec.json.decode((meeting / _ADDRESS).read_bytes(), type=Place)
    except (OSError, msgspec.MsgspecError):
        return None


def _forget_place(meeting: Path) -> None:
    """Take away the folder of a server that ended without doing so."""
    place = place_of(meeting)
    if place is not None:
        shutil.rmtree(place.folder, ignore_errors=True)


def keep(meeting: Path, survival: str) -> None:
    """Run the server until nobody holds the pipe any more: the process of its own that `shared_server` starts."""
    with _locked(meeting / _KEEPER):  # the one before has ended, or was killed
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
            os.set_blocking(users, True)  # from now on the end of the file tells that nobody is left
            with open(users, "rb", buffering=0) as pipe:
                while not _is_over(meeting, pipe):
                    pass
        finally:
            ending.set()
            with changing:
                server.stop(signal.SIGINT if survival == KEPT else signal.SIGQUIT)
                server.remove()


def _start_again(server: Server, ending: threading.Event, changing: threading.Lock) -> None:
    """Start the server whenever it has crashed, until it is to end."""
    while server.wait():
        with changing:
            if ending.is_set():
                return
            with contextlib.suppress(BulkError):  # its log says why
                server.start()
                continue
        ending.wait(AGAIN_S)


def _is_over(meeting: Path, pipe: IO[bytes]) -> bool:
    """Wait until nobody holds the pipe; False: somebody came while this was found out."""
    pipe.read()
    with _locked(meeting / _LOCK):
        os.set_blocking(pipe.fileno(), False)
        try:
            is_used = pipe.read(1) is None
        finally:
            os.set_blocking(pipe.fileno(), True)
        if not is_used:
            (meeting / _USERS).unlink(missing_ok=True)  # who comes now starts another one
        return not is_used


def _said_by(error: OSError) -> str:
    """Return what an error of the file system says, and of which file; of several files, what the first one's says."""
    if isinstance(error, shutil.Error):
        _, place, why = error.args[0][0]
        return f"{place}: {why}"
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def _fall_silent() -> None:
    """Let go of the pipe to whoever waits for the server to be ready."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


if __name__ == "__main__":
    if os.fork():
        os._exit(0)  # who started it has no child to wait for
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the server ends with it
    os.setsid()  # Ctrl-C is meant for who uses it
    try:
        keep(Path(sys.argv[1]), sys.argv[2])
    except BulkError as flaw:
        sys.exit(str(flaw))
    except OSError as flaw:
        sys.exit(
            f"{_said_by(flaw)}; correct that or free some space (TMPDIR names another folder for what is temporary)"
        )
