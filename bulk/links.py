"""URLs that the platform gives: followed only below the base URL (failures.md rows 10, 12). Pure.

A `Link` is read as RFC 8288 says. What it points at must have the base URL's scheme, host and port, lie below its path,
and hold no user name, no `..` and nothing that two readers could understand differently. Who does not know the base URL
takes the query of a next page alone, and asks the path that it asked before: that can't lead anywhere else.
"""

import re
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, unquote, urlencode, urljoin, urlsplit

_TARGET = re.compile(r"[\s,]*<([^<>]*)>")
_PARAMETER = re.compile(r'\s*;\s*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*)))?')
_PORTS = {"http": 80, "https": 443}
_PLAIN = re.compile(r"[\x21-\x5b\x5d-\x7e]*")
"""Printable ASCII without spaces and backslashes."""

LONGEST_CHARS = 8_000
MOST_PARAMETERS = 50


def next_link(headers: Mapping[str, str], base_url: str, current: str) -> str | None:
    """Where the next page is, as `/path?query` relative to `base_url`; None: there is none, or it leads elsewhere.

    `has_next_link` tells these two apart.

    Args:
        headers: of the answer; looked up in lower case.
        current: `/path?query` of the page that was read, relative to `base_url`.
    """
    target = _next_target(headers)
    return None if target is None else within_base(target, base_url, current)


def next_query(headers: Mapping[str, str], path: str, query: str) -> str | None:
    """The query that asks the same path for the next page; None: there is none, or it is not a page of the same list.

    `has_next_link` tells these two apart. A path may be written in other words (`/organizations/101/hooks` for
    `/orgs/acme/hooks`), but its last segment says what is listed. Parameters that the link does not repeat stay.

    Args:
        headers: of the answer; looked up in lower case.
        path: percent-encoded path of the list.
        query: what its first page was asked with, without a question mark.
    """
    target = _next_target(headers)
    if target is None or not _PLAIN.fullmatch(target) or len(target) > LONGEST_CHARS:
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
    """Whether the platform says that there is a next page, wherever it may lead."""
    return _next_target(headers) is not None


def within_base(target: str, base_url: str, current: str) -> str | None:
    """`target` of a link or a redirect as `/path?query` relative to `base_url`; None where it leads out of it.

    Args:
        target: absolute, or relative to the page `current`.
        base_url: `http(s)://HOST[:PORT]/PATH`, without a slash at its end.
        current: `/path?query` relative to `base_url`.
    """
    if not _PLAIN.fullmatch(target) or len(target) > LONGEST_CHARS:
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
    path = url.path[len(base.path) :]
    if not url.path.startswith(base.path) or not path.startswith("/") or _leaves(path):
        return None
    return f"{path}?{url.query}" if url.query else path


def _last_segment(path: str) -> str:
    return unquote(path.rpartition("/")[2]).casefold()


def _leaves(path: str) -> bool:
    """Whether some server could read this percent-encoded path as one that climbs."""
    plain = path
    for _ in range(3):
        plain = unquote(plain)
    return "\\" in plain or any(segment in (".", "..") for segment in plain.split("/"))


def _next_target(headers: Mapping[str, str]) -> str | None:
    header = headers.get("link")
    if not header:
        return None
    for target, relations in _links(header):
        if "next" in relations:
            return target
    return None


def _links(header: str) -> Iterator[tuple[str, list[str]]]:
    """(target, relations) of each link of a `Link` header, up to the first thing that is no link."""
    place = 0
    while found := _TARGET.match(header, place):
        target, place = found[1].strip(), found.end()
        relations: list[str] | None = None
        while found := _PARAMETER.match(header, place):
            place = found.end()
            if found[1].lower() == "rel" and relations is None:  # a second one is ignored, says RFC 8288 §3.3
                value = found[3] if found[2] is None else re.sub(r"\\(.)", r"\1", found[2])
                relations = (value or "").lower().split()
        yield target, relations or []
