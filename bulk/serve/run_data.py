"""The data of a run that the page reads, both for a run in a directory and for a run in a store."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from bulk.ledger.records import Action, Minute, RunIdentity
from bulk.ledger.view import Cut

Place: TypeAlias = tuple[int, int]
"""Number of a job, and index of an item."""


class RunData(Protocol):
    """A run, read only; `LedgerView` is one."""

    @property
    def run_dir(self) -> Path:
        """The run directory; for a run in a store a path with its name."""

    def began_at(self) -> float:
        """Return when the run was begun (UTC epoch seconds)."""

    def identity(self) -> RunIdentity:
        """Return the identity of the run, with `jobs` in their order."""

    def error_counts(self) -> list[tuple[str, str, int]]:
        """Return job, code and items of each kind of failure (count)."""

    def sums(self) -> Sequence[tuple[int, str, str, int]]:
        """Return job number, outcome, code and items (count)."""

    def timeline(self, *, newest: bool = False, since: int = 0) -> list[Minute]:
        """Return the figures by time, in order; `since`: only those from that minute on."""

    def actions(self) -> list[Action]:
        """Return the actions of people on the run, in order."""

    def tallies(self) -> Mapping[int, Any] | None:
        """Return the tallies for the report, by job number; None where none are kept."""

    def page(
        self,
        after: Place,
        most: int,
        *,
        job: str = "",
        outcome: str = "",
        code: str = "",
        until: Place | None = None,
    ) -> list[Cut]:
        """Return the lines of ended items, in the order of job numbers and indexes.

        Args:
            after: return only items behind this job number and index.
            most: return at most this many items (count).
            until: return no item behind this job number and index.
        """

    def last_index(self, job: int) -> int:
        """Return the highest index of an item of a job (by its number) that has ended; -1 where none has."""

    def lines_of(self, job: int, indexes: Iterable[int], most_bytes: int) -> dict[int, bytes]:
        """Return the whole lines of these items of a job, by index; see `RunView`."""
