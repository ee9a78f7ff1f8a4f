"""What the page reads of a run, wherever the run is: in a directory, or in a store."""

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
        """Its directory; of a run in a store its name."""

    def began_at(self) -> float:
        """Return when it was begun (UTC epoch seconds)."""

    def identity(self) -> RunIdentity:
        """Return whose run it is; `jobs` in their order."""

    def error_counts(self) -> list[tuple[str, str, int]]:
        """Return job, code and items of each kind of failure (count)."""

    def sums(self) -> Sequence[tuple[int, str, str, int]]:
        """Return job number, outcome, code and items (count)."""

    def timeline(self, *, newest: bool = False, since: int = 0) -> list[Minute]:
        """Return figures by time, in order; `since`: those from that minute on."""

    def actions(self) -> list[Action]:
        """Return what people did to it, in order."""

    def tallies(self) -> Mapping[int, Any] | None:
        """Return what was kept of each job for the report; None where nothing was."""

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
        """Return items behind a job number and an index, at most so many, in that order; `until`: none behind that."""

    def last_index(self, job: int) -> int:
        """Return the highest index of an item of a job (by its number) that has ended; -1 where none has."""

    def lines_of(self, job: int, indexes: Iterable[int], most_bytes: int) -> dict[int, bytes]:
        """Return whole lines."""
