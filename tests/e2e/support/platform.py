"""Real processes: a `bulk sandbox` to run against, `bulk` commands, and the sandbox's journal, which judges them."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from tests.e2e.support.forked import Forked, Forkery

BULK = [sys.executable, "-m", "bulk"]
"""As a user starts it; `start` forks instead, which is the same process sooner."""
ADMIN = "sbx-site-admin"


TICK_S = 0.002

Process: TypeAlias = "subprocess.Popen[str] | Forked"

_FORKERY = Forkery()


def start(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.PIPE,
    stderr: int | None = subprocess.PIPE,
) -> Process:
    """Start a command of `bulk`."""
    if _FORKERY.can_start(environment):
        return _FORKERY.start(arguments, folder, environment, stdin=stdin, stdout=stdout, stderr=stderr)
    command = [*BULK, *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, stdin=stdin, stdout=stdout, stderr=stderr)


def has_ended(process: Process, seconds: float) -> bool:
    """Wait for `seconds`, or until the process has ended: whether it has."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def wait_for(condition: Callable[[], bool], process: Process, seconds: float = 60.0) -> None:
    """Wait until `condition` is true while the process runs."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited too long"
        assert not has_ended(process, TICK_S), process.communicate()


@dataclass
class Served:
    """A sandbox that is being served."""

    base_url: str
    folder: Path
    process: Process
    journal_path: Path
    _lines: list[dict[str, Any]] = field(default_factory=list)
    _read_bytes: int = 0

    def journal(self) -> list[dict[str, Any]]:
        """What it was asked and did so far; a line that is being written has not come yet.

        Only what is new is read: tests that wait for a request ask five hundred times a second.
        """
        with self.journal_path.open("rb") as journal:
            journal.seek(self._read_bytes)
            complete, end, _ = journal.read().rpartition(b"\n")
        self._read_bytes += len(complete + end)
        self._lines += map(json.loads, complete.splitlines())
        return list(self._lines)

    def requests(self, *, path: str = "") -> list[dict[str, Any]]:
        """The journal without `/rate_limit`."""
        return [line for line in self.journal() if "rate_limit" not in line["path"] and path in line["path"]]


@contextmanager
def served(folder: Path, *options: str, seed: Mapping[str, Any] | None = None) -> Iterator[Served]:
    """Start `bulk sandbox` with these options; ends with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    journal = folder / "journal.jsonl"
    command = ["sandbox", "--quiet", "--state", str(folder / "state"), "--journal", str(journal), *options]
    if seed is not None:
        path = folder / "seed.json"
        path.write_text(json.dumps(seed))
        command += ["--seed-data", str(path)]
    with start(command, Path.cwd(), os.environ, stderr=None) as process:
        assert process.stdout is not None
        try:
            base_url = process.stdout.readline().strip()
            assert base_url.startswith("http://127.0.0.1:"), base_url
            yield Served(base_url, folder, process, journal)
        finally:
            process.send_signal(signal.SIGTERM)
            if not has_ended(process, 60):
                process.kill()  # nobody waits for its end without an end
                raise AssertionError("the sandbox did not end when it was told to")


@dataclass
class Ran:
    """A command that has ended."""

    exit_code: int
    out: str
    err: str


@dataclass
class Home:
    """A folder with manifests, and the commands that run there."""

    folder: Path
    token: str = field(default=ADMIN, repr=False)
    variables: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, content: str | bytes) -> Path:
        """A file in it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def lines(self, name: str, items: Sequence[Mapping[str, Any]]) -> Path:
        """An items file of JSON lines."""
        return self.write(name, "".join(json.dumps(item) + "\n" for item in items))

    def manifest(self, base_url: str, jobs: Mapping[str, Any], name: str = "manifest.yaml", **more: Any) -> Path:
        """A manifest (JSON is YAML)."""
        return self.write(name, json.dumps({"version": 1, "platform": {"base_url": base_url}, "jobs": jobs, **more}))

    def environment(self) -> dict[str, str]:
        """What its commands see."""
        cache = self.folder / "cache"
        return {**os.environ, "BULK_TOKEN": self.token, "XDG_CACHE_HOME": str(cache), **self.variables}

    def start(self, *arguments: str, stdin: int = subprocess.DEVNULL) -> Process:
        """Start a command of `bulk`."""
        return start(arguments, self.folder, self.environment(), stdin)

    def start_any(
        self,
        command: Sequence[str],
        stdin: int = subprocess.DEVNULL,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Start any command."""
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment or self.environment(),
            text=True,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    @contextmanager
    def running(self, *arguments: str) -> Iterator[Process]:
        """Start a command of `bulk`; what still runs at the end of the block is killed."""
        with self.start(*arguments) as process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, *arguments: str, stdin: str | None = None, timeout_s: float = 180.0) -> Ran:
        """Run a command of `bulk` to its end."""
        process = self.start(*arguments, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE)
        return _to_its_end(process, stdin, timeout_s)

    def run_any(self, command: Sequence[str], *, stdin: str | None = None, timeout_s: float = 180.0) -> Ran:
        """Run any command to its end; `stdin` is what it reads."""
        process = self.start_any(command, subprocess.DEVNULL if stdin is None else subprocess.PIPE)
        return _to_its_end(process, stdin, timeout_s)

    def run_typed(self, line: str, environment: Mapping[str, str]) -> Ran:
        """Run a line as somebody types it: in a shell, unless it is `bulk` with words that no shell changes."""
        if line.startswith("bulk ") and not set(line) & set("$`*?[]{}~|&;<>()#\\\n"):
            return _to_its_end(start(shlex.split(line)[1:], self.folder, environment), None, 180.0)
        known = f'bulk() {{ {shlex.join(BULK)} "$@"; }}; {line}'
        return _to_its_end(self.start_any(["bash", "-c", known], environment=environment), None, 180.0)

    def results(self, run_dir: str) -> list[dict[str, Any]]:
        """The lines of a run's `results.jsonl`."""
        return [json.loads(line) for line in (self.folder / run_dir / "results.jsonl").read_text().splitlines()]

    def report(self, run_dir: str) -> dict[str, Any]:
        """A run's `report.json`."""
        report: dict[str, Any] = json.loads((self.folder / run_dir / "report.json").read_text())
        return report


def _to_its_end(started: Process, stdin: str | None, timeout_s: float) -> Ran:
    with started as process:
        try:
            out, err = process.communicate(stdin, timeout=timeout_s)
        except BaseException:
            process.kill()
            raise
    assert "Traceback" not in err, err
    assert process.returncode is not None
    return Ran(process.returncode, out, err)
