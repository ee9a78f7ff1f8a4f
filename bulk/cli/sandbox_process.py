"""A `bulk sandbox` beside a command that needs a platform: `bulk demo`, `bulk rehearse --sandbox`.

Its process begins here, too. It ends when its standard input does, so that no sandbox outlives the command, however the
command ended.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bulk.cli import main
from bulk.errors import RunStopped
from bulk.storage.child_process import end_with_stdin, python

TOKEN = "sbx-site-admin"
"""A token of the sandbox, the same in every sandbox (docs/sandbox.md)."""
STOP_S = 10.0
"""How long the sandbox may take to end before it is killed (seconds)."""


@contextlib.contextmanager
def running(folder: Path, seed: Mapping[str, Any], *options: str) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Run a sandbox within the block: yield its base URL, and a function that says whether it has ended.

    Args:
        folder: where its seed file and its journal are written. seed: its data besides the standard data.

    Raises:
        RunStopped: the sandbox did not start.
    """
    seed_file = folder / "fleet.json"
    seed_file.write_text(json.dumps(seed))
    command = python(__name__, "--quiet", "--seed-data", str(seed_file))
    command += ["--journal", str(folder / "journal.jsonl"), *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as process:
        try:
            line = process.stdout.readline().strip() if process.stdout is not None else ""
            if not line.startswith("http"):
                raise RunStopped("the sandbox did not start; its message is above")
            yield line, lambda: process.poll() is not None
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


if __name__ == "__main__":
    end_with_stdin()
    sys.exit(main(["sandbox", *sys.argv[1:]]))
