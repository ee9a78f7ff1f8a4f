"""A resume of a run, with all items that are left, or a retry of items that did not succeed."""

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
        jobs, outcomes, codes: for a retry: only items of these jobs, with these outcomes and error codes; empty: any.
        overwrites: for a retry: write even over values that another user seems to have written since.
        by: one word for the caller, such as `cli`.
    """

    is_retry: bool = False
    jobs: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    overwrites: bool = False
    by: str = "cli"

    @property
    def verb(self) -> str:
        """The verb for this in the table of actions."""
        return "retry" if self.is_retry else "resume"

    @property
    def args(self) -> Mapping[str, Any]:
        """The arguments of this in the table of actions."""
        given = {"job": self.jobs, "only": self.outcomes, "code": self.codes}
        return {name: ",".join(words) for name, words in given.items() if words}

    def require(self, names: Sequence[str]) -> None:
        """Raise an error if `jobs` names a job that the run, whose jobs are `names`, does not have.

        Raises:
            UsageError: the run does not have that job.
        """
        for job in self.jobs:
            if job not in names:
                raise UsageError(f"--job: the run has no job {job!r}; it has {', '.join(names)}")

    def reopen(self, ledger: Ledger, names: Sequence[str], below: int | None) -> int:
        """Delete the outcomes of the chosen items, so that they are done again; return how many.

        Args:
            names: the names of all jobs, by number. below: see `Ledger.reopen`.
        """
        kinds, codes, jobs = self.chosen(names)
        return ledger.reopen(kinds, below=below, codes=codes, jobs=jobs)

    def chosen(self, names: Sequence[str]) -> tuple[frozenset[OutcomeKind], frozenset[ErrorCode], frozenset[int]]:
        """Return the outcomes, the error codes and the numbers of the jobs whose items a retry takes. An empty set of
        codes or numbers stands for all of them.

        Raises:
            UsageError: a job is not in the run, whose jobs are `names`.
        """
        self.require(names)
        kinds = frozenset(map(OutcomeKind, self.outcomes or RETRIED))
        return kinds, frozenset(map(ErrorCode, self.codes)), frozenset(map(names.index, self.jobs))
