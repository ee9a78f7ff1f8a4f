"""`bulk rehearse`: the run in virtual time."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bulk import quantities
from bulk.cli import event_loop, output
from bulk.cli.commands.migrations import sandbox_run
from bulk.cli.logs import Command
from bulk.cli.options import (
    ANY_PATH,
    CREDENTIALS_FILE,
    LIMITS,
    MANIFEST,
    PLATFORM,
    RunDirectory,
    as_json,
    first_given,
    overriding,
)
from bulk.errors import UsageError
from bulk.flaws import shown

MOST_TOKENS = 1_000
MOST_ASSUMED = 10_000_000
MOST_WINDOW_S = 3_600
MOST_BUDGET = 10**9
_OF_VIRTUAL_TIME = ("learnt_from", "probes", "asks", "seeds", "budgets", "faults", "assumptions", "offline", "as_json")
"""Parameters that a run for real, on a sandbox, has no use for."""

if TYPE_CHECKING:
    from bulk.manifest.reading import Overrides


@click.command(cls=Command)
@click.argument("manifest", type=ANY_PATH)
@click.option(
    "--from",
    "learnt_from",
    metavar="RUN",
    type=RunDirectory(),
    multiple=True,
    help="A run to learn latencies from. Repeatable.",
)
@click.option("--probe", "probes", is_flag=True, help="Send ten of its reads to learn latencies from.")
@click.option("--what-if", "asks", is_flag=True, help="Also say what would change the end.")
@click.option(
    "--seeds",
    metavar="N",
    type=click.IntRange(1, 50),
    help="Rehearsals; their ends are a range. Default: 20, or fewer of a long run.",
)
@click.option(
    "--budget",
    "budgets",
    metavar="CATEGORY=N/SECONDS",
    multiple=True,
    help="A budget instead of the platform's. Repeatable.",
)
@click.option(
    "--fault", "faults", metavar="KIND=SHARE", multiple=True, help="drop-after=1% or unavailable=1%. Repeatable."
)
@click.option(
    "--assume",
    "assumptions",
    metavar="JOB=COUNT",
    multiple=True,
    help="Items of a job that are made from results. Repeatable.",
)
@click.option("--offline", is_flag=True, help="Send nothing, not even GET /rate_limit: the budgets are those given.")
@click.option(
    "--credentials",
    "credentials_file",
    metavar="N|FILE",
    help="As if N tokens shared the work; or a YAML file with the part `credentials`.",
)
@click.option("--sandbox", "on_sandbox", is_flag=True, help="Run it for real, on a sandbox that has what it names.")
@as_json
@overriding(*(option for option in MANIFEST if option is not CREDENTIALS_FILE), *PLATFORM, *LIMITS)
def rehearse(
    *,
    manifest: Path,
    learnt_from: tuple[Path, ...],
    probes: bool,
    asks: bool,
    seeds: int | None,
    budgets: tuple[str, ...],
    faults: tuple[str, ...],
    assumptions: tuple[str, ...],
    offline: bool,
    on_sandbox: bool,
    as_json: bool,
    overrides: "Overrides",
) -> int:
    """Run MANIFEST in virtual time, and say when each job ends.

    The scheduler and the limits are the real ones, the platform is a model. Nothing but GET /rate_limit is sent, unless
    --probe asks for more.

    With --sandbox it is run for real, on a platform of its own that has what the items name: that shows whether the
    manifest is right, and not when it ends.
    """
    import dataclasses

    from bulk.cli.progress.work import at_work
    from bulk.engine.rehearsal import command
    from bulk.report.render import rehearsal_text

    if probes and offline:
        raise UsageError("--probe sends something, and --offline nothing: leave one of them out")
    tokens = _tokens(overrides.credentials_file)
    if tokens is not None:
        overrides = dataclasses.replace(overrides, credentials_file=None)
    if on_sandbox:
        option = first_given(*_OF_VIRTUAL_TIME) or (None if tokens is None else "--credentials N")
        if option is not None:
            raise UsageError(f"{option} is for virtual time, and --sandbox runs for real: leave one of them out")
        return sandbox_run.run(manifest, overrides)
    given = command.Given(
        budgets=dict(_budget(text) for text in budgets),
        faults=dict(_fault(text) for text in faults),
        assumed=dict(_assumption(text) for text in assumptions),
        learnt_from=learnt_from,
        seeds=seeds,
        asks=asks,
        is_offline=offline,
        probes=probes,
        tokens=tokens or 1,
    )
    with at_work(f"reading {manifest}"):
        told = event_loop.run(lambda: command.told(manifest, given, overrides=overrides, environ=os.environ))
    found = command.rehearsed(told, given, at_work)
    if as_json:
        output.out_json(found)
    else:
        output.out("\n".join(rehearsal_text.lines(found)))
    return 0


def _tokens(text: str | Path | None) -> int | None:
    """Return the number of tokens that was given instead of a file; None where `text` is not a number."""
    if text is None or not str(text).isdecimal():
        return None
    try:
        return quantities.count(str(text), 1, MOST_TOKENS)
    except ValueError:
        raise UsageError(
            f"--credentials {shown(str(text))}: expected a number from 1 to {MOST_TOKENS}, or a file"
        ) from None


def _budget(text: str) -> tuple[str, tuple[int, float]]:
    name, _, rest = text.partition("=")
    count, _, seconds = rest.partition("/")
    try:
        if not name:
            raise ValueError("it names no category")
        return name, (quantities.count(count, 1, MOST_BUDGET), float(quantities.count(seconds, 1, MOST_WINDOW_S)))
    except ValueError as error:
        raise UsageError(f"--budget {shown(text)}: {error}; write CATEGORY=N/SECONDS, as core=5000/3600") from None


def _fault(text: str) -> tuple[str, float]:
    from bulk.engine.rehearsal.model_platform import FAULTS

    name, _, share = text.partition("=")
    try:  # `bulk sandbox --fault` takes 0.01, too
        fraction = float(share) if "%" not in share else quantities.share(share).fraction
    except ValueError:
        fraction = None
    if name not in FAULTS or fraction is None or not 0.0 <= fraction <= 1.0:
        kinds = ", ".join(FAULTS)
        raise UsageError(f"--fault {shown(text)}: write KIND=SHARE, as drop-after=1% or =0.01; the kinds are {kinds}")
    return name, fraction


def _assumption(text: str) -> tuple[str, int]:
    name, _, count = text.partition("=")
    try:
        if not name:
            raise ValueError("it names no job")
        return name, quantities.count(count, 0, MOST_ASSUMED)
    except ValueError as error:
        raise UsageError(f"--assume {shown(text)}: {error}; write JOB=COUNT, as hooks=500") from None
