"""What the transport is given beside a request, and what it gives back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from bulk.model import Reply


class Stored(Protocol):
    """What the transport needs of a stored answer: its validators, sent back as they came."""

    @property
    def etag(self) -> str:
        """`ETag` with its quotes, also a weak one; empty where there was none."""

    @property
    def last_modified(self) -> str:
        """`Last-Modified`, verbatim; empty where there was none."""


@dataclass(init=False, slots=True, unsafe_hash=True)
class Answer(Reply):
    """A Reply with its bytes, for the store of validators.

    Attributes:
        raw: the body, decompressed; empty where it was not read to its end.
    """

    raw: Final[bytes]

    def __init__(
        self,
        *,
        status: int,
        headers: Mapping[str, str],
        body: Any = None,
        is_unchanged: bool = False,
        is_truncated: bool = False,
        request_id: str | None = None,
        raw: bytes = b"",
    ) -> None:
        Reply.__init__(
            self,
            status=status,
            headers=headers,
            body=body,
            is_unchanged=is_unchanged,
            is_truncated=is_truncated,
            request_id=request_id,
        )
        self.raw = raw
