"""What benchmarks share: processes on one core with what they cost, medians with their spread, rows of the one table.

A client runs on one core and the server on another, so that neither takes the other's time. Two things that are
compared run in turns (A B A B …), and the median of the ratios of neighbours counts: a machine that gets slower
meanwhile slows both.
"""

import contextlib
import itertools
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPILED = ROOT / "build" / "compiled"
"""What a compiled wheel installs, where `make compiled` made it."""

_CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE, CLIENT_CORE = _CORES[0], _CORES[-1]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a whole process took.

    Attributes:
        took_s: from its start to its end (seconds). cpu_s: on all of its threads (seconds). peak_mb: of its memory.
    """

    took_s: float
    cpu_s: float
    peak_mb: float
    output: str = ""


def is_compiled() -> bool:
    """Whether what is measured is compiled.

    Raises:
        SystemExit: it is, from sources that have changed since.
    """
    made = COMPILED / ".ready"
    if not made.exists():
        return False
    newest = max(path.stat().st_mtime for name in ("bulk", "jobs") for path in (ROOT / name).rglob("*.py"))
    if newest > made.stat().st_mtime:
        raise SystemExit("build/compiled is older than the sources: run `make compiled`, or delete it")
    return True


def environment() -> dict[str, str]:
    """That of a process that is measured: Bulk as a compiled wheel installs it, where there is one.

    Bytecode is kept, as an installation has it, whatever the user's wish: else each start would compile all libraries.
    """
    path = f"{COMPILED}{os.pathsep}{ROOT}" if is_compiled() else str(ROOT)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}  # else the current folder would come first


@contextlib.contextmanager
def on_core(core: int) -> Iterator[None]:
    """What is started in the block runs on that core only, for all of its life."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cost_of(
    command: Sequence[str], *, environ: Mapping[str, str] | None = None, cwd: Path | None = None, exit_code: int = 0
) -> Cost:
    """Run `command` on the client's core to its end.

    Raises:
        RuntimeError: it ended with another exit code; the message has what it printed.
    """
    environ = {**environment(), **(environ or {})}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled already
    started = time.perf_counter()
    with on_core(CLIENT_CORE):
        started_one = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ, cwd=cwd
        )
    with started_one as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    took_s = time.perf_counter() - started
    if process.returncode != exit_code:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{output}")
    return Cost(took_s, _cpu_s(usage), usage.ru_maxrss / 1024, output)


def _cpu_s(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


@dataclass(frozen=True, slots=True)
class Spread:
    """Several measurements of one thing: `text` shows the median and the smallest and largest."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The one that counts."""
        return statistics.median(self.values)

    def text(self, digits: int = 2) -> str:
        """`0.84 (0.79 to 0.88)`."""
        return f"{self.median:,.{digits}f} ({min(self.values):,.{digits}f} to {max(self.values):,.{digits}f})"


def ratios(ours: Sequence[float], reference: Sequence[float]) -> Spread:
    """Each of ours against the mean of its two neighbours among the references, of which there is one more."""
    between = [(before + after) / 2 for before, after in itertools.pairwise(reference)]
    return Spread(tuple(one / other for one, other in zip(ours, between, strict=True)))


def row(claim: str, figure: str, aim: str = "-", holds: bool | None = None) -> None:
    """Print a row of the table that `make bench` makes of all benchmarks; without `aim` it claims nothing."""
    print(f"| {claim} | {figure} | {aim} | {'-' if holds is None else 'yes' if holds else 'no'} |", flush=True)
