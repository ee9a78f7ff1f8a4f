"""Turns values into JSON for programs: structs become objects, and every moment is written in one way.

A moment is RFC 3339 in UTC with milliseconds, `2026-11-24T08:00:00.123Z`. Inside, moments are UTC epoch seconds or
datetimes; their fields are named `at`, `until` or `…_at`, and this is the one place where they are converted.
"""

from datetime import UTC, datetime
from typing import Any

import msgspec

from bulk.report.render.formatting import iso
from bulk.storage.names import text_of

MOMENT = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$"
"""The form of a moment, as a regular expression of JSON Schema."""


def is_moment(name: str) -> bool:
    """Return whether a field of that name holds a moment."""
    return name in ("at", "until") or name.endswith("_at")


def as_data(value: Any) -> Any:
    """Return `value` as JSON values; a moment that is on no calendar becomes null."""
    return _dated(msgspec.to_builtins(value, builtin_types=(datetime,)), "")


def encoded(value: Any) -> bytes:
    """Return `value` as JSON; what is not UTF-8 in the path of a file is shown as text."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_text(msgspec.to_builtins(value)))


def _text(value: Any) -> Any:
    if isinstance(value, dict):
        return {text_of(key): _text(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_text(each) for each in value]
    return text_of(value) if isinstance(value, str) else value


def _dated(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _dated(each, key) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_dated(each, name) for each in value]
    if isinstance(value, datetime):
        moment = value.astimezone(UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
    if isinstance(value, int | float) and not isinstance(value, bool) and is_moment(name):
        return iso(value)
    return value
