"""Makes the bytes of an answer into a value, or into the reason why that can't be done. Pure.

A web page is never taken for JSON, and no part of a body that can't be used is shown (failures.md rows 15, 24, 26).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from bulk.model import Media
from bulk.platform.response_heads import WITHOUT_BODY

AS_BYTES = (Media.RAW, Media.HTML)
_BOM = b"\xef\xbb\xbf"
"""A byte order mark, which RFC 8259 §8.1 lets a reader ignore."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands in `Reply.body` of a 2xx answer whose body can't be used; `classify` makes a verdict of it.

    Attributes:
        why: the reason, for people; it holds nothing of the body.
        is_too_large: the body was longer than `Request.max_bytes` and was not read to its end.
    """

    why: str
    is_too_large: bool = False


A_PAGE = Unreadable("a web page came instead of JSON")


def read_body(media: Media, status: int, headers: Mapping[str, str], raw: bytes) -> Any:
    """Return the body as `Reply.body` holds it.

    For a success: bytes for raw and html, else the JSON value; Unreadable if the body is not JSON, None if it is empty.
    For other statuses: the JSON value, or None if the body is anything else.

    Args:
        headers: headers of the answer; looked up in lower case.
        raw: the whole body, decompressed.
    """
    if status in WITHOUT_BODY:
        return None
    is_success = 200 <= status < 300
    if is_success and media in AS_BYTES:
        return raw
    if not raw:
        return None
    if "html" in headers.get("content-type", "").lower():
        return A_PAGE if is_success else None
    try:
        return orjson.loads(raw.removeprefix(_BOM))
    except orjson.JSONDecodeError:
        # without the error: it holds the document
        return _flaw(raw) if is_success else None


def _flaw(raw: bytes) -> Unreadable:
    if raw.lstrip()[:1] == b"<":
        return A_PAGE
    try:
        raw.decode()
    except UnicodeDecodeError:
        return Unreadable("it is not UTF-8")
    return Unreadable("it is not valid JSON")
