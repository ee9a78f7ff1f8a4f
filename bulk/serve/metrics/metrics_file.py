"""The text file that a run keeps up to date for a collector of metrics: `--metrics FILE`.

A separate thread reads the run from outside, as `bulk status` does, so that neither a slow disk nor a collector holds
the run up. The file is replaced as a whole; its samples have no timestamps, because collectors of text files refuse
them.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from bulk.clock import Clock
from bulk.control import client
from bulk.errors import BulkError
from bulk.ledger.view import LedgerView
from bulk.redaction import redact
from bulk.report.run_state import run_state_of
from bulk.serve.metrics import metrics
from bulk.serve.metrics.metrics_source import Latencies, figures
from bulk.storage.private_files import write_whole

EVERY_S = 15.0
"""How often the file is written anew (seconds)."""
FIRST_S = 1.0
"""How often writing is tried until the run has a ledger (seconds)."""
BEGINNING = b"# HELP bulk_"
"""The beginning of each such file: a comment that explains the first figure."""


def is_replaceable(path: Path) -> bool:
    """Return whether the file may be replaced: it has earlier figures, or is empty."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(BEGINNING)) in (BEGINNING, b"")
    except OSError:
        return False


class MetricsFile:
    """Keeps the file up to date within its `with` block, and writes the file once more at the end.

    Args:
        say: called once with a message, if the file can't be written.
    """

    def __init__(self, path: Path, run_dir: Path, clock: Clock, say: Callable[[str], None]) -> None:
        self._path, self._run_dir, self._clock, self._say = path, run_dir, clock, say
        self._latencies = Latencies()
        self._is_over = threading.Event()
        self._is_broken = False
        self._thread = threading.Thread(target=self._keep, name="metrics", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._write()

    def _keep(self) -> None:
        pause_s = 0.0
        while not self._is_over.wait(pause_s):
            pause_s = EVERY_S if self._write() else FIRST_S

    def _write(self) -> bool:
        """Write the file once; returns False where the run has no ledger yet."""
        try:
            view = LedgerView(self._run_dir)
            run_state = run_state_of(view, self._clock.now(), client.status(self._run_dir))
            found = figures(self._run_dir.name, run_state, view, self._latencies)
        except BulkError:  # the run has no ledger yet
            return False
        try:
            text = redact(metrics.text([found], is_classic=True))
            write_whole(self._path, text.encode(), is_private=False)  # a collector reads it as another user
        except OSError as flaw:
            if not self._is_broken:
                self._is_broken = True
                self._say(f"--metrics: {self._path} can't be written: {flaw.strerror}")
        return True
