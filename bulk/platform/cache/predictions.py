"""Where the ETag that another token will get is predicted, and whether that has a point.

The platform of the vendor `github` was seen to make an ETag of who asks (SHA-256 of the values of `Accept` and
`Authorization`, each with a colon behind it) and of the body. So what an answer's ETag is for a new token can be known,
where the body has not changed. A wrong one costs what no condition costs. It is given up where it never holds: of each
kind of request after `MISSES` misses without a hit, as for bodies that hold URLs which are good once.
"""

import hashlib
from collections.abc import Mapping

from bulk.model import Request

MISSES = 20
"""So many in a row without a hit ever, and a kind of request is asked for without (count)."""


def etag_for(accept: str, authorization: str, body: bytes) -> str:
    """Return the ETag with which a body is answered to who asks so."""
    digest = hashlib.sha256(f"{accept}:{authorization}:".encode())
    digest.update(body)
    return f'W/"{digest.hexdigest()}"'


class Predictions:
    """Counts what became of predicted ETags, by kind of request."""

    def __init__(self) -> None:
        self._misses: dict[str, int] = {}
        self._has_hit: set[str] = set()

    def is_worth(self, request: Request) -> bool:
        """Return whether one may hold for this request."""
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
    """Return the same for requests that only differ in names: media, first part of the path, and what follows them."""
    parts = [*request.path.split("/", 5), "", "", "", ""]
    return f"{request.media} {parts[1]} {parts[3] if parts[1] == 'orgs' else parts[4]}"
