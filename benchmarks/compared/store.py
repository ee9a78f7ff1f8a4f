"""What the store costs beside the ledger of a run directory: CPU of an item, submitting, exporting.

    python -m benchmarks.compared.store [ITEMS]        (default 100,000)

PostgreSQL runs on this machine, on a real disk with fsync. A worker has another machine for it, so its CPU is told
apart.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.harness.measuring import row
from benchmarks.ledger import NOW, STATUS, finished, intent
from bulk.clock import Clock
from bulk.ledger.ledger import Ledger
from bulk.ledger.records import Entry, Record, RunIdentity
from bulk.report.timeline import merged
from bulk.store import address, bundles, export, runs, schema, submissions
from bulk.store.connections import StoreConnection
from bulk.store.holding import Holding, Span
from bulk.store.leases import Leases
from bulk.store.ledger import StoreLedger
from bulk.store.server.private_server import Server
from bulk.store.shards import JobToCut, cut

GROUP, ROUNDS = 256, 5
READS_MOST, WRITES_MOST = 1.15, 1.25
RATE_LEAST = 100_000


def identity(name: str, items: int) -> RunIdentity:
    digest = f"{name:0<64}"
    return RunIdentity(name, "http://127.0.0.1/api/v3", "service", digest, digest, (("readmes", "readme.get", items),))


def groups(first: int, items: int, *, is_write: bool) -> list[list[Entry]]:
    """Groups as a recorder makes them: of writes the intents come a group earlier than the outcomes."""
    made: list[list[Entry]] = []
    for start in range(first, first + items, GROUP):
        indexes = range(start, min(start + GROUP, first + items))
        if is_write:
            made.append([intent(index) for index in indexes])
        made.append([Record(0, finished(index)) for index in indexes])
    return made


def server_cpu_s(pid: int) -> float:
    """What the process that serves a connection has used (seconds); 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / 100.0


def cpu_us(commit: Callable[[Sequence[Entry]], None], work: list[list[Entry]], items: int) -> float:
    """CPU of this process for an item (microseconds)."""
    started = time.process_time()
    for group in work:
        commit(group)
    return (time.process_time() - started) / items * 1e6


def compare(text: str, folder: Path, items: int, *, is_write: bool) -> None:
    """Rounds of both, one after the other, so that what else the machine does meets both."""
    name = "intent and record" if is_write else "record"
    each = items // ROUNDS
    run = "writes" if is_write else "reads"
    ledger = Ledger.open(folder / run, identity(run, items), now=NOW)
    stored, pid = worker(text, folder, run, items)
    theirs, ours, before = [], [], server_cpu_s(pid)
    for number in range(ROUNDS):
        theirs.append(cpu_us(ledger.commit, groups(number * each, each, is_write=is_write), each))
        ours.append(cpu_us(stored.commit, groups(number * each, each, is_write=is_write), each))
    server = (server_cpu_s(pid) - before) / (each * ROUNDS) * 1e6
    ledger.finish(0, "", STATUS)
    ledger.close()
    stored.close()
    ratio = statistics.median(mine / its for mine, its in zip(ours, theirs, strict=True))
    most = WRITES_MOST if is_write else READS_MOST
    row(
        f"store: CPU of an item, {name}, groups of {GROUP}",
        f"{ratio:.2f} times the run directory's: {statistics.median(ours):.1f} µs beside "
        f"{statistics.median(theirs):.1f} µs; {server:.1f} µs at PostgreSQL",
        f"at most {most} times",
        ratio <= most,
    )


def worker(text: str, folder: Path, name: str, items: int) -> tuple[StoreLedger, int]:
    """A worker that holds all of a run, and the process that serves it."""
    shard = cut([JobToCut(0, "file", (), items)], items).shards
    with StoreConnection(address.read(text), "benchmark") as store:
        submissions.submit(
            store,
            submissions.Submission(
                name=name,
                identity=identity(name, items),
                bundle=b"",
                engine="benchmark",
                limits={},
                grace_s=5.0,
                groups=[0],
                shards=shard,
            ),
        )
        run = runs.find(store, name).id
    leases = Leases(StoreConnection(address.read(text), "leases"), name, "benchmark", Clock().monotonic, ttl_s=3600.0)
    _, (held,) = leases.claim(run)
    leases.close()
    holding = Holding()
    holding.hold(held.no, held.epoch, [Span(0, 0, items)])
    connection = StoreConnection(address.read(text), "benchmark")
    ledger = StoreLedger(connection, run, leases.worker, folder, holding)
    with connection.using() as used:
        return ledger, used.info.backend_pid


def bring_in(text: str, folder: Path, items: int) -> None:
    """Submit a run of that many items: its files, its shards."""
    source = folder / "bundle"
    source.mkdir()
    with (source / "items-0.jsonl").open("w") as file:
        for index in range(items):
            file.write(f'{{"owner":"acme","repo":"repository-{index}","path":"CODEOWNERS","branch":"main"}}\n')
    with StoreConnection(address.read(text), "benchmark") as store:
        started = time.perf_counter()
        digest = bundles.upload(store, source, ["items-0.jsonl"])
        made = cut([JobToCut(0, "file", (), items)])
        submissions.submit(
            store,
            submissions.Submission(
                name="submitted",
                identity=identity("submitted", items),
                bundle=digest,
                engine="benchmark",
                limits={},
                grace_s=5.0,
                groups=made.groups,
                shards=made.shards,
            ),
        )
        rate = items / (time.perf_counter() - started)
    row("store: submitting", f"{rate:,.0f} items a second", f"at least {RATE_LEAST:,}", rate >= RATE_LEAST)


def bring_out(text: str, folder: Path, items: int) -> None:
    """Export what was written."""
    with StoreConnection(address.read(text), "benchmark") as store:
        run = runs.find(store, "reads")
        started, before = time.perf_counter(), time.process_time()
        export.export(store, run, folder / "exported", merged)
        rate, cpu = items / (time.perf_counter() - started), (time.process_time() - before) / items * 1e6
    figure = f"{rate:,.0f} items a second, {cpu:.1f} µs of CPU each"
    row("store: exporting", figure, f"at least {RATE_LEAST:,}", rate >= RATE_LEAST)


def main() -> None:
    items = int(sys.argv[1].replace(",", "")) if len(sys.argv) > 1 else 100_000
    server = Server()
    server.start()
    try:
        text = server.store()
        with StoreConnection(address.read(text), "benchmark") as store:
            schema.init(store)
        with tempfile.TemporaryDirectory() as folder:
            compare(text, Path(folder), items, is_write=False)
            compare(text, Path(folder), items, is_write=True)
            bring_in(text, Path(folder), items)
            bring_out(text, Path(folder), items)
    finally:
        server.remove()


if __name__ == "__main__":
    main()
