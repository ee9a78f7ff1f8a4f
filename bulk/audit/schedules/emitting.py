"""The files that a scheduler needs for one audit."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bulk.audit.schedules.times import OddNights, Times, odd_nights

FORMS = ("systemd", "cron", "kubernetes", "actions")
LONGEST_S = 6 * 3_600
"""How long an audit may take before its scheduler ends it (seconds); it is resumed the next time."""


@dataclass(frozen=True, slots=True)
class Audited:
    """What is scheduled.

    Attributes:
        name: of the manifest. manifest, history, folder: absolute paths; commands run in `folder`.
        options: more of `bulk audit`, such as `--var`. program: path of bulk.
        secrets: names of the environment variables that hold tokens.
        image: of a container.
    """

    name: str
    manifest: Path
    history: Path
    folder: Path
    options: Sequence[str]
    program: str
    secrets: Sequence[str]
    image: str

    @property
    def unit(self) -> str:
        """A name that every scheduler takes, of at most 52 characters."""
        safe = re.sub(r"[^a-z0-9-]+", "-", f"bulk-audit-{self.name}".lower()).strip("-")
        return safe[:52].rstrip("-")

    def command(self, program: str, manifest: str, history: str) -> list[str]:
        """Return the command line; where the one before still runs, it passes it by."""
        own = ["audit", manifest, "--history", history, "--overlap", "skip", "--progress", "none", *self.options]
        return [program, *own]

    @property
    def line(self) -> str:
        """The command as it is typed."""
        return shlex.join(self.command(self.program, str(self.manifest), str(self.history)))


@dataclass(frozen=True, slots=True)
class Emitted:
    """Files by name, and what a person should know."""

    files: Mapping[str, str]
    warnings: Sequence[str]


def emit(form: str, times: Times, audited: Audited, at: datetime) -> Emitted:
    """Return what one of `FORMS` needs; `at`: now."""
    from bulk.audit.schedules import actions, crontab, kubernetes, systemd

    match form:
        case "systemd":
            return systemd.emit(times, audited, odd_nights(times, at).left_out)
        case "cron":
            found = crontab.emit(times, audited)
        case "kubernetes":
            found = kubernetes.emit(times, audited)
        case _:
            return actions.emit(times, audited)  # which is in UTC
    return Emitted(found.files, [*found.warnings, *_warnings(odd_nights(times, at), times.zone)])


def _warnings(odd: OddNights, zone: str) -> Iterator[str]:
    """Yield on which days not every scheduler starts an audit once."""
    way_out = "take a time at which the clock never changes"
    if odd.left_out:
        first = odd.left_out[0].date()
        yield f"the clock of {zone} leaves the time out on {first}: no audit may start that night; {way_out}"
    if odd.repeated:
        first = odd.repeated[0].date()
        yield f"the time comes twice on {first} in {zone}: two audits may start that night; {way_out}"
