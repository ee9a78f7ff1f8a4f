"""Predicts the ETag that another token will get, and judges whether that is worth while.

The platform of the vendor `github` was seen to make an ETag of the asker (SHA-256 of the values of `Accept` and
`Authorization`, each with a colon behind it) and of the body. So the ETag of an answer for a new token can be known, if
the body has not changed. A wrong ETag costs as much as a request without a condition. Prediction is given up for a kind
of request after `MISSES` misses without a hit, as for bodies that hold URLs which are good once.
"""

import hashlib
from collections.abc import Mapping

from bulk.model import Request

MISSES = 20
"""After this many misses without a single hit, a kind of request is sent without a prediction (count)."""


def etag_for(accept: str, authorization: str, body: bytes) -> str:
    """Return the ETag of a body for a request with these `Accept` and `Authorization` headers."""
    digest = hashlib.sha256(f"{accept}:{authorization}:".encode())
    digest.update(body)
    return f'W/"{digest.hexdigest()}"'


class Predictions:
    """Counts the hits and misses of predicted ETags, by kind of request."""

    def __init__(self) -> None:
        self._misses: dict[str, int] = {}
        self._has_hit: set[str] = set()

    def is_worth(self, request: Request) -> bool:
        """Return whether a prediction may hold for this request."""
        kind = _kind(request)
        return kind in self._has_hit or self._misses.get(kind, 0) < MISSES

    def note(self, request: Request, headers: Mapping[str, str], *, is_hit: bool) -> None:
        """Note that a prediction held, or did not; an answer without an ETag says nothing."""
        kind = _kind(request)
        if is_hit:
            self._has_hit.add(kind)
        elif "etag" in headers:
            self._misses[kind] = self._misses.get(kind, 0) + 1


def _kind(request: Request) -> str:
    """Return the kind of a request, which is the same for requests that differ only in names: media and path parts."""
    parts = [*request.path.split("/", 5), "", "", "", ""]
    return f"{request.media} {parts[1]} {parts[3] if parts[1] == 'orgs' else parts[4]}"
