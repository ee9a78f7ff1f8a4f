"""Reading a file of a repository, in every representation and size, for `readme.get` and `contents.get`.

The platform gives files up to 1 MB in every representation, and files up to 100 MB only as raw bytes (or in the object
form without content), so that a file above 1 MB is asked for again as raw bytes. It does not give files above 100 MB. A
listing of exactly 1,000 entries may have been cut.
Source: specification, Limits and File content object; operations.md, GET contents.
"""

import hashlib
from collections.abc import Generator
from typing import Annotated, Any, Literal

from msgspec import Meta

from bulk.model import RAW_BODY_BYTES, BodyFile, ErrorCode, Media, Outcome, Reply, Request, failed, succeeded, unchanged
from bulk.operation import Steps
from bulk.proof import Proof
from bulk_jobs.shared import refusals
from bulk_jobs.shared.files import blobs, file_proofs

MOST_ENTRIES = 1_000
"""The most entries of a directory that the platform lists (count)."""

INLINE_MOST = "above 1 MB a file comes only as raw bytes or, without its content, as an object"

UNTABLED = frozenset({"content", "*.content", "download_url", "*.download_url"})
"""Fields of files that are not put into tables: the bytes, whose blob is enough, and URLs that may hold a token."""

MediaType = Annotated[
    Literal["json", "raw", "html", "object"],
    Meta(
        description="representation: json and object give the platform's file object, raw and html the size and "
        "SHA-256 of what was sent, and its bytes to `save`"
    ),
]

_SEEN = frozenset((200, 403))
_MEDIA = {media.value: media for media in Media}
_AS_BYTES = (Media.RAW, Media.HTML)
_OF_RAW, _OF_HTML = file_proofs.of_bytes(Media.RAW), file_proofs.of_bytes(Media.HTML)


def fetch(
    path: str, query: str, media_type: str, known: dict[str, Any], proof: Proof, *, is_saving: bool = False
) -> Steps:
    """Yield the requests of one read, and return its outcome.

    This is one request, and a second one for a file above 1 MB that was asked for as json or object. If these two name
    different blobs, both are sent once more; so is a request for a content that is saved, and can't be decoded.

    Args:
        path: the path of the request, percent-encoded.
        known: fields for the result of raw and html, whose answers have no fields.
        proof: the proof of an answer as json or object.
        is_saving: the content of a file is decoded and saved.
    """
    media = _MEDIA[media_type]
    if media in _AS_BYTES:
        return (yield from _bytes_alone(path, query, media, known, proof))
    for is_fresh in (False, True):
        reply = yield Request(
            method="GET",
            path=path,
            query=query,
            media=media,
            accept=_SEEN,
            dates_hold=True,
            proof=proof,
            is_fresh=is_fresh,
        )
        body = reply.body
        if reply.status == 403:
            described: dict[str, Any] = {}
            if not refusals.is_too_large(reply):
                return _forbidden(reply)
        elif isinstance(body, list) or isinstance(body.get("entries"), list):
            return _ended(reply, listing(body))
        elif body.get("encoding") == "none":
            described = body
        elif is_saving and body.get("encoding") == "base64" and _content_of(body) is None:
            if is_fresh:
                return failed(ErrorCode.BAD_RESPONSE, "the content that came is not Base64, twice")
            continue  # it may have been kept by a job that saves nothing
        else:
            return _ended(reply, body)
        outcome = yield from _large(_as_bytes(path, query, Media.RAW, is_fresh=is_fresh), known, described, reply)
        if outcome is not None:
            return outcome
    return failed(
        ErrorCode.BAD_RESPONSE,
        f"the bytes that came are not the blob {described['sha']} of which the platform speaks, twice",
    )


def _bytes_alone(path: str, query: str, media: Media, known: dict[str, Any], proof: Proof) -> Steps:
    """Read a file as raw or html. An answer without bytes may have lost them: the file object shows whether it has."""
    for is_fresh in (False, True):
        reply = yield _as_bytes(path, query, media, is_fresh=is_fresh)
        if reply.status != 200 or reply.body != b"":
            return _bytes_outcome(reply, media, known)
        described = yield Request(
            method="GET", path=path, query=query, accept=_SEEN, dates_hold=True, proof=proof, is_fresh=is_fresh
        )
        if isinstance(described.body, dict) and described.body.get("size") == 0:
            return _bytes_outcome(reply, media, known)
    return failed(ErrorCode.BAD_RESPONSE, "an answer without bytes came, twice, and the file is not empty")


def _as_bytes(path: str, query: str, media: Media, *, is_fresh: bool = False) -> Request:
    return Request(
        method="GET",
        path=path,
        query=query,
        media=media,
        accept=_SEEN,
        max_bytes=RAW_BODY_BYTES,
        takes_file=True,
        dates_hold=True,
        proof=_OF_RAW if media is Media.RAW else _OF_HTML,
        is_fresh=is_fresh,
    )


def listing(body: Any) -> Any:
    """Return the result for a directory: the listing as it came, or an object that says that it may have been cut."""
    entries = body["entries"] if isinstance(body, dict) else body
    if len(entries) != MOST_ENTRIES:
        return body
    shown = body if isinstance(body, dict) else {"type": "dir", "entries": entries}
    return {**shown, "maybe_truncated": True}


def saved_bytes(outcome: Outcome) -> bytes | None:
    """Return the bytes of the file in an outcome; None where the outcome is not about a file, or has no content."""
    if isinstance(outcome.payload, bytes):
        return outcome.payload
    return _content_of(outcome.result)


def _content_of(body: Any) -> bytes | None:
    if not isinstance(body, dict) or body.get("encoding") != "base64" or not isinstance(body.get("content"), str):
        return None
    try:
        return blobs.decode(body["content"])
    except ValueError:
        return None


def _large(
    request: Request, known: dict[str, Any], described: dict[str, Any], first: Reply
) -> Generator[Request, Reply, Outcome | None]:
    """Yield the request for the bytes of a file above 1 MB, and return the outcome: the bytes are its payload, and its
    result has the fields of a file object.

    None is returned if the bytes are not the blob that `described` names: the file was changed in between, or the bytes
    were cut.
    """
    size = described.get("size")
    if isinstance(size, int) and size > RAW_BODY_BYTES:
        return failed(ErrorCode.TOO_LARGE, f"the file has {size:,} bytes; the platform gives no more than 100 MB")
    reply = yield request
    if reply.status == 403:
        return _too_large(reply) if refusals.is_too_large(reply) else _forbidden(reply)
    data = _bytes(reply)
    if data is None:
        return refusals.bad_answer(reply, "the bytes of a file")
    sha = data.blob_sha if isinstance(data, BodyFile) else blobs.blob_sha(data)
    if described.get("sha", sha) != sha:
        return None
    result = {
        "type": "file",
        **known,
        **described,
        "encoding": "none",
        "content": "",
        "size": _size(data),
        "sha": sha,
        "sha256": _sha256(data),
    }
    is_unchanged = reply.is_unchanged and (first.is_unchanged or first.status == 403)
    return unchanged(result, payload=data) if is_unchanged else succeeded(result, payload=data)


def _bytes_outcome(reply: Reply, media: Media, known: dict[str, Any]) -> Outcome:
    if reply.status == 403:
        if not refusals.is_too_large(reply):
            return _forbidden(reply)
        if media is Media.HTML:
            message = f"{refusals.message_of(reply)} ({INLINE_MOST})"
            return failed(ErrorCode.TOO_LARGE, message, http_status=reply.status)
        return _too_large(reply)
    data = _bytes(reply)
    if data is None:
        return refusals.bad_answer(reply, "the bytes of a file")
    if isinstance(data, bytes) and file_proofs.is_plain_json(reply):
        # it is not a file, and so has no bytes: a directory, a symlink that leads nowhere, or a submodule
        found = file_proofs.json_of(data)
        return _ended(reply, listing(found) if isinstance(found, list) or "entries" in found else found)
    return _ended(reply, {**known, "size": _size(data), "sha256": _sha256(data)}, data)


def _bytes(reply: Reply) -> bytes | BodyFile | None:
    return reply.body if isinstance(reply.body, bytes | BodyFile) else None


def _size(data: bytes | BodyFile) -> int:
    return len(data) if isinstance(data, bytes) else data.size_bytes


def _sha256(data: bytes | BodyFile) -> str:
    return hashlib.sha256(data).hexdigest() if isinstance(data, bytes) else data.sha256


def _ended(reply: Reply, result: Any, payload: bytes | BodyFile | None = None) -> Outcome:
    return unchanged(result, payload=payload) if reply.is_unchanged else succeeded(result, payload=payload)


def _too_large(reply: Reply) -> Outcome:
    return failed(ErrorCode.TOO_LARGE, refusals.message_of(reply), http_status=reply.status)


def _forbidden(reply: Reply) -> Outcome:
    return failed(ErrorCode.FORBIDDEN, refusals.message_of(reply), http_status=reply.status)
