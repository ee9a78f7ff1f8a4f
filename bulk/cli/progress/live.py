"""The live display: a picture of the run at the foot of a terminal, redrawn a few times a second.

It never takes more rows than the terminal has: dozens of jobs, buckets and waits are summarised. Every name in it is
made safe and printed as text, never as markup. It disappears at the end, when the report takes its place.
"""

from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.console import Console, ConsoleDimensions, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from bulk.clock import Clock
from bulk.model import OutcomeKind
from bulk.report.render.formatting import count, counted, duration, moment, rate
from bulk.report.render.status_words import bucket_name, closed, failing, most_first, scarce_first, totals, waited_for
from bulk.report.render.terminal import cut, safe, size_of
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

_WIDE, _MEDIUM = 100, 72
"""Fewest columns with which operations are named, and fewest with which there are bars (counts)."""
_MOST_ROWS = 36
_MOST_FAILURES = 3
_GAP_FROM = 12
"""Where more rows than this are left for the jobs, an empty row sets them apart from the part below (count)."""

_HIDE, _SHOW, _ERASE_BELOW = "\x1b[?25l", "\x1b[?25h", "\x1b[J"


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
        self._widths: list[int] = []
        self._picture = ""

    def paint(self, status: RunStatus, *, is_new: bool, monotonic: float) -> None:
        """Draw `status`, twice a second at most; times count down even without a new status."""
        if monotonic < self._due:
            return
        self._due = monotonic + REFRESH_S
        width, height = size_of(self._stream)
        self._console.size = ConsoleDimensions(width, height)
        # the last column stays free, so that no row is full and the cursor never waits behind the last column
        drawn = Picture(status, self._clock.now(), width - 1, height - 1)
        rows = [_row(line) for line in self._console.render_lines(drawn, self._console.options.update(width=width - 1))]
        erased = self._erased(width, height)
        self._widths = [row.cell_len for row in rows]
        self._picture = self._rendered(Text("\n").join(rows))
        self._stream.write(erased + _HIDE + self._picture)

    def _rendered(self, text: Text) -> str:
        with self._console.capture() as captured:
            self._console.print(text, end="", soft_wrap=True)
        return captured.get()

    def _erased(self, width: int, height: int) -> str:
        """Return the text that erases the picture. Where the terminal has become narrower, it has broken a row of the
        picture into several."""
        if not self._widths:
            return ""
        rows = sum(max(1, -(-each // max(1, width))) for each in self._widths)
        climb = min(rows, max(1, height)) - 1
        return "\r" + (f"\x1b[{climb}A" if climb else "") + _ERASE_BELOW

    def say(self, text: str) -> None:
        """Print a note above the picture."""
        self._stream.write(
            self._erased(*size_of(self._stream)) + self._rendered(Text(safe(text))) + "\n" + self._picture
        )

    def end(self, status: RunStatus | None) -> None:
        """Take the picture away and show the cursor again."""
        if self._widths:
            self._stream.write(self._erased(*size_of(self._stream)) + _SHOW)
            self._widths, self._picture = [], ""


def _row(line: Sequence[Segment]) -> Text:
    """Return a row of the picture, without the blanks at its end."""
    row = Text.assemble(*((segment.text, segment.style or "") for segment in line))
    row.rstrip()
    return row


class Picture:
    """The whole picture, for rich to print: nothing in it is cut off that finds room.

    Everything but the jobs is laid out first, then as many jobs as find room in between.

    Args:
        now: UTC epoch seconds.
        columns: width of the terminal (count).
        rows: rows that may be used (count, >= 1).
    """

    def __init__(self, status: RunStatus, now: float, columns: int, rows: int) -> None:
        self._status, self._now, self._columns, self._rows = status, now, columns, max(1, min(rows, _MOST_ROWS))

    def __rich_console__(self, console: Console, _: object) -> Iterator[Segment]:
        status, now, columns, rows = self._status, self._now, self._columns, self._rows

        def lines(part: RenderableType) -> list[list[Segment]]:
            return console.render_lines(part, console.options.update(width=columns), pad=False)

        head = lines(_head(status, now, columns))
        foot = lines(_foot(status, now, columns, rows - len(head)))
        room = rows - len(head) - len(foot)
        gap = [lines(Text())[0]] if room > _GAP_FROM else []
        jobs, number = list[list[Segment]](), min(len(status.jobs), room - 2 * len(gap))
        while number > 0:
            jobs = lines(_jobs(status.jobs, number, columns))
            if len(jobs) <= room - 2 * len(gap):
                break
            jobs, number = [], number - max(1, (len(jobs) - room) // 3)
        shown = [*head, *jobs, *(gap if jobs else []), *foot]
        for place, each in enumerate(shown[:rows]):
            if place:
                yield Segment.line()
            yield from each


def _foot(status: RunStatus, now: float, columns: int, rows: int) -> RenderableType:
    """Return the part below the jobs: buckets, figures, failures and waits."""
    buckets, waits, failures = scarce_first(status.buckets), most_first(status.waits), failing(status.jobs)
    parts: list[RenderableType] = []
    for_buckets = min(len(buckets), 6, max(0, rows // 3))
    if for_buckets:
        parts.append(_buckets(buckets, for_buckets, now, columns))
    parts.append(_figures(status, now))
    for why, names, number in failures[: min(_MOST_FAILURES, max(0, rows // 6))]:
        parts.append(_labelled("failed", f"{count(number)} × {why} ({', '.join(names)})"))
    parts += _waits(waits, min(len(waits), 4, max(0, rows // 4)), now)
    return Group(*parts)


def _labelled(label: str, words: str, tail: str = "") -> RenderableType:
    """Return `label: words`, on several rows where one is not enough, the further rows indented."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    table.add_row(f"{label}:", Text(words + tail))
    return table


def _head(status: RunStatus, now: float, columns: int) -> Text:
    head = Text(cut(status.name, max(10, columns - 30)), style="bold", overflow="fold")
    head.append("  ").append(status.state, style=f"not bold {_STATES.get(status.state, '')}")
    head.append(f"  {duration(now - status.started_at)}", style="not bold")
    if status.why:
        head.append(f"  {safe(status.why)}", style="not bold yellow")
    if now - status.at > 10:
        head.append(f"  last reported {duration(now - status.at)} ago", style="not bold yellow")
    return head


def _jobs(jobs: Sequence[JobStatus], rows: int, columns: int) -> RenderableType:
    shown = list(jobs)
    if len(shown) > rows:
        chosen = sorted(range(len(shown)), key=lambda place: (_ORDER.get(jobs[place].state, 0), place))[: rows - 1]
        shown = [jobs[place] for place in sorted(chosen)]
    table = _grid(columns, has_kind=columns >= _WIDE)
    for job in shown:
        of = f"/{count(job.items)}" if job.items is not None else ""
        cells: list[RenderableType] = [Text(safe(job.name, 60), overflow="fold")]
        cells += [Text(safe(job.operation, 40), overflow="fold", style="dim")] if columns >= _WIDE else []
        cells += [_bar(job)] if columns >= _MEDIUM else []
        table.add_row(*cells, Text(f"{count(job.done)}{of}"), _outcomes(job))
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


def _grid(columns: int, *, has_kind: bool = False) -> Table:
    """Return an empty table for name, kind, bar, number and words: text that does not fit goes on in the next row, and
    rich decides about widths.
    """
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    if has_kind:
        table.add_column(overflow="fold")
    if columns >= _MEDIUM:
        table.add_column(width=_bar_columns(columns))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _bar_columns(columns: int) -> int:
    return max(6, min(32, columns // 6))


def _bar(job: JobStatus) -> RenderableType:
    style = "red" if job.outcomes.get(OutcomeKind.FAILED, 0) * 10 > job.done else "green"
    done = float(job.items or 1) if job.state == "complete" else float(job.done)
    return _meter(done, float(max(1, job.items or 1)), style)


def _meter(value: float, whole: float, style: str) -> RenderableType:
    return ProgressBar(total=whole, completed=value, complete_style=style, finished_style=style, style="bright_black")


def _dim(text: str) -> Text:
    return Text(text, style="dim", overflow="fold")


def _outcomes(job: JobStatus) -> Text:
    text = Text(overflow="fold")
    if job.state == "waiting" and (job.waits_for or not job.outcomes):
        waits = ", ".join(safe(name, 30) for name in job.waits_for)
        return text.append(f"waits for {waits}" if waits else "waits", style="dim")
    shown = [kind for kind in _SHOWN_ORDER if job.outcomes.get(kind)]
    for place, kind in enumerate(shown):
        text.append("  " if place else "").append(f"{count(job.outcomes[kind])} {kind.value}", style=_STYLES[kind])
    return text


def _buckets(buckets: Sequence[BucketStatus], rows: int, now: float, columns: int) -> RenderableType:
    several = len({bucket.credential for bucket in buckets}) > 1
    shown = buckets if len(buckets) <= rows else buckets[: rows - 1]
    table = _grid(columns)
    for bucket in shown:
        limit, remaining = bucket.limit or 0, max(0, bucket.remaining or 0)
        style = "red" if remaining <= bucket.reserve else "blue"
        meter = [_meter(float(remaining), float(max(1, limit)), style)] if columns >= _MEDIUM else []
        table.add_row(
            Text(bucket_name(bucket, several=several)),
            *meter,
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
    said = [counted(done, "item") if items is None else f"{count(done)}/{count(items)} items", rate(status.per_second)]
    said.append(f"{count(status.in_flight)} of {count(status.concurrency)} in flight")
    said.append(counted(status.requests, "request"))
    if status.retries:
        said.append(f"{count(status.retries)} repeated")
    if status.settled:
        said.append(f"{count(status.settled)} settled")
    text = Text(overflow="fold")
    if status.finish_at is not None:
        left = f" (in {duration(status.finish_at - now)})" if status.finish_at > now else ""
        text.append(f"done about {moment(status.finish_at, now)}{left} · ", style="bold")
    return text.append(" · ".join(said))


def _waits(waits: Sequence[Wait], rows: int, now: float) -> list[RenderableType]:
    shown = waits if len(waits) <= rows else waits[: max(0, rows - 1)]
    lines: list[RenderableType] = []
    for wait in shown:
        number = f" ({counted(wait.count, 'item')})" if wait.count > 1 else ""
        lines.append(_labelled("waiting", waited_for(wait, now), number))
    if len(shown) < len(waits) and rows:
        rest = waits[len(shown) :]
        told = f"{counted(len(rest), 'other thing')} ({counted(sum(wait.count for wait in rest), 'item')})"
        lines.append(_labelled("waiting", told))
    return lines
