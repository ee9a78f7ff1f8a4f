"""Runs made by hand in real ledgers, for tests of what is reported about them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bulk.ledger.ledger import Ledger
from bulk.ledger.records import Finished, Record, RunIdentity
from bulk.ledger.view import LedgerView
from bulk.model import ErrorCode, ItemError, OutcomeKind
from bulk.status import BucketStatus, JobStatus, RunStatus

START = 1_795_248_000.0
"""2026-11-21T08:00:00Z."""


def finished(index: int = 0, outcome: str = "succeeded", job: str = "readmes", **fields: Any) -> Finished:
    """An item that has ended; `code` and `message` make its error."""
    code, message = fields.pop("code", None), fields.pop("message", "Not Found")
    wrong = outcome in ("failed", "skipped", "unknown")
    values: dict[str, Any] = {
        "id": None,
        "item": {"owner": "acme", "repo": f"r{index}"},
        "http_status": 404 if wrong else 200,
        "attempts": 0 if outcome == "skipped" else 1,
        "started_at": START + index,
        "elapsed_ms": 40.0,
        "request_id": None,
        "result": None if wrong else {"size": 3},
        "error": ItemError(ErrorCode(code or "not_found"), message, 404, 1) if wrong else None,
    }
    return Finished(job=job, index=index, outcome=OutcomeKind(outcome), **(values | fields))


def status(at: float, **fields: Any) -> RunStatus:
    """Where a run stands at `at`."""
    values: dict[str, Any] = {"name": "migration", "state": "running", "started_at": START}
    return RunStatus(at=at, **(values | fields))


def bucket(category: str = "core", **fields: Any) -> BucketStatus:
    """A bucket of 5,000 an hour of which 2,000 are left."""
    values: dict[str, Any] = {"credential": "default", "limit": 5000, "remaining": 2000}
    return BucketStatus(category=category, **(values | fields))


def job_status(name: str = "readmes", **fields: Any) -> JobStatus:
    """A job of 100 items that runs."""
    values: dict[str, Any] = {"operation": "readme.get", "items": 100, "outcomes": {"succeeded": 40}}
    return JobStatus(name=name, **(values | fields))


class Run:
    """A run directory with one epoch after the other."""

    def __init__(self, run_dir: Path, **items: int) -> None:
        self.run_dir = run_dir
        self.jobs = {name.replace("_", "-"): number for name, number in (items or {"readmes": 3}).items()}

    def identity(self, name: str = "migration") -> RunIdentity:
        """The same at every start."""
        jobs = tuple((job, "readme.get", items) for job, items in self.jobs.items())
        return RunIdentity(
            name=name,
            base_url="https://code.example.com/api/v3",
            vendor="service",
            manifest_digest="a" * 64,
            items_digest="b" * 64,
            jobs=jobs,
        )

    def open(self, started_at: float = START, name: str = "migration") -> Ledger:
        """The ledger, in a new epoch; the caller closes it."""
        return Ledger.open(self.run_dir, self.identity(name), now=started_at)

    def record(self, each: Finished) -> Record:
        """With the number of its job."""
        return Record(list(self.jobs).index(each.job), each)

    def epoch(
        self,
        ended: Iterable[Finished] = (),
        *,
        started_at: float = START,
        lasts_s: float = 10.0,
        exit_code: int | None = 0,
        why: str = "",
        name: str = "migration",
        **fields: Any,
    ) -> LedgerView:
        """A whole epoch; `exit_code` None is one that was killed."""
        last = status(started_at + lasts_s, **fields)
        with self.open(started_at, name) as ledger:
            ledger.commit([self.record(each) for each in ended], last)
            if exit_code is not None:
                ledger.finish(exit_code, why, last)
        return self.view

    @property
    def view(self) -> LedgerView:
        """What another process sees."""
        return LedgerView(self.run_dir)
