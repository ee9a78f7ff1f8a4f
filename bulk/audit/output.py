"""The result of one night, as text for a terminal and as JSON, SARIF and JUnit for programs."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bulk.audit.policies import output as policies
from bulk.audit.result import AuditResult
from bulk.report.render.formatting import count, counted
from bulk.report.render.terminal import safe
from bulk.report.tally import label

FORMATS = policies.FORMATS
MOST_FIELDS, MOST_CHANGES = 10, 20
NOISE = 0.2
"""Where one field changed in more of the items than this (share), single changes are not listed."""


def rendered(result: AuditResult, kind: str) -> bytes:
    """Return a night in one of `FORMATS`."""
    import bulk

    match kind:
        case "json":
            return msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n"
        case "sarif":
            return policies.sarif(result.judgement, bulk.__version__, Path.cwd())
        case "junit":
            return policies.junit(result.judgement, result.name)
        case _:
            return "".join(f"{safe(line, 1_000)}\n" for line in lines(result)).encode("utf-8", "replace")


def lines(result: AuditResult) -> Iterator[str]:
    """Yield the lines for people: the verdict first, then the changes, then the violations."""
    night, drift = result.night, result.drift
    yield f"{result.name} {night.at[:10]}: {result.verdict}"
    yield f"{counted(night.items, 'item')}, {count(night.failed)} failed, {counted(night.units, 'unit')} spent."
    if result.why:
        yield f"It was not compared: {result.why}"
        return
    if result.is_night:
        yield ""
    if drift.is_first and result.is_night:
        yield "This is the first night: there is nothing to compare with."
    elif result.is_night:
        yield from _drift(result)
    if result.judgement.policies:
        yield ""
        yield from policies.lines(result.judgement)
    if result.is_night:
        yield ""
        yield f"Page: {result.history}/pages/{night.run}.html"


def _drift(result: AuditResult) -> Iterator[str]:
    drift, night = result.drift, result.night
    said = [f"{counted(drift.items, 'item')} changed"]
    words = ("added", "removed", "lost_sight", "in_sight_again", "never_read")
    said += [f"{count(number)} {word.replace('_', ' ')}" for word in words if (number := getattr(drift, word))]
    yield f"{', '.join(said)}."
    for field, items in drift.by_field[:MOST_FIELDS]:
        yield f"  {field}: {counted(items, 'item')}"
    noisy = {field for field, items in drift.by_field if items > NOISE * night.items and items > MOST_CHANGES}
    shown = 0
    for change in result.changes:
        if change.kind == "changed" and not noisy and shown < MOST_CHANGES:
            shown += 1
            yield f"    {change.job} {label(change.item)}: {change.field}: {_value(change.old)} → {_value(change.new)}"
    if drift.changes > shown:
        rest = counted(drift.changes - shown, "more field")
        yield f"    and {rest}: the page and `bulk sql {shlex.quote(result.history)}` have all"


def _value(value: object) -> str:
    return safe(msgspec.json.encode(value).decode(), 60)
