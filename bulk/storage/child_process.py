"""A child process for work that would hold the event loop or need memory that must not stay.

The child is asked by lines on its standard input, one after the other, and ends when that ends: together with the
process that started it, however that process ends, and in the middle of its work as well.
"""

import collections
import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from typing import BinaryIO, NoReturn

STDIN = 0

END_S = 30.0
"""How long a killed child is waited for (seconds); the system can't end a process that waits for a disk."""

_LINES, _LINE_BYTES = 20, 1_000
"""How many last lines of the child's standard error are kept, and how long each may be (count, bytes)."""

_INHERITED = frozenset(
    ("PATH", "HOME", "LANG", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV", "SYSTEMROOT")
)
_INHERITED_BEGINNINGS = ("PYTHON", "LC_", "COVERAGE")


def python(module: str, *arguments: str) -> list[str]:
    """Return the command that runs one of our modules with this Python.

    `-P`: whoever can write into the current folder must not be able to put a module there that is taken for ours.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


class ChildProcess:
    """A child process that runs `module` as a program; it gets no variable that could hold a secret.

    Raises:
        OSError: the child can't be started.
    """

    def __init__(self, module: str) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(python(module), stdin=pipe, stdout=pipe, stderr=pipe, env=_environ())
        self._owner = os.getpid()
        self._errors = collections.deque[bytes](maxlen=_LINES)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        """Read the child's standard error while it works; otherwise it would wait once the pipe is full."""
        said = self._process.stderr
        assert said is not None
        with said:
            self._errors.extend(iter(lambda: said.readline(_LINE_BYTES), b""))

    @property
    def is_usable(self) -> bool:
        """Whether the child runs and was started by this process, not by one that this process was forked from."""
        return self.is_own and self._process.poll() is None

    @property
    def is_own(self) -> bool:
        """Whether this process has started the child."""
        return self._owner == os.getpid()

    def tell(self, line: bytes) -> BinaryIO:
        """Give the child a line, without its line break, and return the pipe from which its answer can be read.

        Raises:
            BrokenPipeError: the child has ended.
        """
        given, said = self._process.stdin, self._process.stdout
        assert given is not None
        assert said is not None
        given.write(line + b"\n")
        given.flush()
        return said  # type: ignore[return-value]

    def kill(self) -> None:
        """Kill the child, whatever it does; its output so far can still be read."""
        self._process.kill()

    def end(self) -> tuple[int, str]:
        """Kill the child, and return its exit code and the last line of its standard error."""
        self._process.kill()
        try:
            code = self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL, f"it was killed, and still runs {END_S:.0f} s later"
        self._listener.join(END_S)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):  # the child may never have taken its last line
                pipe.close()
        lines = b"".join(self._errors).decode("utf-8", "replace").strip().splitlines()
        return code, lines[-1] if lines else "no message"


def _environ() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name in _INHERITED or name.startswith(_INHERITED_BEGINNINGS)
    }


def work(main: Callable[[BinaryIO, BinaryIO], None]) -> NoReturn:
    """Run `main` in a child process with its input and output, and end; an error is told on standard error.

    Python must not end by itself here: the thread that waits for the owner would be found in the middle of its read,
    which aborts the process and hides the error.
    """
    code = 1
    try:
        main(sys.stdin.buffer, sys.stdout.buffer)
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stderr.flush()
        os._exit(code)


class Lines:
    """The lines that the owner of a child process gives it. The child ends when they end, whatever it does then.

    The child ignores Ctrl-C, which is for its owner to judge.
    """

    def __init__(self, source: BinaryIO) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._given = queue.SimpleQueue[bytes]()
        threading.Thread(target=self._take, args=(source,), daemon=True).start()

    def next(self, most_s: float | None = None) -> bytes | None:
        """Return the next line; wait for it at most `most_s` seconds, and return None if none came."""
        with contextlib.suppress(queue.Empty):
            return self._given.get(timeout=most_s)
        return None

    def _take(self, source: BinaryIO) -> None:
        for line in source:
            self._given.put(line)
        os._exit(0)


def end_with_stdin() -> None:
    """Have this process ended by SIGTERM when its standard input ends, which nothing else may read from now on: so it
    ends together with the process that holds the pipe."""
    threading.Thread(target=_wait_for_the_end, daemon=True).start()


def _wait_for_the_end() -> None:
    while os.read(STDIN, 4096):  # nothing waits in a buffer when the process ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)
