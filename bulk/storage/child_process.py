"""A process of our own beside this one, for work that would hold the event loop or need memory that must not stay.

It is asked by lines on its standard input, one after the other, and ends when that ends: with whoever started it,
however that one ends, and in the middle of its work as well.
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

END_S = 30.0
"""So long one that was killed is waited for; the system can't end what waits for a disk (seconds)."""

_LINES, _LINE_BYTES = 20, 1_000
"""Of its standard error the last few lines are kept, each no longer than this (count, bytes)."""

_INHERITED = frozenset(
    ("PATH", "HOME", "LANG", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV", "SYSTEMROOT")
)
_INHERITED_BEGINNINGS = ("PYTHON", "LC_", "COVERAGE")


class ChildProcess:
    """One process, which runs `module` as a program; it gets no variable that could hold a secret.

    Raises:
        OSError: it can't be started.
    """

    def __init__(self, module: str) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, "-m", module], stdin=pipe, stdout=pipe, stderr=pipe, env=_environ()
        )
        self._owner = os.getpid()
        self._errors = collections.deque[bytes](maxlen=_LINES)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        """Take what it says on standard error while it works: nobody reading, it would wait once the pipe is full."""
        said = self._process.stderr
        assert said is not None
        with said:
            self._errors.extend(iter(lambda: said.readline(_LINE_BYTES), b""))

    @property
    def is_usable(self) -> bool:
        """Whether it waits for work of this process, not of one that this one was forked from."""
        return self.is_own and self._process.poll() is None

    @property
    def is_own(self) -> bool:
        """Whether this process has started it."""
        return self._owner == os.getpid()

    def tell(self, line: bytes) -> BinaryIO:
        """Give it a line, which has no line break, and return where its answer can be read.

        Raises:
            BrokenPipeError: it has ended.
        """
        given, said = self._process.stdin, self._process.stdout
        assert given is not None
        assert said is not None
        given.write(line + b"\n")
        given.flush()
        return said  # type: ignore[return-value]

    def kill(self) -> None:
        """End it, whatever it does; what it said can still be read."""
        self._process.kill()

    def end(self) -> tuple[int, str]:
        """End it, and return its exit code and the last line of its standard error."""
        self._process.kill()
        try:
            code = self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL, f"it was killed, and still runs {END_S:.0f} s later"
        self._listener.join(END_S)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):  # what it was given last, and never took
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
    """Be such a process: run `main` with its input and output, and end; an error is told on standard error.

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
    """In such a process: the lines that its owner gives it. The process ends where they end, whatever it does then.

    Ctrl-C is for its owner to judge.
    """

    def __init__(self, source: BinaryIO) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._given = queue.SimpleQueue[bytes]()
        threading.Thread(target=self._take, args=(source,), daemon=True).start()

    def next(self, most_s: float | None = None) -> bytes | None:
        """Return the next line; wait for it, `most_s` at most (seconds), and return None where none came."""
        with contextlib.suppress(queue.Empty):
            return self._given.get(timeout=most_s)
        return None

    def _take(self, source: BinaryIO) -> None:
        for line in source:
            self._given.put(line)
        os._exit(0)
