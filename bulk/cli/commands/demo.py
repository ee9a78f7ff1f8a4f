"""`bulk demo`: everything that a user would type, typed for them, against a sandbox of their own.

It starts `bulk sandbox` with a fleet of repositories, a budget that resets within seconds and some faults, runs the
manifests of `jobs/examples/` with `bulk run`, and says where the reports are. Each command is a process of its own, as
in real life; nothing but the sandbox's loopback address is talked to.
"""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from bulk.cli import output, sandbox_process
from bulk.cli.commands.examples import copy_examples
from bulk.cli.logs import Command
from bulk.cli.options import ANY_PATH, DISPLAYS
from bulk.clock import Clock
from bulk.errors import RunStopped, UsageError
from bulk.exit_codes import COMPLETE
from bulk.storage.child_process import python
from bulk.storage.scratch import held_folder

MANIFESTS = ("readmes", "contents", "snapshots", "organizations")
REPOSITORIES = 2_000
README_BYTES = 3_000
BUDGETS = ("core=1000/5", "dependency_snapshots=250/5")
FAULTS = ("drop-before=0.01", "drop-after=0.02", "error-after=0.02", "unavailable=0.002", "truncate=0.01")

PREFIX = "bulk-demo-"

Say = Callable[[str], None]


@click.command(cls=Command)
@click.option("--keep", metavar="DIR", type=ANY_PATH, help="Keep everything in this new folder.")
@click.option("--progress", type=click.Choice(DISPLAYS), default="auto", show_default=True, help="Kind of display.")
def demo(*, keep: Path | None, progress: str) -> int:
    """Try everything out, without a platform.

    Starts a sandbox with 2,000 repositories, runs the example manifests against it and prints their reports.
    """
    return _run(keep, progress=progress, say=output.say)


def _run(keep: Path | None, *, progress: str, say: Say) -> int:
    """Run the demo and return its exit code: 0 when every item succeeded or was unchanged.

    Args:
        keep: a folder for everything that the demo makes, which must be new or empty; None: a new temporary folder,
            which the next demo deletes.
        progress: kind of display, as `bulk run --progress` takes it.
        say: shows one line to people.

    Raises:
        UsageError: `keep` can't be used.
        RunStopped: the sandbox did not start.
    """
    clock = Clock()
    started_at = clock.monotonic()
    with _folder(keep) as folder:
        exit_codes = _all_runs(folder, keeps_state=keep is not None, progress=progress, say=say)
    took_s = clock.monotonic() - started_at
    say(f"\nDone in {took_s:.0f} s. Reports to open in a browser{'' if keep else ', until the next demo begins'}:")
    for name in exit_codes:
        say(f"  {folder / 'runs' / name / 'report.html'}")
    bad = [f"{name} ({code})" for name, code in exit_codes.items() if code]
    if bad:
        say(f"Not every item succeeded: {', '.join(bad)}")
        return next(code for code in exit_codes.values() if code)
    say("Every item succeeded or was unchanged.")
    return 0


def _all_runs(folder: Path, *, keeps_state: bool, progress: str, say: Say) -> dict[str, int]:
    """Run the examples one after the other, and return the exit code of each."""
    manifests = _copied_examples(folder)
    exit_codes: dict[str, int] = {}
    with _sandbox(folder, keeps_state=keeps_state) as (base_url, has_ended):
        say(f"A sandbox with {REPOSITORIES:,} repositories serves {base_url}")
        say(f"Budgets: {', '.join(BUDGETS)} seconds. Faults: {', '.join(FAULTS)}.")
        for manifest in manifests:
            say(f"\n$ bulk run {manifest.name}")
            exit_codes[manifest.stem] = exit_code = _bulk_run(manifest, folder, base_url, progress)
            if exit_code not in COMPLETE:
                break
            if has_ended():
                raise RunStopped("the sandbox ended by itself")
    return exit_codes


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with held_folder(PREFIX, swept=PREFIX) as folder:
            yield folder
        return
    try:
        keep.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_empty = not any(keep.iterdir())
    except OSError as error:
        raise UsageError(f"--keep {keep}: {error.strerror}") from None
    if not is_empty:
        raise UsageError(f"--keep {keep}: the folder is not empty; name a new one")
    yield keep


def _copied_examples(folder: Path) -> list[Path]:
    copy_examples(folder / "examples")
    return [folder / "examples" / f"{name}.yaml" for name in MANIFESTS]


def _sandbox(folder: Path, *, keeps_state: bool) -> contextlib.AbstractContextManager[tuple[str, Callable[[], bool]]]:
    options = ["--state", str(folder / "platform")] if keeps_state else []
    for name, values in (("--rate-limit", BUDGETS), ("--fault", FAULTS)):
        for value in values:
            options += name, value
    fleet = {"organization": "acme-fleet", "count": REPOSITORIES, "readme_bytes": README_BYTES}
    return sandbox_process.running(folder, {"repositories": fleet}, *options)


def _bulk_run(manifest: Path, folder: Path, base_url: str, progress: str) -> int:
    command = python("bulk", "run", str(manifest), "--yes", "--run-dir", str(folder / "runs" / manifest.stem))
    command += ["--base-url", base_url, "--cache", str(folder / "cache"), "--progress", progress]
    return subprocess.run(command, env={**os.environ, "BULK_TOKEN": sandbox_process.TOKEN}, check=False).returncode
