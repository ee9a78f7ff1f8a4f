"""The data with which a page lets a person explore a report: every item that did not succeed, why, and the curves.

Items stand in columns, and texts that repeat stand in a table, so that 100,000 items make a file of a few megabytes.
All texts are those of `results.jsonl`, where they were redacted when they were written, and are redacted once more.
"""

import base64
import gzip

import msgspec

from bulk.errors import UNDECODABLE, RunDirectoryError
from bulk.ledger.directory import RESULTS
from bulk.ledger.view import LedgerView
from bulk.model import SUCCESSFUL, ErrorCode, OutcomeKind
from bulk.redaction import redact_json
from bulk.report.active_time import ActiveTime
from bulk.report.causes import DIFFERENT, Cause, Causes
from bulk.report.curves import Curves, curves
from bulk.report.record import OUTCOMES, Report
from bulk.report.tally import MOST_LABEL, label_of_redacted
from bulk.report.tally_rows import Line
from bulk.report.timeline import read_minutes
from bulk.status import WaitKind

MOST_ITEMS = 100_000
"""Further items that did not succeed are not in the page."""
MOST_MESSAGE = 500
MOST_MESSAGES = 10_000
"""Of items with further messages the page has what the messages of their cause share."""

_KINDS = frozenset(OutcomeKind) - SUCCESSFUL
_LEVEL = 6


class _Row(Line):
    """A line of `results.jsonl` with all fields that the page shows."""

    request_id: str | None = None


_decode = msgspec.json.Decoder(_Row).decode
_fields = msgspec.json.Decoder(dict[str, object]).decode


class Items(msgspec.Struct):
    """Items in columns. `job`, `outcome`, `code` and `message` are places in the tables of the plural names.

    Attributes:
        index: places of the items in their job, from 0.
        label: each item in a few words.
        status: HTTP status of the last answer (0: none came). at: when the item was sent first (UTC epoch seconds).
        cause: places in the list of causes.
    """

    jobs: list[str]
    outcomes: list[str]
    codes: list[str]
    messages: list[str]
    job: list[int] = []
    index: list[int] = []
    id: list[str | None] = []
    label: list[str] = []
    outcome: list[int] = []
    code: list[int] = []
    message: list[int] = []
    status: list[int] = []
    attempts: list[int] = []
    at: list[float] = []
    request: list[str | None] = []
    cause: list[int] = []


class Exploration(msgspec.Struct):
    """Everything that a page needs to explore one run.

    Attributes:
        items: the first `MOST_ITEMS` items that did not succeed, in the order of jobs and items.
        total: how many items did not succeed (count).
        causes: causes of the items in `items`.
    """

    items: Items
    total: int
    causes: list[Cause]
    curves: Curves

    @property
    def is_cut(self) -> bool:
        """Whether `items` lacks some of the items that did not succeed."""
        return self.total > len(self.items.index)

    def packed(self) -> str:
        """Return the exploration as JSON, compressed, in base64, as it stands in the page."""
        return base64.b64encode(gzip.compress(msgspec.json.encode(self), _LEVEL, mtime=0)).decode("ascii")


def explore(view: LedgerView, report: Report) -> Exploration:
    """Return the exploration of the run that `report` is about.

    Raises:
        RunDirectoryError: the run directory can't be read, or is damaged.
    """
    items, causes = _items(view)
    time = ActiveTime([(epoch.started_at.timestamp(), epoch.ended_at.timestamp()) for epoch in report.epochs])
    samples = read_minutes(view.timeline())
    total = sum(count for kind, count in report.outcomes.items() if kind not in SUCCESSFUL)
    drawn = curves(samples, report.timeline, time, report.started_at.timestamp())
    found = Exploration(items, total, causes, drawn)
    data = msgspec.json.encode(found)
    own = frozenset(msgspec.json.encode(word)[1:-1] for word in (*OUTCOMES, *ErrorCode, *WaitKind, *items.jobs))
    clean = redact_json(data, own)
    return found if clean is data else msgspec.json.decode(clean, type=Exploration)


def _items(view: LedgerView) -> tuple[Items, list[Cause]]:
    tables: dict[str, dict[str, int]] = {"job": {}, "outcome": {}, "code": {}, "message": {}}
    items, causes = Items([], [], [], []), Causes()
    try:
        for place, raw in enumerate(view.lines(kinds=_KINDS)):
            if place == MOST_ITEMS:
                break
            _add(items, causes, tables, place, _decode(raw))
    except UNDECODABLE as error:
        raise RunDirectoryError(f"{view.run_dir / RESULTS} is damaged: {error}") from error
    items.jobs, items.outcomes, items.codes, items.messages = (list(table) for table in tables.values())
    return items, causes.found


def _add(items: Items, causes: Causes, tables: dict[str, dict[str, int]], place: int, row: _Row) -> None:
    error = row.error
    code, message = (error.code, error.message[:MOST_MESSAGE]) if error is not None else ("", "")
    fields = _fields(row.item)
    cause = causes.note(place, (row.job, row.outcome, code), message, fields)
    if len(tables["message"]) >= MOST_MESSAGES and message not in tables["message"]:
        message = causes.found[cause].message or DIFFERENT
    for name, word in (("job", row.job), ("outcome", row.outcome), ("code", code), ("message", message)):
        table = tables[name]
        getattr(items, name).append(table.setdefault(word, len(table)))
    items.index.append(row.index)
    items.id.append(row.id)
    items.label.append(label_of_redacted(fields)[:MOST_LABEL])
    items.status.append((error.http_status if error is not None else None) or row.http_status or 0)
    items.attempts.append((error.attempts if error is not None else 0) or row.attempts)
    items.at.append(round(row.started_at.timestamp(), 1))
    items.request.append(row.request_id)
    items.cause.append(cause)
