"""The entries that go into a ledger and come out of it: frozen types, no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from bulk.model import UNSEEN, BodyFile, Effect, Encoded, ItemError, OutcomeKind
from bulk.status import RunStatus


class Intent(msgspec.Struct, frozen=True):
    """A write that is about to leave; durable before its first byte does.

    An item has at most one open intent: a later one replaces it, `Withdrawn` takes it back, and its outcome closes it,
    unless the outcome is `unknown` or an earlier send may still arrive.

    Attributes:
        job: the job's number.
        index: the item's place in the job, from 0.
        path: percent-encoded, as in `model.Request`.
        before: the before-image, as in `model.Request`; UNSEEN: not looked at. Never a secret: it is kept on disk.
        sent_at: UTC epoch seconds by this machine's clock: never to be compared with what the platform says.
    """

    job: int
    index: int
    method: str
    path: str
    before: Any
    effect: Effect
    sent_at: float


class Withdrawn(msgspec.Struct, frozen=True):
    """An intent that is taken back: the write did not leave, and nothing else of its item was ever sent.

    Attributes:
        job: the job's number. index: the item's place in it.
    """

    job: int
    index: int


@dataclass(init=False, slots=True, unsafe_hash=True)
class Finished:
    """An item that has ended: one line of `results.jsonl` (interface.md §5).

    Attributes:
        item: the item as the user gave it, without large fields that were sent and without secrets.
        attempts: how often the request that decided the outcome was sent (count).
        started_at: when the first request was sent, or when the item was skipped (UTC epoch seconds).
        unchanged_by: `date` if only the time of the last change shows that the answer is unchanged.
        elapsed_ms: time from the first send to the outcome (milliseconds).
        missing: the thing that was asked for is proven not to be there, which the job allows.
    """

    job: Final[str]
    index: Final[int]
    id: Final[str | None]
    item: Final[Mapping[str, Any]]
    outcome: Final[OutcomeKind]
    http_status: Final[int | None]
    attempts: Final[int]
    started_at: Final[float]
    elapsed_ms: Final[float]
    request_id: Final[str | None]
    result: Final[Any]
    error: Final[ItemError | None]
    missing: Final[bool]
    unchanged_by: Final[str | None]

    def __init__(
        self,
        job: str,
        index: int,
        id: str | None,  # noqa: A002 - the name that it has in results
        item: Mapping[str, Any],
        outcome: OutcomeKind,
        http_status: int | None,
        attempts: int,
        started_at: float,
        elapsed_ms: float,
        request_id: str | None,
        result: Any,
        error: ItemError | None,
        missing: bool = False,
        unchanged_by: str | None = None,
    ) -> None:
        self.unchanged_by = unchanged_by
        self.job, self.index, self.id, self.item = job, index, id, item
        self.outcome, self.http_status, self.attempts = outcome, http_status, attempts
        self.started_at, self.elapsed_ms, self.request_id = started_at, elapsed_ms, request_id
        self.result, self.error, self.missing = result, error, missing

    def decoded(self) -> "Finished":
        """Return this object with its result decoded, for listeners in this process."""
        result = self.result
        return replace(self, result=result.decoded()) if type(result) is Encoded else self


@dataclass(init=False, slots=True, unsafe_hash=True)
class Record:
    """An item that has ended, on its way to disk.

    Attributes:
        job: the job's number.
        save: a path below `saved/`, and the content to write or the file to move there; None: nothing is saved.
        may_arrive_late: the write was sent again and the first send may still arrive, or it was done in part: its
            intent stays.
        new_names: names of what the item has created, for other processes that share the run; folded.
        before: the before-image of its write, kept for `bulk undo`; UNSEEN: none is kept.
    """

    job: Final[int]
    finished: Final[Finished]
    save: Final[tuple[str, bytes | BodyFile] | None]
    may_arrive_late: Final[bool]
    new_names: Final[tuple[str, ...]]
    before: Final[Any]

    def __init__(
        self,
        job: int,
        finished: Finished,
        save: tuple[str, bytes | BodyFile] | None = None,
        may_arrive_late: bool = False,
        new_names: tuple[str, ...] = (),
        before: Any = UNSEEN,
    ) -> None:
        self.job, self.finished, self.save, self.may_arrive_late = job, finished, save, may_arrive_late
        self.new_names, self.before = new_names, before


Entry: TypeAlias = Intent | Record | Withdrawn


class StoredTally(NamedTuple):
    """The tally of a job's items, for the report: how many items were taken in, and the tally as JSON."""

    items: int
    json: bytes


class Minute(NamedTuple):
    """Figures of one minute, for plots: the minute (since the epoch), and samples made by `bulk/report/timeline.py`."""

    minute: int
    data: bytes


class RunIdentity(msgspec.Struct, frozen=True):
    """The identity of a run. A run directory can be resumed only with the same identity (interface.md §5).

    Attributes:
        base_url: normalized.
        manifest_digest: SHA-256 (hex) of the manifest without `limits`.
        items_digest: SHA-256 (hex) over the hashes of the items files.
        jobs: name, operation and number of items of each, by job number. The numbers of items may change from one
            resume to the next (`--limit`); the digests say whether the items are the same.
    """

    name: str
    base_url: str
    vendor: str
    manifest_digest: str
    items_digest: str
    jobs: tuple[tuple[str, str, int], ...]


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a person did to a run while it went on.

    Attributes:
        at: UTC epoch seconds.
        who: the user and the means, such as `alice (cli)`; or the signal.
        verb: `pause`, `resume`, `stop`, `set`, `approve`.
        args: the arguments of the verb.
        result: the state of the run after the action, or why the action was refused.
    """

    at: float
    who: str
    verb: str
    args: Mapping[str, Any]
    result: str


class Epoch(msgspec.Struct, frozen=True):
    """One process's time with a run.

    Attributes:
        number: number of the epoch, from 1.
        started_at: UTC epoch seconds.
        ended_at: UTC epoch seconds; None while the process runs, and for good if it was killed.
        exit_code: None as long as `ended_at` is None.
        why: the reason of the end, for people.
        status: the state of the run at the end of the epoch.
    """

    number: int
    started_at: float
    ended_at: float | None
    pid: int
    host: str
    exit_code: int | None
    why: str
    status: RunStatus | None


class Point(StrEnum):
    """Moments at which a process may be killed; tests kill one at each (failures.md row 42)."""

    SAVED = "saved"  # files below saved/ are written
    APPENDED = "appended"  # lines are in results.jsonl, and the ledger does not know of them
    COMMITTED = "committed"  # the group is durable
    REWRITTEN = "rewritten"  # the new results file is complete, the ledger points into the old one
    SWITCHED = "switched"  # the ledger points into the new file, which still has its temporary name
    RENAMED = "renamed"  # the new file has its own name
    ENDED = "ended"  # the end of the epoch is in the ledger
