"""Tables of 1,000,000 results: how long they take, and how much memory the process for tables needs.

`python -m benchmarks.audits.tables [ITEMS]` makes a run of that many results of `readme.get` and one of `webhook.list`,
writes Parquet, and asks the lines themselves. Printed: seconds, peak of the child (MB), size of the tables (MB).
"""

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from bulk.audit.tables import processes
from bulk.audit.tables.writing import answering, export
from bulk.finished import Finished
from bulk.ledger.ledger import Ledger
from bulk.ledger.records import Record, RunIdentity
from bulk.ledger.view import LedgerView
from bulk.model import OutcomeKind
from bulk.report.fold import tally_of_a_running
from bulk.status import RunStatus

START = 1_795_000_000.0
BATCH = 5_000
SHA = "2b82f206b14963ffe9667e8d4936dee7c8e9f66a"


def readme(number: int) -> dict[str, Any]:
    base = f"https://code.example.com/api/v3/repos/acme/repo-{number:07}"
    return {
        "name": "README.md",
        "path": "README.md",
        "sha": f"{number:040x}",
        "size": 200 + number % 3_000,
        "url": f"{base}/contents/README.md?ref=main",
        "html_url": f"{base}/blob/main/README.md",
        "type": "file",
        "encoding": "base64",
        "content": "IyByZXBvLTAwMDAwCgpSZXBvc2l0b3J5IDEwMDUuCgojIyBCdWlsZAoKUnVu\n",
    }


def hooks(number: int) -> list[dict[str, Any]]:
    return [
        {
            "id": number * 2 + place,
            "name": "web",
            "active": True,
            "events": ["push", "pull_request"],
            "config": {
                "url": f"https://hooks.example.com/{number}/{place}",
                "content_type": "json",
                "insecure_ssl": "0",
            },
            "updated_at": "2026-11-01T08:00:00Z",
            "created_at": "2026-11-01T08:00:00Z",
            "url": f"https://code.example.com/api/v3/orgs/o{number}/hooks/{number * 2 + place}",
            "ping_url": f"https://code.example.com/api/v3/orgs/o{number}/hooks/{number * 2 + place}/pings",
            "type": "Organization",
        }
        for place in range(2)
    ]


KINDS: dict[str, tuple[Callable[[int], Any], Callable[[int], dict[str, Any]]]] = {
    "readme.get": (readme, lambda number: {"owner": "acme", "repo": f"repo-{number:07}"}),
    "webhook.list": (hooks, lambda number: {"org": f"o{number}"}),
}


AVERAGED = {"readme.get": "result.size", "webhook.list": "len(result)"}


def finished(operation: str, items: int) -> Iterator[Record]:
    result, item = KINDS[operation]
    for number in range(items):
        yield Record(
            0,
            Finished(
                job="reads",
                index=number,
                id=None,
                item=item(number),
                outcome=OutcomeKind.SUCCEEDED,
                http_status=200,
                attempts=1,
                started_at=START + number / 1_000,
                elapsed_ms=40.0,
                request_id=None,
                result=result(number),
                error=None,
            ),
        )


def made(run_dir: Path, operation: str, items: int) -> LedgerView:
    identity = RunIdentity(
        name="audit",
        base_url="https://code.example.com/api/v3",
        vendor="service",
        manifest_digest="a" * 64,
        items_digest="b" * 64,
        jobs=(("reads", operation, items),),
    )
    last = RunStatus(name="audit", state="running", at=START + 60, started_at=START)
    records = finished(operation, items)
    with Ledger.open(run_dir, identity, now=START) as ledger:
        tally = tally_of_a_running(ledger.view(), START)
        assert tally is not None
        while batch := list(islice(records, BATCH)):
            ledger.commit(batch, last, tally.add(record.finished for record in batch))
        ledger.finish(0, "", last)
    return LedgerView(run_dir)


def peak_mb() -> float:
    """The largest child of this process so far."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def cpu_s() -> float:
    """CPU time of this process and its children (seconds)."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def main() -> None:
    items = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory(prefix="bulk-tables-") as folder:
        views = {operation: made(Path(folder) / operation, operation, items) for operation in KINDS}
        for operation, view in views.items():  # before the queries, some of which take more memory
            size = (Path(folder) / operation / "results.jsonl").stat().st_size / 1e6
            began, cpu = time.perf_counter(), cpu_s()
            export(view, "parquet", Path(folder) / f"{operation}-tables")
            took = time.perf_counter() - began
            processes.end_all()  # what a child took is known when it has ended
            written = sum(path.stat().st_size for path in (Path(folder) / f"{operation}-tables").iterdir()) / 1e6
            print(
                f"{operation}: {items:,} lines, {size:.0f} MB to Parquet: {took:.2f} s, CPU {cpu_s() - cpu:.2f} s, "
                f"child {peak_mb():.0f} MB, {written:.1f} MB"
            )
        for operation, view in views.items():
            table = operation.replace(".", "_")
            query = f"SELECT count(*), count(DISTINCT result) FROM {table}"
            light = f"SELECT outcome, count(*) FROM {table} GROUP BY outcome"
            column = f"SELECT avg({AVERAGED[operation]}) FROM {table}"
            for what, sql in (("sql, envelope", light), ("sql, average", column), ("sql, results", query)):
                began, cpu = time.perf_counter(), cpu_s()
                with answering(view, sql) as lines:
                    rows = list(lines)[1:]
                took = time.perf_counter() - began
                processes.end_all()
                print(f"{operation}: {what}: {took:.2f} s, CPU {cpu_s() - cpu:.2f} s, child {peak_mb():.0f} MB, {rows}")


if __name__ == "__main__":
    main()
