"""The result of one night of an audit: words, no logic. `judged/RUN.json` holds it."""

import msgspec

from bulk.audit.comparison.drift import Drift, ItemChange
from bulk.audit.history import Night
from bulk.audit.policies.judging import Judgement
from bulk.report.render.formatting import counted

MOST_CHANGES = 10_000
"""Changes that are kept beside the table (count)."""


class AuditResult(msgspec.Struct, frozen=True, kw_only=True):
    """One night.

    Attributes:
        history: folder of the history, as it was named.
        exit_code: exit code of the audit (interface.md §4). run_exit_code: exit code of its run.
        why: why the run was not compared; empty where it was.
        changes: the first 10,000 changes, of every kind; `drift` counts all of them, each kind apart.
        nights: this night and up to 29 nights before it, oldest first.
        notes: what a person should know.
    """

    version: int = 1
    name: str
    history: str
    night: Night
    exit_code: int
    run_exit_code: int
    why: str = ""
    drift: Drift = Drift()
    changes: tuple[ItemChange, ...] = ()
    judgement: Judgement = Judgement()
    nights: tuple[Night, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_compared(self) -> bool:
        """Whether the night was compared and judged."""
        return not self.why

    @property
    def is_night(self) -> bool:
        """Whether the result is of a night: `bulk audit test` looks at one run alone, and writes no page."""
        return bool(self.nights)

    @property
    def verdict(self) -> str:
        """The verdict, for people, in a few words."""
        if self.why:
            return "not compared"
        if self.night.is_blind:
            return "nothing could be read"
        failed = any(policy.is_failed for policy in self.judgement.policies)
        unread = max((policy.unread for policy in self.judgement.policies), default=0)
        calm = "no policy of severity error is violated" if failed else "nothing is violated"
        found = " and ".join(word for word in self.night.verdict if word != "unknown")
        blind = f", {counted(self.night.lost_sight, 'item')} can't be read any more" if self.night.lost_sight else ""
        blind = f", {counted(unread, 'item')} could not be read" if unread and not blind else blind
        return (found or (f"nothing changed, {calm}" if self.is_night else calm)) + blind
