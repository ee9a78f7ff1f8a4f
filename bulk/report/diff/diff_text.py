"""`bulk diff` as text for a terminal of 80 columns: the counts first, then a few of each kind, and how to see all."""

import shlex
from collections.abc import Iterator

import msgspec

from bulk.report.diff.comparison import Diff
from bulk.report.diff.diff_record import KINDS, Change, Summary
from bulk.report.diff.field_changes import FieldDifference
from bulk.report.render.formatting import count, counted
from bulk.report.render.terminal import LEAST_COLUMNS, Ink, aligned, cut, line_of, safe, wrapped
from bulk.report.tally import label

TONES = {"added": "good", "removed": "bad", "changed": "doubt", "lost_sight": "doubt"}
WORDS = {"lost_sight": "lost sight"}
"""The words that people read; the other kinds are shown by their names."""
MOST_OF_A_KIND = 10
MOST_FIELDS = 5
_MOST_JOBS = 40
_MOST_NOTES = 10
_MOST_VALUE = 200
_MOST_FIELD = 160


def lines(diff: Diff, *, is_all: bool = False, is_coloured: bool = False, columns: int = 80) -> Iterator[str]:
    """Yield the text in lines without line breaks, safe to print; streamed, so that even `is_all` takes no memory.

    Args:
        is_all: list every change and every field of it; otherwise ten of each kind and five fields of each.
        is_coloured: see `terminal.wants_colour`.
        columns: width of the terminal (count); at least 40 are used.
    """
    ink, columns, summary = Ink(is_on=is_coloured), max(LEAST_COLUMNS, columns), diff.summary
    yield from _head(summary, ink, columns)
    if summary.jobs:
        yield ""
        yield from _jobs(summary, ink, columns)
    is_cut = False
    for kind in KINDS:
        number = getattr(summary, kind)
        if not number:
            continue
        yield ""
        yield ink("strong", WORDS.get(kind, kind).capitalize())
        most = None if is_all else MOST_OF_A_KIND
        for change in diff.changes(kind, most):
            fields = [] if isinstance(change.fields, msgspec.UnsetType) else change.fields
            yield from _change(change, fields if is_all else fields[:MOST_FIELDS], ink, columns, is_all=is_all)
            if not is_all and len(fields) > MOST_FIELDS:
                yield f"    and {counted(len(fields) - MOST_FIELDS, 'more field')}"
                is_cut = True
        if not is_all and number > MOST_OF_A_KIND:
            yield f"  and {count(number - MOST_OF_A_KIND)} more"
            is_cut = True
    if is_cut:
        yield ""
        yield f"All of it:  {_command(summary)} --all, or --json"


def _command(summary: Summary) -> str:
    ignored = (f"--ignore={name}" for name in summary.ignored)
    return safe(shlex.join(["bulk", "diff", summary.old.run_dir, summary.new.run_dir, *ignored]))


def _head(summary: Summary, ink: Ink, columns: int) -> Iterator[str]:
    old, new = summary.old, summary.new
    name = cut(new.name, columns)
    first, *rest = wrapped(f"{name} from {safe(old.run_dir)} to {safe(new.run_dir)}", columns)
    yield ink("strong", name) + first[len(name) :]
    yield from rest
    yield ""
    counts = [f"{count(getattr(summary, kind))} {WORDS.get(kind, kind)}" for kind in KINDS if getattr(summary, kind)]
    said = f"{', '.join(counts)}, {count(summary.same)} the same" if counts else "nothing has changed"
    yield from wrapped(f"{counted(old.items, 'item')} before, {count(new.items)} now: {said}.", columns)
    if summary.ignored:
        yield from wrapped(f"Not compared: {', '.join(summary.ignored)}.", columns, "  ")
    for note in summary.notes[:_MOST_NOTES]:
        yield from wrapped(f"Note: {note}", columns, "      ")
    if len(summary.notes) > _MOST_NOTES:
        yield f"and {counted(len(summary.notes) - _MOST_NOTES, 'more note')}"


def _jobs(summary: Summary, ink: Ink, columns: int) -> Iterator[str]:
    shown = summary.jobs[:_MOST_JOBS]
    rows: list[tuple[str, ...]] = [("job", "before", "now", "same", *(WORDS.get(kind, kind) for kind in KINDS))]
    for job in shown:
        numbers = (job.old_items, job.new_items, job.same, job.added, job.removed, job.changed, job.lost_sight)
        rows.append((job.name, *(count(number) if number else "-" for number in numbers)))
    lines = aligned(rows, columns, right=range(1, len(rows[0])))
    yield ink("dim", line_of(next(lines)))
    yield from map(line_of, lines)
    if len(summary.jobs) > len(shown):
        yield f"and {counted(len(summary.jobs) - len(shown), 'more job')}"


def _change(change: Change, fields: list[FieldDifference], ink: Ink, columns: int, *, is_all: bool) -> Iterator[str]:
    index = change.old_index if isinstance(change.new_index, msgspec.UnsetType) else change.new_index
    own = f" ({safe(change.id, 40)})" if change.id else ""
    ending = change.old if isinstance(change.new, msgspec.UnsetType) else change.new
    outcome = "" if isinstance(ending, msgspec.UnsetType) else f": {ending.outcome}"
    head = cut(f"{change.job} #{index} {label(change.item)}{own}{outcome}", columns - 2)
    yield "  " + ink(TONES[change.kind], head)
    for field in fields:
        text = f"{safe(field.field, _MOST_FIELD)}: {_difference(field)}"
        shown = wrapped(text, columns - 4, "  ") if is_all else iter([cut(text, columns - 4)])
        yield from ("    " + line for line in shown)


def _difference(field: FieldDifference) -> str:
    if isinstance(field.old, msgspec.UnsetType):
        return f"{_value(field.new)} is new"
    if isinstance(field.new, msgspec.UnsetType):
        return f"{_value(field.old)} is gone"
    return f"{_value(field.old)} → {_value(field.new)}"


def _value(value: object) -> str:
    """Return a value as JSON, cut to a length that a person reads."""
    return safe(msgspec.json.encode(value).decode("utf-8", "replace"), _MOST_VALUE)
