"""`bulk verify`: whether a run directory is what the run has written, and the platform as it left it."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.cli.options import LIMITS, PLATFORM, PLATFORM_AND_LIMITS, RunDirectory, as_json, overriding, refuse_without
from bulk.errors import UsageError
from bulk.exit_codes import ExitCode

if TYPE_CHECKING:
    from bulk.engine.migrations.live_check import Live, Verified
    from bulk.ledger.digests.verification import Verification
    from bulk.manifest.reading import Overrides

LEAST_DIGITS = 12
_MOST = 20


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@click.option("--expect", metavar="HEAD", help="A head that was kept elsewhere, as a report shows it.")
@click.option("--all", "is_all", is_flag=True, help="List everything that is wrong, not only the first 20.")
@click.option("--live", "is_live", is_flag=True, help="Also look whether the platform is still as RUN left it.")
@overriding(*PLATFORM, *LIMITS)
@as_json
def verify(
    run_dir: Path, *, expect: str | None, is_all: bool, is_live: bool, overrides: "Overrides", as_json: bool
) -> int:
    """Check that RUN is as it was written, by its digests.

    Whoever can rewrite the whole directory can rewrite the chain too. A head that was kept elsewhere shows that.

    With --live every item that wrote is looked at, with reads alone; exit 1 where one is not as it was left.
    """
    from bulk.cli.progress.work import at_work
    from bulk.ledger.digests import verification

    if not is_live:
        refuse_without("--live", *PLATFORM_AND_LIMITS)
    wanted = None if expect is None else _head(expect)
    with at_work(f"verifying {run_dir}") as tell:
        found = verification.verify(run_dir, expect=wanted, tell=tell)
    live = _look_back(run_dir, overrides) if is_live and not found.flaws else None
    if as_json:
        output.out_json(found if live is None else _with(found, live))
    else:
        lines = _lines(found, run_dir, is_all=is_all) + (
            [] if live is None else _live_lines(live, run_dir, is_all=is_all)
        )
        output.out("\n".join(lines))
    if found.flaws:
        return ExitCode.RUN_DIRECTORY
    return ExitCode.UNSUCCESSFUL if live is not None and live.moved else ExitCode.DONE


def _look_back(run_dir: Path, overrides: "Overrides") -> "Live":
    import platformdirs

    from bulk.cli import event_loop
    from bulk.cli.progress.painter import display
    from bulk.cli.progress.work import beside
    from bulk.engine.migrations import live_check
    from bulk.engine.surroundings import Surroundings

    around = Surroundings(handles_signals=True, cache=platformdirs.user_cache_path("bulk"))
    with display("auto", sys.stderr) as shown:
        return event_loop.run(
            lambda: live_check.look_back(
                run_dir,
                overrides=overrides,
                environ=os.environ,
                display=shown,
                surroundings=around,
                working=beside(shown),
            )
        )


def _with(found: "Verification", live: "Live") -> "Verified":
    from bulk.engine.migrations.live_check import Verified

    return Verified(**{name: getattr(found, name) for name in found.__struct_fields__}, live=live)


def _live_lines(live: "Live", run_dir: Path, *, is_all: bool) -> list[str]:
    from bulk.report.render.formatting import count, counted
    from bulk.report.render.terminal import safe

    rewritten = f", {count(live.rewritten)} written over by the run itself" if live.rewritten else ""
    unseen = f", {count(live.unseen)} that can't be looked at" if live.unseen else ""
    moved = f"live: {count(live.equal)} as left, {count(len(live.moved))} moved{unseen}{rewritten}"
    lines = [f"{moved}; {counted(live.requests, 'request')}, reads alone"]
    lines += [f"  can't be looked at: {safe(reason, 200)}" for reason in live.reasons]
    shown = live.moved if is_all else live.moved[:_MOST]
    for each in shown:
        why = f": {safe(each.why, 200)}" if each.why else ""
        lines.append(f"  {safe(each.job, 60)} #{each.index} {safe(each.label, 120)}: {each.verdict}{why}")
    if len(live.moved) > len(shown):
        whole = shlex.join(["bulk", "verify", str(run_dir), "--live", "--all"])
        lines.append(f"  and {count(len(live.moved) - len(shown))} more: {whole}")
    return lines


def _head(text: str) -> str:
    digits = text.strip().lower()
    if not LEAST_DIGITS <= len(digits) <= 64 or set(digits) - set("0123456789abcdef"):
        raise UsageError(f"--expect: write at least the first {LEAST_DIGITS} hexadecimal digits of a head")
    return digits


def _lines(found: "Verification", run_dir: Path, *, is_all: bool) -> list[str]:
    from bulk.report.render.formatting import counted
    from bulk.report.render.terminal import safe

    sums = f"{counted(found.outcomes, 'outcome')}, {counted(found.links, 'commit')}, head {found.head or 'unknown'}"
    if not found.flaws:
        missing = "; there is no digests.json, which a run gets when it ends: its files were not compared"
        report = "; report and files agree" if found.is_ended else missing
        lines = [f"intact: {sums}{report}"]
    else:
        lines = [f"not intact: {counted(len(found.flaws), 'flaw')}; {sums}"]
    if found.unbound:
        lines.append(f"{counted(found.unbound, 'outcome')} from before the chain began: nothing is known of them")
    shown = found.flaws if is_all else found.flaws[:_MOST]
    for flaw in shown:
        item = "" if flaw.job is None else f" {safe(flaw.job, 60)} #{flaw.index}:"
        lines.append(f"  {safe(flaw.file, 80)}:{item} {safe(flaw.message, 300)}")
    if len(found.flaws) > len(shown):
        lines.append(
            f"  and {len(found.flaws) - len(shown):,} more: {shlex.join(['bulk', 'verify', str(run_dir), '--all'])}"
        )
    return lines
