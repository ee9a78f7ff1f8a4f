"""The Report: one record of how a run went, from which text, JSON and HTML are made. Words, and the exit code.

Its JSON (`report.json`) is stable: fields are added, never renamed or given another meaning. Every list in it is
bounded, whatever the number of items. Moments are RFC 3339 in UTC with milliseconds; durations have their unit in the
name.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

import msgspec

from bulk.model import ErrorCode, OutcomeKind

OUTCOMES: tuple[str, ...] = tuple(kind.value for kind in OutcomeKind)
"""The outcomes in the order in which they are shown: succeeded, unchanged, failed, skipped, unknown."""

HINTS: Mapping[str, str] = MappingProxyType(
    {
        ErrorCode.INVALID_ITEM: "The item can't be sent as it is.",
        ErrorCode.UNAUTHORIZED: "The platform refused the credential.",
        ErrorCode.FORBIDDEN: "The credential may not do this: look at its scopes and at the role of its user.",
        ErrorCode.NOT_FOUND: "It does not exist, or this credential may not see it.",
        ErrorCode.CONFLICT: "It is already there, or somebody else changed it meanwhile.",
        ErrorCode.VALIDATION_FAILED: "The platform refused the values.",
        ErrorCode.RATE_LIMITED: "A limit of the platform did not open in time.",
        ErrorCode.TOO_LARGE: "It is larger than the platform or the engine takes.",
        ErrorCode.REJECTED: "The platform accepted it first and then reported that it failed.",
        ErrorCode.SERVER_ERROR: "The platform failed at it, also when it was repeated.",
        ErrorCode.TIMEOUT: "The platform did not answer in time.",
        ErrorCode.CONNECTION: "The connection to the platform broke.",
        ErrorCode.BAD_RESPONSE: "The platform's answer could not be used.",
        ErrorCode.UNKNOWN_OUTCOME: "It was sent, its answer was lost, and reading could not tell if it took effect.",
        ErrorCode.DEPENDENCY_FAILED: "A job that it needs did not succeed.",
        ErrorCode.STALE: "It was changed after the plan was approved, so that it was not written.",
        ErrorCode.SUPERSEDED: "A later item makes it superfluous; nothing is missing.",
    }
)
"""One sentence for each error code: what is usually behind it."""


class ProblemItem(msgspec.Struct, frozen=True, kw_only=True):
    """One item that did not succeed.

    Attributes:
        index: its place among the job's items, from 0.
        id: the user's own id, or None.
        label: the item in a few words, such as `acme/api CODEOWNERS`.
        message: what the platform or the engine said, cut to 500 characters.
    """

    job: str
    index: int
    id: str | None
    label: str
    outcome: str
    code: str
    message: str
    http_status: int | None = None
    attempts: int = 0


class SlowItem(msgspec.Struct, frozen=True, kw_only=True):
    """One of the items that took longest, from the first send to the outcome, waits included."""

    job: str
    index: int
    id: str | None
    label: str
    outcome: str
    elapsed_ms: float
    attempts: int = 0


class ErrorCount(msgspec.Struct, frozen=True, kw_only=True):
    """How often an error code occurred in a job.

    Attributes:
        count: items with this code (count).
        hint: what is usually behind it.
        example: one of these items.
    """

    code: str
    count: int
    hint: str
    example: ProblemItem | None = None


class Elapsed(msgspec.Struct, frozen=True):
    """How long the items that were sent took (milliseconds): percentiles within 3%, `most_ms` exact."""

    median_ms: float
    p95_ms: float
    p99_ms: float
    most_ms: float


class JobReport(msgspec.Struct, frozen=True, kw_only=True):
    """One job.

    Attributes:
        items: items of the job (count); None where that was never known.
        outcomes: how many items ended in each outcome; all five outcomes are there.
        left: items without an outcome (count); None where `items` is None.
        superseded: skipped items that a later item makes superfluous (count).
        not_modified: items that the platform answered with 304, which costs no budget (count).
        started_at: the first send; ended_at: the last outcome. None where nothing ended yet.
        active_s: time between `started_at` and `ended_at` in which the run was at work (seconds).
        per_second: items that ended per second of `active_s`.
        problems: the first 20 items that failed, are unknown, or were skipped, in this order.
        slowest: up to 5 items, the slowest first.
    """

    name: str
    operation: str
    items: int | None
    outcomes: dict[str, int]
    left: int | None = None
    superseded: int = 0
    not_modified: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    active_s: float = 0.0
    per_second: float = 0.0
    elapsed: Elapsed | None = None
    errors: tuple[ErrorCount, ...] = ()
    problems: tuple[ProblemItem, ...] = ()
    slowest: tuple[SlowItem, ...] = ()

    @property
    def done(self) -> int:
        """Items that have ended (count)."""
        return sum(self.outcomes.values())


class BucketReport(msgspec.Struct, frozen=True, kw_only=True):
    """One bucket.

    Attributes:
        used: requests that the run spent from the bucket in all epochs and windows (count).
        limit: requests in a window (count); None where the platform limits nothing.
        remaining: requests left when the run last looked (count).
        reserve: requests kept for other users of the token (count).
        reset_at: when the bucket is full again, as last seen.
    """

    credential: str
    category: str
    used: int
    limit: int | None = None
    remaining: int | None = None
    reserve: int = 0
    reset_at: datetime | None = None


class WaitReport(msgspec.Struct, frozen=True, kw_only=True):
    """What items waited for when the run was last seen at work.

    Attributes:
        what: what they waited for.
        count: items that waited for it (count).
        until: when the wait ends, where known.
        error: the last error, where an error is why they waited; empty where there was none.
        errors: errors without a good answer in between (count).
    """

    what: str
    count: int
    until: datetime | None = None
    error: str = ""
    errors: int = 0


class EpochReport(msgspec.Struct, frozen=True, kw_only=True):
    """One start of the run: the first, each resume and each retry is an epoch of its own.

    Attributes:
        ended_at: when the epoch ended, or was last heard of where it ended unexpectedly.
        exit_code: None while the epoch runs, and where it ended unexpectedly (killed, power cut).
        why: the reason of its end, for people; empty where the run went to its end.
        requests: requests sent (count); retries: requests that repeated a failed one (count).
    """

    number: int
    started_at: datetime
    ended_at: datetime
    active_s: float
    exit_code: int | None = None
    why: str = ""
    requests: int = 0
    retries: int = 0


class ActionReport(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a person did to the run while it went on.

    Attributes:
        at: when it was done.
        who: the user and the program, such as `alice (cli)`; or the signal.
        verb: `pause`, `resume`, `stop`, `set`.
        args: the arguments of the verb.
        result: the state that the run had then, or why the action was refused.
    """

    at: datetime
    who: str
    verb: str
    args: dict[str, str]
    result: str


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Finished items over time, without the time in which nothing ran.

    Attributes:
        bin_s: length of a bin (seconds).
        bins: items that ended in each bin (count), by outcome in the order of `OUTCOMES`; at most 120 bins.
        breaks_s: where the run was resumed (seconds from the start, at most 50 of them).
    """

    bin_s: float
    bins: tuple[tuple[int, ...], ...]
    breaks_s: tuple[float, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """How a run went: what `report.json` holds.

    Attributes:
        version: version of the meaning of this record; 1.
        run_dir: the run directory, as the user named it.
        state: `complete`; `stopped`: work is left; `lost`: work is left, and the process ended unexpectedly;
            `running`.
        exit_code: what the command exits with (interface.md §4); 3 for a lost run.
        meaning: meaning of the exit code, for people.
        why: the reason of a stop, for people; empty where there was none.
        started_at: the first start; ended_at: the last end, or when the run was last seen.
        wall_s: time between `started_at` and `ended_at` (seconds); active_s: the part of `wall_s` in which the run
            was at work (seconds).
        items: items of all jobs (count); None where those of a job are not known.
        outcomes: how many items ended in each outcome; all five outcomes are there.
        left: items without an outcome (count); None where `items` is None.
        superseded: skipped items that a later item makes superfluous (count).
        not_modified: items that the platform answered with 304 (count).
        per_second: items that ended per active second.
        requests: requests sent (count); retries: requests that repeated a failed one (count).
        settled: lost answers whose truth was found by reading (count).
        waits: what items waited for when the run was last seen; empty for a complete run.
        actions: who paused, resumed, stopped or set what while it ran, the newest 100, the oldest of them first.
        head: head of the digest chain when the report was written, in hexadecimal; None where the run has no chain: see
            `bulk verify`.
        next_command: the command that goes on with the run; empty where nothing is left to do.
        notes: what else a person should know.
    """

    name: str
    base_url: str
    vendor: str
    run_dir: str
    state: str
    exit_code: int
    meaning: str
    started_at: datetime
    ended_at: datetime
    wall_s: float
    active_s: float
    items: int | None
    outcomes: dict[str, int]
    left: int | None
    version: int = 1
    why: str = ""
    superseded: int = 0
    not_modified: int = 0
    per_second: float = 0.0
    requests: int = 0
    retries: int = 0
    settled: int = 0
    jobs: tuple[JobReport, ...] = ()
    buckets: tuple[BucketReport, ...] = ()
    waits: tuple[WaitReport, ...] = ()
    epochs: tuple[EpochReport, ...] = ()
    slowest: tuple[SlowItem, ...] = ()
    timeline: Timeline | None = None
    actions: tuple[ActionReport, ...] = ()
    head: str | None = None
    next_command: str = ""
    notes: tuple[str, ...] = ()

    @property
    def done(self) -> int:
        """Items that have ended (count)."""
        return sum(self.outcomes.values())
