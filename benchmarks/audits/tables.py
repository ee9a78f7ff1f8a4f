"""Tables of 1,000,000 results: how long they take, and how much memory the process for tables needs.

`python -m benchmarks.audits.tables [ITEMS]` makes a run of that many results of `readme.get` and one of `webhook.list`,
writes Parquet, and asks the lines themselves, in turns with a plain query of DuckDB over the same lines as JSON.
Printed: seconds, peak of the child (MB), size of the tables (MB). What falls short of its bar is said, and the exit
code is 1 then.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.harness.measuring import row
from bulk.audit.tables import processes
from bulk.audit.tables.asking import ask
from bulk.audit.tables.child import Query, Task
from bulk.audit.tables.statements import ROOMY, Lines
from bulk.audit.tables.writing import answering, export
from bulk.ledger.ledger import Ledger
from bulk.ledger.records import Finished, Record, RunIdentity
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


QUESTIONS = {
    "readme.get": (
        ("outcomes", "SELECT outcome, count(*) FROM {} GROUP BY outcome", "outcome, count(*) FROM lines GROUP BY ALL"),
        ("a field", "SELECT avg(result.size) FROM {}", "avg(CAST(result->>'size' AS BIGINT)) FROM lines"),
        ("all of each", "SELECT count(DISTINCT result) FROM {}", "count(DISTINCT result) FROM lines"),
    ),
    "webhook.list": (
        ("outcomes", "SELECT outcome, count(*) FROM {} GROUP BY outcome", "outcome, count(*) FROM lines GROUP BY ALL"),
        ("their length", "SELECT avg(len(result)) FROM {}", "avg(json_array_length(result)) FROM lines"),
        ("all of each", "SELECT count(DISTINCT result) FROM {}", "count(DISTINCT result) FROM lines"),
    ),
}
"""Of each table: what is asked, and the same of the lines as JSON."""

ROUNDS = 3
MOST_WRITE_S, MOST_MB, MOST_ASK_S = 5.0, 400.0, 2.0


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


def written(folder: Path, view: LedgerView, operation: str, items: int) -> dict[str, bool]:
    """Write the tables of a run, and say whether each bar holds."""
    size = (folder / operation / "results.jsonl").stat().st_size / 1e6
    began, cpu = time.perf_counter(), cpu_s()
    export(view, "parquet", folder / f"{operation}-tables")
    took = time.perf_counter() - began
    processes.end_all()  # what a child took is known when it has ended
    tables = sum(path.stat().st_size for path in (folder / f"{operation}-tables").iterdir()) / 1e6
    print(
        f"{operation}: {items:,} lines, {size:.0f} MB to Parquet: {took:.2f} s, CPU {cpu_s() - cpu:.2f} s, "
        f"child {peak_mb():.0f} MB, {tables:.1f} MB",
        flush=True,
    )
    what = f"{items:,} results of {operation} as Parquet"
    row(f"{what}, time", f"{took:.1f} s", f"at most {MOST_WRITE_S:g} s", took <= MOST_WRITE_S)
    row(f"{what}, memory", f"{peak_mb():.0f} MB", f"at most {MOST_MB:.0f} MB", peak_mb() <= MOST_MB)
    return {f"{what}, time": took <= MOST_WRITE_S, f"{what}, memory": peak_mb() <= MOST_MB}


def asked(view: LedgerView, operation: str, items: int) -> dict[str, bool]:
    """Ask a run in SQL, in turns with the plain query, and say whether each bar holds."""
    path, bars = view.run_dir / "results.jsonl", {}
    made = ROOMY, Lines(str(path), view.longest_line()).view()
    for what, ours, plain in QUESTIONS[operation]:

        def answer(sql: str = ours) -> list[Any]:
            with answering(view, sql.format(operation.replace(".", "_"))) as found:
                return list(found)[1:]

        def plainly(sql: str = plain) -> list[Any]:
            query = Query(name="plain", sql=f"SELECT {sql}")
            return list(ask(Task(statements=made, allowed=(str(path),), queries=(query,))))[1:]

        took: dict[Any, list[tuple[float, float]]] = {answer: [], plainly: []}
        for _ in range(ROUNDS):
            for each, costs in took.items():
                began, cpu = time.perf_counter(), cpu_s()
                rows = each()
                processes.end_all()
                costs.append((time.perf_counter() - began, cpu_s() - cpu))
        (own_s, own_cpu), (plain_s, plain_cpu) = (sorted(costs)[ROUNDS // 2] for costs in took.values())
        print(
            f"{operation}: sql, {what}: {own_s:.2f} s, CPU {own_cpu:.2f} s; the plain query {plain_s:.2f} s, CPU "
            f"{plain_cpu:.2f} s; {rows}",
            flush=True,
        )
        claim = f"{items:,} results of {operation}, a question about {what}"
        bars[claim] = own_s <= MOST_ASK_S
        row(claim, f"{own_s:.2f} s; the plain query {plain_s:.2f} s", f"at most {MOST_ASK_S:g} s", bars[claim])
    return bars


def main() -> int:
    """Make the runs, write their tables, ask them; 1 where a bar does not hold."""
    items = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    bars: dict[str, bool] = {}
    with tempfile.TemporaryDirectory(prefix="bulk-tables-") as name:
        folder = Path(name)
        views = {operation: made(folder / operation, operation, items) for operation in KINDS}
        for operation, view in views.items():  # before the queries, some of which take more memory
            bars |= written(folder, view, operation, items)
        for operation, view in views.items():
            bars |= asked(view, operation, items)
    short = [bar for bar, holds in bars.items() if not holds]
    print("\n".join(f"FALLS SHORT: {bar}" for bar in short) or "all bars hold")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
