"""`bulk verify`: whether a run directory is what the run has written."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bulk.cli import output
from bulk.cli.logs import Command
from bulk.cli.options import RunDirectory, as_json
from bulk.errors import UsageError
from bulk.exit_codes import ExitCode

if TYPE_CHECKING:
    from bulk.ledger.digests.verification import Verification

LEAST_DIGITS = 12
_MOST = 20


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@click.option("--expect", metavar="HEAD", help="A head that was kept elsewhere, as a report shows it.")
@click.option("--all", "is_all", is_flag=True, help="List everything that is wrong, not only the first 20.")
@as_json
def verify(run_dir: Path, *, expect: str | None, is_all: bool, as_json: bool) -> int:
    """Check that RUN is as it was written, by its digests.

    Whoever can rewrite the whole directory can rewrite the chain too. A head that was kept elsewhere shows that.
    """
    from bulk.ledger.digests import verification

    wanted = None if expect is None else _head(expect)
    found = verification.verify(run_dir, expect=wanted)
    if as_json:
        output.out_json(found)
    else:
        output.out("\n".join(_lines(found, is_all=is_all)))
    return ExitCode.RUN_DIRECTORY if found.flaws else ExitCode.DONE


def _head(text: str) -> str:
    digits = text.strip().lower()
    if not LEAST_DIGITS <= len(digits) <= 64 or set(digits) - set("0123456789abcdef"):
        raise UsageError(f"--expect: write at least the first {LEAST_DIGITS} hexadecimal digits of a head")
    return digits


def _lines(found: "Verification", *, is_all: bool) -> list[str]:
    from bulk.report.render.formatting import counted
    from bulk.report.render.terminal import safe

    sums = f"{counted(found.outcomes, 'outcome')}, {counted(found.links, 'commit')}, head {found.head or 'unknown'}"
    if not found.flaws:
        report = "; report and files agree" if found.is_ended else "; the run has not ended, its files may change"
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
        lines.append(f"  and {len(found.flaws) - len(shown):,} more: bulk verify --all")
    return lines
