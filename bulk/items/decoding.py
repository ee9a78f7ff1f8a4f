"""Turns items as they were given into the typed items of their operation, and explains those that can't be used.

JSON without `with` is decoded straight into the type, which is fast, because no dictionary is made. All else is merged
first (`with` is one level deep: a field of the item replaces the whole field of `with`) and converted.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from bulk.errors import UNDECODABLE
from bulk.items import json_text, type_errors
from bulk.items.lines import Bad, Given, SourceFlaw
from bulk.operation import AnyOperation, Item, ItemFlaw

UNREADABLE = (*UNDECODABLE, SourceFlaw)
"""Errors that the readers below raise for an item that can't be used; `explain_json` and `explain` find its flaws."""


SECRET_PLACES = ("env:", "file:")
"""Beginnings of a secret field that says where its secret is."""


class ItemReader:
    """Reads the items of one job.

    Attributes:
        from_json: returns the item in a JSON text; raises one of UNREADABLE.
        again: returns the item in a JSON text that `from_json` has accepted before; faster, because less is checked.
        spooled: returns the item in the output of `msgspec.json.encode` for an item, which has `with` in it already.
    """

    def __init__(self, operation: AnyOperation, defaults: Mapping[str, Any]) -> None:
        self._operation, self._defaults, self._type = operation, dict(defaults), operation.Item
        self.spooled: Callable[[bytes], Item] = msgspec.json.Decoder(self._type).decode
        self._decode_any = msgspec.json.Decoder().decode
        self.from_json: Callable[[bytes], Item] = self._merged if defaults else self._direct
        self._required = sum(field.required for field in msgspec.structs.fields(self._type))
        self.again: Callable[[bytes], Item] = self._merged_again if defaults else self.spooled

    def from_mapping(self, mapping: Any) -> Item:
        """Return the item in a decoded object.

        Raises:
            msgspec.ValidationError: the object is not an item.
        """
        return msgspec.convert(self._with_defaults(mapping), self._type)

    def row_again(self, row: bytes | Given | Bad) -> Item:
        """Return the item in a row that was accepted before; raise one of UNREADABLE, for example if it has changed."""
        if isinstance(row, bytes):
            return self.again(row)
        if isinstance(row, Given):
            return self.from_mapping(row.value)
        raise SourceFlaw("changed since it was checked")

    def explain_json(self, raw: bytes) -> list[tuple[int, ItemFlaw]]:
        """Return the flaws of a JSON text that `from_json` refused: (line, counted from 0, and flaw) each."""
        flaw = json_text.flaw_of(raw)
        if flaw is not None:
            return [(flaw.line - 1, ItemFlaw(flaw.field, flaw.message))]
        try:
            value = self._decode_any(raw)
        except UNDECODABLE:
            return [(0, ItemFlaw("", "can't be read as JSON"))]
        lines = json_text.places(raw) if b"\n" in raw.strip() else {}
        flaws = self.told(self.explain(value), value)
        return [(line_of(flaw.field, lines, 1) - 1, flaw) for flaw in flaws]

    def explain(self, value: Any, *, is_yaml: bool = False) -> list[ItemFlaw]:
        """Return the flaws of a decoded object that `from_mapping` refused."""
        return type_errors.flaws_of(self._with_defaults(value), self._type, is_yaml=is_yaml)

    def told(self, flaws: list[ItemFlaw], given: Any) -> list[ItemFlaw]:
        """Return the flaws of an item; the message of one that `with` has brought says so.

        Args:
            given: the item as it was given, decoded or as JSON text that can be read.
        """
        own = self._decode_any(given) if isinstance(given, bytes) else given
        elsewhere = self._defaults.keys() - own.keys() if isinstance(own, dict) else set()
        return [
            ItemFlaw(flaw.field, f"{flaw.message}; it is from `with` of the job") if _root(flaw) in elsewhere else flaw
            for flaw in flaws
        ]

    def _direct(self, raw: bytes) -> Item:
        item = self.spooled(raw)
        # each key has a colon, and all required ones are there: if there are no more colons, no key is there twice
        if raw.count(b":") != self._required:
            _refuse_repeats(raw)
        return item

    def _merged(self, raw: bytes) -> Item:
        value = self._decode_any(raw)
        # each key has a colon: if there are as many colons as fields, no key is there twice
        if not isinstance(value, dict) or raw.count(b":") != len(value):
            _refuse_repeats(raw)
        return self.from_mapping(value)

    def _merged_again(self, raw: bytes) -> Item:
        return self.from_mapping(self._decode_any(raw))

    def _with_defaults(self, value: Any) -> Any:
        return {**self._defaults, **value} if isinstance(value, dict) else value


def _root(flaw: ItemFlaw) -> str:
    return flaw.field.partition(".")[0].partition("[")[0]


def line_of(field: str, lines: Mapping[str, int], otherwise: int) -> int:
    """Return the line of `field`, or of the nearest object or list around it that `lines` knows."""
    while field:
        if field in lines:
            return lines[field]
        end = max(field.rfind("."), field.rfind("["), 0)
        field = field[:end]
    return lines.get("", otherwise)


def literal_secrets(fields: Mapping[str, object], secret_fields: frozenset[str]) -> list[str]:
    """Return the secret fields that hold a literal secret, and not the place of one."""
    found: list[str] = []
    for dotted in sorted(secret_fields):
        value: object = fields
        for name in dotted.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None and not (isinstance(value, str) and value.startswith(SECRET_PLACES)):
            found.append(dotted)
    return found


def _refuse_repeats(raw: bytes) -> None:
    """Refuse an object that has a member twice: msgspec would silently take the last one. A closer look is taken only
    if a string occurs twice, or there is a backslash.
    """
    strings = raw.split(b'"')[1::2]
    # `find`, because `in` tries the bytes as a number first, and then has to handle an error
    if len(set(strings)) != len(strings) or raw.find(b"\\") >= 0:
        json_text.refuse_repeats(raw)
