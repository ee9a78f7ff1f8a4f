"""`bulk plan`: what a manifest costs, what each bucket has to give and when the run would end, as text."""

from collections.abc import Iterator

from bulk.check.plan import BucketPlan, JobPlan, PayerPlan, Plan, Savings
from bulk.report.render.formatting import count, counted, duration, moment, requests, span
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

_MOST_PAYERS = 5
_MOST_JOBS = 60
_MOST_NOTES = 30
_LEAST_LANE = 20
"""Fewest columns in which the name of a lane and its number of items say anything (count)."""
_SENT = "as planned; nothing but GET /rate_limit was sent"
_ASKED = "as planned; nothing was sent but what tells who pays, and GET /rate_limit"


def render(plan: Plan, *, is_coloured: bool = False, columns: int = 80) -> str:
    """Return the whole plan; ends in a line break, safe to print.

    Args:
        is_coloured: see `terminal.wants_colour`.
        columns: width of the terminal (count); at least 40 are used.
    """
    ink, columns = Ink(is_on=is_coloured), max(LEAST_COLUMNS, columns)
    return paragraphs(
        _head(plan, ink, columns), _jobs(plan, ink, columns), _buckets(plan, columns), _notes(plan, ink, columns)
    )


def _head(plan: Plan, ink: Ink, columns: int) -> Iterator[str]:
    yield from headed(plan.name, _ASKED if plan.payers else _SENT, columns, ink, "dim")
    yield from wrapped(plan.base_url, columns)
    yield ""
    yield from wrapped(
        f"{counted(plan.items, 'item')}, {requests(plan.least_requests, plan.most_requests)}. {_end(plan)}", columns
    )
    saved = _saved(plan.saved)
    if saved:
        yield from wrapped(saved, columns)
    if plan.longest_lane is not None and plan.longest_lane_items > 1:
        takes = duration(plan.longest_lane_s)
        yield from wrapped(
            f"The longest lane is {safe(plan.longest_lane, 60)}: {counted(plan.longest_lane_items, 'item')}, "
            f"one after the other, about {takes}.",
            columns,
        )


def _end(plan: Plan) -> str:
    least, most = plan.least_finish_at, plan.most_finish_at
    if least is None:
        is_zero = any(bucket.limit == 0 for bucket in plan.buckets)
        why = (
            "a bucket that it needs has a limit of 0"
            if is_zero
            else "the reserve leaves nothing of a bucket that it needs"
        )
        return f"It would never end: {why}. `bulk run` refuses it."
    soon = f"{moment(least, plan.at)} (in {duration(least - plan.at)})"
    if most is None:
        return f"It would end about {soon} at the earliest."
    late = f"{moment(most, plan.at)} (in {duration(most - plan.at)})"
    if moment(most, plan.at) == moment(least, plan.at):
        left = dict.fromkeys((duration(least - plan.at), duration(most - plan.at)))
        said = f"It would end about {moment(most, plan.at)} (in {' to '.join(left)})."
    else:
        said = f"It would end between {soon} and {late}."
    return said + _with_losses(plan, most)


def _with_losses(plan: Plan, most: float) -> str:
    """Return when the run may end where answers are lost; empty where lost answers make no difference that is shown."""
    lossy = plan.lossy_finish_at
    if lossy is None or not plan.lossy_share or duration(lossy - plan.at) == duration(most - plan.at):
        return ""
    share = f"{100 * plan.lossy_share:g}%"
    return f" With {share} of the answers lost, by {moment(lossy, plan.at)} (in {duration(lossy - plan.at)})."


def _saved(saved: Savings) -> str:
    """Return one or two sentences on the requests that need not be sent; empty where there are none."""
    parts = [
        f"{count(number)} {what}"
        for number, what in (
            (saved.duplicates, "duplicates"),
            (saved.superseded, "superseded"),
            (saved.combined, "sent together with others"),
        )
        if number
    ]
    said = [f"{counted(saved.requests, 'request')} saved: {', '.join(parts)}."] if parts else []
    if saved.already_so:
        said.append(
            f"What is already as asked for is not sent, which saves up to {count(saved.already_so)} of these requests."
        )
    return " ".join(said)


def _jobs(plan: Plan, ink: Ink, columns: int) -> Iterator[str]:
    shown = plan.jobs[:_MOST_JOBS]
    rows: list[tuple[str, ...]] = [("job", "operation", "items", "requests", "lanes")]
    rows += [
        (
            job.name,
            job.operation,
            count(job.items),
            span(job.least_requests, job.most_requests),
            count(job.lanes) if job.lanes else "-",
        )
        for job in shown
    ]
    room = columns - sum(max(width(safe(row[place])) for row in rows) + 2 for place in range(len(rows[0])))
    if room >= _LEAST_LANE:  # before a name is cut, the lanes are left out
        said = ["longest lane", *(_longest_lane(job, room) for job in shown)]
        rows = [(*row, lane) for row, lane in zip(rows, said, strict=True)]
    lines = aligned(rows, columns, names=2, right=(2, 3, 4))
    yield ink("dim", line_of(next(lines)))
    yield from map(line_of, lines)
    if len(plan.jobs) > len(shown):
        yield f"and {counted(len(plan.jobs) - len(shown), 'more job')}"
    for job in shown:
        whole = [name for name in job.needs if name not in job.by_key]
        for how, names in (("starts after", whole), ("goes on item by item after", job.by_key)):
            if names:
                yield from wrapped(f"{safe(job.name, 40)} {how} {', '.join(names)}.", columns, "  ")


def _longest_lane(job: JobPlan, columns: int) -> str:
    """Return the name and the item count of a job's longest lane within `columns`; only the name is cut."""
    if not job.longest_lane:
        return "-"
    items = f" ({count(job.longest_lane_items)})"
    return cut(job.longest_lane, columns - len(items)) + items


def _buckets(plan: Plan, columns: int) -> Iterator[str]:
    several = len({bucket.credential for bucket in plan.buckets}) > 1
    for bucket in plan.buckets:
        name = bucket_name(bucket, several=several)
        wanted = requests(bucket.least_requests, bucket.most_requests)
        yield from wrapped(f"Budget {name}: {wanted}{_from(bucket, plan.at)}.", columns, "  ")
        payers = [
            payer for payer in plan.payers if (payer.credential, payer.category) == (bucket.credential, bucket.category)
        ]
        if payers:
            hourly = count(sum(payer.hourly for payer in payers))
            yield from wrapped(f"{counted(len(payers), 'payer')}, {hourly} requests an hour together:", columns, "  ")
            for payer in sorted(payers, key=_shortest)[:_MOST_PAYERS]:
                yield from wrapped(f"- {_paid(payer, plan.at)}", columns, "    ")
            if len(payers) > _MOST_PAYERS:
                yield f"  and {count(len(payers) - _MOST_PAYERS)} more"


def _shortest(payer: PayerPlan) -> int:
    """Return the requests left in a payer's window after its own (count): the payer that lacks most comes first."""
    return (payer.remaining or 0) - (payer.requests or 0)


def _paid(payer: PayerPlan, now: float) -> str:
    wanted = "" if payer.requests is None else f"{counted(payer.requests, 'request')}; "
    resets = f", resets {moment(payer.reset_at, now)}" if payer.reset_at is not None and payer.reset_at > now else ""
    left = f"{count(payer.remaining or 0)} of {count(payer.limit)} left{resets}"
    return f"{safe(payer.payer, 40)}: {wanted}{left}; {count(payer.hourly)} an hour"


def _from(bucket: BucketPlan, now: float) -> str:
    if not bucket.is_known:
        return ", limits not known"
    if bucket.limit is None or bucket.remaining is None:
        return ", no limit"
    reserve = f", {count(bucket.reserve)} kept in reserve" if bucket.reserve else ""
    resets = f", resets {moment(bucket.reset_at, now)}" if bucket.reset_at is not None and bucket.reset_at > now else ""
    said = f"; {count(bucket.remaining)} of {count(bucket.limit)} left{reserve}{resets}"
    if bucket.least_windows is None or bucket.least_done_at is None:
        why = "the reserve leaves nothing" if bucket.limit else "the limit is 0"
        return f"{said}; they are never sent, because {why}"
    if (bucket.most_windows or bucket.least_windows) <= 1:
        return f"{said}; that is enough"
    windows = f"{span(bucket.least_windows, bucket.most_windows or bucket.least_windows)} windows"
    ends = moment(bucket.least_done_at, now)
    if bucket.most_done_at is not None and moment(bucket.most_done_at, now) != ends:
        ends = f"between {'now' if bucket.least_done_at <= now else ends} and {moment(bucket.most_done_at, now)}"
    else:
        ends = f"about {ends}"
    return f"{said}; that takes {windows}; the last request is sent {ends}"


def _notes(plan: Plan, ink: Ink, columns: int) -> Iterator[str]:
    for note in plan.notes[:_MOST_NOTES]:
        lines = wrapped(f"Note: {note}", columns, "      ")
        yield from (ink("doubt", line) if "cannot be undone" in note else line for line in lines)
    if len(plan.notes) > _MOST_NOTES:
        yield f"and {counted(len(plan.notes) - _MOST_NOTES, 'more note')}"
