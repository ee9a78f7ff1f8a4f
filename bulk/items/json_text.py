"""JSON as text: where a syntax error is, which key was given twice, on which line a field stands. For messages only.

Slow and exact; the fast way is `decoding.py`, which comes here when something is wrong or may be.
"""

import json
import re
from typing import Any, NoReturn

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_ATOM = re.compile(r"[^\s,\]}]+")


class JsonFlaw(ValueError):
    """The text is not JSON that we take.

    Attributes:
        line: where, counted from 1 within the text.
        column: where in that line, counted from 1.
        field: the key that was given twice; else empty.
    """

    def __init__(self, message: str, line: int, column: int, field: str = "") -> None:
        super().__init__(message)
        self.message, self.line, self.column, self.field = message, line, column, field


def flaw_of(raw: bytes) -> JsonFlaw | None:
    """What is wrong with `raw` as JSON text, or None."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = _place(raw.decode("utf-8", "replace"), len(raw[: error.start].decode("utf-8", "replace")))
        return JsonFlaw(f"not UTF-8: the byte 0x{raw[error.start]:02X} in column {column}", line, column)
    if "\0" in text:
        line, column = _place(text, text.index("\0"))
        return JsonFlaw(f"holds a NUL character in column {column}", line, column)
    try:
        value = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        return _of_decode_error(text, error)
    except _RepeatedKey as error:
        line, column = _place_of_repeat(text, error.name)
        return JsonFlaw("given twice in one object", line, column, error.name)
    except _NoNumber as error:
        return JsonFlaw(f"not JSON: there is no number {error}", 1, 1)
    except RecursionError:
        return JsonFlaw("nested too deeply", 1, 1)
    except ValueError:
        return JsonFlaw("holds a number with too many digits", 1, 1)
    if "\\u" in text and _has_surrogate(value):
        return JsonFlaw("holds a lone surrogate (\\ud800 to \\udfff), which is no character", 1, 1)
    return None


def has_repeated_key(raw: bytes) -> bool:
    """Whether an object within `raw` has a key twice. `raw` is valid JSON."""
    try:
        json.loads(raw, object_pairs_hook=_without_repeats)
    except _RepeatedKey:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def places(raw: bytes) -> dict[str, int]:
    """The line of every field within `raw`, which is valid JSON: `{"committer.email": 3}`, counted from 1."""
    text = raw.decode("utf-8", "replace")
    found: dict[str, int] = {}
    stack: list[tuple[str, int]] = []  # name of the open object or list; next index, or -1 for an object
    name, at = "", _skip(text, 0)
    line, counted = 1, 0
    while at < len(text):
        line, counted = line + text.count("\n", counted, at), at
        found.setdefault("", line)
        match text[at]:
            case "{":
                stack.append((name, -1))
                at += 1
            case "[":
                stack.append((name, 0))
                name, at = f"{name}[0]", at + 1
                found[name] = line
            case "}" | "]":
                name, at = (stack.pop()[0] if stack else ""), at + 1
            case ",":
                at += 1
                if stack and stack[-1][1] >= 0:
                    owner, index = stack.pop()
                    stack.append((owner, index + 1))
                    name = f"{owner}[{index + 1}]"
                    found[name] = line + text.count("\n", at, _skip(text, at))
            case _:
                string = _STRING.match(text, at)
                token = string or _ATOM.match(text, at)
                end = token.end() if token else at + 1
                after = _skip(text, end)
                if string and text[after : after + 1] == ":" and stack:
                    key = json.loads(string[0], strict=False)
                    name = f"{stack[-1][0]}.{key}" if stack[-1][0] else key
                    found.setdefault(name, line)
                    end = after + 1
                at = end
        at = _skip(text, at)
    return found


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


class _RepeatedKey(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _NoNumber(Exception):
    pass


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _RepeatedKey(name)
            seen.add(name)
    return found


def _no_number(name: str) -> NoReturn:
    raise _NoNumber(name)


def _of_decode_error(text: str, error: json.JSONDecodeError) -> JsonFlaw:
    what = error.msg[:1].lower() + error.msg[1:]
    if error.pos >= len(text.rstrip()):
        what = "it ends too early"
    elif what == "extra data":
        what = "there is more after the end of the value"
    return JsonFlaw(f"not JSON: {what} (column {error.colno})", error.lineno, error.colno)


def _place(text: str, at: int) -> tuple[int, int]:
    return 1 + text.count("\n", 0, at), at - text.rfind("\n", 0, at)


def _place_of_repeat(text: str, name: str) -> tuple[int, int]:
    spots = [found.start() for found in _STRING.finditer(text) if found[0] == json.dumps(name, ensure_ascii=False)]
    return _place(text, spots[-1]) if spots else (1, 1)


def _has_surrogate(value: Any) -> bool:
    match value:
        case str():
            return any("\ud800" <= char <= "\udfff" for char in value)
        case dict():
            return any(_has_surrogate(key) or _has_surrogate(inner) for key, inner in value.items())
        case list():
            return any(map(_has_surrogate, value))
    return False
