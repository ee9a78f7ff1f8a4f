"""Tallies finished items in constant memory: examples, times, a timeline.

A run keeps its tally up to date while it goes on, and the ledger stores the tally with each group of records; where
none was kept (after a retry, for older runs) every line of `results.jsonl` is read once. The order of the items makes
no difference. Pure but for the iterator it is given. Outcomes are not counted here, because the ledger counts them.
"""

import bisect
import math
from collections.abc import Iterable, Mapping
from itertools import accumulate
from operator import attrgetter
from typing import TypeAlias

import msgspec

from bulk.ledger.records import Finished, StoredTally
from bulk.model import SUCCESSFUL, ItemError
from bulk.redaction import redact
from bulk.report.active_time import ActiveTime, Bins
from bulk.report.record import OUTCOMES, Elapsed, ProblemItem, SlowItem, Timeline
from bulk.report.tally_rows import JobTallyRow, Line, LineError, RunTallyRow, read_line

MOST_PROBLEMS = 20
MOST_SLOW = 5
MOST_BREAKS = 50
MOST_MESSAGE = 500
MOST_LABEL = 120

_STEPS = 1 / math.log(1.05)
_WHOLE_RUN = -1
_PLACE = attrgetter("index")
_PLACES = {kind: place for place, kind in enumerate(OUTCOMES)}
_GRAVITY = {"failed": 0, "unknown": 1, "skipped": 2}


_Ended: TypeAlias = Line | Finished
_Wrong: TypeAlias = LineError | ItemError


class JobTally:
    """The tally of the items of one job.

    Attributes:
        items: items taken in (count).
        first_at: the first send; last_at: the last outcome (UTC epoch seconds); None before any item.
        not_modified: answers with status 304 (count).
        examples: error code -> the first item with it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.items = 0
        self.first_at: float | None = None
        self.last_at: float | None = None
        self.not_modified = 0
        self.examples: dict[str, ProblemItem] = {}
        self._problems: dict[str, list[ProblemItem]] = {}
        self._slow: list[SlowItem] = []
        self._steps: dict[int, int] = {}
        self._slow_from_ms = -1.0

    def add(self, line: _Ended, started_at: float, ended_at: float) -> None:
        """Take in one item."""
        self.items += 1
        if self.first_at is None or started_at < self.first_at:
            self.first_at = started_at
        if self.last_at is None or ended_at > self.last_at:
            self.last_at = ended_at
        if line.http_status == 304:
            self.not_modified += 1
        if line.attempts:
            elapsed_ms = line.elapsed_ms
            step = int(math.log(elapsed_ms) * _STEPS) if elapsed_ms > 1 else 0
            self._steps[step] = self._steps.get(step, 0) + 1
            if elapsed_ms > self._slow_from_ms:
                self._keep_slow(line, elapsed_ms)
        if line.error is not None and line.outcome not in SUCCESSFUL:
            self._keep_problem(line, line.error)

    def _keep_slow(self, line: _Ended, elapsed_ms: float) -> None:
        slow = SlowItem(
            job=self.name,
            index=line.index,
            id=line.id,
            label=label(line.item),
            outcome=str(line.outcome),
            elapsed_ms=round(elapsed_ms, 1),
            attempts=line.attempts,
        )
        bisect.insort(self._slow, slow, key=_haste)
        self._cut_slow()

    def _cut_slow(self) -> None:
        del self._slow[MOST_SLOW:]
        if len(self._slow) == MOST_SLOW:
            self._slow_from_ms = self._slow[-1].elapsed_ms

    def _keep_problem(self, line: _Ended, error: _Wrong) -> None:
        code, index = str(error.code), line.index
        kept = self._problems.setdefault(str(line.outcome), [])
        example = self.examples.get(code)
        is_example = example is None or index < example.index
        is_kept = code != "superseded" and (len(kept) < MOST_PROBLEMS or index < kept[-1].index)
        if not is_example and not is_kept:
            return
        problem = ProblemItem(
            job=self.name,
            index=line.index,
            id=line.id,
            label=label(line.item),
            outcome=str(line.outcome),
            code=code,
            message=shortened(error.message, MOST_MESSAGE),
            http_status=error.http_status if error.http_status is not None else line.http_status,
            attempts=error.attempts or line.attempts,
        )
        if is_example:
            self.examples[code] = problem
        if is_kept:
            bisect.insort(kept, problem, key=_PLACE)
            del kept[MOST_PROBLEMS:]

    @property
    def state(self) -> bytes:
        """The whole tally as JSON, for `restore`."""
        return msgspec.json.encode(
            JobTallyRow(
                self.first_at, self.last_at, self.not_modified, self._steps, self._slow, self._problems, self.examples
            )
        )

    def restore(self, stored: StoredTally) -> None:
        """Go on from a stored `state`.

        Raises:
            UNDECODABLE: `stored` holds no `state`.
        """
        found = msgspec.json.decode(stored.json, type=JobTallyRow)
        self.items, self.first_at, self.last_at = stored.items, found.first_at, found.last_at
        self.not_modified, self._problems, self.examples = found.not_modified, found.problems, found.examples
        self._steps = found.steps
        self._slow = sorted(found.slow, key=_haste)
        self._cut_slow()

    @property
    def problems(self) -> tuple[ProblemItem, ...]:
        """The first 20 items that did not succeed: failed, then unknown, then skipped, each in item order."""
        kinds = sorted(self._problems, key=lambda kind: _GRAVITY.get(kind, 9))
        return tuple(problem for kind in kinds for problem in self._problems[kind])[:MOST_PROBLEMS]

    @property
    def slowest(self) -> tuple[SlowItem, ...]:
        """Up to 5 items, the slowest first."""
        return tuple(self._slow)

    @property
    def elapsed(self) -> Elapsed | None:
        """Percentiles of the time that items took; None where nothing was sent."""
        if not self._steps:
            return None
        longest_ms = self._slow[0].elapsed_ms
        median_ms, p95_ms, p99_ms = (min(self._below(share), longest_ms) for share in (0.5, 0.95, 0.99))
        return Elapsed(median_ms, p95_ms, p99_ms, longest_ms)

    def _below(self, share: float) -> float:
        steps = sorted(self._steps)
        sums = list(accumulate(self._steps[step] for step in steps))
        step = steps[bisect.bisect_left(sums, share * sums[-1])]
        middle: float = 1.05 ** (step + 0.5)
        return round(middle, 1)


class Tally:
    """The tally of all items. `read` and `add` may be called again with further items.

    Args:
        jobs: names of the jobs, in the order of their numbers; a line of another job is ignored.
        time: the epochs of the run; while the run goes on, the last epoch has no end.
        stored: what `add` returned before.

    Raises:
        UNDECODABLE: `stored` holds no tally.
    """

    def __init__(self, jobs: Iterable[str], time: ActiveTime, stored: Mapping[int, StoredTally] | None = None) -> None:
        self.jobs: Mapping[str, JobTally] = {name: JobTally(name) for name in jobs}
        self._numbers = {name: number for number, name in enumerate(self.jobs)}
        self._time = time
        self._bins = Bins()
        self._items = 0
        for name, number in self._numbers.items():
            if stored is not None and number in stored:
                self.jobs[name].restore(stored[number])
        if stored is not None and _WHOLE_RUN in stored:
            self._items, whole = (
                stored[_WHOLE_RUN].items,
                msgspec.json.decode(stored[_WHOLE_RUN].json, type=RunTallyRow),
            )
            self._bins.length_s, self._bins.counts = whole.length_s, whole.bins

    def read(self, lines: Iterable[bytes]) -> None:
        """Take in lines of `results.jsonl`, each item's once.

        Raises:
            UNDECODABLE: a line is not one of `results.jsonl`.
        """
        active, bins = self._time.of, self._bins
        for raw in lines:
            line = read_line(raw)
            job = self.jobs.get(line.job)
            if job is None:
                continue
            started_at = line.started_at.timestamp()
            ended_at = started_at + line.elapsed_ms / 1000
            job.add(line, started_at, ended_at)
            bins.row(active(ended_at))[_PLACES[line.outcome]] += 1

    def add(self, items: Iterable[Finished]) -> dict[int, StoredTally]:
        """Take in items as they end; returns the tallies to store anew, by number of the job (-1: the whole run)."""
        active, bins = self._time.of, self._bins
        changed: set[str] = set()
        for item in items:
            job = self.jobs[item.job]
            changed.add(item.job)
            self._items += 1
            ended_at = item.started_at + item.elapsed_ms / 1000
            job.add(item, item.started_at, ended_at)
            bins.row(active(ended_at))[_PLACES[item.outcome]] += 1
        if not changed:
            return {}
        found = {self._numbers[name]: StoredTally(self.jobs[name].items, self.jobs[name].state) for name in changed}
        whole = RunTallyRow(self._bins.length_s, self._bins.counts)
        return {**found, _WHOLE_RUN: StoredTally(self._items, msgspec.json.encode(whole))}

    @property
    def timeline(self) -> Timeline:
        """Finished items over active time."""
        breaks = self._time.breaks_s[:MOST_BREAKS]
        bin_s, bins = self._bins.shown(self._time.total_s)
        return Timeline(bin_s=bin_s, bins=tuple(tuple(each) for each in bins), breaks_s=breaks)

    @property
    def slowest(self) -> tuple[SlowItem, ...]:
        """Up to 5 items of all jobs, the slowest first."""
        every = [slow for job in self.jobs.values() for slow in job.slowest]
        return tuple(sorted(every, key=lambda slow: -slow.elapsed_ms)[:MOST_SLOW])


def _haste(slow: SlowItem) -> tuple[float, int]:
    return -slow.elapsed_ms, slow.index


def label(item: msgspec.Raw | Mapping[str, object]) -> str:
    """Return an item in a few words: `acme/api CODEOWNERS branch=main`. Objects and lists are left out."""
    fields = msgspec.json.decode(item) if isinstance(item, msgspec.Raw) else item
    words = label_of_redacted(fields) if isinstance(fields, Mapping) else str(fields)
    return shortened(redact(words), MOST_LABEL)


def label_of_redacted(fields: Mapping[str, object]) -> str:
    """Return the label as `label` does, of any length, of fields that hold no secret."""
    plain = {name: value for name, value in fields.items() if isinstance(value, str | int | float) and name != "id"}
    words = []
    if "owner" in plain and "repo" in plain:
        words.append(f"{plain.pop('owner')}/{plain.pop('repo')}")
    words += [str(plain.pop(name)) for name in ("enterprise", "org", "login", "path") if name in plain]
    words += [f"{name}={value}" for name, value in plain.items()]
    return " ".join(words)


def shortened(text: str, most: int = MOST_LABEL) -> str:
    """Return `text` cut to at most `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
