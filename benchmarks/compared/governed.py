"""Reads and writes below a budget: the whole command `bulk run`, and other clients with the same work.

A `bulk sandbox` on a core of its own lets 500 requests through every 10 seconds. The work: the READMEs of 2,000
repositories, each its own, as the engine sends the same read once; and 200 new files in 20 of them. The sandbox's
journal judges: the time from the first arrival to the last answer, answers that a spent budget refused, conflicts of
overlapping writes. Each client has a fresh sandbox.

The ideal: a window begins at the whole second of its first request, so with five windows for 2,200 requests the last
one can't come before 40 seconds after the second in which the first one came. That is a bound which takes no time for
the requests of the last window, so nobody reaches 1.

    python -m benchmarks.compared.governed [PEER ...] [--no-peers]

Peers: gidgethub, githubkit, pygithub, octokit (`governed_peers.py` says how each is used). Their rows compare and
promise nothing.
"""

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from benchmarks.compared.governed_peers import PEERS, Strand, command_of, is_here
from benchmarks.harness.measuring import SERVER_CORE, cost_of, on_core, row
from tests.e2e.support.judging import Line, arrived, span_s
from tests.e2e.support.platform import ADMIN, Served, served

LIMIT, WINDOW_S = 500, 10
READS, WRITES, WRITTEN = 2_000, 200, 20
"""READMEs, one of each repository; new files; repositories that get them (counts)."""
MOST_RATIO = 1.03
CONTENT = "KiBAYWNtZS9vd25lcnMK"
"""`* @acme/owners` and a newline."""


def reads() -> list[dict[str, str]]:
    """Items of `readme.get`."""
    return [_repository(number) for number in range(READS)]


def writes() -> list[dict[str, str]]:
    """Items of `contents.put`, each a file of its own, by turns in the repositories that get them."""
    return [
        {**_repository(number % WRITTEN), "path": f"owners/{number}", "message": "Add owners", "content": CONTENT}
        for number in range(WRITES)
    ]


def strands() -> list[Strand]:
    """The same for peers: first the files of each repository, to be written one after the other; then the READMEs.

    Peers have no lanes. Who writes as a manifest lists it loses most writes to conflicts: that is known, so their users
    would do it like this.
    """
    files = writes()
    return [*(files[number::WRITTEN] for number in range(WRITTEN)), *([item] for item in reads())]


def _repository(number: int) -> dict[str, str]:
    return {"owner": "acme-fleet", "repo": f"repo-{number:05d}"}


@dataclass(frozen=True, slots=True)
class Judged:
    """What the journal says of a client.

    Attributes:
        took_s: from the first arrival to the last answer (seconds). ideal_s: least that the windows allow (seconds).
        done: items that were carried out (count). limited: answers 403 or 429 with nothing left of the budget (count).
        conflicts: answers 409 (count).
    """

    took_s: float
    ideal_s: float
    done: int
    limited: int
    conflicts: int

    @classmethod
    def from_journal(cls, lines: Sequence[Line]) -> "Judged":
        """Of all that the budget's category counted, or refused."""
        counted = [line for line in lines if line["category"] == "core"]
        first = min(map(arrived, counted))
        last_begins = int(first) + (ceil((READS + WRITES) / LIMIT) - 1) * WINDOW_S
        return cls(
            took_s=span_s(counted),
            ideal_s=last_begins - first,
            done=sum(line["applied"] for line in counted),
            limited=sum(line["status"] in (403, 429) and line["remaining"] == 0 for line in counted),
            conflicts=sum(line["status"] == 409 for line in counted),
        )

    @property
    def times(self) -> float:
        """The time in times of the ideal."""
        return self.took_s / self.ideal_s


@contextlib.contextmanager
def sandbox(folder: Path) -> Iterator[Served]:
    """A fresh one on the server's core, until the block ends."""
    options = ("--vendor", "github", "--rate-limit", f"core={LIMIT}/{WINDOW_S}")
    fleet = {"organization": "acme-fleet", "count": READS, "readme_bytes": 3_000}
    with contextlib.ExitStack() as stack:
        with on_core(SERVER_CORE):
            started = stack.enter_context(served(folder / "platform", *options, seed={"repositories": fleet}))
        yield started


def measured(name: str) -> Judged:
    """One client, `bulk` or a peer, on a fresh sandbox."""
    with tempfile.TemporaryDirectory(prefix="bulk-bench-") as text:
        folder = Path(text)
        with sandbox(folder) as platform:
            base_url = platform.base_url
            command = ours(folder, base_url) if name == "bulk" else peers(name, folder, base_url)
            # a client that obeys a proxy's variables would look there for this machine
            cost_of(command, environ={"BULK_TOKEN": ADMIN, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"})
            return Judged.from_journal(platform.journal())


def ours(folder: Path, base_url: str) -> list[str]:
    """The command `bulk run` of a manifest with both jobs, all settings as they come, the store in a new folder."""
    for name, items in {"reads": reads(), "writes": writes()}.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    (folder / "manifest.yaml").write_text(
        f"version: 1\nplatform: {{base_url: {base_url}, vendor: github}}\njobs:\n"
        "  reads: {operation: readme.get, items: reads.jsonl}\n"
        "  writes: {operation: contents.put, items: writes.jsonl, with: {mode: create}}\n"
    )
    where = ["--run-dir", str(folder / "run"), "--cache", str(folder / "cache"), "--progress", "none"]
    return [sys.executable, "-m", "bulk", "run", str(folder / "manifest.yaml"), *where]


def peers(name: str, folder: Path, base_url: str) -> list[str]:
    """The command that does the work with a peer."""
    (folder / "work.json").write_text(json.dumps(strands()))
    return command_of(name, base_url, folder / "work.json")


def claim() -> None:
    """Ours, with what is promised."""
    found = measured("bulk")
    what = f"governed work ({READS:,} reads and {WRITES} writes, {LIMIT} in {WINDOW_S} s)"
    assert found.done == READS + WRITES, f"{found.done:,} done"
    figure = f"{found.times:.3f} times; {found.took_s:.2f} s, ideal {found.ideal_s:.2f} s"
    row(f"{what}, time of the ideal", figure, f"at most {MOST_RATIO:g} times", found.times <= MOST_RATIO)
    row(f"{what}, limited answers", str(found.limited), "0", found.limited == 0)
    row(f"{what}, conflicts", str(found.conflicts), "0", found.conflicts == 0)


def compare(name: str) -> None:
    """A peer."""
    found = measured(name)
    figure = f"{found.took_s:.1f} s, {found.times:.2f} times the ideal; {found.limited:,} limited answers, "
    figure += f"{found.conflicts} conflicts, {found.done:,} of {READS + WRITES:,} done"
    row(f"governed work, {name}", figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("peers", nargs="*", metavar="PEER", help=", ".join(PEERS))
    parser.add_argument("--no-peers", action="store_true", help="only ours")
    given = parser.parse_args()
    for name in given.peers:
        if name not in PEERS:
            parser.error(f"no peer {name!r}; there are {', '.join(PEERS)}")
    claim()
    for name in () if given.no_peers else given.peers or PEERS:
        if is_here(name):
            compare(name)


if __name__ == "__main__":
    main()
