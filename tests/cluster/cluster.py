"""A store, a sandbox and workers, all of them real processes."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.work import Work
from tests.e2e.support.platform import Home, Process, Served, served

LEASE_S = 3.0
LIMITS = {"settle": "1s", "concurrency": 8, "request_timeout": "2s"}


@dataclass
class Cluster:
    """Attributes: home: where the manifest is. workers: that were started, in order. direct: a way to the store for
    the test itself.
    """

    store: str
    direct: str
    home: Home
    sandbox: Served
    stack: ExitStack
    workers: list[Process] = field(default_factory=list)

    def worker(self, *more: str, store: str | None = None) -> Process:
        """Start one more; `store`: the way that it has to it."""
        options = ("--base-url", self.sandbox.base_url, "--lease", str(LEASE_S), *more)
        started = self.stack.enter_context(self.home.running("worker", "--store", store or self.store, *options))
        self.workers.append(started)
        return started

    def holder(self, kind: str = "%") -> Process:
        """The worker that holds a shard, of that kind."""
        import psycopg

        query = """
            SELECT w.name FROM bulk.shard s JOIN bulk.worker w ON w.id = s.owner
            WHERE NOT s.done AND s.kind LIKE %s ORDER BY s.no LIMIT 1"""
        with psycopg.connect(self.direct) as connection:
            row = connection.execute(query, (kind,)).fetchone()
        assert row is not None, "nobody holds one"
        (found,) = [worker for worker in self.workers if row[0].endswith(f"-{worker.pid}")]
        return found

    def shorten_grace(self) -> None:
        """What a dead worker had is left alone for a request's time limit and one second, not five: here nothing that
        it sent is under way for longer.
        """
        import psycopg

        with psycopg.connect(self.direct) as connection:
            connection.execute("UPDATE bulk.run SET grace_s = grace_s - 4.0")

    def effects(self) -> int:
        """How many the journal has (count)."""
        return sum(line["effect"] is not None for line in self.sandbox.journal())

    def wait_for_effects(self, count: int, seconds: float = 120.0) -> None:
        """Wait until there are `count`."""
        until = time.monotonic() + seconds
        while self.effects() < count:
            assert time.monotonic() < until, f"{self.effects()} effects"
            time.sleep(0.02)  # noqa: TID251 - another process


@contextmanager
def cluster(
    store: str, folder: Path, work: Work, *faults: str, workers: int = 2, direct: str = ""
) -> Iterator[Cluster]:
    """Start it; `work` is the manifest, with one job that needs two others."""
    home = Home(folder / "home")
    home.folder.mkdir(parents=True)
    with ExitStack() as stack:
        sandbox = stack.enter_context(served(folder / "sandbox", *faults, seed=work.fleet))
        work.write(home, sandbox.base_url, LIMITS)
        manifest = json.loads((home.folder / "manifest.yaml").read_text())
        manifest["jobs"]["snapshots"]["needs"] = ["files", "orgs"]
        home.write("manifest.yaml", json.dumps(manifest))
        made = Cluster(store, direct or store, home, sandbox, stack)
        for _ in range(workers):
            made.worker()
        yield made


def run_arguments(store: str, *more: str) -> Sequence[str]:
    """`bulk run` in that store, taken home as `run`."""
    return ("run", "manifest.yaml", "--store", store, "--run-dir", "run", "--yes", "--progress", "none", *more)
