"""The protocols by which the engine uses a ledger, wherever that is kept.

`ledger.py` keeps it on the disk of the machine that runs, `bulk/store/ledger.py` in a store. The code that opens one
knows its class; all other code knows these two protocols. All calls block and return only when their effect is durable;
they come from one thread at a time. All of them raise:

    RunStopped: the store refuses for now (a full disk); the message names the way out, and the same call can be given
        again.
    RunDirectoryError: another process has taken the run over, or what is kept is damaged.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from bulk.ledger.records import Action, Entry, Intent, Minute, StoredTally
from bulk.model import ErrorCode, OutcomeKind
from bulk.status import RunStatus


class RunView(Protocol):
    """The items that have ended so far, as another process reads them. A view holds nothing open between calls."""

    def error_counts(self) -> list[tuple[str, str, int]]:
        """Return job name, error code and the number of items that ended with it; jobs in their order, then the most
        frequent code first.
        """

    def finished(
        self, *, kinds: AbstractSet[OutcomeKind] | None = None, job: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Return the current lines of the results, decoded, in the order of jobs and items; streamed.

        Args:
            kinds: only items with one of these outcomes; None: all.
            job: only items of the job with this name; None: all.
        """

    def lines_of(self, job: int, indexes: Iterable[int], most_bytes: int) -> dict[int, bytes]:
        """Return the current lines of these items of the job with that number, by index.

        Items without a line are left out, and so are the last ones once there are `most_bytes` of lines. The first line
        is always there.
        """

    def newest_lines(self, size_bytes: int) -> list[bytes]:
        """Return the last lines of the results, `size_bytes` together, in their order; replaced lines are among
        them."""

    def timeline(self, *, newest: bool = False) -> list[Minute]:
        """Return the figures by time, for plots, in order; empty where the run kept no figures. `newest`: only the last
        minute.
        """


class RunLedger(Protocol):
    """The ledger of a run: what was sent and how it ended, open for this process alone.

    Attributes:
        run_dir: where this process keeps its files of the run.
        began_at: when the run was opened for the first time (UTC epoch seconds, this machine's time).
    """

    run_dir: Path
    began_at: float

    def commit(
        self,
        batch: Sequence[Entry],
        status: RunStatus | None = None,
        tallies: Mapping[int, StoredTally] = ...,
        minute: Minute | None = None,
        actions: Sequence[Action] = (),
    ) -> None:
        """Make a group durable: all of it, or none.

        An outcome closes its item's open intent, unless it is `unknown` (the intent must be settled before the item is
        sent again) or an earlier send may still arrive (the next item of the lane waits for that). After RunStopped the
        same group can be committed again.

        Args:
            status: stored as the newest status, for `bulk status`.
            tallies: those of jobs by their number (-1: the run), this group included; they replace the stored ones.
            minute: stored with the status, for plots; replaces what the ledger has of the same minute.
            actions: what people did since the last commit.

        Raises:
            ValueError: an item of the group has an outcome already. Nothing of the group was kept.
        """

    def view(self) -> RunView:
        """Return a view of the ledger."""

    def planned_from(self, guess: float | None) -> float | None:
        """Return when the run began by the platform's clock (UTC epoch seconds): the time that an earlier process took
        for that, or else `guess`, which the next commit stores, before any write leaves that it is a part of."""

    def done_bits(self, job: int, items: int) -> bytearray:
        """Return one bit for each of the first `items` items of a job, 0 where this process has to do it.

        The bit of an item is `index & 7` (from the lowest) of byte `index >> 3`. 1 stands for an item with an outcome.
        """

    def open_intents(self) -> dict[tuple[int, int], Intent]:
        """Return writes that may have been applied and must be settled: intents of items without an outcome.

        By job number and index. Those of unknown items are among them once `reopen` has made the items to-do again.
        """

    def late_writes(self) -> dict[tuple[int, int], Intent]:
        """Return writes that were sent twice and one of whose sends may still be on its way: intents of items with an
        outcome, by job and index.
        """

    def counts(self) -> dict[int, dict[str, int]]:
        """Return how many items have each outcome: job number -> outcome -> count. Jobs and outcomes without items are
        left out."""

    def reopen(
        self,
        kinds: AbstractSet[OutcomeKind],
        codes_not: AbstractSet[ErrorCode] = ...,
        *,
        below: int | None = None,
        codes: AbstractSet[ErrorCode] = ...,
        jobs: AbstractSet[int] = ...,
    ) -> int:
        """Make items with one of these outcomes to-do again, as for a retry; return how many.

        Where `codes` or `jobs` (numbers) are given, only items with those.

        The lines of these items are no longer current from now on, and leave the results at the next `finish`. The
        open intents of unknown items appear in `open_intents`. Where `below` is given, only items before that index are
        made to-do.
        """

    def bind_parts(self) -> None:
        """Bind the files that the check has made, and those that say where the run came from: from now on they must
        stay as they are. To be called before anything is sent.
        """

    def finish(
        self,
        exit_code: int,
        why: str,
        status: RunStatus,
        minute: Minute | None = None,
        actions: Sequence[Action] = (),
    ) -> None:
        """End this process's epoch at `status.at`; the results then hold every item once.

        A run that is stopped with work left may keep replaced lines (always after an interrupt, which should not wait);
        a later `finish` drops them. No reader of the ledger ever sees them. After RunStopped the epoch has no end:
        call it again with exit code 3.
        """


@runtime_checkable
class SharedLedger(RunLedger, Protocol):
    """The ledger of a run that other processes work on, too. All of them must make the same items from results."""

    def sources(self, job: int) -> RunView:
        """Return a view of the results from which the items of that job (number) are made: those of the whole run, and
        first those that were there when the items were made before."""

    def made(self, job: int, items: int) -> None:
        """Note that `items` items were made; called before any of them is worked on."""
