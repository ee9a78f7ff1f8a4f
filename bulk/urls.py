"""Paths and queries of requests, and the URLs that the platform gives. Pure (failures.md rows 10, 12, 57).

A path or a query is percent-encoded once and only here. A name that could leave its place in a path (`.`, `..`, an
empty segment, a control character) is refused.

A `Link` is read as RFC 8288 says. What it points at must have the base URL's scheme, host and port, lie below its path,
and hold no user name, no `..` and nothing that two readers could understand differently. Code that does not know the
base URL takes the query of a next page alone, and asks the path that it asked before: that can't lead anywhere else.
"""

import re
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, quote, unquote, urlencode, urljoin, urlsplit

_PLAIN = "-._~!$&'()*+,;=@"
_SIMPLE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
"""Names that need no encoding and can't leave their place in a path: nearly all names."""
_is_simple_path = re.compile(rf"{_SIMPLE.pattern}(?:/{_SIMPLE.pattern})*").fullmatch
_holds_control = re.compile(r"[\x00-\x1f\x7f]").search
_holds_surrogate = re.compile(f"[{chr(0xD800)}-{chr(0xDFFF)}]").search
_TARGET = re.compile(r"[\s,]*<([^<>]*)>")
_PARAMETER = re.compile(r'\s*;\s*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*)))?')
_PORTS = {"http": 80, "https": 443}
_PRINTABLE = re.compile(r"[\x21-\x5b\x5d-\x7e]*")
"""Printable ASCII without spaces and backslashes."""

LONGEST_CHARS = 8_000
MOST_PARAMETERS = 50
MOST_DIGITS = 9

ROUND_SIZES = frozenset((*range(10, 100, 10), 15, 25, 75, 16, 32, 64))
"""Sizes at which a platform may cut its pages, whatever was asked for (entries)."""
LEAST_CUT = 10
"""No platform is taken to cut its pages at fewer entries (count)."""


def segment(name: str | int) -> str:
    """Return one path segment, percent-encoded; `ent:platform` becomes `ent%3Aplatform`, a slash becomes `%2F`.

    Raises:
        ValueError: the name is empty, `.` or `..`, or holds a control character or a lone surrogate.
    """
    text = str(name)
    # the first test is quicker, and stricter
    if (text.isascii() and text.replace("-", "").isalnum()) or _SIMPLE.fullmatch(text):
        return text
    flaw = flaw_of_segment(text)
    if flaw:
        raise ValueError(f"{text!r} {flaw}")
    return quote(text, safe=_PLAIN)


def file_path(path: str) -> str:
    """Return the path of a file within a repository, each segment encoded, slashes kept.

    Raises:
        ValueError: a segment can't be used, see `segment`.
    """
    return path if _is_simple_path(path) else "/".join(segment(part) for part in path.split("/"))


def place(collection: str, number: object) -> str:
    """Return the place of the thing with that number, for comparisons: `/orgs/acme/hooks/7`, decoded, in lower case.

    Each kind of thing has its own numbers, so that a number alone names nothing.

    Args:
        collection: path of the request that lists such things, percent-encoded.
    """
    return f"{unquote(collection)}/{number}".casefold()


def query(**parameters: str | int | bool | None) -> str:
    """Return a query string without its question mark; None leaves a parameter out, booleans become `true` and
    `false`."""
    given = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in parameters.items()
        if value is not None
    }
    return urlencode(given) if given else ""


def flaw_of_segment(text: str) -> str:
    """Return why `text` can't be one segment of a path; empty where it can."""
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
    """Return why `path` can't name a file within a repository; empty where it can."""
    if _is_simple_path(path):
        return ""
    if path.startswith("/"):
        return "begins with a slash: leave that out, a path counts from the root of the repository"
    for part in path.split("/"):
        flaw = flaw_of_segment(part)
        if flaw:
            return f"has a segment that {flaw}" if part else "has an empty segment (a slash at an end, or two in a row)"
    return "holds a backslash" if "\\" in path else ""


def next_query(headers: Mapping[str, str], path: str, query: str) -> str | None:
    """Return the query that asks the same path for the next page; None: there is no next page, or the link is not to a
    page of the same list.

    `has_next_link` tells these two apart. A path may be written in other words (`/organizations/101/hooks` for
    `/orgs/acme/hooks`), but its last segment says what is listed. Parameters that the link does not repeat stay.

    Args:
        headers: of the answer; looked up in lower case.
        path: percent-encoded path of the list.
        query: query of the request for the first page, without a question mark.
    """
    target = _next_target(headers)
    if target is None or not _PRINTABLE.fullmatch(target) or len(target) > LONGEST_CHARS:
        return None
    try:
        url = urlsplit(target)
        named = parse_qsl(url.query, keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except ValueError:
        return None
    is_elsewhere = "@" in url.netloc or url.scheme not in ("", "http", "https")
    if is_elsewhere or not named or (url.path and _last_segment(url.path) != _last_segment(path)):
        return None
    given = {name for name, _ in named}
    kept = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name not in given]
    try:
        return urlencode(kept + named)
    except UnicodeEncodeError:
        return None


def has_next_link(headers: Mapping[str, str]) -> bool:
    """Return whether the platform says that there is a next page, wherever it may lead."""
    return _next_target(headers) is not None


def has_later_page(headers: Mapping[str, str], page: int) -> bool:
    """Return whether the platform names a last page whose number is higher than that of this one."""
    target = _target(headers, "last")
    try:
        number = None if target is None else page_number(urlsplit(target).query)
    except ValueError:
        return False
    return number is not None and number > page


def tells_of_pages(headers: Mapping[str, str]) -> bool:
    """Return whether a `Link` tells which page follows, or which is the last one, so that without a next page the list
    ends there.

    A `Link` of a gateway, for other purposes, says nothing of that, nor does one that names a next page so that it
    can't be read, or only pages before this one: such a one may have lost its other links.
    """
    header = headers.get("link")
    if not header:
        return False
    named = {relation for _, relations in _links(header) for relation in relations}
    return "next" in named or ("last" in named and "next" not in header.lower())


def page_number(query: str) -> int | None:
    """Return the number of the page that a query asks for; None where it has none, as with a cursor."""
    try:
        number = dict(parse_qsl(query, max_num_fields=MOST_PARAMETERS)).get("page", "")
    except ValueError:
        return None
    return int(number) if number.isascii() and number.isdigit() and len(number) <= MOST_DIGITS else None


def page_size(entries: int, asked: int, *, is_certain: bool = False) -> int:
    """Return how many entries a page may hold where `asked` were asked for, and the first page has `entries`.

    A platform may give fewer than were asked for, so that a round number of them may be all that a page holds.

    Args:
        is_certain: whether any number from `LEAST_CUT` on may be all that a page holds.
    """
    is_cut = entries >= LEAST_CUT if is_certain else entries in ROUND_SIZES
    return entries if entries >= asked or is_cut else asked


def within_base(target: str, base_url: str, current: str) -> str | None:
    """Return `target` of a link or a redirect as `/path?query` relative to `base_url`; None where it leads out of it.

    Args:
        target: absolute, or relative to the page `current`.
        base_url: `http(s)://HOST[:PORT]/PATH`, without a slash at its end.
        current: `/path?query` relative to `base_url`.
    """
    if not _PRINTABLE.fullmatch(target) or len(target) > LONGEST_CHARS:
        return None
    base = urlsplit(base_url)
    try:
        url = urlsplit(urljoin(base_url + current, target))
        port = url.port
    except ValueError:
        return None
    if "@" in url.netloc or url.scheme != base.scheme or url.hostname != base.hostname:
        return None
    if (port or _PORTS.get(url.scheme)) != (base.port or _PORTS.get(base.scheme)):
        return None
    path = url.path.removeprefix(base.path)
    if not url.path.startswith(base.path) or not path.startswith("/") or _leaves(path):
        return None
    return f"{path}?{url.query}" if url.query else path


def _last_segment(path: str) -> str:
    return unquote(path.rpartition("/")[2]).casefold()


def _leaves(path: str) -> bool:
    """Return whether some server could read this percent-encoded path as one that leads out of its folder."""
    plain = path
    for _ in range(3):
        plain = unquote(plain)
    return "\\" in plain or any(segment in (".", "..") for segment in plain.split("/"))


def _next_target(headers: Mapping[str, str]) -> str | None:
    return _target(headers, "next")


def _target(headers: Mapping[str, str], relation: str) -> str | None:
    header = headers.get("link")
    if not header:
        return None
    for target, relations in _links(header):
        if relation in relations:
            return target
    return None


def _links(header: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (target, relations) of each link of a `Link` header, up to the first thing that is not a link.

    A link with an `anchor` is one of another thing (RFC 8288 §3.2), and is left out.
    """
    place = 0
    while found := _TARGET.match(header, place):
        target, place = found[1].strip(), found.end()
        told: dict[str, str] = {}
        while found := _PARAMETER.match(header, place):
            place = found.end()
            value = found[3] if found[2] is None else re.sub(r"\\(.)", r"\1", found[2])
            told.setdefault(found[1].lower(), value or "")  # a second one is ignored, says RFC 8288 §3.3
        if _is_about(told.get("anchor", ""), target):
            yield target, told.get("rel", "").lower().split()


def _is_about(anchor: str, target: str) -> bool:
    """Return whether a link with this `anchor` may be one of the answer itself: it has none, or that names the answer,
    or a page of what the link leads to."""
    if not anchor:
        return True
    try:
        url, path = urlsplit(anchor), urlsplit(target).path
    except ValueError:
        return False
    is_answer = not url.netloc and not url.path
    return not url.fragment and (is_answer or _last_segment(url.path) == _last_segment(path))
