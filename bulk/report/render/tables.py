"""The result lines as CSV for spreadsheets, JSON lines for programs, a plain list for people; all of them streamed.

A cell that a spreadsheet would take for a formula gets an apostrophe in front; numbers stay numbers (failures.md row
65). JSON lines are the very bytes of `results.jsonl`.
"""

import codecs
import csv
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import msgspec

from bulk.errors import UsageError
from bulk.ledger.view import LedgerView
from bulk.model import OutcomeKind
from bulk.report.record import OUTCOMES
from bulk.report.render.terminal import safe
from bulk.report.tally import label
from bulk.status import Tell, telling, untold

COLUMNS = ("job", "index", "id", "outcome", "http_status", "attempts", "started_at", "elapsed_ms", "request_id")
MOST_COLUMNS = 200
MOST_DEPTH = 4
MOST_CELL = 32_767
"""Longest text that spreadsheets take in a cell (characters)."""

Kinds = frozenset[OutcomeKind] | None

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_FORMULA = re.compile(r"[\s\u200c\u200d]*[=+\-@＝＋－＠]")  # also behind blanks, which some programs trim first


def parse_only(text: str) -> frozenset[OutcomeKind]:
    """Return the outcomes that `--only failed,unknown` names.

    Raises:
        UsageError: a word in `text` is not an outcome, or there is no word.
    """
    found = set()
    for word in filter(None, (part.strip() for part in text.split(","))):
        try:
            found.add(OutcomeKind(word.lower()))
        except ValueError:
            raise UsageError(f"--only {safe(word, 40)}: expected one or more of {', '.join(OUTCOMES)}") from None
    if not found:
        raise UsageError(f"--only: expected one or more of {', '.join(OUTCOMES)}, separated by commas")
    return frozenset(found)


def write_jsonl(view: LedgerView, out: BinaryIO, only: Kinds = None, tell: Tell = untold) -> int:
    """Write the current lines as they are in the run directory; return how many (count)."""
    number = 0
    for line in telling(view.lines(kinds=only), tell):
        out.write(line)
        number += 1
    return number


def write_list(view: LedgerView, out: BinaryIO, only: Kinds = None, tell: Tell = untold) -> int:
    """Write one line for each item, safe to show on a terminal; return how many (count)."""
    number = 0
    for line in telling(view.finished(kinds=only), tell):
        error = line.get("error") or {}
        why = f": {error.get('code')}: {error.get('message')}" if error else ""
        own = f" ({line['id']})" if line.get("id") else ""
        text = f"{line['outcome']} {line['job']} #{line['index']} {label(line.get('item') or {})}{own}{why}"
        out.write(safe(text).encode("utf-8", "replace") + b"\n")
        number += 1
    return number


def write_csv(view: LedgerView, out: BinaryIO, only: Kinds = None, tell: Tell = untold) -> int:
    """Write a header and one row for each item; return how many items (count).

    An item's fields become columns `item.owner`, `item.committer.name`, in the order in which they first occur (the
    first 200 different ones; the lines are read twice for it). Lists and the result are JSON in one cell; a result
    longer than a cell may be is left to `results.jsonl`, and the cell says so.
    """
    fields: dict[str, None] = {}
    for line in view.finished(kinds=only):
        if len(fields) >= MOST_COLUMNS:
            break
        for name, _ in _flat(line.get("item") or {}, "item"):
            fields.setdefault(name)
    names = list(fields)[:MOST_COLUMNS]
    lines = codecs.getwriter("utf-8")(out, "replace")
    writer = csv.writer(lines, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    writer.writerow([cell(name) for name in (*COLUMNS, "error_code", "error_message", *names, "result")])
    number = 0
    for line in telling(view.finished(kinds=only), tell):
        error = line.get("error") or {}
        item = dict(_flat(line.get("item") or {}, "item"))
        row = [line.get(name) for name in COLUMNS]
        row += [error.get("code"), error.get("message"), *(item.get(name) for name in names), _result(line)]
        writer.writerow([cell(value) for value in row])
        number += 1
    return number


def cell(value: Any) -> str | int | float:
    """Return the content of a CSV cell for a JSON value: never anything that a spreadsheet runs or a terminal obeys.

    Numbers, and texts that are nothing but a number, stay as they are: evaluating them gives the same value. The exact
    text is in the JSON lines.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value
    if isinstance(value, list | dict):
        value = _compact(value)
    text = safe(str(value))
    return text if _NUMBER.fullmatch(text) or not _FORMULA.match(text) else "'" + text


def _flat(value: Mapping[str, Any], prefix: str, depth: int = 1) -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        dotted = f"{prefix}.{name}"
        if isinstance(inner, dict) and inner and depth < MOST_DEPTH:
            yield from _flat(inner, dotted, depth + 1)
        else:
            yield dotted, inner


def _result(line: Mapping[str, Any]) -> str:
    result = line.get("result")
    if result is None:
        return ""
    text = result if isinstance(result, str) else _compact(result)
    return text if len(text) < MOST_CELL else f"({len(text):,} characters, see results.jsonl)"


def _compact(value: Any) -> str:
    return msgspec.json.encode(value).decode("utf-8", "replace")
