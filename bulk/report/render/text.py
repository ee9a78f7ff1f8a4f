"""The completion report as text for a terminal of 80 columns: what happened, what did not work, how to go on."""

import shlex
import textwrap
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from bulk.exit_codes import MEANINGS
from bulk.model import OutcomeKind
from bulk.report.record import OUTCOMES, JobReport, ProblemItem, Report
from bulk.report.render.formatting import count, counted, duration, moment, outcomes, percent, rate
from bulk.report.render.status_words import bucket_name
from bulk.report.render.terminal import (
    LEAST_COLUMNS,
    Ink,
    aligned,
    cut,
    headed,
    line_of,
    paragraphs,
    safe,
    width,
    wrapped,
)
from bulk.report.run_state import RunState
from bulk.status import LIVE

COLOURS: Mapping[str, str] = {
    OutcomeKind.SUCCEEDED: "good",
    OutcomeKind.UNCHANGED: "same",
    OutcomeKind.FAILED: "bad",
    OutcomeKind.SKIPPED: "dim",
    OutcomeKind.UNKNOWN: "doubt",
}
STATES = {
    "complete": "complete",
    "stopped": "stopped early",
    "lost": "ended unexpectedly",
    "checking": "being checked",
    "running": "still running",
    "pausing": "pausing: what is in flight still ends",
    "paused": "paused",
    "draining": "ending",
}
_EXAMPLES = 3
_LINES = 3
_CODES = 5
_JOBS = 40
_ACTIONS = 10
_LEAST_NAME = 12
"""Fewest columns for the name of a job in a table (count); with fewer, each job is told in a line instead."""


def render(report: Report, *, is_coloured: bool = False, columns: int = 80) -> str:
    """Return the whole report; ends in a line break. Names and messages in it are safe to print.

    Args:
        is_coloured: see `terminal.wants_colour`.
        columns: width of the terminal (count); at least 40 are used.
    """
    columns = max(LEAST_COLUMNS, columns)
    ink = Ink(is_on=is_coloured)
    return paragraphs(
        _head(report, ink, columns),
        _jobs(report, ink, columns),
        _problems(report, ink, columns),
        _left(report, columns),
        _facts(report, columns),
        _way_on(report, ink, columns),
    )


def verdict(record: Report | RunState) -> str:
    """Return one sentence, safe to print: `complete: every item succeeded or was unchanged`."""
    state = STATES.get(record.state, record.state)
    if record.state in LIVE:
        return f"{state}: {safe(record.why)}" if record.why else state
    meaning = MEANINGS.get(record.exit_code, "work is left").removeprefix("the run is complete, and ")
    return f"{state}: {safe(record.why) or meaning}" if record.state != "complete" else f"{state}: {meaning}"


def nothing_ended(items: int | None) -> str:
    """Return the words that replace the outcomes where there are none; `items`: all items of the run (count)."""
    return "there was nothing to do" if items == 0 else "none of them has ended"


def _head(report: Report, ink: Ink, columns: int) -> Iterator[str]:
    tone = {0: "good", 1: "bad", 6: "doubt"}.get(report.exit_code, "doubt")
    yield from headed(report.name, verdict(report), columns, ink, tone)
    yield from wrapped(report.base_url, columns)
    yield ""
    known = f" of {count(report.items)}" if report.items is not None and report.left else ""
    yield from wrapped(
        f"{count(report.done)}{known} {'item' if report.done == 1 and not known else 'items'} in "
        f"{duration(report.active_s)}, {rate(report.per_second)}: "
        f"{outcomes(report.outcomes, OUTCOMES) or nothing_ended(report.items)}.",
        columns,
    )
    sent = [counted(report.requests, "request")]
    if report.retries:
        sent.append(f"{count(report.retries)} of them repeated")
    if report.settled:
        sent.append(f"{counted(report.settled, 'lost answer')} settled by reading")
    yield from wrapped(", ".join(sent) + ".", columns)
    if report.not_modified:
        unchanged = f"{counted(report.not_modified, 'answer')} had not changed (304), which costs no budget."
        yield from wrapped(unchanged, columns)


def _jobs(report: Report, ink: Ink, columns: int) -> Iterator[str]:
    shown, more = report.jobs[:_JOBS], len(report.jobs) - _JOBS
    kinds = [kind for kind in OUTCOMES if report.outcomes.get(kind) or kind == "succeeded"]
    has_left = any(job.left for job in shown)
    heads = ["job", "operation", *kinds, *(["left"] if has_left else []), "rate"]
    rows = [heads]
    for job in shown:
        numbers = [count(job.outcomes[kind]) if job.outcomes[kind] else "-" for kind in kinds]
        if has_left:
            numbers.append("?" if job.left is None else count(job.left) if job.left else "-")
        rows.append([job.name, job.operation, *numbers, rate(job.per_second) if job.per_second else "-"])
    if sum(2 + max(len(row[place]) for row in rows) for place in range(2, len(heads))) > columns - _LEAST_NAME:
        for row in rows[1:]:
            told = (f"{cell} {head}" if head != "rate" else cell for head, cell in zip(heads[2:], row[2:], strict=True))
            yield from wrapped(f"{row[0]}: {', '.join(said for said in told if said[0] != '-')}", columns, "  ")
    else:
        yield from _table(rows, ink, columns)
    if more > 0:
        yield f"and {counted(more, 'more job')}, see report.html"


def _table(rows: list[list[str]], ink: Ink, columns: int) -> Iterator[str]:
    """Yield the lines of a table of jobs, with the numbers in the colours of their outcomes."""
    heads = rows[0]
    lines = aligned(rows, columns, names=2, right=range(2, len(heads)))
    yield ink("dim", line_of(next(lines)))
    for cells in lines:
        tones = (COLOURS.get(head) if cell.strip() != "-" else None for head, cell in zip(heads, cells, strict=True))
        yield line_of(ink(tone, cell) if tone else cell for tone, cell in zip(tones, cells, strict=True))


def _problems(report: Report, ink: Ink, columns: int) -> Iterator[str]:
    jobs = [job for job in report.jobs if job.problems]
    if not jobs:
        return
    kinds = [kind for kind in ("failed", "unknown", "skipped") if report.outcomes.get(kind)]
    yield ink("strong", "What did not succeed")
    for job in jobs[:_JOBS]:
        yield from _problems_of(job, ink, columns)
    yield f"All of them: bulk report {safe(shlex.quote(report.run_dir))} --only {','.join(kinds)}"


def _problems_of(job: JobReport, ink: Ink, columns: int) -> Iterator[str]:
    yield f"  {ink('strong', cut(job.name, columns - 2))}"
    codes = [error for error in job.errors if error.code != "superseded"]
    for error in codes[:_CODES]:
        number = f"{count(error.count)} ×"
        first, *rest = wrapped(f"{error.code}: {error.hint}", columns - 5 - len(number))
        coloured = first.replace(error.code, ink("doubt" if error.code == "unknown_outcome" else "bad", error.code), 1)
        yield f"    {number} {coloured}"
        yield from (" " * (5 + len(number)) + line for line in rest)
        examples = [problem for problem in job.problems if problem.code == error.code][:_EXAMPLES]
        if not examples and error.example is not None:
            examples = [error.example]
        for problem in examples:
            lines = list(wrapped(described(problem), columns - 6, "  "))
            yield from ("      " + line for line in lines[:_LINES])
    if len(codes) > _CODES:
        yield f"    and {counted(len(codes) - _CODES, 'more code')}"


def described(problem: ProblemItem) -> str:
    """Return `#17 acme/api CODEOWNERS (my-id): Not Found (404, 2 attempts)`."""
    own = f" ({safe(problem.id, 40)})" if problem.id else ""
    facts = [str(problem.http_status)] if problem.http_status else []
    if problem.attempts > 1:
        facts.append(f"{problem.attempts} attempts")
    tail = f" ({', '.join(facts)})" if facts else ""
    return f"#{problem.index} {safe(problem.label, 60)}{own}: {safe(problem.message, 160)}{tail}"


def _left(report: Report, columns: int) -> Iterator[str]:
    if report.state == "complete":
        return
    if report.left is not None:
        yield f"{counted(report.left, 'item')} left ({percent(report.done, report.items or 0)} done)."
    now = report.ended_at.timestamp()
    for wait in report.waits[:5]:
        until = f" until {_at(wait.until, now)}" if wait.until is not None else ""
        waited = f"waited for: {safe(wait.what, 200)}{until} ({counted(wait.count, 'item')})"
        yield from ("  " + line for line in wrapped(waited, columns - 2, "  "))
        if wait.error:
            times = f"{counted(wait.errors, 'time')}: " if wait.errors > 1 else ""
            yield from ("    " + line for line in wrapped(f"{times}{safe(wait.error, 200)}", columns - 4))
    if len(report.waits) > 5:
        yield f"  and {count(len(report.waits) - 5)} more"


def _facts(report: Report, columns: int) -> Iterator[str]:
    now = report.ended_at.timestamp()
    took = [job.elapsed for job in report.jobs if job.elapsed is not None]
    if len(took) == 1:
        times = took[0]
        spread = f"{_ms(times.median_ms)} (median), 95% up to {_ms(times.p95_ms)}, the longest {_ms(times.most_ms)}"
        yield from wrapped(f"An item took {spread}.", columns)
    if report.slowest and report.slowest[0].elapsed_ms >= 1000:
        slow = report.slowest[0]
        what = f"{safe(slow.job)} #{slow.index} {safe(slow.label)}, {_ms(slow.elapsed_ms)}"
        yield from wrapped(f"Slowest: {what}", columns, "  ")
    several = len({bucket.credential for bucket in report.buckets}) > 1
    for bucket in report.buckets[:8]:
        name = bucket_name(bucket, several=several)
        if bucket.limit is None or bucket.remaining is None:
            yield f"Budget {name}: {count(bucket.used)} used, no limit."
            continue
        resets = f", resets {_at(bucket.reset_at, now)}" if bucket.reset_at is not None else ""
        left = f"{count(bucket.remaining)} of {count(bucket.limit)} left{resets}"
        yield from wrapped(f"Budget {name}: {count(bucket.used)} used; {left}.", columns, "  ")
    for action in report.actions[-_ACTIONS:]:
        given = "".join(f" {name}={value}" for name, value in action.args.items())
        said = f"{_at(action.at, now)} {safe(action.who, 40)}: {action.verb}{safe(given)} → {safe(action.result)}"
        yield from wrapped(f"Steered: {said}.", columns, "  ")
    if len(report.actions) > _ACTIONS:
        yield f"  and {counted(len(report.actions) - _ACTIONS, 'action')} before, see report.json"
    for note in report.notes[:10]:
        yield from wrapped(f"Note: {note}", columns, "      ")


def _way_on(report: Report, ink: Ink, columns: int) -> Iterator[str]:
    if (Path(report.run_dir) / "report.html").is_file():  # a run that was killed has none yet
        yield f"Report:  {safe(report.run_dir)}/report.html"
    if report.head is not None and report.state not in LIVE:
        if columns >= width(whole := f"Digest:  {report.head}"):
            yield whole
        else:  # a narrow terminal would break the digest anywhere
            yield "Digest:"
            yield from textwrap.wrap(report.head, columns)
    if report.next_command:
        yield f"Go on:   {ink('strong', safe(report.next_command))}"


def _at(at: datetime | None, now: float) -> str:
    return "?" if at is None else moment(at.timestamp(), now)


def _ms(milliseconds: float) -> str:
    return duration(milliseconds / 1000)
