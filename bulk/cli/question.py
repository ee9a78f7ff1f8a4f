"""The question before a run begins: on a terminal, where something can't be undone or much is written."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from bulk.cli import output
from bulk.errors import GateClosed

if TYPE_CHECKING:
    from bulk.bundle.checked import Checked

_NO = "nothing was sent, and no run directory was left"
_MOST_JOBS = 20


class Question:
    """Lets a run begin, asks first, or refuses the run; it is the `approve` of `run_manifest`.

    Args:
        is_yes: the answer is on the command line (`--yes`).
        above: most items that are written without a question (count).
        alone: a block in which nothing else writes to the terminal.
    """

    def __init__(self, *, is_yes: bool, above: int, alone: Callable[[], AbstractContextManager[None]]) -> None:
        self._is_yes, self._above, self._alone = is_yes, above, alone

    def __call__(self, checked: "Checked") -> None:
        """Return if the run may begin.

        Raises:
            GateClosed: the answer is no, or the manifest says `limits.confirm: always` and `--yes` is missing.
        """
        from bulk.check.reasons_to_ask import reasons_to_ask
        from bulk.report.render.terminal import is_terminal

        if self._is_yes:
            return
        if checked.manifest.limits.confirm == "always":
            raise GateClosed(f"the manifest says `confirm: always`, so that --yes is needed; {_NO}")
        if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
            return
        reasons = reasons_to_ask(checked, self._above)
        if not reasons:
            return
        with self._alone():
            output.say("\n".join(_summary(checked, reasons)))
            if not _is_agreed():
                raise GateClosed(f"not begun: {_NO}")


def _summary(checked: "Checked", reasons: list[str]) -> Iterator[str]:
    from bulk.report.render.formatting import counted, requests
    from bulk.report.render.terminal import aligned, line_of

    manifest = checked.manifest
    yield f"{manifest.name} on {manifest.platform.base_url}:"
    rows = [
        (job.name, job.operation.name, "items from results", "")
        if job.derivation is not None
        else (
            job.name,
            job.operation.name,
            counted(found.items, "item"),
            requests(found.least_requests, found.most_requests),
        )
        for job, found in zip(manifest.jobs, checked.jobs, strict=True)
    ]
    for cells in aligned(rows[:_MOST_JOBS], 0, names=0, right=(2,)):
        yield f"  {line_of(cells)}"
    if len(rows) > _MOST_JOBS:
        yield f"  and {len(rows) - _MOST_JOBS:,} more jobs"
    yield ""
    for reason in reasons:
        yield f"{reason}."


def _is_agreed() -> bool:
    """Return whether the answer is yes; Ctrl-C and the end of the input are a no."""
    sys.stderr.write("Begin? [y/N] ")
    sys.stderr.flush()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # an event loop would wait for the line to end
    try:
        answer = sys.stdin.readline()
    except (KeyboardInterrupt, OSError, UnicodeDecodeError):
        answer = ""
    finally:
        signal.signal(signal.SIGINT, before)
    if not answer.endswith("\n"):
        sys.stderr.write("\n")
    return answer.strip().lower() in ("y", "yes")
