"""The answer that an area function returns. The pipeline adds headers, validators, budget and the journal line.

`body` is a JSON value; `raw` are bytes sent as they are (with `content_type`). An answer with neither has an empty
body.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Answer:
    """One answer of the platform, before headers.

    Attributes:
        status: the HTTP status.
        body: a JSON value; None (with `raw` None): no body.
        raw: bytes to send instead of JSON.
        content_type: of `raw`.
        etag: a validator with its quotes (`"…"` or `W/"…"`) that changes whenever the bytes of this answer do, whatever
            they depend on (version, media type, the caller's host). None: the pipeline makes a weak one from the bytes
            of every 200 answer to a GET.
        last_modified: when the shown things last changed (UTC epoch seconds); None: no such header.
        headers: further headers (Link, X-Poll-Interval, Location …).
        effect: the change, for the journal (`commit 1a2b… on acme/api main`); None: nothing was changed.
    """

    status: int = 200
    body: object | None = None
    raw: bytes | None = None
    content_type: str | None = None
    etag: str | None = None
    last_modified: float | None = None
    headers: dict[str, str] = field(default_factory=dict)
    effect: str | None = None
