"""Records, intents and whole runs for the tests of the ledger, and child processes that work on one."""

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from bulk.ledger.ledger import Ledger
from bulk.ledger.records import Finished, Intent, Record, RunIdentity
from bulk.ledger.view import LedgerView
from bulk.model import UNSEEN, Effect, ErrorCode, ItemError, OutcomeKind
from bulk.status import RunStatus

ROOT = Path(__file__).parents[2]
NOW = 1_795_248_000.0
JOBS = ("readmes", "codeowners")
STATUS = RunStatus(name="run", state="complete", at=NOW + 60, started_at=NOW)

CODES = {
    OutcomeKind.FAILED: ErrorCode.NOT_FOUND,
    OutcomeKind.SKIPPED: ErrorCode.DEPENDENCY_FAILED,
    OutcomeKind.UNKNOWN: ErrorCode.UNKNOWN_OUTCOME,
}


def identity(**changes: Any) -> RunIdentity:
    """Whose run it is, unless `changes` say otherwise."""
    fields: dict[str, Any] = {
        "name": "run",
        "base_url": "http://127.0.0.1:8000/api/v3",
        "vendor": "service",
        "manifest_digest": "a" * 64,
        "items_digest": "b" * 64,
        "jobs": ((JOBS[0], "readme.get", 1000), (JOBS[1], "contents.put", 1000)),
    }
    return RunIdentity(**fields | changes)


def finished(
    index: int,
    kind: OutcomeKind = OutcomeKind.SUCCEEDED,
    *,
    job: int = 0,
    code: ErrorCode | None = None,
    result: Any = None,
) -> Finished:
    """An item that ended; with an error where the outcome has one."""
    code = code or CODES.get(kind)
    return Finished(
        job=JOBS[job],
        index=index,
        id=None,
        item={"owner": "acme", "repo": f"r{index}"},
        outcome=kind,
        http_status=200,
        attempts=1,
        started_at=NOW,
        elapsed_ms=41.66,
        request_id="0A1B",
        result=result,
        error=ItemError(code, "why", 404, 1) if code else None,
    )


def record(index: int, kind: OutcomeKind = OutcomeKind.SUCCEEDED, **more: Any) -> Record:
    """A record of `finished`."""
    save = more.pop("save", None)
    return Record(more.get("job", 0), finished(index, kind, **more), save)


def intent(index: int, *, job: int = 1, before: Any = UNSEEN, sent_at: float = NOW) -> Intent:
    """A write that is about to leave."""
    return Intent(job, index, "PUT", f"/repos/acme/r{index}/contents/a", before, Effect.COMPARE_AND_SWAP, sent_at)


def opened(run_dir: Path, **more: Any) -> Ledger:
    """The ledger of `identity()` in that directory."""
    return Ledger.open(run_dir, more.pop("identity", identity()), now=more.pop("now", NOW), **more)


def keys(run_dir: Path) -> list[tuple[str, int]]:
    """Job and index of every current line, in the order of the view."""
    return [(line["job"], line["index"]) for line in LedgerView(run_dir).finished()]


def as_killed(run_dir: Path, copy: Path) -> Path:
    """What a process that dies at this moment leaves: a copy of every byte, nothing of its memory."""
    return Path(shutil.copytree(run_dir, copy))


class DirectoryPlace:
    """A run in a run directory, and who opens it: the counterpart of `tests.store.places.StorePlace`."""

    def __init__(self, folder: Path) -> None:
        self.run_dir, self._folder, self._lives = folder / "0", folder, 0

    def opened(self) -> Ledger:
        """The ledger of another process, after one that has let go of it."""
        return opened(self.run_dir)

    def taken_over(self) -> Ledger:
        """The ledger of another process, as it would be if the one that has it died now."""
        self._lives += 1
        self.run_dir = as_killed(self.run_dir, self._folder / str(self._lives))
        return opened(self.run_dir)

    def run_directory(self) -> Path:
        """Where the run is."""
        return self.run_dir

    def close(self) -> None:
        """Nothing is left open."""


PREAMBLE = """
import os, signal, sys
from pathlib import Path
from bulk.errors import *
from bulk.model import OutcomeKind
from tests.ledger.samples import *
run_dir = Path(sys.argv[1])
"""


def start_child(run_dir: Path, code: str, *arguments: str) -> subprocess.Popen[str]:
    """A process that runs `code` with all of this module's names and `run_dir`; pipes for its input and output."""
    return subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(code), str(run_dir), *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_child(run_dir: Path, code: str, *arguments: str) -> tuple[int, str]:
    """Run `code` to its end; its exit code (negative: the signal that killed it) and what it printed."""
    child = start_child(run_dir, code, *arguments)
    out, error = child.communicate(timeout=60)
    assert "Traceback" not in error, error
    return child.returncode, out
