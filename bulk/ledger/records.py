"""What goes into a ledger and comes out of it: frozen words, no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from bulk.finished import Finished
from bulk.model import UNSEEN, BodyFile, Effect
from bulk.status import RunStatus


class Intent(msgspec.Struct, frozen=True):
    """A write that is about to leave; durable before its first byte does.

    An item has at most one open intent: a later one replaces it, `Withdrawn` takes it back, and its outcome closes it,
    unless that is `unknown` or an earlier send may still arrive.

    Attributes:
        job: the job's number.
        index: the item's place in the job, from 0.
        path: percent-encoded, as in `model.Request`.
        before: what was there, as in `model.Request`; UNSEEN where nobody looked. Never a secret: it is kept on disk.
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
class Record:
    """An item that has ended, on its way to disk.

    Attributes:
        job: the job's number.
        save: a path below `saved/` and what to write there, or what to move there; None: nothing is saved.
        may_arrive_late: its write was sent again and the first send may still arrive, so that its intent stays.
        new_names: what it has brought into the world, for whoever shares the run; folded.
        before: what was there before its write, kept for `bulk undo`; UNSEEN: nothing is kept.
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
    """What the report says of a job's items beside their counts: how many items it has taken in, and their tally."""

    items: int
    json: bytes


class Minute(NamedTuple):
    """Figures of one minute, for plots: minutes since the epoch, and what `bulk/report/timeline.py` made of them."""

    minute: int
    data: bytes


class RunIdentity(msgspec.Struct, frozen=True):
    """Whose run it is. A run directory can be resumed only with the same one (interface.md §5).

    Attributes:
        base_url: normalized.
        manifest_digest: SHA-256 (hex) of the manifest without `limits`.
        items_digest: SHA-256 (hex) over the hashes of its items files.
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
        who: the user, and by what: `alice (cli)`; or the signal.
        verb: `pause`, `resume`, `stop`, `set`.
        args: what it was given.
        result: the state that the run had then, or why it was refused.
    """

    at: float
    who: str
    verb: str
    args: Mapping[str, Any]
    result: str


class Epoch(msgspec.Struct, frozen=True):
    """One process's time with a run.

    Attributes:
        number: from 1.
        started_at: UTC epoch seconds.
        ended_at: None while it runs, and for good when it was killed.
        exit_code: None as long as `ended_at` is.
        why: the reason of its end, for people.
        status: where the run stood at its end.
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
    """Moments at which a process may be killed; tests do it at each (failures.md row 42)."""

    SAVED = "saved"  # files below saved/ are written
    APPENDED = "appended"  # lines are in results.jsonl, the ledger does not know
    COMMITTED = "committed"  # the group is durable
    REWRITTEN = "rewritten"  # the new results file is complete, the ledger points into the old one
    SWITCHED = "switched"  # the ledger points into the new one, which still has its temporary name
    RENAMED = "renamed"  # it has its own
    ENDED = "ended"  # the epoch has its end
