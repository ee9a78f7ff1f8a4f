"""Paths and queries of requests, percent-encoded once and only here (failures.md row 57).

Pure. A name that could leave its place in a path (`.`, `..`, an empty segment, a control character) is refused.
"""

import re
from urllib.parse import quote, unquote, urlencode

_PLAIN = "-._~!$&'()*+,;=@"
_SIMPLE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
"""Names that need no encoding and can't climb: nearly all of them."""
_is_simple_path = re.compile(rf"{_SIMPLE.pattern}(?:/{_SIMPLE.pattern})*").fullmatch
_holds_control = re.compile(r"[\x00-\x1f\x7f]").search
_holds_surrogate = re.compile(f"[{chr(0xD800)}-{chr(0xDFFF)}]").search


def segment(name: str | int) -> str:
    """One path segment, percent-encoded; `ent:platform` becomes `ent%3Aplatform`, a slash becomes `%2F`.

    Raises:
        ValueError: it is empty, `.` or `..`, or holds a control character or a lone surrogate.
    """
    text = str(name)
    # the first is quicker, and stricter
    if (text.isascii() and text.replace("-", "").isalnum()) or _SIMPLE.fullmatch(text):
        return text
    flaw = flaw_of_segment(text)
    if flaw:
        raise ValueError(f"{text!r} {flaw}")
    return quote(text, safe=_PLAIN)


def file_path(path: str) -> str:
    """The path of a file within a repository, each segment encoded, slashes kept.

    Raises:
        ValueError: a segment can't be used, see `segment`.
    """
    return path if _is_simple_path(path) else "/".join(segment(part) for part in path.split("/"))


def place(collection: str, number: object) -> str:
    """Where the thing of that number lies, to compare: `/orgs/acme/hooks/7`, decoded, in lower case.

    Numbers are counted for each kind, so that one alone names nothing.

    Args:
        collection: path of the request that lists it and its like, percent-encoded.
    """
    return f"{unquote(collection)}/{number}".casefold()


def query(**parameters: str | int | bool | None) -> str:
    """A query string without its question mark; None leaves a parameter out, booleans become `true` and `false`."""
    given = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in parameters.items()
        if value is not None
    }
    return urlencode(given) if given else ""


def flaw_of_segment(text: str) -> str:
    """Why `text` can't be one segment of a path; empty where it can."""
    if not text:
        return "is empty"
    if text in (".", ".."):
        return "would leave its folder"
    if _holds_control(text):
        return "holds a control character"
    if _holds_surrogate(text):
        return "holds a lone surrogate, which no file name can carry"
    return ""


def flaw_of_path(path: str) -> str:
    """Why `path` can't name a file within a repository; empty where it can."""
    if _is_simple_path(path):
        return ""
    for part in path.split("/"):
        flaw = flaw_of_segment(part)
        if flaw:
            return f"has a segment that {flaw}" if part else "has an empty segment (a slash at an end, or two in a row)"
    return "holds a backslash" if "\\" in path else ""
