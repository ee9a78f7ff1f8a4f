"""Finds the way back for each item of a run: an item of another operation, or the reason why there is none.

Items come in reverse order, a page at a time, so that what was written last is taken back first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import msgspec
import orjson
from msgspec import inspect

from bulk.capabilities import CreatesNames, secret_fields
from bulk.engine.migrations.changed_things import Thing, things_of
from bulk.items.decoding import UNREADABLE, ItemReader, literal_secrets
from bulk.ledger.view import LedgerView
from bulk.manifest.manifest import Job
from bulk.model import UNSEEN, OutcomeKind
from bulk.operation import AnyOperation, Item, ItemFlaw, find
from bulk.redaction.known import MASK
from bulk.report.tally import label
from bulk.undo import Irreversible, Undo, Undoable

PAGE_ITEMS: Final = 2_000
"""At most this many items are looked up at once (count)."""
PAGE_BYTES: Final = 64 * 1024 * 1024

NO_WAY_BACK = "nothing in the platform's interface takes it back"
IN_DOUBT = "whether it was done is not known"
NOT_ENDED = "its write may have been sent: `bulk resume` settles that first"
WITHHELD = "what it was before holds something that looks like a secret, which is not kept"
HALF_DONE = "it failed after something had been written"
NOT_GIVEN_BACK = "what was there before can't be given back as it was shown"
PERHAPS_OURS = "it is as asked for, and its write was refused: whether it was so before is not known"


@dataclass(frozen=True, slots=True)
class Taken:
    """An item that has changed something in the run, and the way back.

    Attributes:
        job: the job of the item. index: the place of the item in the job.
        label: the item in a few words.
        way: the item that takes it back, or the reason why there is none.
        lanes: the lanes of the item. removes: the lanes of things that `way` removes.
        things: the things that the item has changed.
    """

    job: Job
    index: int
    label: str
    way: Undo | Irreversible
    lanes: frozenset[str] = frozenset()
    removes: frozenset[str] = frozenset()
    things: frozenset[Thing] = frozenset()


def of_job(view: LedgerView, job: Job) -> Iterator[Taken]:
    """Yield the items of a job that have changed something, the last one first."""
    if job.operation.is_read:
        return
    number, open_items = job.number, set(view.open_items(job.number))
    for end in range(view.last_index(number) + 1, 0, -PAGE_ITEMS):
        indexes = range(max(0, end - PAGE_ITEMS), end)
        befores = view.befores(number, indexes.start, indexes.stop)
        lines = _lines(view, number, indexes)
        for index in reversed(indexes):
            row = lines.get(index)
            if row is not None:
                taken = _of_line(job, index, row, befores.get(index, UNSEEN))
                if taken is not None:
                    yield taken
            elif index in open_items:
                yield Taken(job, index, f"item {index}", Irreversible(NOT_ENDED))


def _lines(view: LedgerView, number: int, indexes: Sequence[int]) -> Mapping[int, dict[str, Any]]:
    found: dict[int, bytes] = {}
    rest = list(indexes)
    while rest:
        page = view.lines_of(number, rest, PAGE_BYTES)
        found |= page
        rest = [index for index in rest if index > max(page)] if page else []
    return {index: orjson.loads(line) for index, line in found.items()}


def _of_line(job: Job, index: int, row: dict[str, Any], before: Any) -> Taken | None:
    """Return what takes an item back; None if the item has changed nothing."""
    kind = row["outcome"]
    if kind == OutcomeKind.UNKNOWN:
        return Taken(job, index, label(row["item"]), Irreversible(f"{IN_DOUBT}: {row['error']['message']}"))
    if kind == OutcomeKind.UNCHANGED and before is not UNSEEN:
        return Taken(job, index, label(row["item"]), Irreversible(PERHAPS_OURS))
    if kind == OutcomeKind.FAILED and before is not UNSEEN and row["result"] is None:
        return Taken(job, index, label(row["item"]), Irreversible(f"{HALF_DONE}: {row['error']['message']}"))
    if kind != OutcomeKind.SUCCEEDED and (kind != OutcomeKind.FAILED or before is UNSEEN):
        return None
    return _taken(job, index, row, before)


def _taken(job: Job, index: int, row: Mapping[str, Any], before: Any) -> Taken:
    """Return the way to take back the item of a line of results."""
    operation, found = job.operation, Taken(job, index, label(row["item"]), Irreversible(NO_WAY_BACK))
    if not isinstance(operation, Undoable):
        return found
    try:
        item = msgspec.convert(row["item"], operation.Item)
        way = operation.undo(item, before, row["result"])
        if isinstance(way, Undo) and _writes_mask(way):
            way = Irreversible(WITHHELD)
        elif isinstance(way, Undo) and (flaw := flaw_of(way)):
            given = msgspec.structs.replace(way, item=_as_given(way.item, _kind_of(way.operation)))
            way = given if not flaw_of(given) else Irreversible(f"{NOT_GIVEN_BACK}: {flaw}", removes=way.comes_anew)
        removes = _removed(way) if isinstance(operation, CreatesNames) else frozenset[str]()
        return replace(found, way=way, lanes=_lanes(operation, item), removes=removes, things=things_of(job, row))
    except (ValueError, TypeError, LookupError, AttributeError) as flaw:
        return replace(found, way=Irreversible(f"its line in the results can't be understood: {flaw}"))


def _writes_mask(way: Undo) -> bool:
    """Return whether an item would write a mask that stands in the place of a secret in what was kept."""
    return MASK.encode() in msgspec.json.encode({name: value for name, value in way.item.items() if name != "expect"})


def flaw_of(way: Undo) -> str:
    """Return why the check would refuse the item that takes another one back; empty where it would not."""
    operation = find(way.operation)
    fields = way.item if way.file is None else {**way.item, way.file.field: "its bytes"}
    reader, text = _reader_of(way.operation), msgspec.json.encode(fields)
    try:
        item = reader.from_json(text)
    except UNREADABLE:
        flaws = [flaw for _, flaw in reader.explain_json(text)]
    else:
        literal = literal_secrets(fields, secret_fields(operation))
        flaws = [
            *operation.check(item),
            *(ItemFlaw(field, "is a secret, and not the place of one") for field in literal),
        ]
    return "; ".join(f"{flaw.field}: {flaw.message}" if flaw.field else flaw.message for flaw in flaws)


@cache
def _kind_of(operation: str) -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(find(operation).Item)


@cache
def _reader_of(operation: str) -> ItemReader:
    return ItemReader(find(operation), {})


def _removed(way: Undo | Irreversible) -> frozenset[str]:
    """Return the lanes of what is removed by an item that takes back a creation."""
    if isinstance(way, Irreversible):
        return frozenset()
    operation = find(way.operation)
    return _lanes(operation, msgspec.convert(way.item, operation.Item))


def _lanes(operation: AnyOperation, item: Item) -> frozenset[str]:
    return frozenset(f"{operation.resource} {lane.casefold()}" for lane in operation.lanes(item))


_SWITCHES = {"0": False, "false": False, "1": True, "true": True}


def _as_given(value: Any, kind: inspect.Type) -> Any:
    """Return a value that a platform has shown as a field of this type takes it; if there is no such form, return it as
    it is.

    A platform may show a switch as 0, 1 or a text, a number as a text, and a word of a set in another case.
    """
    match kind:
        case inspect.Metadata():
            return _as_given(value, kind.type)
        case inspect.UnionType():
            forms = (_as_given(value, each) for each in kind.types)
            return next((form for form in forms if form is not value), value)
        case inspect.StructType() if isinstance(value, dict):
            kinds = {field.encode_name: field.type for field in kind.fields}
            return {name: _as_given(each, kinds[name]) if name in kinds else each for name, each in value.items()}
        case inspect.ListType() if isinstance(value, list):
            return [_as_given(each, kind.item_type) for each in value]
        case inspect.LiteralType():
            return next((word for word in kind.values if _folded(word) == _folded(value)), value)
        case inspect.BoolType() if not isinstance(value, bool):
            return _SWITCHES.get(_folded(value), value)
        case inspect.IntType() if isinstance(value, str) and value.isascii() and value.isdigit():
            return int(value)
    return value


def _folded(value: Any) -> str:
    return str(value).strip().casefold()
