"""One private PostgreSQL server, which can be made, started, ended, and started again.

Nothing is installed and no user is made. PostgreSQL refuses to run as root, so for root it runs as another user, in a
directory of its own. It listens on a socket in that directory and nowhere else, because it asks for no password.
"""

import contextlib
import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO
from urllib.parse import quote

import msgspec

from bulk.errors import RunStopped, UsageError
from bulk.storage.locks import try_lock
from bulk.store.server.programs import WHEEL_LIBRARIES, binaries

_UNPRIVILEGED = ("postgres", "nobody")
_LOG = "log"
PORT = 5432
"""The port number, which is a part of the name of the socket; nothing listens on the network."""

MOST_BYTES = 103
"""The most that the path of a socket may have on macOS; Linux allows 4 more (bytes)."""

_PREFIX = "bulk-postgres-"
_IN_USE = ".in-use"
"""The end of the name of a file beside the data, which every process of the server holds locked as long as it lives."""

_SETTINGS = {"listen_addresses": "", "max_connections": "100", "shared_buffers": "64MB", "port": str(PORT)}
if sys.platform == "linux":
    _SETTINGS["recovery_init_sync_method"] = "syncfs"  # not file by file: that takes seconds
_FORGETFUL = {"fsync": "off", "full_page_writes": "off", "autovacuum_naptime": "10s"}


class Place(msgspec.Struct, frozen=True):
    """Where a server listens: in a folder of its own, which has its `log` as well."""

    folder: str

    def store(self, database: str = "postgres") -> str:
        """Return the address of one of the server's databases, for its superuser."""
        return f"postgresql://postgres@{quote(self.folder, safe='')}:{PORT}/{database}"


def _runs_as() -> dict[str, object]:
    """Return the arguments of `subprocess` that run a process as another user; empty where this user is not root."""
    if os.geteuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = next((known[name] for name in _UNPRIVILEGED if name in known), None)
    if entry is None:
        raise UsageError(f"PostgreSQL can't run as root, and there is no user {' or '.join(_UNPRIVILEGED)}")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _in_use(data: Path) -> IO[bytes]:
    """Open the file that every process of the server with this data holds locked as long as it lives."""
    return open(data.with_name(data.name + _IN_USE), "wb")


def _new_folder() -> Path:
    """Return a new folder for the socket, below `/tmp` where the path of the socket would be too long otherwise."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    if len(os.fsencode(folder / f".s.PGSQL.{PORT}")) <= MOST_BYTES:
        return folder
    folder.rmdir()
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp"))


class Server:
    """One server and its folder; the server can be ended or killed, and started again.

    Attributes:
        folder: has the socket and `log`, and `data/` if no other place is named; `remove` deletes it. Only the user of
            the server can open the folder, and so reach the server.
    """

    def __init__(self, *, is_durable: bool = True, data: Path | None = None) -> None:
        """Make the folder, and the data where there is none.

        Args:
            is_durable: whether the data survives a crash of the machine.
            data: the folder of the data, which stays after `remove`. Its parent folder belongs to the server alone.

        Raises:
            UsageError: the programs of PostgreSQL are not found.
            RunStopped: the programs can't make a database.
        """
        programs = binaries()
        self._as = _runs_as()
        self.folder = _new_folder()
        self._data = self.folder / "data" if data is None else data
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = {**_SETTINGS, "unix_socket_directories": str(self.folder)}
        self._settings |= {} if is_durable else _FORGETFUL
        try:
            self._set_up(programs)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def _set_up(self, programs: Path) -> None:
        """Make the folders and the data of the server."""
        self._data.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._as:
            for folder in {self.folder, self._data.parent}:
                os.chown(folder, int(str(self._as["user"])), int(str(self._as["group"])))
        self._binaries = self._reachable(programs)
        if not self._data.exists():
            self._make()
            if not self._data.is_relative_to(self.folder):  # the data is to stay
                os.sync()  # initdb would sync file by file, which takes seconds

    def _make(self) -> None:
        new = self._data.with_name(self._data.name + ".new")
        shutil.rmtree(new, ignore_errors=True)  # left behind by a process that was killed
        options = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync", "--no-instructions"]
        self._run("initdb", "-D", str(new), *options)
        new.rename(self._data)

    def store(self, database: str = "postgres") -> str:
        """Return the address of one of its databases, for its superuser."""
        return Place(str(self.folder)).store(database)

    def start(self) -> None:
        """Start the server, and wait until it takes connections.

        The start waits until all processes of an earlier server with this data, which was killed, have ended.

        Raises:
            RunStopped: the server ended before it took connections; the message has the end of its log.
        """
        settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        with open(self.folder / _LOG, "ab") as log, _in_use(self._data) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self._take_over_mark()
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", str(self._data), *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                pass_fds=[held.fileno()],
                **self._as,  # type: ignore[call-overload]
            )
        while "ready" not in self._state():
            try:
                code = self._process.wait(0.01)
            except subprocess.TimeoutExpired:
                continue
            text = (self.folder / _LOG).read_text(errors="replace")
            raise RunStopped(f"PostgreSQL ended with {code}: {text[-1000:]}")

    def _take_over_mark(self) -> None:
        """Write this process's number into the mark (`postmaster.pid`) of a server that is known to be dead.

        PostgreSQL knows that its own parent process is not a server. With the old number it might refuse to start:
        another process may have that number by now, or the dead server may not have been waited for yet. The rest of
        the mark says what to clear up.
        """
        mark = self._data / "postmaster.pid"
        if mark.exists():
            _, *rest = mark.read_text().split("\n")
            mark.write_text("\n".join([str(os.getpid()), *rest]))

    def stop(self, with_signal: int = signal.SIGINT) -> None:
        """End the server: SIGINT ends its connections in an orderly way, SIGQUIT is like a crash."""
        if self._process is not None:
            self._process.send_signal(with_signal)
            self._process.wait()
            self._process = None

    def wait(self) -> bool:
        """Wait until the server's process ends; returns False where the server has no process."""
        process = self._process
        if process is None:
            return False
        process.wait()
        return True

    def remove(self) -> None:
        """End the server and delete its folder."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def end_left_over(data: Path) -> None:
        """End the server of this data, whose keeper was killed; no other process may start a server on it meanwhile."""
        if not data.parent.is_dir():
            return
        with _in_use(data) as held:
            if not try_lock(held.fileno()):
                with contextlib.suppress(OSError, ValueError):  # its last processes are about to end
                    os.kill(int((data / "postmaster.pid").read_text().split("\n", 1)[0]), signal.SIGQUIT)
                fcntl.flock(held, fcntl.LOCK_EX)

    def _state(self) -> str:
        # the last line of postmaster.pid has the state; asking on a connection would be slower
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return ""
        is_mine = self._process is not None and lines[:1] == [str(self._process.pid)]
        return lines[7] if is_mine and len(lines) > 7 else ""

    def _reachable(self, folder: Path) -> Path:
        """Return the folder of the programs, or a copy with all that they need if the server's user can't reach it."""
        if not self._as or all(part.stat().st_mode & 0o005 == 0o005 for part in (folder, *folder.parents)):
            return folder
        copy, libraries = self.folder / "programs", folder.parents[2] / WHEEL_LIBRARIES
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
