"""Progress for outputs that are not a terminal: a complete line every few seconds, or JSON lines for programs."""

from collections.abc import Iterator
from typing import Protocol

import msgspec

from bulk.model import OutcomeKind
from bulk.report.render.formatting import count, counted, duration, moment, outcomes, rate
from bulk.report.render.json_data import as_data
from bulk.report.render.status_words import bucket_name, failing, most_first, scarce_first, totals, waited_for
from bulk.report.render.terminal import safe
from bulk.status import BucketStatus, RunStatus

FIRST_S = 1.0
EVERY_S = 5.0
JSON_S = 1.0
"""When the first line comes, how often further ones do, and how often a JSON line does (seconds)."""
AGAIN_S = 60.0
"""How often a line comes that is the same as the line before, such as that of a paused run (seconds)."""

_WRONG = (OutcomeKind.FAILED, OutcomeKind.UNKNOWN, OutcomeKind.SKIPPED)
_MOST_BUCKETS = 3
_MOST_WAITS = 3
_MOST_FAILURES = 2


class Sink(Protocol):
    """A stream that takes text."""

    def write(self, text: str, /) -> int:
        """Take `text`."""


def line(status: RunStatus) -> str:
    """Return where the run stands, on one line, safe to print.

    `12,340/100,000 items · 412/s · core 3,120/5,000 resets 14:05 · 64 in flight · waiting: bucket core until 14:05 ·
    done about 14:21`
    """
    return " · ".join(_parts(status))


def _parts(status: RunStatus) -> Iterator[str]:
    now = status.at
    done, items, counts = totals(status)
    if status.state != "running":
        yield status.state + (f" ({safe(status.why)})" if status.why else "")
    yield f"{count(done)}/{count(items)} items" if items is not None else counted(done, "item")
    wrong = outcomes(counts, _WRONG)
    if wrong:
        why = ", ".join(f"{count(number)} × {each}" for each, _, number in failing(status.jobs)[:_MOST_FAILURES])
        yield f"{wrong} ({why})" if why else wrong
    is_over = status.state in ("complete", "stopped")
    if is_over:
        yield f"in {duration(now - status.started_at)}"
        yield counted(status.requests, "request")
        return
    if status.per_second or status.state != "checking":
        yield rate(status.per_second)
    several = len({bucket.credential for bucket in status.buckets}) > 1
    for bucket in scarce_first(status.buckets)[:_MOST_BUCKETS]:
        yield _bucket(bucket, now, several=several)
    if status.in_flight:
        yield f"{count(status.in_flight)} in flight"
    if status.waits:
        shown = ", ".join(waited_for(wait, now) for wait in most_first(status.waits)[:_MOST_WAITS])
        more = len(status.waits) - _MOST_WAITS
        yield f"waiting: {shown}" + (f" and {count(more)} more" if more > 0 else "")
    if status.finish_at is not None:
        yield f"done about {moment(status.finish_at, now)}"


def _bucket(bucket: BucketStatus, now: float, *, several: bool) -> str:
    left = f"{count(bucket.remaining or 0)}/{count(bucket.limit or 0)}"
    resets = f" resets {moment(bucket.reset_at, now)}" if bucket.reset_at is not None and bucket.reset_at > now else ""
    return f"{bucket_name(bucket, several=several)} {left}{resets}"


class PlainFace:
    """Writes `line` after one second, then every five seconds if it has changed, else every minute, and at the end."""

    def __init__(self, stream: Sink) -> None:
        self._stream = stream
        self._due: float | None = None
        self._again, self._line = 0.0, ""
        self._told: RunStatus | None = None

    def paint(self, status: RunStatus, *, is_new: bool, monotonic: float) -> None:
        """Write a line if one is due."""
        if self._due is None:
            self._due = monotonic + FIRST_S
        if is_new and monotonic >= self._due:
            self._due = monotonic + EVERY_S
            if line(status) != self._line or monotonic >= self._again:
                self._again = monotonic + AGAIN_S
                self._tell(status)

    def say(self, text: str) -> None:
        """Write a note on a line of its own."""
        self._stream.write(safe(text) + "\n")

    def end(self, status: RunStatus | None) -> None:
        """Write where the run stands now."""
        if status is not None and status is not self._told:
            self._tell(status)

    def _tell(self, status: RunStatus) -> None:
        self._told, self._line = status, line(status)
        self._stream.write(self._line + "\n")


class JsonFace:
    """Writes a status every second and every note as JSON objects on lines of their own, told apart by `type`."""

    def __init__(self, stream: Sink) -> None:
        self._stream = stream
        self._due = 0.0
        self._told: RunStatus | None = None

    def paint(self, status: RunStatus, *, is_new: bool, monotonic: float) -> None:
        """Write `{"type": "status", …}` with the fields of `status.RunStatus`, moments as texts."""
        if is_new and monotonic >= self._due:
            self._due = monotonic + JSON_S
            self._tell(status)

    def say(self, text: str) -> None:
        """Write `{"type": "note", "text": …}`."""
        self._write({"type": "note", "text": text})

    def end(self, status: RunStatus | None) -> None:
        """Write the last status, where it was not yet written."""
        if status is not None and status is not self._told:
            self._tell(status)

    def _tell(self, status: RunStatus) -> None:
        self._told = status
        self._write({"type": "status", **as_data(status)})

    def _write(self, value: object) -> None:
        self._stream.write(msgspec.json.encode(value).decode("utf-8", "replace") + "\n")
