"""Finds in JSON text where a syntax error is, which key is there twice, and the line of each field. For messages only.

This is slow and exact; the fast way is `decoding.py`, which calls this module when there is, or may be, a flaw.
"""

import json
import re
from collections import Counter
from typing import Any, NoReturn

from bulk.items.lines import SourceFlaw, decoded

_TOKEN = re.compile(r'("(?:[^"\\]++|\\.)*+")(\s*:)?|[\[\]{},\n]|[^\s,\[\]{}":]+', re.DOTALL)


def flaw_of(raw: bytes) -> SourceFlaw | None:
    """Return the flaw of `raw` as JSON text, with its line (from 1) and the key that is there twice; None: no flaw."""
    try:
        text = decoded(raw)
        value = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_number)
        json.dumps(value, ensure_ascii=False).encode()
    except SourceFlaw as flaw:
        if flaw.field:
            flaw.line = 1 + text.count("\n", 0, max(text.rfind(json.dumps(flaw.field, ensure_ascii=False)), 0))
        return flaw
    except json.JSONDecodeError as error:
        what = error.msg[:1].lower() + error.msg[1:]
        if error.pos >= len(text.rstrip()):
            what = "it ends too early"
        elif what == "extra data":
            what = "there is more after the end of the value"
        return SourceFlaw(f"not JSON: {what} (column {error.colno})", error.lineno)
    except RecursionError:
        return SourceFlaw("nested too deeply", 1)
    except UnicodeEncodeError:
        return SourceFlaw("holds a lone surrogate (\\ud800 to \\udfff), which is not a character", 1)
    except ValueError:
        return SourceFlaw("holds a number with too many digits", 1)
    return None


def refuse_repeats(raw: bytes) -> None:
    """Refuse `raw`, which is valid JSON, if an object in it has a key twice.

    Raises:
        SourceFlaw: an object has a key twice.
    """
    try:
        json.loads(raw, object_pairs_hook=_without_repeats)
    except SourceFlaw:
        raise
    except (ValueError, RecursionError):
        return  # Python's decoder refuses some texts that msgspec takes


def places(raw: bytes) -> dict[str, int]:
    """Return the line of every field within `raw`, which is valid JSON: `{"committer.email": 3}`, counted from 1."""
    found: dict[str, int] = {}
    stack: list[tuple[str, int]] = []  # name of the open object or list; number of the entry, or -1 for an object
    name, line = "", 1
    for token in _TOKEN.finditer(raw.decode("utf-8", "replace")):
        match token[0]:
            case "\n":
                line += 1
            case "]" | "}":
                stack.pop()
            case ",":
                owner, number = stack[-1]
                if number >= 0:
                    stack[-1], name = (owner, number + 1), f"{owner}[{number + 1}]"
            case text:
                if token[2]:
                    owner, key = stack[-1][0], json.loads(token[1])
                    name = f"{owner}.{key}" if owner else key
                found.setdefault(name, line)
                line += text.count("\n")
                if text == "[":
                    stack.append((name, 0))
                    name = f"{name}[0]"
                elif text == "{":
                    stack.append((name, -1))
    return found


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(name, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise SourceFlaw("given twice in one object", 1, name)
    return found


def _no_number(name: str) -> NoReturn:
    raise SourceFlaw(f"not JSON: there is no number {name}", 1)
