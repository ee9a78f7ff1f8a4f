"""`bulk submit`: a manifest becomes a run in a store, which workers do."""

import contextlib
import os
import sys
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bulk.cli import event_loop, output
from bulk.cli.commands.cluster import stored, stored_steering
from bulk.cli.logs import Command
from bulk.cli.options import ANY_PATH, LIMITS, MANIFEST, PLATFORM, RUNS, as_json, overriding
from bulk.exit_codes import ExitCode

if TYPE_CHECKING:
    from bulk.cli.question import Question
    from bulk.manifest.reading import Overrides
    from bulk.status import Display


@click.command(cls=Command)
@click.argument("manifest", type=ANY_PATH)
@stored.needed_store
@click.option("--yes", "is_yes", is_flag=True, help="Answer the question before what can't be undone.")
@as_json
@overriding(*MANIFEST, *PLATFORM, *LIMITS)
def submit(*, manifest: Path, store: str, is_yes: bool, as_json: bool, overrides: "Overrides") -> int:
    """Check MANIFEST here, submit it to a store, print its name.

    Workers of the store do it. The same manifest and items again are the same run, as long as it is not complete.
    """
    with stored.opened(store, "submit") as connection:
        from bulk.cli.question import Question
        from bulk.cluster.submission import submit_manifest, submitted_json
        from bulk.status import Silence

        question = Question(is_yes=is_yes, above=sys.maxsize, alone=contextlib.nullcontext)
        submitted = event_loop.run(
            lambda: submit_manifest(
                manifest,
                connection,
                overrides=overrides,
                environ=os.environ,
                display=Silence(),
                approve=question,
            )
        )
        if not submitted.is_new:
            stored_steering.say_of_earlier(submitted.name, connection)
    output.out(submitted_json(submitted).decode() if as_json else submitted.name)
    return 0


def run_in_store(
    manifest: Path,
    store: str,
    run_dir: Path | None,
    *,
    overrides: "Overrides",
    question: "Question",
    progress: str,
    as_json: bool,
    accepted: AbstractSet[int],
) -> int:
    """Submit a manifest, show the run until it has ended, and take its results home; returns the exit code.

    Args:
        accepted: waves that go on though they are over a budget (numbers).
    """
    from bulk.cli.progress.painter import display

    with stored.opened(store, "run") as connection:
        from bulk.cluster import submission
        from bulk.store import runs
        from bulk.store.export import is_awaited_export, try_place

        if run_dir is not None and not is_awaited_export(connection, run_dir):
            try_place(run_dir)

        async def wait(shown: "Display") -> tuple[submission.Submitted, runs.StoredRun]:
            submitted = await submission.submit_manifest(
                manifest, connection, overrides=overrides, environ=os.environ, display=shown, approve=question,
                accepted=accepted, who=stored.who(), is_awaited=True,
            )  # fmt: skip
            how = "is submitted to" if submitted.is_new else "was submitted before, and has the limits that it has in"
            shown.note(f"{submitted.name} {how} {store}")
            return submitted, await submission.followed(submitted.name, connection, shown)

        try:
            with display(progress, sys.stderr) as shown:
                submitted, run = event_loop.run(lambda: wait(shown))
        except KeyboardInterrupt:
            output.say("detached: what was submitted goes on, and the same command waits again")
            return ExitCode.INTERRUPTED
        target = run_dir or RUNS / submitted.name
        if run.state != runs.COMPLETE:
            return stored_steering.said(run, store)
        report = submission.taken_home(connection, run, target, submitted.notes)
    output.out_report(report, as_json=as_json)
    return report.exit_code
