"""`bulk status` and `bulk rate-limit`: where a run or a credential stands, as text; `status_data.py` is for `--json`.

What the ledger counts is certain; what the running process last said (rates, buckets, waits) carries its age.
"""

from collections.abc import Iterator, Sequence

from bulk.ledger.view import LedgerView
from bulk.report.record import OUTCOMES
from bulk.report.render.formatting import count, counted, duration, moment, outcomes, percent, rate
from bulk.report.render.status_data import is_stale
from bulk.report.render.status_words import bucket_name, closed, most_first, waited_for
from bulk.report.render.terminal import Ink, aligned, cut, headed, line_of, paragraphs, safe, width, wrapped
from bulk.report.render.text import nothing_ended, verdict
from bulk.report.run_state import RunState, next_command, run_state_of
from bulk.status import BucketStatus, RunStatus

_TONES = {
    "complete": "good",
    "running": "same",
    "paused": "doubt",
    "pausing": "doubt",
    "draining": "doubt",
    "stopped": "doubt",
    "lost": "bad",
}
_MOST_WAITS = 8
_MOST_JOBS = 60


def render(
    view: LedgerView, *, now: float, live: RunStatus | None = None, is_coloured: bool = False, columns: int = 80
) -> str:
    """Return where the run of `view` stands; ends in a line break, safe to print.

    Args:
        now: UTC epoch seconds.
        live: status that its process gives at this moment.
        columns: width of the terminal (count, >= 40).

    Raises:
        RunDirectoryError: the run directory can't be read.
    """
    run_state, ink = run_state_of(view, now, live), Ink(is_on=is_coloured)
    command = next_command(run_state, view.run_dir) if not run_state.is_live or run_state.state == "paused" else ""
    return paragraphs(
        _head(run_state, view, now, ink, columns),
        _jobs(run_state, ink, columns),
        _live(run_state, now, columns) if run_state.is_live else (),
        [f"Go on:   {ink('strong', safe(command))}"] if command else (),
    )


def _head(run_state: RunState, view: LedgerView, now: float, ink: Ink, columns: int) -> Iterator[str]:
    last = run_state.epochs[-1] if run_state.epochs else None
    if run_state.is_live and last is not None:
        told = run_state.last
        doing = told.state if told is not None and told.at >= last.started_at else "starting"
        said = f"{doing}, process {last.pid} on {safe(last.host, 40)}, for {duration(now - last.started_at)}"
    else:
        said = f"{verdict(run_state)} (exit {run_state.exit_code})"
    yield from headed(run_state.name, said, columns, ink, _TONES.get(run_state.state, "dim"))
    if run_state.state == "running" and is_stale(run_state, now) and run_state.last is not None:
        age = duration(now - run_state.last.at)
        stale = f"It last reported {age} ago: it may be stuck, or its machine was asleep."
        yield from (ink("doubt", line) for line in wrapped(stale, columns))
    yield from wrapped(f"{view.identity().base_url}, {view.run_dir}", columns)
    totals = run_state.outcomes
    done = sum(totals.values())
    of = f" of {count(run_state.items)} ({percent(done, run_state.items)})" if run_state.items is not None else ""
    yield from wrapped(
        f"{count(done)}{of} items: {outcomes(totals, OUTCOMES) or nothing_ended(run_state.items)}.", columns
    )


def _jobs(run_state: RunState, ink: Ink, columns: int) -> Iterator[str]:
    shown = run_state.jobs[:_MOST_JOBS]
    live = {job.name: job for job in run_state.last.jobs} if run_state.last is not None else {}
    rows = []
    for job in shown:
        done = count(sum(job.outcomes.values()))
        rows.append((job.name, done if job.items is None else f"{done}/{count(job.items)}"))
    for job, cells in zip(shown, aligned(rows, columns, right=(1,)), strict=True):
        said = outcomes(job.outcomes, OUTCOMES)
        status = live.get(job.name)
        if run_state.is_live and status is not None and status.state == "waiting" and status.waits_for:
            said = f"waits for {', '.join(safe(name, 40) for name in status.waits_for)}"
        tone = "bad" if job.outcomes["failed"] else "doubt" if job.outcomes["unknown"] else "dim"
        left = "  ".join(cells)
        beside = columns - width(left) - 2
        if width(said) <= beside:
            yield f"{left}  {ink(tone, said)}".rstrip()
            continue
        yield left.rstrip()
        yield from ("    " + ink(tone, line) for line in wrapped(said, columns - 4))
    if len(run_state.jobs) > len(shown):
        yield f"and {counted(len(run_state.jobs) - len(shown), 'more job')}"


def _live(run_state: RunState, now: float, columns: int) -> Iterator[str]:
    status = run_state.last
    if status is None or status.at < run_state.epochs[-1].started_at:
        return
    parts = [
        rate(status.per_second),
        f"{count(status.in_flight)} of {count(status.concurrency)} in flight",
        counted(status.requests, "request"),
    ]
    if status.retries:
        parts.append(f"{count(status.retries)} repeated")
    if status.finish_at is not None:
        parts.append(f"done about {moment(status.finish_at, now)}")
    yield from wrapped(" · ".join(parts), columns, "  ")
    if status.buckets:
        yield from buckets(status.buckets, now=now, columns=columns).splitlines()
    waits = most_first(status.waits)
    for wait in waits[:_MOST_WAITS]:
        yield from wrapped(f"waiting: {waited_for(wait, now)} ({counted(wait.count, 'item')})", columns, "  ")
    if len(waits) > _MOST_WAITS:
        yield f"waiting: {counted(len(waits) - _MOST_WAITS, 'other thing')}"


def buckets(found: Sequence[BucketStatus], *, now: float, columns: int = 80) -> str:
    """Return a table of buckets, one line each; ends in a line break, safe to print.

    Args:
        now: UTC epoch seconds.
        columns: width of the terminal (count, >= 40).
    """
    if not found:
        return "The platform limits nothing.\n"
    several = len({bucket.credential for bucket in found}) > 1
    said = [_bucket_says(each, now) for each in found]
    left = [_left(each) for each in found]
    names = [safe(bucket_name(each, several=several)) for each in found]
    if max(map(width, names)) + max(map(width, left)) + max(map(width, said)) + 4 > columns:
        said = [_bucket_says(each, now, is_short=True) for each in found]
    room = max(columns // 2, columns - max(map(width, left)) - max(map(width, said)) - 4)
    rows = [(cut(name, room), each) for name, each in zip(names, left, strict=True)]
    lines = zip(aligned(rows, columns, right=(1,)), said, strict=True)
    return "".join(line + "\n" for cells, says in lines for line in _beside(cells, says, columns))


def _beside(cells: Sequence[str], said: str, columns: int) -> Iterator[str]:
    """Yield the row of a bucket: its cells with `said` beside them, or on lines below them where there is no room."""
    line = line_of([*cells, said])
    if width(line) <= columns:
        yield line
    else:
        yield line_of(cells)
        yield from ("    " + part for part in wrapped(said, columns - 4))


def _left(bucket: BucketStatus) -> str:
    if bucket.limit is None or bucket.remaining is None:
        return "no limit"
    return f"{count(max(0, bucket.remaining))} of {count(bucket.limit)} left"


def _bucket_says(bucket: BucketStatus, now: float, *, is_short: bool = False) -> str:
    said = []
    if bucket.closed_because:
        said.append(closed(bucket, now))
    if bucket.reset_at is not None and bucket.reset_at > now:
        left = "" if is_short else f" (in {duration(bucket.reset_at - now)})"
        said.append(f"resets {moment(bucket.reset_at, now)}{left}")
    if bucket.reserve:
        said.append(f"{count(bucket.reserve)} kept in reserve")
    if bucket.waiting:
        said.append(f"{count(bucket.waiting)} waiting")
    return ", ".join(said)
