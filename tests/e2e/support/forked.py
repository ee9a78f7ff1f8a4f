"""Commands of `bulk`, each a process forked from one that has imported everything: half a second sooner.

Most of what a suite of real processes takes is their start. `python -m tests.e2e.support.forked DESCRIPTOR` imports
once, and forks each command: with its own arguments, folder, variables and standard streams. It tells the command's
number, and later how it ended. What a variable changes before Python's first line (`AT_START`) can't be had in this
way: such commands are started as a user starts them.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

ROOT = Path(__file__).parents[3]
AT_START = ("PYTHON", "LC_", "LANG", "TZ", "LD_", "MALLOC_", "COVERAGE")
PACKAGES = ("bulk", "bulk_jobs")
"""Of these every module is imported."""
PRELOADED = (
    "anyio._backends._asyncio",
    "anyio._core._signals",
    "encodings.idna",
    "encodings.utf_8_sig",
    "importlib.readers",
    "importlib.resources.readers",
    "jinja2",
    "platformdirs.unix",
    "psycopg_pool",
    "rich.live",
    "ruamel.yaml",
    "tests.schemas.checker",
    "uvloop",
)
"""What they import late, and what watches every sandbox. The extras are for commands alone that need them, but for that
of nearly every test of it."""
TEMPLATES = (("bulk.report.render", "report.html.j2"), ("bulk.audit.page", "audit.html.j2"))
"""Compiled at their first use, which takes a third of a short run."""
MOST_BYTES = 128 * 1024
"""Of one command: its arguments and variables."""


def at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that count before the first line is run."""
    return {name: value for name, value in environment.items() if name.startswith(AT_START)}


class Forked:
    """One command, with the part of `subprocess.Popen` that tests use."""

    def __init__(self, pid: int, keeper: socket.socket, pipes: Sequence[int | None]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._keeper = keeper
        self.stdin, self.stdout, self.stderr = (
            None if pipe is None else open(pipe, mode, encoding="utf-8")  # noqa: SIM115 - open as long as this
            for pipe, mode in zip(pipes, ("w", "r", "r"), strict=True)
        )

    def poll(self) -> int | None:
        """The exit code, or minus the signal; None while it runs."""
        return self.returncode if self.returncode is not None or not self._is_over(0.0) else self.wait()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end.

        Raises:
            TimeoutExpired: it still runs after `timeout` seconds.
        """
        if self.returncode is None:
            if not self._is_over(timeout):
                raise subprocess.TimeoutExpired("bulk", timeout or 0.0)
            self.returncode = int.from_bytes(self._keeper.recv(4), "little", signed=True)
            self._keeper.close()
        return self.returncode

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:  # noqa: A002
        """Write `input`, read both streams to their ends, and wait."""
        said: dict[str, str] = {}

        def read(name: str, stream: IO[str] | None) -> None:
            said[name] = stream.read() if stream is not None and not stream.closed else ""

        readers = [
            threading.Thread(target=read, args=each, daemon=True)
            for each in (("out", self.stdout), ("err", self.stderr))
        ]
        for reader in readers:
            reader.start()
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.stdin.write(input or "")
                self.stdin.close()
        self.wait(timeout)
        for reader in readers:
            reader.join(timeout)
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        return said["out"], said["err"]

    def send_signal(self, number: int) -> None:
        """Nothing, where it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> "Forked":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in (self.stdout, self.stderr, self.stdin):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self.wait()

    def _is_over(self, timeout: float | None) -> bool:
        return bool(select.select([self._keeper], [], [], timeout)[0])


class Forkery:
    """The process that everything is forked from; started at the first use, ends with this one."""

    def __init__(self) -> None:
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._environment: dict[str, str] = {}

    def can_start(self, environment: Mapping[str, str]) -> bool:
        """Whether a command with these variables can be had from a fork; what coverage is measured of can't."""
        if self._control is None:
            self._control, self._environment = self._begin(), at_start(os.environ)
        is_measured = any(name.startswith("COVERAGE") for name in environment)
        return at_start(environment) == self._environment and not is_measured

    def start(
        self,
        arguments: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        *,
        stdin: int,
        stdout: int = subprocess.PIPE,
        stderr: int | None,
    ) -> Forked:
        """Start a command of `bulk`; its streams as for `subprocess.Popen`, None for this process's own."""
        assert self._control is not None, "it was asked whether it can"
        read_in, write_in = os.pipe() if stdin == subprocess.PIPE else (_given(stdin), None)
        read_out, write_out = os.pipe() if stdout == subprocess.PIPE else (None, _given(stdout))
        read_err, write_err = (
            os.pipe() if stderr == subprocess.PIPE else (None, _given(2 if stderr is None else stderr))
        )
        mine, its = socket.socketpair()
        asked = json.dumps({"argv": arguments, "cwd": str(cwd), "environment": dict(environment)}).encode()
        assert len(asked) < MOST_BYTES
        given = [read_in, write_out, write_err, its.fileno()]
        socket.send_fds(self._control, [asked], given)
        its.close()
        for descriptor in given[:3]:
            os.close(descriptor)
        pid = int.from_bytes(mine.recv(4), "little")
        return Forked(pid, mine, (write_in, read_out, read_err))

    def _begin(self) -> socket.socket:
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(its.fileno())],
            pass_fds=[its.fileno()],
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "jobs")))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        its.close()
        return mine


def _given(stream: int) -> int:
    """A descriptor of its own for an open one, or for nothing."""
    return os.open(os.devnull, os.O_RDWR) if stream == subprocess.DEVNULL else os.dup(stream)


def serve(control: socket.socket) -> int:
    """Fork until the other end is closed; in a command's process, the exit code of the command."""
    import_all()
    _prepare()
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno())
    running = dict[int, socket.socket]()
    gc.freeze()
    while True:
        ready, _, _ = select.select([control, woken], [], [])
        if woken in ready:
            woken.recv(1024)
            _tell_ends(running)
        if control not in ready:
            continue
        asked, given, _, _ = socket.recv_fds(control, MOST_BYTES, 4)
        if not asked:
            return 0
        keeper = socket.socket(fileno=given[3])
        command = os.fork()
        if command == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for mine in (control, woken, waker, keeper, *running.values()):
                mine.close()
            return _be_the_command(json.loads(asked), given[:3])
        for descriptor in given[:3]:
            os.close(descriptor)
        keeper.send(command.to_bytes(4, "little"))
        running[command] = keeper


def _tell_ends(running: dict[int, socket.socket]) -> None:
    """Tell of each command that has ended how it did."""
    while running:
        command, status = os.waitpid(-1, os.WNOHANG)
        if command == 0:
            return
        with running.pop(command) as keeper, contextlib.suppress(OSError):  # nobody may be left to be told
            keeper.send(os.waitstatus_to_exitcode(status).to_bytes(4, "little", signed=True))


def import_all() -> None:
    """Import what any command would import."""
    for name in PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    for name in PRELOADED:
        importlib.import_module(name)


def _prepare() -> None:
    """Do once what every command would do again."""
    from bulk.operation import find, names
    from bulk.report.render.html import environment

    for name in names():
        find(name)
    for package, template in TEMPLATES:
        environment(package).get_template(template)


def _be_the_command(asked: Mapping[str, Any], streams: Sequence[int]) -> int:
    from bulk import cli

    for target, source in enumerate(streams):
        os.dup2(source, target)
        os.close(source)
    # as Python opens them when it starts
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = ["bulk", *asked["argv"]]
    exit_code = cli.main()
    # As Python ends, but for taking apart every object of every module: that is nine tenths of what a short command
    # takes, because it copies what is shared with the process that forked it.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):  # what can't be printed is told by Python's own end
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)
    return exit_code


if __name__ == "__main__":
    sys.exit(serve(socket.socket(fileno=int(sys.argv[1]))))
