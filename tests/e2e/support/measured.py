"""Run a command and print what it took: `python measured.py COMMAND…`, then one line of JSON on standard output.

A process of its own, because the system also counts against a child what its parent held when it was started: this
one is small. The command's own output goes to standard error.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Measured:
    """What a command took: peak of its memory (MB of 2^20 bytes), time by the clock and of the processor (seconds)."""

    exit_code: int
    peak_mb: float
    took_s: float
    used_s: float
    err: str


def untraced(environ: Mapping[str, str]) -> dict[str, str]:
    """Without what has a new process trace its coverage: that takes time, and writes files."""
    return {name: value for name, value in environ.items() if not name.startswith("COVERAGE")}


def measure(command: Sequence[str | Path], folder: Path, environ: Mapping[str, str]) -> Measured:
    """Run `command` in `folder`; untraced, or its tracer would be measured as well."""
    done = subprocess.run(
        [sys.executable, "-S", __file__, *command],
        cwd=folder,
        env=untraced(environ),
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return Measured(**json.loads(done.stdout), err=done.stderr)


def main() -> None:
    """Start it, wait for it, tell."""
    started = time.monotonic()
    out = [(os.POSIX_SPAWN_DUP2, 2, 1)]
    child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=out)
    _, status, used = os.wait4(child, 0)
    unit = 1024 if sys.platform != "darwin" else 1024 * 1024
    figures = {
        "exit_code": os.waitstatus_to_exitcode(status),
        "peak_mb": round(used.ru_maxrss / unit, 1),
        "took_s": round(time.monotonic() - started, 3),
        "used_s": round(used.ru_utime + used.ru_stime, 3),
    }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
