"""Run every benchmark, one after the other, and write what they show into `RESULTS.md`: `make bench`.

A benchmark is a program that prints what it measures for people, and rows of a table with `measuring.row`. All of them
take over an hour; name those that you want, and only their rows are written anew. The README shows the rows of one.

    python -m benchmarks [NAME ...]

`python -m benchmarks.knee` and `python -m benchmarks.forecast` print tables of their own, and stand in no other.
"""

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.harness.measuring import ROOT, is_compiled

CLAIMS = (
    "throughput",
    "compared.duties",
    "in_flight",
    "lateness",
    "compared.peers",
    "compared.governed",
    "memory",
    "resume",
    "checking",
    "lanes",
    "transport",
    "stages",
    "ledger",
    "compared.chain",
    "compared.store",
    "compared.workers",
    "start_up",
    "serve",
    "needs",
    "needs.edges",
    "needs.waves",
    "cluster",
    "audits",
    "audits.tables",
    "audits.bills",
)
"""In the order of the table; each is a module of this package."""

RESULTS, README = ROOT / "benchmarks" / "RESULTS.md", ROOT / "README.md"
BEGIN, END = "<!-- measured -->\n", "<!-- end of what was measured -->\n"
"""On both pages what stands between these marks is written anew; the words around it are written by hand."""
IN_README = "throughput"
"""The benchmark whose rows the README shows."""
COLUMNS = "| claim | measured | must be | holds |\n|---|---|---|---|\n"


def main() -> int:
    """Exit 1 where a claim does not hold or a benchmark fails."""
    names = sys.argv[1:] or list(CLAIMS)
    unknown = set(names) - set(CLAIMS)
    if unknown:
        print(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(CLAIMS)}", file=sys.stderr)
        return 2
    rows, is_good = known_rows(), True
    for name in names:
        print(f"== {name}", flush=True)
        printed, exit_code = run(name)
        is_good = is_good and exit_code == 0
        rows[name] = [line for line in printed if line.startswith("| ")]
        write(rows)
    return 0 if is_good and not any(line.endswith("| no |") for lines in rows.values() for line in lines) else 1


def run(name: str) -> tuple[list[str], int]:
    """Run one, and pass on what it prints: its lines and its exit code."""
    lines = []
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    return lines, process.returncode


def known_rows() -> dict[str, list[str]]:
    """The rows of each benchmark in the table as it is."""
    rows: dict[str, list[str]] = {}
    name = ""
    for line in RESULTS.read_text().splitlines():
        if line.startswith("<!-- "):
            name = line.split()[1]
        elif name and line.startswith("| ") and not line.startswith("| claim"):
            rows.setdefault(name, []).append(line)
    return rows


def write(rows: dict[str, list[str]]) -> None:
    """RESULTS.md, each benchmark's rows below a mark with its name; and those of one benchmark in the README."""
    today = f"{datetime.now(UTC):%Y-%m-%d}"  # noqa: TID251 - not the engine
    how = "compiled with mypyc" if is_compiled() else "not compiled"
    where = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    about = f"Last written {today} ({where}; what ran then was {how}).\n"
    tables = {name: COLUMNS + "".join(f"{row}\n" for row in rows[name]) for name in CLAIMS if rows.get(name)}
    sections = (f"\n<!-- {name} -->\n\n`python -m benchmarks.{name}`\n\n{table}" for name, table in tables.items())
    put_between_marks(RESULTS, about + "".join(sections))
    put_between_marks(README, f"{about}\n{tables.get(IN_README, '')}")


def put_between_marks(page: Path, text: str) -> None:
    """Put `text` in the place of what stands between the marks of a page.

    Raises:
        ValueError: the page has not both marks.
    """
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no {BEGIN.strip()} or no {END.strip()}")
    page.write_text(f"{before}{BEGIN}{text}{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
