"""The headers of an answer about the caller's token: its scopes, the rights that were needed, and when it ends.

One of an OAuth application has its client id besides, by which it is told from a classic personal token.
"""

from __future__ import annotations

from datetime import UTC, datetime

from bulk.sandbox.http.access import Access
from bulk.sandbox.http.auth.rights import SCOPED_KINDS
from bulk.sandbox.store.apps import Apps
from bulk.sandbox.store.records import Token, TokenKind

EXPIRATION = "GitHub-Authentication-Token-Expiration"


def token_headers(token: Token, access: Access | None, apps: Apps, now: float) -> list[tuple[str, str]]:
    """Return the headers about a token.

    The client id is empty for a token of an OAuth application that the seed file did not name.

    A fine-grained token without an end shows the present moment as its end, as the public platform was seen to do.

    Args:
        access: the rights that the route asks for; None: no rights.
        apps: the applications of the sandbox.
        now: UTC epoch seconds.
    """
    headers: list[tuple[str, str]] = []
    if token.kind in SCOPED_KINDS:
        headers.append(("X-OAuth-Scopes", ", ".join(sorted(token.scopes))))
        headers.append(("X-Accepted-OAuth-Scopes", ", ".join(access.scopes if access else ())))
        if token.kind is TokenKind.OAUTH:
            app = apps.app_of(token)
            headers.append(("X-OAuth-Client-Id", app.client_id if app else ""))
    elif access is not None and access.permission is not None:
        headers.append(("X-Accepted-GitHub-Permissions", "=".join(access.permission)))
    if token.kind is TokenKind.FINE_GRAINED or (token.kind in SCOPED_KINDS and token.ends_at is not None):
        end = now if token.ends_at is None else token.ends_at
        headers.append((EXPIRATION, datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")))
    return headers
