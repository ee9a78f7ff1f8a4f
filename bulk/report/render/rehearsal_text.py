"""The result of a rehearsal as text: the end, the limit behind it, when each job runs, and what would change it."""

from collections.abc import Iterator
from typing import Any

from bulk.report.render.formatting import count, counted, duration
from bulk.report.render.terminal import aligned, line_of, safe

FASTER = 2.0
"""More than this many times the highest rate that earlier runs have seen is not explained by a trial's beginning."""


def lines(found: Any) -> Iterator[str]:
    """Yield the lines of a `Rehearsed`."""
    course = found.course
    span = ""
    if found.seeds > 1:
        span = f" ({count(found.seeds)} rehearsals: {duration(found.earliest_s)} to {duration(found.latest_s)})"
    yield f"ends after {duration(course.ends_s)}{span}"
    if course.exit_code:
        yield f"it would not end well (exit {course.exit_code})" + (f": {safe(course.why, 200)}" if course.why else "")
    if course.limit == "latency" and found.seen is not None and course.per_second > FASTER * found.seen:
        yield (
            f"limit: perhaps the platform's own speed: {course.per_second:,.0f} requests a second are more than the "
            f"{found.seen:,.0f} that earlier runs have seen, and the run may end later"
        )
    elif course.limit == "latency":
        yield "limit: the time that answers take, and what goes one at a time"
    else:
        spare = f", {counted(course.to_spare, 'request')} to spare in the last" if course.to_spare is not None else ""
        yield f"limit: {safe(course.limit, 40)}, {counted(course.windows, 'window')}{spare}"
    rows = [["job", "first ends", "ends", "items", "needs"]]
    rows += [
        [
            safe(job.name, 60),
            duration(job.begins_s),
            duration(job.ends_s),
            count(job.items),
            safe(", ".join(job.needs), 60),
        ]
        for job in course.jobs
    ]
    for cells in aligned(rows, 0, names=0, right=range(1, 4)):
        yield line_of(cells)
    requests = ", ".join(f"{safe(category, 40)} {count(sent)}" for category, sent in sorted(course.requests.items()))
    yield f"requests: {requests or 'none'}"
    for what, ends_s in found.what_if.items():
        yield f"what if {what}: {duration(ends_s)}"
    for note in found.notes:
        yield f"note: {safe(note, 300)}"
