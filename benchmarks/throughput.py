"""Requests a second of the whole command `bulk run`, in parts of a bare aiohttp loop's over the same answers.

Ours is the whole process: start-up, checking, governing, ledger and results on disk, report. The reference
(`benchmarks/harness/bare.py`) is only its loop. Both on one core, a static nginx on another, in turns; medians of the
ratios, of requests a second and of CPU time, which other users of the machine disturb less: both have to reach the aim.

    python -m benchmarks.throughput [CASE ...] [--items 400000] [--rounds 3]

Cases: reads · stored (validators and bodies are kept) · unchanged (a second run that gets 304s) · writes (durable:
intent and outcome synced) · many (1,000 in flight).
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.canned_platform import CONTENT, canned_platform
from benchmarks.harness.measuring import Cost, Spread, cost_of, is_compiled, ratios, row

TOKEN = "ghp_" + "0123456789" * 3 + "abcdef"
"""As long as real ones are: whatever is written is searched for it."""


@dataclass(frozen=True, slots=True)
class Case:
    """Attributes:
    claim: what it shows. aim: least ratio; interpreted: where nothing is compiled, if it differs. kind: of the bare
    loop. in_flight: requests at once.
    is_stored: validators are kept. is_again: the store is full already. share: part of the items that it runs.
    """

    claim: str
    aim: float
    kind: str = "read"
    in_flight: int = 64
    is_stored: bool = False
    is_again: bool = False
    share: float = 1.0
    interpreted: float | None = None


CASES = {
    "reads": Case("READMEs of 3 kB", 1.0, interpreted=0.75),
    "stored": Case("READMEs of 3 kB, validators and bodies kept", 0.55, is_stored=True),
    "unchanged": Case("the same again, answered 304", 0.8, kind="conditional", is_stored=True, is_again=True),
    "writes": Case("durable writes", 0.55, kind="write", share=0.25),
    "many": Case("READMEs, 1,000 in flight", 0.75, in_flight=1_000),
}


class Ours:
    """The whole command, in a folder of its own."""

    def __init__(self, folder: Path, base_url: str, case: Case, items: int) -> None:
        self._folder, self._case, self._items, self._cache = folder, case, items, folder / "cache"
        operation = "contents.put" if case.kind == "write" else "readme.get"
        extra = ""
        if case.kind == "write":
            extra = f', "path": "CODEOWNERS", "message": "Add CODEOWNERS", "content": "{CONTENT}"'
        with open(folder / "items.jsonl", "w") as file:
            file.writelines(f'{{"owner": "acme", "repo": "api-{number}"{extra}}}\n' for number in range(items))
        settings = ", with: {mode: create}" if case.kind == "write" else ""
        (folder / "manifest.yaml").write_text(
            f"version: 1\nplatform: {{base_url: {base_url}}}\nlimits: {{concurrency: {case.in_flight}}}\n"
            f"jobs:\n  work: {{operation: {operation}, items: items.jsonl{settings}}}\n"
        )

    def run(self, module: str = "bulk") -> Cost:
        """Once, and everything that it wrote is gone again but for the store. `module`: whose command it is."""
        run_dir = self._folder / "run"
        cost = cost_of([sys.executable, "-m", module, *self.command(run_dir)], environ={"BULK_TOKEN": TOKEN})
        with open(run_dir / "results.jsonl", "rb") as file:
            lines = sum(1 for _ in file)
        assert lines == self._items, f"{lines:,} lines"
        shutil.rmtree(run_dir)
        if not self._case.is_again:
            shutil.rmtree(self._cache, ignore_errors=True)
        return cost

    def command(self, run_dir: Path | None = None) -> list[str]:
        """What `bulk` is told."""
        keeping = ["--cache", str(self._cache)] if self._case.is_stored else ["--no-cache"]
        where = ["--run-dir", str(run_dir or self._folder / "run")]
        return ["run", str(self._folder / "manifest.yaml"), *where, *keeping, "--progress", "none"]


def bare(base_url: str, case: Case, items: int) -> Cost:
    """The reference's own figures."""
    given = ["--requests", str(items), "--in-flight", str(case.in_flight), "--kind", case.kind]
    return of_loop("benchmarks.harness.bare", base_url, *given)


def of_loop(module: str, *given: str) -> Cost:
    """What a loop took that prints it, in a process of its own."""
    found = json.loads(cost_of([sys.executable, "-m", module, *given]).output.splitlines()[-1])
    return Cost(found["took_s"], found["cpu_s"], 0.0)


def in_turns(case: Case, items: int, rounds: int) -> tuple[list[Cost], list[Cost]]:
    """`rounds` runs of ours, and those of the bare loop before, between and after them."""
    with canned_platform() as base_url, tempfile.TemporaryDirectory(prefix="bulk-bench-") as folder:
        ours = Ours(Path(folder), base_url, case, items)
        if case.is_again:
            ours.run()  # fills the store
        references, runs = [bare(base_url, case, items)], []
        for _ in range(rounds):
            runs.append(ours.run())
            references.append(bare(base_url, case, items))
    return runs, references


def speeds(runs: Sequence[Cost], references: Sequence[Cost]) -> Spread:
    """How fast ours are, in parts of the bare loop's speed."""
    return ratios([1 / run.took_s for run in runs], [1 / one.took_s for one in references])


def measure(case: Case, items: int, rounds: int) -> None:
    items = max(1, int(items * case.share))
    runs, references = in_turns(case, items, rounds)
    speed = speeds(runs, references)
    cpu = Spread(tuple(1 / value for value in ratios(_cpu(runs), _cpu(references)).values))
    ours_us, bare_us = (Spread(tuple(cpu_s / items * 1e6 for cpu_s in _cpu(each))) for each in (runs, references))
    persecond = Spread(tuple(items / run.took_s for run in runs))
    print(f"{case.claim}: {items:,} items, {rounds} rounds")
    print(f"  {persecond.text(0)} items/s; CPU µs each {ours_us.text(1)}, bare {bare_us.text(1)}")
    figure = f"{speed.text()} by time, {cpu.text()} by CPU time"
    aim = case.aim if case.interpreted is None or is_compiled() else case.interpreted
    row(f"{case.claim}, of a bare loop", figure, f"{aim:g}", min(speed.median, cpu.median) >= aim)


def _cpu(costs: Sequence[Cost]) -> list[float]:
    return [cost.cpu_s for cost in costs]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--items", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    for name in given.cases or CASES:
        if name not in CASES:
            parser.error(f"no case {name!r}; there are {', '.join(CASES)}")
        measure(CASES[name], given.items, given.rounds)


if __name__ == "__main__":
    main()
