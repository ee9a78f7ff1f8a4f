"""What the engine asks of the truth about a run, wherever that is kept.

`ledger.py` keeps it on the disk of the machine that runs, which is the only way today. Whoever opens a ledger knows
which one it is; everybody else knows these two protocols. All calls block and return only when what they say is true
for good; they come from one thread at a time. All of them raise:

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
    """What has ended so far, as somebody else would read it. It holds nothing open between two calls."""

    def error_counts(self) -> list[tuple[str, str, int]]:
        """Return job name, error code and how many items ended with it; jobs in their order, then the most frequent
        first.
        """

    def finished(
        self, *, kinds: AbstractSet[OutcomeKind] | None = None, job: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Return the current lines of the results, decoded, in the order of jobs and items; streamed.

        Args:
            kinds: only items that ended so; None: all.
            job: only items of the job with this name; None: all.
        """

    def lines_of(self, job: int, indexes: Iterable[int], most_bytes: int) -> dict[int, bytes]:
        """Return the current lines of these items of the job with that number, by index.

        Those without one are left out, and the last of them once there are `most_bytes` of lines: the first is there.
        """

    def newest_lines(self, size_bytes: int) -> list[bytes]:
        """Return the last lines of the results, so many bytes together, in their order; replaced ones are among
        them."""

    def timeline(self, *, newest: bool = False) -> list[Minute]:
        """Return the figures by time, for plots, in order; empty where the run kept none. `newest`: only the last
        minute.
        """


class RunLedger(Protocol):
    """What was sent and how it ended, open for this process alone.

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

        An outcome closes its item's open intent, unless it is `unknown` (that one must be settled before the item is
        sent again) or an earlier send may still arrive (what is next in its lane waits for it). After RunStopped the
        same group can be committed again.

        Args:
            status: stored as the newest one, for `bulk status`.
            tallies: of jobs by their number (-1: of the run), this group included; they replace the stored ones.
            minute: stored with the status, for plots; replaces what the ledger has of it.
            actions: what people did since the last commit.

        Raises:
            ValueError: an item of the group has an outcome already. Nothing of the group was kept.
        """

    def view(self) -> RunView:
        """Return what stands in it."""

    def planned_from(self, guess: float | None) -> float | None:
        """Return when the run began by the platform's clock (UTC epoch seconds): what an earlier process took for that,
        or else `guess`, which is stored with the next commit: before any write that it is a part of leaves."""

    def done_bits(self, job: int, items: int) -> bytearray:
        """Return one bit for each of the first `items` items of a job, 0 where this process has to do it.

        The bit of an item is `index & 7` (from the lowest) of byte `index >> 3`. 1 stands for an item with an outcome.
        """

    def open_intents(self) -> dict[tuple[int, int], Intent]:
        """Return writes that may have been applied and must be settled: intents of items without an outcome.

        By job number and index. Those of unknown items are among them once `reopen` has made the items to-do again.
        """

    def late_writes(self) -> dict[tuple[int, int], Intent]:
        """Return writes that were sent twice, and one may still be on its way: of items with an outcome, by job and
        index.
        """

    def counts(self) -> dict[int, dict[str, int]]:
        """Return how many items ended how: job number -> outcome -> count. Jobs and outcomes without items are left
        out."""

    def reopen(
        self,
        kinds: AbstractSet[OutcomeKind],
        codes_not: AbstractSet[ErrorCode] = ...,
        *,
        below: int | None = None,
        codes: AbstractSet[ErrorCode] = ...,
        jobs: AbstractSet[int] = ...,
    ) -> int:
        """Make items to-do again that ended so, as for a retry; returns how many.

        Where `codes` or `jobs` (numbers) are given, only those.

        Their lines are no longer current from now on, and leave the results at the next `finish`. The open intents of
        unknown items appear in `open_intents`. Where `below` is given, only items before that index are.
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
        """End this process's time with the run at `status.at`; the results hold every item once.

        A run that is stopped with work left may keep replaced lines (always after an interrupt, which should not wait);
        a later `finish` drops them. No reader of the ledger ever sees them. After RunStopped the epoch has no end:
        call it again with exit code 3.
        """


@runtime_checkable
class SharedLedger(RunLedger, Protocol):
    """The ledger of a run that others work on, too. What they make from results must be the same items."""

    def sources(self, job: int) -> RunView:
        """Return what the items of that job (number) are made from: the results of the whole run, those first that
        were there when the items were made before."""

    def made(self, job: int, items: int) -> None:
        """Note that so many items (count) were made; called before any of them is worked on."""
