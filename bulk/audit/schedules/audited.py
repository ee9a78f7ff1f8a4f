"""An audit that is scheduled, and the files that its scheduler needs."""

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LONGEST_S = 6 * 3_600
"""How long an audit may take before its scheduler ends it (seconds); it is resumed the next time."""

_LONGEST_UNIT, _DIGITS = 52, 8
"""Most characters of the name of a CronJob, and digits that tell names apart that would be equal (counts)."""


@dataclass(frozen=True, slots=True)
class Audited:
    """The audit that is scheduled.

    Attributes:
        name: name of the manifest. manifest, history, folder: absolute paths; commands run in `folder`.
        options: further options of `bulk audit`, such as `--var`. program: what starts bulk.
        secrets: names of the environment variables that hold tokens.
        image: name of the container image.
    """

    name: str
    manifest: Path
    history: Path
    folder: Path
    options: Sequence[str]
    program: Sequence[str]
    secrets: Sequence[str]
    image: str

    @property
    def unit(self) -> str:
        """A name that every scheduler takes, of at most 52 characters; two audits never have the same."""
        whole = f"bulk-audit-{self.name}"
        safe = re.sub(r"[^a-z0-9-]+", "-", whole.lower()).strip("-")
        if safe == whole and len(safe) <= _LONGEST_UNIT:
            return safe
        digest = hashlib.sha256(self.name.encode()).hexdigest()[:_DIGITS]
        return f"{safe[: _LONGEST_UNIT - _DIGITS - 1].rstrip('-')}-{digest}"

    def command(self, program: Sequence[str], manifest: str, history: str) -> list[str]:
        """Return the command line; it skips the audit where the one before still runs."""
        own = ["audit", manifest, "--history", history, "--overlap", "skip", "--progress", "none", *self.options]
        return [*program, *own]

    @property
    def line(self) -> str:
        """The command as it is typed."""
        return shlex.join(self.command(self.program, str(self.manifest), str(self.history)))


@dataclass(frozen=True, slots=True)
class Emitted:
    """Files by name, and warnings for a person."""

    files: Mapping[str, str]
    warnings: Sequence[str]
