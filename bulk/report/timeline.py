"""The samples that the plots of a report are made from: one each second, stored as a blob of the ledger each minute.

A sample says what happened since the one before and where things stood, in the figures of the status; so a plot needs
no result lines. The blob of the current minute is written again with every status, in the same transaction: no sync is
added, and a killed process loses a second. After a day a sample is taken every ten seconds. The class has no clock.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import zstandard

from bulk.errors import UNDECODABLE
from bulk.ledger.records import Minute
from bulk.redaction import redact_json
from bulk.report.record import OUTCOMES
from bulk.status import RunStatus, WaitKind

SAMPLE_S, LATER_SAMPLE_S = 1.0, 10.0
LATER_AFTER_S = 24 * 3600.0
"""Time between two samples, and the age of the run from which on that time is `LATER_SAMPLE_S` (seconds)."""
EARLY_S = 0.1
"""How much too early a sample may come, because a status does not come to the millisecond (seconds)."""

MINUTE_S = 60
MOST_BLOB_BYTES = 4 * 1024 * 1024
_KINDS = frozenset(kind.encode() for kind in WaitKind)


class BucketSample(msgspec.Struct, frozen=True, array_like=True):
    """One bucket: what is left and was used of it (counts), and when it resets (UTC epoch seconds)."""

    name: str
    left: int | None
    used: int
    reset_at: int | None
    limit: int | None = None


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """One moment of a run.

    Attributes:
        at: UTC epoch seconds.
        outcomes: number of the job -> items that ended since the sample before, in the order of `OUTCOMES` (counts).
        concurrency: requests that might be in flight; in_flight: requests that were (counts).
        waits: kind of the wait -> items (count).
        latencies: answers since the sample before, by class; `LATENCIES_S` of the governor bounds the classes (counts).
    """

    at: float
    outcomes: dict[int, list[int]]
    buckets: list[BucketSample]
    concurrency: int
    in_flight: int
    waits: dict[str, int]
    latencies: list[int]


class Timeline:
    """The samples of one process, minute by minute.

    Args:
        began_at: when the run began (UTC epoch seconds).
        stored: the newest minute in the ledger: a process that resumes within that minute adds to it.
    """

    def __init__(self, began_at: float, stored: Minute | None = None) -> None:
        self._began_at = began_at
        self._minute, self._samples = -1, list[Sample]()
        if stored is not None:
            self._minute, self._samples = stored.minute, read_minutes([stored])
        self._due = -math.inf
        self._outcomes: list[dict[str, int]] | None = None
        self._latencies: list[int] = []

    def note(self, status: RunStatus, latencies: Sequence[int], *, is_last: bool = False) -> Minute | None:
        """Take a sample of `status` where one is due; returns the minute that must be stored anew.

        Args:
            latencies: see `Sample.latencies`, of all answers so far.
            is_last: whether the process ends: then a sample is due in any case.
        """
        if status.at < self._due and not is_last:
            return None
        step_s = LATER_SAMPLE_S if status.at - self._began_at > LATER_AFTER_S else SAMPLE_S
        self._due = status.at + step_s - EARLY_S
        sample = self._sample(status, latencies)
        minute = int(status.at // MINUTE_S)
        if minute != self._minute:
            self._minute, self._samples = minute, []
        self._samples.append(sample)
        data = redact_json(msgspec.json.encode(self._samples), _KINDS)
        return Minute(minute, zstandard.compress(data))

    def _sample(self, status: RunStatus, latencies: Sequence[int]) -> Sample:
        now = [dict(job.outcomes) for job in status.jobs]
        before = self._outcomes if self._outcomes is not None else now  # what an earlier process did is in its samples
        self._outcomes = now
        ended = {
            number: [mine.get(kind, 0) - old.get(kind, 0) for kind in OUTCOMES]
            for number, (mine, old) in enumerate(zip(now, before, strict=True))
        }
        answers = [mine - old for mine, old in zip(latencies, self._latencies or [0] * len(latencies), strict=True)]
        self._latencies = list(latencies)
        waits: dict[str, int] = {}
        for wait in status.waits:
            if wait.kind is not None:
                waits[wait.kind.value] = waits.get(wait.kind.value, 0) + wait.count
        return Sample(
            at=round(status.at, 1),
            outcomes={number: counts for number, counts in ended.items() if any(counts)},
            buckets=[
                BucketSample(
                    f"{bucket.credential}/{bucket.category}",
                    bucket.remaining,
                    bucket.used,
                    round(bucket.reset_at) if bucket.reset_at is not None else None,
                    bucket.limit,
                )
                for bucket in status.buckets
                if bucket.limit is not None
            ],
            concurrency=status.concurrency,
            in_flight=status.in_flight,
            waits=waits,
            latencies=answers if any(answers) else [],
        )


def read_minutes(minutes: Iterable[Minute]) -> list[Sample]:
    """Return the samples of some minutes, in their order.

    A minute that can't be read is left out: nothing but the plots depends on it.
    """
    found: list[Sample] = []
    for minute in minutes:
        try:
            data = zstandard.ZstdDecompressor().decompress(minute.data, max_output_size=MOST_BLOB_BYTES)
            found += msgspec.json.decode(data, type=list[Sample])
        except (zstandard.ZstdError, *UNDECODABLE):
            continue
    return found


def merged(minutes: Sequence[Minute]) -> list[Minute]:
    """Return each minute once, in order, with the samples of all workers that recorded it."""
    told: dict[int, list[Minute]] = {}
    for minute in minutes:
        told.setdefault(minute.minute, []).append(minute)
    found = []
    for number, several in sorted(told.items()):
        if len(several) == 1:
            found += several
            continue
        samples = sorted(read_minutes(several), key=lambda sample: sample.at)
        found.append(Minute(number, zstandard.compress(msgspec.json.encode(samples))))
    return found


def outcomes_of(sample: Sample, jobs: Mapping[int, str]) -> list[int]:
    """Return how many items of `jobs` ended since the sample before, for each of `OUTCOMES` (counts)."""
    totals = [0] * len(OUTCOMES)
    for number, counts in sample.outcomes.items():
        if number in jobs:
            totals = [total + count for total, count in zip(totals, counts, strict=False)]
    return totals
