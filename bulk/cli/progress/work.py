"""Progress of a command that only reads and takes its time, such as a comparison: one row on a terminal.

It comes after a second and disappears before the result is printed. Where standard error is no terminal, nothing comes.
"""

import contextlib
import os
import sys
from collections.abc import Iterator

from bulk.cli.progress.painter import Painter, guarded
from bulk.cli.progress.plain import Sink
from bulk.clock import Clock
from bulk.report.render import terminal
from bulk.report.render.formatting import counted, duration
from bulk.status import Display, JobStatus, RunStatus, Tell, Working, silently, untold

FIRST_S = 1.0
"""How long a command may be silent (seconds)."""

_ERASE = "\r\x1b[J"


class WorkFace:
    """Paints a row with what is done, the items so far, and for how long."""

    def __init__(self, stream: Sink, columns: int, clock: Clock) -> None:
        self._stream, self._columns, self._clock = stream, columns, clock
        self._row = ""

    def paint(self, status: RunStatus, *, is_new: bool, monotonic: float) -> None:
        """Write the row anew."""
        lasted_s = self._clock.now() - status.started_at
        if lasted_s < FIRST_S:
            return
        done = sum(job.done for job in status.jobs)
        parts = [status.name, *([counted(done, "item")] if done else []), duration(float(round(lasted_s)))]
        row = terminal.cut(terminal.safe(" · ".join(parts)), self._columns - 1)
        if row != self._row:
            self._row = row
            self._stream.write(_ERASE + row)

    def say(self, text: str) -> None:
        """Write a note above the row."""
        self._stream.write(f"{_ERASE}{terminal.safe(text)}\n{self._row}")

    def end(self, status: RunStatus | None) -> None:
        """Take the row away."""
        if self._row:
            self._stream.write(_ERASE)


@contextlib.contextmanager
def at_work(words: str) -> Iterator[Tell]:
    """Show on standard error what a command does in the block, if that takes long and a terminal is there.

    Args:
        words: what it does, such as `comparing a with b`.

    Yields:
        What takes the number of items that are done (count); it may be called from any thread, and often.
    """
    if not terminal.is_movable(sys.stderr, os.environ):
        yield untold
        return
    clock = Clock()
    began = clock.now()

    def tell(items: int) -> None:
        job = JobStatus(name="items", operation="", items=None, outcomes={"done": items})
        shown.update(RunStatus(name=words, state="running", at=began, started_at=began, jobs=(job,)))

    columns, _ = terminal.size_of(sys.stderr)
    with Painter(WorkFace(guarded(sys.stderr), columns, clock), clock) as shown:
        tell(0)
        yield tell


def beside(shown: Display, kind: str = "auto") -> Working:
    """Return `at_work` for a command that has a display of this kind (`--progress`), which paints nothing meanwhile."""

    @contextlib.contextmanager
    def working(words: str) -> Iterator[Tell]:
        with shown.suspended() if isinstance(shown, Painter) else contextlib.nullcontext(), at_work(words) as tell:
            yield tell

    return working if kind in ("auto", "rich") else silently
