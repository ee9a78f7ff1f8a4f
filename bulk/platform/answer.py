"""What the transport is given beside a request, and what it gives back."""

from typing import Protocol

from bulk.model import Reply


class Stored(Protocol):
    """What the transport needs of a stored answer: its validators, sent back as they came."""

    @property
    def etag(self) -> str | None:
        """`ETag` with its quotes, also a weak one."""

    @property
    def last_modified(self) -> str | None:
        """`Last-Modified`, verbatim."""


class Answer(Reply, frozen=True, kw_only=True):
    """A Reply with its bytes, for the store of validators.

    Attributes:
        raw: the body, decompressed; empty where it was not read to its end.
    """

    raw: bytes = b""
