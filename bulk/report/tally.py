"""What is learned by reading every line of `results.jsonl` once, in constant memory: examples, times, a timeline.

Pure but for the iterator it is given. How many ended how is not counted here: that is the ledger's to say.
"""

import heapq
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import Literal

import msgspec

from bulk.model import OutcomeKind
from bulk.report.record import OUTCOMES, Elapsed, ProblemItem, SlowItem, Timeline

MOST_BINS = 120
MOST_PROBLEMS = 20
MOST_SLOW = 5
MOST_BREAKS = 50
MOST_MESSAGE = 500
MOST_LABEL = 120

_STEPS = 1 / math.log(1.05)
_MOST_STEP = 500  # 1.05 ** 500 ms is longer than a year
_RESULT = b',"result":'
_IS_FINE = frozenset((OutcomeKind.SUCCEEDED, OutcomeKind.UNCHANGED))
_PLACES = {kind: place for place, kind in enumerate(OUTCOMES)}
_GRAVITY = {"failed": 0, "unknown": 1, "skipped": 2}


class _Error(msgspec.Struct):
    code: str
    message: str = ""
    http_status: int | None = None
    attempts: int = 0


class _Line(msgspec.Struct):
    """The part of a line of `results.jsonl` (interface.md §5) that the report needs; the rest is not even decoded."""

    job: str
    index: int
    outcome: Literal["succeeded", "unchanged", "failed", "skipped", "unknown"]
    id: str | None = None
    item: msgspec.Raw = msgspec.Raw(b"{}")
    http_status: int | None = None
    attempts: int = 0
    started_at: datetime = datetime.fromtimestamp(0, UTC)
    elapsed_ms: float = 0.0
    error: _Error | None = None


_decode = msgspec.json.Decoder(_Line).decode


def _read(line: bytes) -> _Line:
    """The head of the line is enough for what went well: results may be megabytes, and are skipped unread.

    Where an item itself has a field `result`, the head is not a whole JSON object, and the line is decoded as it is.
    """
    end = line.find(_RESULT)
    if end > 0:
        try:
            found = _decode(line[:end] + b"}")
        except msgspec.DecodeError:
            return _decode(line)
        if found.outcome in _IS_FINE:
            return found
    return _decode(line)


class ActiveTime:
    """Moments as seconds of activity: the pauses between the epochs of a run are cut out.

    Args:
        spans: start and end of each epoch in order (UTC epoch seconds). Where the clock jumped and two overlap, the
            second counts from the end of the first.
    """

    def __init__(self, spans: Sequence[tuple[float, float]]) -> None:
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._offsets: list[float] = []
        total = 0.0
        for start, end in spans:
            if self._ends:
                start = max(start, self._ends[-1])
            end = max(start, end)
            self._starts.append(start)
            self._ends.append(end)
            self._offsets.append(total)
            total += end - start
        self.total_s = total

    def of(self, at: float) -> float:
        """Seconds of activity before `at` (UTC epoch seconds)."""
        place = bisect_right(self._starts, at) - 1
        if place < 0:
            return 0.0
        return self._offsets[place] + (min(at, self._ends[place]) - self._starts[place])

    @property
    def breaks_s(self) -> tuple[float, ...]:
        """Where it was resumed (seconds of activity)."""
        return tuple(self._offsets[1:])


class JobTally:
    """What the lines of one job say.

    Attributes:
        first_at: the first send; last_at: the last outcome (UTC epoch seconds); None before any line.
        not_modified: answers with status 304 (count).
        examples: error code -> the first item with it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.first_at: float | None = None
        self.last_at: float | None = None
        self.not_modified = 0
        self.examples: dict[str, ProblemItem] = {}
        self._problems: dict[str, list[ProblemItem]] = {}
        self._slow: list[tuple[float, int, SlowItem]] = []
        self._steps = [0] * (_MOST_STEP + 1)
        self._slow_from_ms = -1.0

    def add(self, line: _Line, started_at: float, ended_at: float) -> None:
        """Take in one line."""
        if self.first_at is None or started_at < self.first_at:
            self.first_at = started_at
        if self.last_at is None or ended_at > self.last_at:
            self.last_at = ended_at
        if line.http_status == 304:
            self.not_modified += 1
        if line.attempts:
            elapsed_ms = line.elapsed_ms
            step = int(math.log(elapsed_ms) * _STEPS) if elapsed_ms > 1 else 0
            self._steps[min(step, _MOST_STEP)] += 1
            if elapsed_ms > self._slow_from_ms:
                self._keep_slow(line, elapsed_ms)
        if line.error is not None and line.outcome not in _IS_FINE:
            self._keep_problem(line, line.error)

    def _keep_slow(self, line: _Line, elapsed_ms: float) -> None:
        slow = SlowItem(
            job=self.name,
            index=line.index,
            id=line.id,
            label=label(line.item),
            outcome=line.outcome,
            elapsed_ms=elapsed_ms,
            attempts=line.attempts,
        )
        heapq.heappush(self._slow, (elapsed_ms, -line.index, slow))
        if len(self._slow) > MOST_SLOW:
            heapq.heappop(self._slow)
        if len(self._slow) == MOST_SLOW:
            self._slow_from_ms = self._slow[0][0]

    def _keep_problem(self, line: _Line, error: _Error) -> None:
        kept = self._problems.setdefault(line.outcome, [])
        is_superseded = error.code == "superseded"
        if error.code in self.examples and (is_superseded or len(kept) >= MOST_PROBLEMS):
            return
        problem = ProblemItem(
            job=self.name,
            index=line.index,
            id=line.id,
            label=label(line.item),
            outcome=line.outcome,
            code=error.code,
            message=_shortened(error.message, MOST_MESSAGE),
            http_status=error.http_status if error.http_status is not None else line.http_status,
            attempts=error.attempts or line.attempts,
        )
        self.examples.setdefault(error.code, problem)
        if not is_superseded and len(kept) < MOST_PROBLEMS:
            kept.append(problem)

    @property
    def problems(self) -> tuple[ProblemItem, ...]:
        """The first 20: failed before unknown before skipped, each as the lines had them."""
        kinds = sorted(self._problems, key=lambda kind: _GRAVITY.get(kind, 9))
        return tuple(problem for kind in kinds for problem in self._problems[kind])[:MOST_PROBLEMS]

    @property
    def slowest(self) -> tuple[SlowItem, ...]:
        """Up to 5, the slowest first."""
        return tuple(slow for _, _, slow in sorted(self._slow, key=lambda entry: (-entry[0], -entry[1])))

    @property
    def elapsed(self) -> Elapsed | None:
        """Percentiles; None where nothing was sent."""
        if not any(self._steps):
            return None
        longest_ms = max(entry[0] for entry in self._slow)
        median_ms, p95_ms, p99_ms = (min(self._below(share), longest_ms) for share in (0.5, 0.95, 0.99))
        return Elapsed(median_ms, p95_ms, p99_ms, longest_ms)

    def _below(self, share: float) -> float:
        wanted = share * sum(self._steps)
        step = next(place for place, seen in enumerate(accumulate(self._steps)) if seen >= wanted)
        middle: float = 1.05 ** (step + 0.5)
        return round(middle, 1)


class Tally:
    """What all lines say. `read` may be called again with further lines.

    Args:
        jobs: their names; a line of another job is ignored.
        time: the epochs of the run.
    """

    def __init__(self, jobs: Iterable[str], time: ActiveTime) -> None:
        self.jobs: Mapping[str, JobTally] = {name: JobTally(name) for name in jobs}
        self._time = time
        self._bin_s = _bin_length(time.total_s)
        self._bins = [[0] * len(OUTCOMES) for _ in range(max(1, math.ceil(time.total_s / self._bin_s)))]

    def read(self, lines: Iterable[bytes]) -> None:
        """Take in lines of `results.jsonl`, each item's once.

        Raises:
            msgspec.DecodeError, UnicodeDecodeError: one is no such line.
        """
        active, bins, bin_s, last = self._time.of, self._bins, self._bin_s, len(self._bins) - 1
        for raw in lines:
            line = _read(raw)
            job = self.jobs.get(line.job)
            if job is None:
                continue
            started_at = line.started_at.timestamp()
            ended_at = started_at + line.elapsed_ms / 1000
            job.add(line, started_at, ended_at)
            bins[min(int(active(ended_at) / bin_s), last)][_PLACES[line.outcome]] += 1

    @property
    def timeline(self) -> Timeline:
        """Finished items over active time."""
        breaks = self._time.breaks_s[:MOST_BREAKS]
        return Timeline(bin_s=self._bin_s, bins=tuple(tuple(each) for each in self._bins), breaks_s=breaks)

    @property
    def slowest(self) -> tuple[SlowItem, ...]:
        """Up to 5 of all jobs, the slowest first."""
        every = [slow for job in self.jobs.values() for slow in job.slowest]
        return tuple(sorted(every, key=lambda slow: -slow.elapsed_ms)[:MOST_SLOW])


def _bin_length(total_s: float) -> float:
    """1, 2 or 5 times a power of ten seconds, so that there are at most 120 bins; at least 50 ms."""
    least = max(total_s / MOST_BINS, 0.05)
    power = 10.0 ** math.floor(math.log10(least))
    for factor in (1, 2, 5, 10):
        if power * factor >= least * 0.999_999:
            return power * factor
    return power * 10


def label(item: msgspec.Raw | Mapping[str, object]) -> str:
    """An item in a few words: `acme/api CODEOWNERS branch=main`. Objects and lists are left out."""
    fields = msgspec.json.decode(item) if isinstance(item, msgspec.Raw) else item
    if not isinstance(fields, Mapping):
        return _shortened(str(fields), MOST_LABEL)
    plain = {name: value for name, value in fields.items() if isinstance(value, str | int | float) and name != "id"}
    words = []
    if "owner" in plain and "repo" in plain:
        words.append(f"{plain.pop('owner')}/{plain.pop('repo')}")
    words += [str(plain.pop(name)) for name in ("enterprise", "org", "login", "path") if name in plain]
    words += [f"{name}={value}" for name, value in plain.items()]
    return _shortened(" ".join(words), MOST_LABEL)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
