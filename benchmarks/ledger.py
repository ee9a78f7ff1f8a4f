"""What the ledger costs: durable records and intents a second, resuming, reading. Prints one line for each claim.

    python -m benchmarks.ledger [ITEMS]        (default 1,000,000; ten million take some minutes)

Everything is on a real disk with synchronous=FULL; figures depend on it, ratios less so.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.measuring import row
from bulk.ledger.ledger import Ledger
from bulk.ledger.records import Finished, Intent, Record, RunIdentity
from bulk.ledger.view import LedgerView
from bulk.model import Effect, ErrorCode, ItemError, OutcomeKind
from bulk.status import RunStatus

NOW = 1_795_248_000.0
STATUS = RunStatus(name="benchmark", state="complete", at=NOW, started_at=NOW)


def timed(what: str, count: int, call: Callable[[], object]) -> None:
    started = time.perf_counter()
    call()
    took = time.perf_counter() - started
    row(f"ledger: {what}", f"{count / took:,.0f} a second, {took:.2f} s")


def finished(index: int) -> Finished:
    kind = OutcomeKind.FAILED if index % 100 == 0 else OutcomeKind.SUCCEEDED
    error = ItemError(ErrorCode.NOT_FOUND, "there is no such repository", 404, 1) if index % 100 == 0 else None
    return Finished(
        job="readmes",
        index=index,
        id=None,
        item={"owner": "acme", "repo": f"repository-{index}"},
        outcome=kind,
        http_status=200,
        attempts=1,
        started_at=NOW + index / 5000,
        elapsed_ms=41.66,
        request_id="0A1B:2C3D:4E5F",
        result={"name": "README.md", "path": "README.md", "size": 3072, "sha": "a" * 40},
        error=error,
    )


def intent(index: int) -> Intent:
    path = f"/repos/acme/repository-{index}/contents/CODEOWNERS"
    return Intent(0, index, "PUT", path, {"sha": "b" * 40}, Effect.COMPARE_AND_SWAP, NOW)


def measure(items: int, folder: Path) -> None:
    identity = RunIdentity(
        name="benchmark",
        base_url="http://127.0.0.1/api/v3",
        vendor="service",
        manifest_digest="0" * 64,
        items_digest="0" * 64,
        jobs=(("readmes", "readme.get", items),),
    )
    ledger = Ledger.open(folder / "reads", identity, now=NOW)

    def commit_records(group: int, first: int, count: int) -> None:
        for start in range(first, first + count, group):
            ledger.commit([Record(0, finished(index)) for index in range(start, min(start + group, first + count))])

    few = items // 10
    timed("records, groups of 64, with making them", few, lambda: commit_records(64, 0, few))
    timed("records, groups of 1,000, with making them", items - few, lambda: commit_records(1_000, few, items - few))
    timed("bits of all items, all done", items, lambda: ledger.done_bits(0, items))
    again = ledger.reopen({OutcomeKind.FAILED})
    timed("bits of all items, one in a hundred to do", items, lambda: ledger.done_bits(0, items))
    commit_all = [Record(0, finished(index)) for index in range(0, items, 100)]
    assert len(commit_all) == again
    ledger.commit(commit_all)
    timed("finish that rewrites the results (lines)", items, lambda: ledger.finish(1, "", STATUS))
    ledger.close()
    db, lines = ((folder / "reads" / name).stat().st_size / items for name in ("ledger.db", "results.jsonl"))
    print(f"{'ledger.db and results.jsonl':<62} {db:>8.1f} and {lines:.1f} B/item")

    view = LedgerView(folder / "reads")
    timed("lines read", items, lambda: sum(1 for _ in view.lines()))
    timed("lines read and decoded", items, lambda: sum(1 for _ in view.finished()))
    ledger = Ledger.open(folder / "reads", identity, now=NOW)
    ledger.close()  # without an end: the next open examines the file
    timed("open after an unclean end (items)", items, lambda: Ledger.open(folder / "reads", identity, now=NOW).close())
    most_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'most memory of all that':<62} {most_mb:>12,.0f} MB")
    measure_writes(items, folder, identity)


def measure_writes(items: int, folder: Path, identity: RunIdentity) -> None:
    ledger = Ledger.open(folder / "writes", identity, now=NOW)
    for number, group in enumerate((1, 64, 1_000)):
        count = min(items, group * 200)
        indexes = range(number * items, number * items + count)
        intents = [intent(index) for index in indexes]
        records = [Record(0, finished(index)) for index in indexes]
        batches = [(intents[start : start + group], records[start : start + group]) for start in range(0, count, group)]

        def commit_writes(batches: list[tuple[list[Intent], list[Record]]] = batches) -> None:
            for before, after in batches:
                ledger.commit(before)
                ledger.commit(after)

        timed(f"writes (an intent, then a record), groups of {group:,}", count, commit_writes)
    intents = [intent(index) for index in range(64_000)]

    def commit_intents() -> None:
        for start in range(0, len(intents), 64):
            ledger.commit(intents[start : start + 64])

    timed("intents, groups of 64", len(intents), commit_intents)
    ledger.close()

    with Ledger.open(folder / "saves", identity, now=NOW) as ledger:
        records = [Record(0, finished(index), (f"readmes/acme/{index}.md", b"x" * 3072)) for index in range(2_000)]
        timed("records with a saved file of 3 kB, one group", 2_000, lambda: ledger.commit(records))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=".") as place:
        measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, Path(place))
