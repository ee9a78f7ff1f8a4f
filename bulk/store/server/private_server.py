"""One PostgreSQL server of one's own: made, started, ended, started again.

Nothing is installed and no user is made. PostgreSQL refuses to run as root, so there it runs as another user, in a
directory of its own. It listens on a socket in that directory and nowhere else, because it asks nobody for a password.
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
from bulk.store.server.programs import WHEEL_LIBRARIES, binaries

_UNPRIVILEGED = ("postgres", "nobody")
_LOG = "log"
PORT = 5432
"""Part of the name of its socket; nothing listens on the network."""

MOST_BYTES = 103
"""So long the path of a socket may be: on macOS, and 4 more on Linux (bytes)."""

_PREFIX = "bulk-postgres-"
_IN_USE = ".in-use"
"""The end of the name of a file beside the data, which every process of the server holds as long as it lives."""

_SETTINGS = {"listen_addresses": "", "max_connections": "100", "shared_buffers": "64MB", "port": str(PORT)}
if sys.platform == "linux":
    _SETTINGS["recovery_init_sync_method"] = "syncfs"  # not file by file: that takes seconds
_FORGETFUL = {"fsync": "off", "full_page_writes": "off", "autovacuum_naptime": "10s"}


class Place(msgspec.Struct, frozen=True):
    """Where a server listens: in a folder of its own, which has `data/` and `log` as well."""

    folder: str

    def store(self, database: str = "postgres") -> str:
        """Return the address of one of its databases, for its superuser."""
        return f"postgresql://postgres@{quote(self.folder, safe='')}:{PORT}/{database}"


def _runs_as() -> dict[str, object]:
    """Return what a process of the server is started with, beside its own user."""
    if os.geteuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = next((known[name] for name in _UNPRIVILEGED if name in known), None)
    if entry is None:
        raise UsageError(f"PostgreSQL can't run as root, and there is no user {' or '.join(_UNPRIVILEGED)}")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _in_use(data: Path) -> IO[bytes]:
    """Open the file that every process of a server holds locked as long as it lives."""
    return open(data.with_name(data.name + _IN_USE), "wb")


def _new_folder() -> Path:
    """Return a new folder for a socket, whose name may not be long."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    if len(os.fsencode(folder / f".s.PGSQL.{PORT}")) <= MOST_BYTES:
        return folder
    folder.rmdir()
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp"))


class Server:
    """One server and its folder: made, started, killed, started again.

    Attributes:
        folder: its socket and `log` are in it, and `data/` where no other place is named; `remove` takes it away. Only
            its user can come in, or to the server.
    """

    def __init__(self, *, is_durable: bool = True, data: Path | None = None) -> None:
        """Make what is not there.

        Args:
            is_durable: whether what it keeps survives a crash of the machine.
            data: what it keeps is there, and stays. The folder above belongs to the server alone.

        Raises:
            UsageError, RunStopped: there are no programs, or they can't make a database.
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
        """Make what the server needs on the disk."""
        self._data.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._as:
            for folder in {self.folder, self._data.parent}:
                os.chown(folder, int(str(self._as["user"])), int(str(self._as["group"])))
        self._binaries = self._reachable(programs)
        if not self._data.exists():
            self._make()
            if not self._data.is_relative_to(self.folder):  # it stays
                os.sync()  # initdb would do so file by file: seconds

    def _make(self) -> None:
        new = self._data.with_name(self._data.name + ".new")
        shutil.rmtree(new, ignore_errors=True)  # of one that was killed
        options = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync", "--no-instructions"]
        self._run("initdb", "-D", str(new), *options)
        new.rename(self._data)

    def store(self, database: str = "postgres") -> str:
        """Return the address of one of its databases, for its superuser."""
        return Place(str(self.folder)).store(database)

    def start(self) -> None:
        """Start it, and wait until it takes connections; it waits for processes of one before that was killed.

        Raises:
            RunStopped: it ended before; the message has the end of its log.
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
        """Have the mark of a server that is known to be dead name this process, which PostgreSQL knows is none: another
        one may have its number by now, or nobody has asked yet how it ended. The rest of the mark says what to clear
        up.
        """
        mark = self._data / "postmaster.pid"
        if mark.exists():
            _, *rest = mark.read_text().split("\n")
            mark.write_text("\n".join([str(os.getpid()), *rest]))

    def stop(self, with_signal: int = signal.SIGINT) -> None:
        """End it: SIGINT ends its connections in an orderly way, SIGQUIT is a crash."""
        if self._process is not None:
            self._process.send_signal(with_signal)
            self._process.wait()
            self._process = None

    def wait(self) -> bool:
        """Wait until its process ends; False: it has none."""
        process = self._process
        if process is None:
            return False
        process.wait()
        return True

    def remove(self) -> None:
        """End it and take its folder away."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def end_left_over(data: Path) -> None:
        """End the server that has this data and whose keeper was killed; nobody may start one meanwhile."""
        if not data.parent.is_dir():
            return
        with _in_use(data) as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                with contextlib.suppress(OSError, ValueError):  # its last processes are about to end
                    os.kill(int((data / "postmaster.pid").read_text().split("\n", 1)[0]), signal.SIGQUIT)
                fcntl.flock(held, fcntl.LOCK_EX)

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
