"""Run every benchmark, one after the other, and write what they show into one table: `make bench`.

A benchmark is a program that prints what it measures for people, and rows of the table with `measuring.row`. Some take
their time (a table of everything: over an hour); name those that you want, and only their rows are written anew.

    python -m benchmarks [NAME ...]

`python -m benchmarks.knee` and `python -m benchmarks.forecast` print tables of their own, and stand in no other.
"""

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime

from benchmarks.measuring import ROOT, is_compiled

CLAIMS = (
    "throughput",
    "duties",
    "in_flight",
    "lateness",
    "peers",
    "governed",
    "memory",
    "resume",
    "checking",
    "lanes",
    "transport",
    "stages",
    "ledger",
    "start_up",
)
"""In the order of the table; each is a module of this package."""

TABLE = ROOT / "benchmarks" / "RESULTS.md"
README, BEGIN, END = ROOT / "README.md", "<!-- measured -->\n", "<!-- end of what was measured -->\n"
IN_DETAIL = ("transport", "stages", "ledger")
"""What only the table has: the README shows the others."""
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
    for line in TABLE.read_text().splitlines() if TABLE.exists() else ():
        if line.startswith("<!-- "):
            name = line.split()[1]
        elif name and line.startswith("| ") and not line.startswith("| claim"):
            rows.setdefault(name, []).append(line)
    return rows


def write(rows: dict[str, list[str]]) -> None:
    """The table, each benchmark's rows below a mark with its name; and most of it in the README."""
    today = f"{datetime.now(UTC):%Y-%m-%d}"  # noqa: TID251 - not the engine
    how = "compiled with mypyc" if is_compiled() else "not compiled"
    where = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    about = f"Last written {today} ({where}; what ran then was {how})."
    text = (
        f"# What was measured\n\n{about} Ratios compare what ran in turns in the same run; medians, least and most.\n"
    )
    for name in CLAIMS:
        if rows.get(name):
            shown = "\n".join(rows[name])
            text += f"\n<!-- {name} -->\n\n`python -m benchmarks.{name}`\n\n{COLUMNS}{shown}\n"
    TABLE.write_text(text)
    before, _, rest = README.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    shown = "\n".join(line for name in CLAIMS if name not in IN_DETAIL for line in rows.get(name, ()))
    README.write_text(f"{before}{BEGIN}{about}\n\n{COLUMNS}{shown}\n{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
