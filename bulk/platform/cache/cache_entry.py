"""One answer that was kept, and the format of its row in the store's file.

Beside the headers that may be needed again, a row can say that its body stands in results as it is: an item of that
operation ended with it. Then the body need not be read to write the next such line. A checksum ends the head of a row
in the file, because a row that a disk has damaged must never pass for an answer. Source: interface.md §3 (304).
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from bulk.model import Media
from bulk.platform.bodies.content_coding import ZLIB
from bulk.platform.cache.cache_table import Row
from bulk.platform.moments import http_date
from bulk.redaction import redact, redact_json, shows_secret, suspects, taints

_LINES = 6
"""Lines of a head: ETag, Last-Modified, Content-Type, Link, the tag of the token with flags, and the operation that the
body is a result of, in the file with a checksum behind it."""

BY_ETAG, BY_PREDICTION, BY_DATE = "etag", "prediction", "date"
"""How the platform is asked whether an answer has changed: with the ETag that the same token got, with the ETag that
another token should get, or with the time of the last change alone."""
_DATED, _CHANGED = "d", "x"

_CODED = re.compile(r"[-;:+/]+(gzip|deflate|br|zstd)$", re.IGNORECASE)
"""Suffix that servers add to an ETag when they compress."""


DATED_AFTER_S = 2.0
"""Dates have whole seconds: what changed less than this before it was read may change again in the same second."""


class CacheEntry:
    """A kept answer and its validators.

    Attributes:
        etag: with its quotes, weak or strong, as it came; empty where there was none. last_modified: likewise.
        content_type: the `Content-Type`. link: the `Link`. Empty where there was none.
        body: decompressed bytes, as they came; the body of a result as it stands in results.
        is_clean: the entry comes from the file, into which no secret is written.
        tag: tag of the token that got the answer; empty: not known. is_dated: the answer came well after its last
            change.
        is_raw: the body is as it came, byte by byte.
        way: how the platform is asked whether the answer has changed: `BY_ETAG`, `BY_PREDICTION` or `BY_DATE`.
    """

    __slots__ = (
        "_operation",
        "body",
        "content_type",
        "etag",
        "is_clean",
        "is_dated",
        "is_raw",
        "key",
        "last_modified",
        "link",
        "media",
        "tag",
        "way",
    )

    def __init__(self, row: Row, media: Media, *, is_clean: bool = True) -> None:
        _, key, head, body, _ = row
        self.key, self.media, self.body, self.is_clean = key, media, body, is_clean
        self.etag, self.last_modified, self.content_type, self.link, about, last = head.split("\n")
        self._operation = last.partition(" ")[0]
        self.tag, _, flags = about.partition(" ")
        self.is_dated, self.is_raw = _DATED in flags, _CHANGED not in flags
        self.way = BY_ETAG

    def is_confirmed_by(self, headers: Mapping[str, str]) -> bool:
        """Return whether a 304 with these headers can mean this answer.

        A 304 that names another version can't; a cache on the way that has something newer gives such a 304, and so
        does a platform whose file was replaced with an older one, where dates alone are compared.
        """
        named = headers.get("etag", "")
        if named == "" or self.way != BY_ETAG or self.etag == "":  # another token may get other ETags
            changed = headers.get("last-modified", "")
            is_same = changed in (self.last_modified, "") or self.last_modified == ""
            return is_same or http_date(changed) == http_date(self.last_modified)
        return named == self.etag or _version(named) == _version(self.etag)

    def is_result_of(self, operation: str) -> bool:
        """Return whether an item of `operation` ended with this body."""
        return operation != "" and self._operation == operation


def head_of(
    etag: str, last_modified: str, content_type: str, link: str, tag: str = "", *, is_dated: bool = False
) -> str | None:
    """Return the head of a row; None if the values can't make one."""
    head = f"{etag}\n{last_modified}\n{content_type}\n{link}\n{tag} {_DATED if is_dated else ''}\n"
    if head.count("\n") >= _LINES or not (head.isascii() or _is_text(head)):
        return None
    return head


def as_result(head: str, operation: str, text: bytes, raw: bytes) -> str:
    """Return the head of the same row whose body is from now on `text` instead of `raw`.

    An item of `operation` ended with `text`.
    """
    end = head.rindex("\n")
    return f"{head[:end]}{'' if text == raw else _CHANGED}\n{operation}"


def sealed(row: Row) -> Row:
    """Return a row with the checksum with which it stands in the file."""
    number, key, head, body, used_at = row
    return number, key, f"{head} {_check(key, head, body)}", body, used_at


def is_whole(row: Row) -> bool:
    """Return whether a row of the file is as it was when it was sealed."""
    _, key, head, body, _ = row
    text, _, check = head.rpartition(" ")
    return check == _check(key, text, body)


_JSON = (b"{", b"[")


def without_secrets(rows: Iterable[Row]) -> list[Row]:
    """Return the rows as they may be written: JSON has `***` where a secret stands.

    The content of a file is left out if it holds a known secret or a private key; otherwise it stays as it is. A row
    with a secret in its head is left out: a validator with a mask in it proves nothing.
    """
    rows, clean = list(rows), list[Row]()
    suspected = suspects([row[3] if row[3].startswith(_JSON) else b"" for row in rows])
    is_in_heads = shows_secret("\n".join(row[2] for row in rows).encode("utf-8", "surrogatepass"))
    for place, row in enumerate(rows):
        number, key, head, body, used_at = row
        if is_in_heads and redact(head) != head:
            continue
        if not body.startswith(_JSON):
            if taints(body):
                continue
        elif place in suspected:
            raw, body = body, redact_json(body)
            start, _, about = head.rpartition("\n")
            head = as_result(head, about, body, raw) if about else f"{start}{_CHANGED}\n"
            row = number, key, head, body, used_at
        clean.append(row)
    return clean


def _version(etag: str) -> str:
    """Return the version in an ETag, without the mark or the suffix that servers add when they compress."""
    return _CODED.sub("", etag.strip().removeprefix("W/").strip('"'))


def _check(key: bytes, head: str, body: bytes) -> str:
    return str(ZLIB.crc32(body, ZLIB.crc32(key + head.encode())))


def _is_text(value: str) -> bool:
    """Return whether headers came as UTF-8; otherwise they hold halves of surrogate pairs."""
    return not any(chr(0xD800) <= char <= chr(0xDFFF) for char in value)


class BothHeaders(Mapping[str, str]):
    """The headers that were kept, with those of the 304 for all other names. Names in lower case."""

    __slots__ = ("_first", "_second")

    def __init__(self, first: Mapping[str, str], second: Mapping[str, str]) -> None:
        self._first, self._second = first, second

    def __getitem__(self, name: str) -> str:
        value = self._first.get(name)
        return self._second[name] if value is None else value

    def __contains__(self, name: object) -> bool:
        return name in self._first or name in self._second

    def __iter__(self) -> Iterator[str]:
        yield from self._first
        yield from (name for name in self._second if name not in self._first)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def is_dated(headers: Mapping[str, str]) -> bool:
    """Return whether an answer came so long after its last change that another change has another date."""
    changed, made = headers.get("last-modified"), headers.get("date")
    if changed is None or made is None:
        return False
    at, then = http_date(made), http_date(changed)
    return at is not None and then is not None and at - then >= DATED_AFTER_S
