"""How a run is gone on with: all that is left, or which of the items that did not succeed once more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bulk.errors import UsageError
from bulk.ledger.ledger import Ledger
from bulk.model import ErrorCode, OutcomeKind

RETRIED = (OutcomeKind.FAILED, OutcomeKind.SKIPPED, OutcomeKind.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Again:
    """A resume, or a retry.

    Attributes:
        jobs, outcomes, codes: of a retry: only items of these jobs, that ended so, with these codes; empty: any.
        overwrites: of a retry: write all the same what somebody else seems to have written since.
        by: what asked for it, in one word.
    """

    is_retry: bool = False
    jobs: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    overwrites: bool = False
    by: str = "cli"

    @property
    def verb(self) -> str:
        """What the table of actions calls it."""
        return "retry" if self.is_retry else "resume"

    @property
    def args(self) -> Mapping[str, Any]:
        """What the table of actions says that it was given."""
        given = {"job": self.jobs, "only": self.outcomes, "code": self.codes}
        return {name: ",".join(words) for name, words in given.items() if words}

    def require(self, names: Sequence[str]) -> None:
        """Refuse what names no job of the run, whose jobs are `names`.

        Raises:
            UsageError: it does.
        """
        for job in self.jobs:
            if job not in names:
                raise UsageError(f"--job: the run has no job {job!r}; it has {', '.join(names)}")

    def reopen(self, ledger: Ledger, names: Sequence[str], below: int | None) -> int:
        """Make the items to-do again; returns how many.

        Args:
            names: of all jobs, by number. below: see `Ledger.reopen`.
        """
        kinds, codes, jobs = self.chosen(names)
        return ledger.reopen(kinds, below=below, codes=codes, jobs=jobs)

    def chosen(self, names: Sequence[str]) -> tuple[frozenset[OutcomeKind], frozenset[ErrorCode], frozenset[int]]:
        """Return which items a retry takes: how they ended, with which codes, of jobs with which numbers; of both,
        empty: any.

        Raises:
            UsageError: a job is none of the run, whose jobs are `names`.
        """
        self.require(names)
        kinds = frozenset(map(OutcomeKind, self.outcomes or RETRIED))
        return kinds, frozenset(map(ErrorCode, self.codes)), frozenset(map(names.index, self.jobs))
