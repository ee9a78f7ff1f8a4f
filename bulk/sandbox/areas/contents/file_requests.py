"""The request of a contents write, read from its body. Pure: the body in, a `FileRequest` or a refusal out."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

from bulk.sandbox.clock import parse_iso
from bulk.sandbox.git.revision import Person
from bulk.sandbox.http.refusals import Refused, invalid
from bulk.sandbox.store.records import User

LATEST = 4102444800
"""Dates of commits lie between 1970 and this (UTC epoch seconds, 2100-01-01)."""
_UNFIT = frozenset("<>\n\r\0")


@dataclass(frozen=True, slots=True)
class FileRequest:
    """A write, without its branch and content.

    Attributes:
        sha: the blob that the caller believes to be there; None when he named none.
        author, committer: the persons that the body names; `at` is filled in already.
    """

    message: str
    sha: str | None
    author: Person
    committer: Person

    @classmethod
    def read(cls, body: Mapping[str, object], user: User, now: float) -> FileRequest:
        """Return the request of a body.

        Args:
            user: the caller, who is the committer where none is named. The author defaults to the committer.
            now: the date of both where no date is given (UTC epoch seconds).

        Raises:
            Refused: 422, a field is missing, of another type, or can't stand in a commit.
        """
        message = text(body, "message")
        if message is None or not message.strip():
            raise _missing("message")
        if "\0" in message:
            raise _wrong("message", "contains a NUL")
        committer = _person(body, "committer", now) or Person(user.name or user.login, user.email, int(now))
        author = _person(body, "author", now) or committer
        return cls(message, text(body, "sha"), author, committer)


def branch_name(body: Mapping[str, object]) -> str | None:
    """Return the short name of the branch that a body names; None for the default branch.

    Raises:
        Refused: 422, the branch is not a string.
    """
    branch = text(body, "branch")
    return branch.removeprefix("refs/heads/") if branch else None


def content_bytes(body: Mapping[str, object]) -> bytes:
    """Return the bytes of `content`. Line breaks in the Base64 are allowed, anything else that is not Base64 isn't.

    Raises:
        Refused: 422.
    """
    content = text(body, "content")
    if content is None:
        raise _missing("content")
    try:
        packed = content.encode("ascii").translate(None, b" \t\r\n")
        return base64.b64decode(packed, validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise _wrong("content", "is not valid Base64") from None


def required_sha(asked: FileRequest) -> str:
    """Return the sha of a write that needs one.

    Raises:
        Refused: 422, none was given.
    """
    if asked.sha is None:
        raise _missing("sha")
    return asked.sha


def text(body: Mapping[str, object], field: str, place: str = "") -> str | None:
    """Return a string of a body; null counts as not given.

    Raises:
        Refused: 422, the field is not a string.
    """
    value = body.get(field)
    if value is not None and not isinstance(value, str):
        raise _wrong(place + field, "is not a string")
    return value


def _person(body: Mapping[str, object], field: str, now: float) -> Person | None:
    value = body.get(field)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _wrong(field, "is not an object")
    place = f"{field}/"
    name, email = text(value, "name", place), text(value, "email", place)
    for part, given in (("name", name), ("email", email)):
        if given is None or not given.strip():
            raise _missing(part)
        if _UNFIT & set(given):
            raise _wrong(place + part, "contains a character that can't stand in a commit")
    date = text(value, "date", place)
    return Person(str(name).strip(), str(email).strip(), int(now) if date is None else _instant(date, place + "date"))


def _instant(date: str, field: str) -> int:
    try:
        at = int(parse_iso(date))
    except (ValueError, OverflowError):
        at = -1
    if not 0 <= at < LATEST:
        raise _wrong(field, "is not an ISO 8601 timestamp between 1970 and 2100")
    return at


def _missing(field: str) -> Refused:
    return invalid(message=f'Invalid request.\n\n"{field}" wasn\'t supplied.')


def _wrong(field: str, reason: str) -> Refused:
    return invalid(message=f"Invalid request.\n\nFor 'properties/{field}', the value {reason}.")
