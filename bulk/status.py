"""The status of a run at one moment, which a display, the log and `bulk status` show. Shared data types, no logic.

The engine makes a RunStatus about once a second and stores it in the ledger (as JSON): another process can read it
there.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from typing import Protocol, Self, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")

LIVE = ("checking", "running", "pausing", "paused", "draining")
"""States of a run that a process drives."""

STATES = (*LIVE, "waiting", "complete", "stopped", "lost")
"""States of a run, or of one of its jobs."""


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of one job.

    Attributes:
        items: items of the job (count); None while that is not known.
        outcomes: number of items by outcome (counts).
        in_flight: items being worked on (count).
        state: `waiting` (for `needs`), `running`, `complete`.
        waits_for: names of the jobs for which this job waits.
        failure: the most frequent error in this process, such as `not_found: Not Found`; empty: there was none.
        failures: how often that error occurred (count).
    """

    name: str
    operation: str
    items: int | None
    outcomes: dict[str, int]
    in_flight: int = 0
    state: str = "running"
    waits_for: tuple[str, ...] = ()
    failure: str = ""
    failures: int = 0

    @property
    def done(self) -> int:
        """Items that have ended (count)."""
        return sum(self.outcomes.values())


class BucketStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of one bucket.

    Attributes:
        limit: requests in a window (count); None where the platform limits nothing.
        remaining: requests that may still be sent in this window, the reserve not taken off (count).
        reserve: kept for other users of the token (count).
        reset_at: UTC epoch seconds, this machine's time; None where unknown.
        used: requests that this run has spent from the bucket, in all windows (count).
        pace: requests per second while pacing is on; None at full speed.
        waiting: items that wait for a permit (count): those that could begin, and those under way that want one more.
        closed_because: why the bucket gives no permits now; empty while it is open.
        opens_at: when that ends (UTC epoch seconds); None where unknown.
        window_s: length of the bucket's windows (seconds); None where it was not seen.
    """

    credential: str
    category: str
    limit: int | None
    remaining: int | None
    reserve: int = 0
    reset_at: float | None = None
    used: int = 0
    pace: float | None = None
    waiting: int = 0
    closed_because: str = ""
    opens_at: float | None = None
    window_s: float | None = None


class WaitKind(StrEnum):
    """The kind of a wait: a word that stays the same while the figures of the wait change, for plots and labels."""

    BUDGET = "budget"  # a bucket is empty, or it is not known yet what it holds and whether its credential is good
    PACE = "pace"  # the requests left are spread over the time to the reset
    CONCURRENCY = "concurrency"  # as many requests are in flight as may be
    LANE = "lane"  # an item of the same lane goes first
    SETTLING = "settling"  # what a write did is not known or not visible yet
    POLL_INTERVAL = "poll_interval"  # the platform says how soon a list, or the state of its work, is asked again
    RETRY_AFTER = "retry_after"  # a request that was refused or went wrong is tried again later
    UNREACHABLE = "unreachable"  # the platform does not answer
    NEEDS = "needs"  # another job, or a valid token, comes first
    PAUSED = "paused"  # a person paused the run
    GATE = "gate"  # the next wave begins after a while


class Wait(msgspec.Struct, frozen=True):
    """One thing that items wait for.

    Attributes:
        what: `bucket core`, `lane acme/api 37 ahead`, `settling organization.create #12`, `just created, not
            visible yet`, `platform unreachable` and the like.
        until: UTC epoch seconds; None where unknown.
        count: how many items wait for it (count).
        kind: kind of the wait; None only where an older version wrote the status.
        error: the last error, if it is the reason for the wait; empty: it is not.
        errors: how often an error occurred, without a good answer in between (count).
    """

    what: str
    until: float | None = None
    count: int = 1
    kind: WaitKind | None = None
    error: str = ""
    errors: int = 0


class RunStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a whole run.

    Attributes:
        state: `checking`, `running`, `pausing` (what is in flight still ends), `paused`, `draining`, `complete`,
            `stopped`.
        at: when the status was true (UTC epoch seconds, this machine's time).
        pid: id of the process that does the run; None once the run has ended.
        requests: requests sent so far (count); `retries` of them repeated one that failed.
        settled: lost answers whose truth was found by reading (count).
        per_second: items finished per second over the last seconds.
        concurrency: requests that may be in flight now (count); `in_flight`: requests that are (count).
        finish_at: predicted end (UTC epoch seconds); None where unknown.
        why: for `stopped` and `draining`: the reason, for people.
    """

    name: str
    state: str
    at: float
    started_at: float
    pid: int | None = None
    jobs: tuple[JobStatus, ...] = ()
    buckets: tuple[BucketStatus, ...] = ()
    waits: tuple[Wait, ...] = ()
    requests: int = 0
    retries: int = 0
    settled: int = 0
    per_second: float = 0.0
    concurrency: int = 0
    in_flight: int = 0
    finish_at: float | None = None
    why: str = ""

    def after(self, before: "RunStatus | None") -> "RunStatus":
        """Return this status with the counts of `before` added: one process sends one wave after the other."""
        if before is None:
            return self
        used = {(bucket.credential, bucket.category): bucket for bucket in before.buckets}
        buckets = []
        for bucket in self.buckets:
            earlier = used.pop((bucket.credential, bucket.category), None)
            buckets.append(msgspec.structs.replace(bucket, used=bucket.used + (earlier.used if earlier else 0)))
        return msgspec.structs.replace(
            self,
            started_at=before.started_at,
            jobs=self.jobs or before.jobs,
            buckets=(*buckets, *used.values()),
            requests=self.requests + before.requests,
            retries=self.retries + before.retries,
            settled=self.settled + before.settled,
        )


def buckets_of_all(told: Iterable[RunStatus], at_work: Sequence[RunStatus] = ()) -> tuple[BucketStatus, ...]:
    """Return each budget once: as the newest status has it, but with the requests that all workers have spent.

    Args:
        told: the last status of each worker. at_work: those of workers that are at work, whose items may wait.
    """
    used: dict[tuple[str, str], int] = {}
    waiting: dict[tuple[str, str], int] = {}
    newest: dict[tuple[str, str], BucketStatus] = {}
    for status in sorted(told, key=lambda status: status.at):
        for bucket in status.buckets:
            key = (bucket.credential, bucket.category)
            used[key] = used.get(key, 0) + bucket.used
            newest[key] = bucket
    for status in at_work:
        for bucket in status.buckets:
            key = (bucket.credential, bucket.category)
            waiting[key] = waiting.get(key, 0) + bucket.waiting
    return tuple(
        msgspec.structs.replace(bucket, used=used[key], waiting=waiting.get(key, 0))
        for key, bucket in sorted(newest.items())
    )


class Display(Protocol):
    """Shows progress between `__enter__` and `__exit__`."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def update(self, status: RunStatus) -> None:
        """Show `status` from now on."""

    def note(self, text: str) -> None:
        """Show a line that scrolls by, such as a warning of the log; `text` may hold any characters."""


class Silence:
    """A display that shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def update(self, status: RunStatus) -> None:
        """Do nothing."""

    def note(self, text: str) -> None:
        """Do nothing."""


class Counting(Silence):
    """A display that shows nothing, and passes on how many items are done (count)."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell

    def update(self, status: RunStatus) -> None:
        """Pass on the items that are done in all jobs together."""
        self._tell(sum(job.done for job in status.jobs))


Tell: TypeAlias = Callable[[int], None]
"""Takes how many items are done so far (count); it may be called from any thread."""

_TELL_ITEMS = 1_000


def untold(_items: int) -> None:
    """Do nothing with the number of items."""


def telling(rows: Iterable[T], tell: Tell) -> Iterator[T]:
    """Yield `rows`, one for each item, and tell after every thousand and at the end how many there were."""
    number = 0
    for number, row in enumerate(rows, 1):
        yield row
        if number % _TELL_ITEMS == 0:
            tell(number)
    tell(number)


Working: TypeAlias = Callable[[str], AbstractContextManager[Tell]]
"""Shows in a block what is done there, in words; what the block gets takes how many items are done (count)."""


@contextmanager
def silently(_words: str) -> Iterator[Tell]:
    """Show nothing."""
    yield untold
