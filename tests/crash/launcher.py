"""Starts the real command in processes that end at a named point: `python -m tests.crash.launcher`.

It imports everything once and forks for each command, which saves most of a process's start. A line of its standard
input is `{"argv", "point", "nth", "output"}`; it answers with the process's number, then with how that ended.
"""

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from bulk import cli
from tests.crash import points
from tests.e2e.support.forked import import_all
from tests.e2e.support.platform import Home

ROOT = Path(__file__).parents[2]
KILLED = -signal.SIGKILL


class Launcher:
    """The other end: starts commands of `home`, one after the other. A context manager."""

    def __init__(self, home: Home) -> None:
        self._output = home.folder / "output.txt"
        self._pid = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=home.folder,
            env={**home.environment(), "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "jobs")))},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def run(self, *arguments: str, point: str | None = None, nth: int = 1) -> int:
        """Run a command of `bulk` until it ends, or until it passes `point` for the `nth` time: its exit code, or
        `KILLED`."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        asked = {"argv": arguments, "point": point, "nth": nth, "output": str(self._output)}
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        self._pid = int(process.stdout.readline())
        exit_code = int(process.stdout.readline())
        self._pid = 0
        said = self._output.read_text()
        assert "Traceback" not in said, said
        assert point is not None or exit_code >= 0, said
        return exit_code

    def __enter__(self) -> "Launcher":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
        self._process.communicate()


def _serve() -> None:
    import_all()
    gc.freeze()  # whoever looks for garbage in what is shared copies it
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            _be_the_command(asked)
        print(child, flush=True)  # noqa: T201 - the answer
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 - the answer


def _be_the_command(asked: Mapping[str, Any]) -> None:
    """The forked process: its own output, nothing to read, and its end at the point."""
    output = os.open(asked["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    if asked["point"] is not None:
        points.kill_at(asked["point"], asked["nth"])
    exit_code = 70
    try:
        exit_code = cli.main(asked["argv"])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)


if __name__ == "__main__":
    _serve()
