"""Conditional requests: when "not modified" is the answer.

`If-None-Match` decides alone where it is sent, by weak comparison (RFC 9110: `W/` is ignored); otherwise
`If-Modified-Since` does, to the second.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from bulk.sandbox.clock import parse_http_date


def etag_of(content: bytes) -> str:
    """Return a weak validator of an answer's bytes."""
    return f'W/"{hashlib.blake2b(content, digest_size=20).hexdigest()}"'


def etag_for(content: bytes, headers: Mapping[str, str]) -> str:
    """Return a validator of an answer's bytes and of the caller: two tokens never get the same one.

    The public platform was seen to give this validator: SHA-256 of the values of `Accept`, `Authorization` and
    `Cookie`, each with a colon behind it, and of the bytes.
    """
    digest = hashlib.sha256()
    for name in ("Accept", "Authorization", "Cookie"):
        value = headers.get(name)
        if value is not None:
            digest.update(value.encode("utf-8", "surrogateescape") + b":")
    digest.update(content)
    return f'W/"{digest.hexdigest()}"'


def is_unmodified(
    if_none_match: str | None, if_modified_since: str | None, etag: str | None, last_modified: float | None
) -> bool:
    """Return whether the caller has the content of the answer already.

    Args:
        if_none_match: the value of that header: a list of validators, or `*`.
        if_modified_since: the value of that header.
        etag: the answer's validator.
        last_modified: when the content last changed (UTC epoch seconds).
    """
    if if_none_match is not None:
        if etag is None:
            return False
        ours = etag.removeprefix("W/")
        return any(theirs.strip() in ("*", ours, f"W/{ours}") for theirs in if_none_match.split(","))
    if if_modified_since is None or last_modified is None:
        return False
    since = parse_http_date(if_modified_since)
    return since is not None and int(last_modified) <= since
