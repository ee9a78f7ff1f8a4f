"""`bulk audit`: one night of an audit; `bulk audit test` and `bulk audit notify`."""

import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from bulk.cli import errors, foreground, output
from bulk.cli.logs import Command
from bulk.cli.options import ANY_PATH, CACHE, LIMITS, MANIFEST, PLATFORM, RunDirectory, overriding, try_out
from bulk.errors import RunDirectoryError, UsageError
from bulk.exit_codes import STOPPED_EARLY

if TYPE_CHECKING:
    from collections.abc import Callable

    from bulk.audit.history import History
    from bulk.audit.result import AuditResult
    from bulk.engine.agreement.approval import Approve
    from bulk.manifest.audit_section import AuditSettings
    from bulk.manifest.manifest import Manifest
    from bulk.manifest.reading import Overrides
    from bulk.report.fold import Report
    from bulk.status import Display

FORMATS = ("text", "json", "sarif", "junit")
OVERLAPS = ("fail", "skip", "wait")


class Audit(click.Group):
    """`bulk audit MANIFEST` is the command `night`, which needs no name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the name `night` where a manifest or an option of that command comes first.

        Raises:
            NoSuchCommand: what comes first looks like the name of a command, and no such file is there.
        """
        first = next(iter(args), "")
        near = () if first.startswith("-") else difflib.get_close_matches(first, self.commands, cutoff=0.7)
        if near and first not in self.commands and not Path(first).exists():
            raise click.NoSuchCommand(first, possibilities=near, ctx=ctx)
        if args and first not in self.commands and first not in ("-h", "--help"):
            args = ["night", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands, else what the command `night` takes: its options, or a file."""
        if incomplete.startswith("-"):
            return self.commands["night"].shell_complete(ctx, incomplete)
        return super().shell_complete(ctx, incomplete) or [CompletionItem(incomplete, type="file")]


def _rendering(command: Any) -> Any:
    for option in (
        click.option("--out", metavar="FILE", type=ANY_PATH, help="Write it into this file."),
        click.option("--format", "kind", type=click.Choice(FORMATS), default="text", show_default=True, help="Form."),
    ):
        command = option(command)
    return command


@click.group(cls=Audit, subcommand_metavar="MANIFEST | night | test | notify")
def audit() -> None:
    """Run MANIFEST into a history, compare, judge, and notify.

    The options are those of bulk audit night.
    """


@audit.command(cls=Command)
@click.argument("manifest", type=ANY_PATH)
@click.option("--history", "place", metavar="DIR", type=ANY_PATH, help="Default: audits/NAME.")
@click.option(
    "--overlap", type=click.Choice(OVERLAPS), default="fail", show_default=True, help="While another one runs."
)
@click.option("--resume-within", metavar="DURATION", default="12h", show_default=True, help="Go on with younger runs.")
@click.option("--no-notify", is_flag=True, help="Tell nobody.")
@_rendering
@overriding(*MANIFEST, *PLATFORM, *LIMITS)
@CACHE[0]
@CACHE[1]
@click.option(
    "--progress", type=click.Choice(("auto", "rich", "plain", "json", "none")), default="auto", show_default=True
)
def night(
    *,
    manifest: Path,
    place: Path | None,
    overlap: str,
    resume_within: str,
    no_notify: bool,
    kind: str,
    out: Path | None,
    overrides: "Overrides",
    **showing: Any,
) -> int:
    """Run MANIFEST, which only reads, into a history; compare with what each item was when it was last read, evaluate
    policies, write tables, tell people, and remove what is old.

    A run that was interrupted is gone on with. Exit 7: something changed, or a policy is violated.
    """
    from bulk import quantities
    from bulk.audit import audit as audits
    from bulk.audit.history import History, holding
    from bulk.clock import Clock
    from bulk.manifest.reading import read_manifest

    try:
        within_s = quantities.duration_s(resume_within)
    except ValueError as error:
        raise UsageError(f"--resume-within: {error}") from None
    _refuse(out, manifest)
    now = Clock().now()
    read = read_manifest(manifest, overrides, os.environ)
    prepared = audits.prepare(read, now)
    folder = place or Path("audits") / read.name
    if out is not None and History.owns(folder, out):
        raise UsageError(f"--out {out}: is a file of the history {folder}; name another one")
    with holding(folder, waits=overlap == "wait") as is_held:
        if not is_held:
            return _overlapped(folder, overlap)
        history = History(folder, read.name, manifest, read.platform.base_url)
        try:
            result = audits.one_night(prepared, history, _runner(read, overrides, showing), now, within_s)
        except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001 - how it goes on is told after a bug, too
            exit_code = errors.exit_code_of(error, is_json=kind == "json")
            errors.say_how_to_go_on(_command(), exit_code)
            return exit_code
        exit_code = result.exit_code
        try:
            _print(result, kind, out)
        except Exception as error:  # noqa: BLE001 - the night counts, whatever can't be written now
            unwritten = errors.exit_code_of(error, is_json=kind == "json")
            exit_code = unwritten if unwritten and exit_code not in STOPPED_EARLY else exit_code
        if not no_notify:
            _tell(result, history, manifest.resolve().parent, prepared.settings.notify)
        if result.is_compared:
            _prune(history, prepared.settings, now)
    errors.say_how_to_go_on(_command(), result.exit_code, has_begun=True)
    return exit_code


@audit.command(cls=Command)
@click.argument("manifest", type=ANY_PATH)
@click.argument("run", metavar="RUN", type=RunDirectory())
@_rendering
@overriding(*MANIFEST, *PLATFORM)
def test(*, manifest: Path, run: Path, kind: str, out: Path | None, overrides: "Overrides") -> int:
    """Evaluate the policies of MANIFEST over RUN, which has ended; nothing is sent, and no history is touched."""
    from bulk.audit import audit as audits
    from bulk.clock import Clock
    from bulk.manifest.reading import read_manifest

    _refuse(out, manifest)
    now = Clock().now()
    prepared = audits.prepare(read_manifest(manifest, overrides, os.environ), now)
    result = audits.judge_run(prepared, run, now)
    _print(result, kind, out)
    return result.exit_code


@audit.command(cls=Command)
@click.argument("run", metavar="RUN", type=RunDirectory())
@click.option("--again", is_flag=True, help="Also what was sent before, or may have been.")
def notify(run: Path, *, again: bool) -> int:
    """Tell people about the night of RUN, a run directory in the history of an audit."""
    from bulk.audit import audit as audits
    from bulk.audit.history import History
    from bulk.engine.origin import Origin
    from bulk.manifest.reading import Overrides, read_manifest

    folder = run.resolve().parent.parent
    origin = Origin.load(run)
    history = History.open(folder)
    result = audits.kept(history, run.resolve().name)
    manifest = read_manifest(Path(origin.manifest), origin.overrides(Overrides()), os.environ)
    targets = () if manifest.audit is None else manifest.audit.notify
    if not targets:
        raise UsageError(f"{origin.manifest} names nobody to tell: write audit.notify")
    told = list[str]()
    is_told = _tell(result, history, Path(origin.manifest).parent, targets, is_again=again, tell=told.append)
    for line in told:
        output.say(line)
    if is_told and not told:
        output.say("nobody is left to tell: each was told or tried before, or does not want it; --again tells them")
    return 0 if is_told else 1


def _runner(read: "Manifest", overrides: "Overrides", showing: dict[str, Any]) -> Any:
    from bulk.engine import commands
    from bulk.engine.surroundings import Surroundings

    def run(run_dir: Path, approve: "Approve | None") -> "Report":
        async def start(display: "Display", cache: Path | None) -> "Report":
            return await commands.run_manifest(
                read.path,
                overrides=overrides,
                run_dir=run_dir,
                display=display,
                environ=os.environ,
                surroundings=Surroundings(cache=cache, handles_signals=True, is_steered=True, approve=approve),
                read=read,
            )

        return foreground.report_of(start, run_dir, **showing)

    return run


def _overlapped(folder: Path, overlap: str) -> int:
    if overlap == "fail":
        raise RunDirectoryError(f"{folder}: another audit runs there; --overlap skip passes it by, wait waits for it")
    output.say(f"{folder}: another audit runs there; this one is skipped")
    return 0


def _refuse(out: Path | None, manifest: Path) -> None:
    """Refuse a file that can't be written, or should not be, before a night is spent on it."""
    if out is None:
        return
    if out.exists() and manifest.exists() and out.samefile(manifest):
        raise UsageError(f"--out {out}: is the manifest; name another file")
    try_out("--out", out)


def _print(result: "AuditResult", kind: str, out: Path | None) -> None:
    from bulk.audit.output import rendered
    from bulk.storage.private_files import write_whole

    with output.binary_out() as stdout:
        stdout.write(rendered(result, kind if out is None else "text"))
    if out is None:
        return
    try:
        write_whole(out, rendered(result, kind))
    except OSError as error:
        raise RunDirectoryError(f"--out {out}: {error.strerror}") from error


def _tell(
    result: "AuditResult",
    history: "History",
    folder: Path,
    targets: Any,
    *,
    is_again: bool = False,
    tell: "Callable[[str], None]" = lambda _: None,
) -> bool:
    from bulk.audit.notify.sending import notify as sending
    from bulk.audit.notify.sending import unsettled
    from bulk.clock import Clock

    now = Clock().now()
    warnings = list(sending(targets, result, history, os.environ, folder, now=now, is_again=is_again, tell=tell))
    for warning in warnings:
        output.say(f"warning: {warning}")
    for name in unsettled(history, result.night.run):
        output.say(f"note: nobody knows whether {name} was sent; `bulk audit notify RUN --again` sends it again")
    return not warnings


def _prune(history: "History", settings: "AuditSettings", now: float) -> None:
    try:
        history.prune(settings.keep_runs, settings.keep_tables_s, now)
    except (OSError, RunDirectoryError) as error:
        output.say(f"warning: old nights stay: {error}")


def _command() -> str:
    import shlex

    return shlex.join(["bulk", *(click.get_current_context().find_object(tuple) or ())])
