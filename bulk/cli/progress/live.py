"""The live display: a picture of the run at the foot of a terminal, redrawn a few times a second.

It never takes more rows than the terminal has: dozens of jobs, buckets and waits are summarised. Every name in it is
made safe and printed as text, never as markup. It disappears at the end, when the report takes its place.
"""

import os
from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.console import Console, ConsoleDimensions, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from bulk.clock import Clock
from bulk.model import OutcomeKind
from bulk.report.render.formatting import count, counted, duration, moment, rate
from bulk.report.render.status_words import bucket_name, closed, most_first, scarce_first, totals, waited_for
from bulk.report.render.terminal import cut, safe
from bulk.status import BucketStatus, JobStatus, RunStatus, Wait

_STYLES = {
    OutcomeKind.SUCCEEDED: "green",
    OutcomeKind.UNCHANGED: "cyan",
    OutcomeKind.FAILED: "bold red",
    OutcomeKind.SKIPPED: "dim",
    OutcomeKind.UNKNOWN: "yellow",
}
_STATES = {
    "checking": "cyan",
    "running": "green",
    "complete": "green",
    **dict.fromkeys(("pausing", "paused", "draining", "stopped"), "yellow"),
}
_ORDER = {"running": 0, "waiting": 1, "complete": 2}
_SHOWN_ORDER = (
    OutcomeKind.FAILED,
    OutcomeKind.UNKNOWN,
    OutcomeKind.SUCCEEDED,
    OutcomeKind.UNCHANGED,
    OutcomeKind.SKIPPED,
)
REFRESH_S = 0.5
"""How often the picture is drawn (seconds); each time costs some milliseconds of the processor."""

_NARROW = 100
_MOST_ROWS = 36


class LiveFace:
    """Paints on a terminal.

    Args:
        stream: the terminal; its size is asked before every picture.
        has_colour: False draws without colours.
    """

    def __init__(self, stream: TextIO, *, has_colour: bool, clock: Clock | None = None) -> None:
        self._clock = clock or Clock()
        self._stream = stream
        self._due = 0.0
        self._console = Console(
            file=stream,
            force_terminal=True,
            no_color=not has_colour,
            markup=False,
            highlight=False,
            emoji=False,
        )
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )

    def paint(self, status: RunStatus, *, is_new: bool, monotonic: float) -> None:
        """Draw `status`, twice a second at most; times count down also while nothing new is heard."""
        if monotonic < self._due:
            return
        self._due = monotonic + REFRESH_S
        if not self._live.is_started:
            self._live.start()
        width, height = self._size()
        self._console.size = ConsoleDimensions(width, height)
        self._live.update(picture(status, self._clock.now(), width, height - 1), refresh=True)

    def _size(self) -> tuple[int, int]:
        """Of this very terminal: rich would ask the one of standard input."""
        try:
            width, height = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError, AttributeError):
            width = height = 0
        return width or 80, height or 24

    def say(self, text: str) -> None:
        """Print a note above the picture."""
        self._console.print(Text(safe(text)))

    def end(self, status: RunStatus | None) -> None:
        """Take the picture away and show the cursor again."""
        if self._live.is_started:
            self._live.stop()


def picture(status: RunStatus, now: float, columns: int, rows: int) -> RenderableType:
    """The whole picture, at most `rows` high.

    Args:
        now: UTC epoch seconds.
        columns: of the terminal (count).
        rows: that may be used (count, >= 1).
    """
    buckets, waits = scarce_first(status.buckets), most_first(status.waits)
    room = min(rows, _MOST_ROWS) - 2  # the first line and the figures
    for_waits = min(len(waits), 4, max(0, room // 4))
    for_buckets = min(len(buckets), 6, max(0, room // 3))
    for_jobs = max(0, room - for_waits - for_buckets - (2 if room > 12 else 0))
    parts: list[RenderableType] = [_head(status, now, columns)]
    if for_jobs:
        parts.append(_jobs(status.jobs, for_jobs, columns))
    if room > 12:
        parts.append(Text())
    if for_buckets:
        parts.append(_buckets(buckets, for_buckets, now, columns))
    parts.append(_figures(status, now))
    parts += _waits(waits, for_waits, now, columns)
    return _Cropped(Group(*parts), rows)


class _Cropped:
    """So many rows of something and no more: the promise holds whatever wraps."""

    def __init__(self, inner: RenderableType, rows: int) -> None:
        self._inner, self._rows = inner, rows

    def __rich_console__(self, console: Console, _: object) -> Iterator[Segment]:
        lines = console.render_lines(self._inner, pad=False)
        for place, each in enumerate(lines[: max(1, self._rows)]):
            if place:
                yield Segment.line()
            yield from each


def _one_line(*parts: Text) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    for part in parts:
        text.append_text(part)
    return text


def _head(status: RunStatus, now: float, columns: int) -> Text:
    parts = [
        Text(cut(status.name, max(10, columns // 2)), style="bold"),
        Text("  "),
        Text(status.state, style=_STATES.get(status.state, "")),
        Text(f"  {duration(now - status.started_at)}"),
    ]
    if status.why:
        parts.append(Text(f"  {safe(status.why)}", style="yellow"))
    if now - status.at > 10:
        parts.append(Text(f"  last heard {duration(now - status.at)} ago", style="yellow"))
    return _one_line(*parts)


def _jobs(jobs: Sequence[JobStatus], rows: int, columns: int) -> RenderableType:
    shown = list(jobs)
    if len(shown) > rows:
        chosen = sorted(range(len(shown)), key=lambda place: (_ORDER.get(jobs[place].state, 0), place))[: rows - 1]
        shown = [jobs[place] for place in sorted(chosen)]
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(10, columns // 4))
    if columns >= _NARROW:
        table.add_column(no_wrap=True, overflow="ellipsis", style="dim")
    table.add_column(width=_bar_columns(columns))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for job in shown:
        cells: list[RenderableType] = [Text(safe(job.name, 60))]
        if columns >= _NARROW:
            cells.append(Text(safe(job.operation, 40)))
        of = f"/{count(job.items)}" if job.items is not None else ""
        cells += [_bar(job), Text(f"{count(job.done)}{of}"), _outcomes(job)]
        table.add_row(*cells)
    hidden = len(jobs) - len(shown)
    if hidden <= 0:
        return table
    names = {job.name for job in shown}
    states: dict[str, int] = {}
    for job in jobs:
        if job.name not in names:
            states[job.state] = states.get(job.state, 0) + 1
    told = ", ".join(f"{number} {state}" for state, number in states.items())
    return Group(table, _dim(f"and {counted(hidden, 'more job')}: {told}"))


def _bar_columns(columns: int) -> int:
    return max(6, min(32, columns // 6))


def _bar(job: JobStatus) -> RenderableType:
    style = "red" if job.outcomes.get(OutcomeKind.FAILED, 0) * 10 > job.done else "green"
    done = float(job.items or 1) if job.state == "complete" else float(job.done)
    return _meter(done, float(max(1, job.items or 1)), style)


def _meter(value: float, whole: float, style: str) -> RenderableType:
    return ProgressBar(total=whole, completed=value, complete_style=style, finished_style=style, style="bright_black")


def _dim(text: str) -> Text:
    return Text(text, style="dim", no_wrap=True, overflow="ellipsis")


def _outcomes(job: JobStatus) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    if job.state == "waiting":
        waits = ", ".join(safe(name, 30) for name in job.waits_for)
        return text.append(f"waits for {waits}" if waits else "waits", style="dim")
    shown = [kind for kind in _SHOWN_ORDER if job.outcomes.get(kind)]
    for place, kind in enumerate(shown):
        text.append("  " if place else "").append(f"{count(job.outcomes[kind])} {kind.value}", style=_STYLES[kind])
    return text


def _buckets(buckets: Sequence[BucketStatus], rows: int, now: float, columns: int) -> RenderableType:
    several = len({bucket.credential for bucket in buckets}) > 1
    shown = buckets if len(buckets) <= rows else buckets[: rows - 1]
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(10, columns // 4))
    table.add_column(width=_bar_columns(columns))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for bucket in shown:
        limit, remaining = bucket.limit or 0, max(0, bucket.remaining or 0)
        style = "red" if remaining <= bucket.reserve else "blue"
        table.add_row(
            Text(bucket_name(bucket, several=several)),
            _meter(float(remaining), float(max(1, limit)), style),
            Text(f"{count(remaining)}/{count(limit)} left"),
            Text(_bucket_says(bucket, now), style="yellow" if bucket.closed_because else "dim"),
        )
    if len(shown) < len(buckets):
        return Group(table, _dim(f"and {counted(len(buckets) - len(shown), 'more bucket')}"))
    return table


def _bucket_says(bucket: BucketStatus, now: float) -> str:
    said = []
    if bucket.closed_because:
        said.append(closed(bucket, now))
    opens_then = bucket.closed_because and bucket.opens_at is not None
    if bucket.reset_at is not None and bucket.reset_at > now and not opens_then:
        said.append(f"resets {moment(bucket.reset_at, now)} (in {duration(bucket.reset_at - now)})")
    if bucket.pace is not None:
        said.append(f"paced {rate(bucket.pace)}")
    if bucket.waiting:
        said.append(f"{count(bucket.waiting)} waiting")
    return ", ".join(said)


def _figures(status: RunStatus, now: float) -> Text:
    done, items, _ = totals(status)
    said = [f"{count(done)}{f'/{count(items)}' if items is not None else ''} items", rate(status.per_second)]
    said.append(f"{count(status.in_flight)} of {count(status.concurrency)} in flight")
    said.append(counted(status.requests, "request"))
    if status.retries:
        said.append(f"{count(status.retries)} repeated")
    if status.settled:
        said.append(f"{count(status.settled)} settled")
    text = Text(" · ".join(said), no_wrap=True, overflow="ellipsis")
    if status.finish_at is not None:
        left = f" (in {duration(status.finish_at - now)})" if status.finish_at > now else ""
        text = _one_line(Text(f"done about {moment(status.finish_at, now)}{left} · ", style="bold"), text)
    return text


def _waits(waits: Sequence[Wait], rows: int, now: float, columns: int) -> list[RenderableType]:
    shown = waits if len(waits) <= rows else waits[: max(0, rows - 1)]
    lines: list[RenderableType] = []
    for wait in shown:
        number = f"  ({counted(wait.count, 'item')})" if wait.count > 1 else ""
        what = Text(cut(waited_for(wait, now), columns - 9))
        lines.append(_one_line(_dim("waiting: "), what, Text(number)))
    if len(shown) < len(waits) and rows:
        rest = waits[len(shown) :]
        told = f"waiting: {counted(len(rest), 'other thing')} ({counted(sum(wait.count for wait in rest), 'item')})"
        lines.append(_dim(told))
    return lines
