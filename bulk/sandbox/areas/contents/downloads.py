"""Download URLs: each is good once, for five minutes, and needs no token.

A URL carries its own proof (a keyed hash over what it names, its end and its number; the repository goes in by its id,
because another may take its name), so that giving one out costs no memory: only the numbers of those that were used are
kept until they end. The key lives as long as the server, and so do its URLs. They lie below `/api/v3/downloads/`, a
path of the sandbox's own, and count in no budget.
"""

from __future__ import annotations

import hmac
import secrets
from functools import lru_cache
from hashlib import blake2b
from itertools import count
from urllib.parse import quote

from bulk.sandbox.git.repositories import Repositories
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.refusals import not_found
from bulk.sandbox.http.routes import Route

LIFETIME_S = 300
"""How long a download URL is good (seconds)."""
_SWEEP_AT = 10_000

quoted = lru_cache(4096)(quote)
"""A path or a name as it stands in a URL."""


class Downloads:
    """Gives out download URLs, each of which can be redeemed once (`Context.get(Downloads)`).

    Args:
        key: a secret of 16 to 64 bytes; default random. The same key and order give the same URLs.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)
        self._numbers = count(1)
        self._used: dict[int, int] = {}

    def url(self, base_url: str, full_name: str, repository_id: int, sha: str, path: str, now: float) -> str:
        """Return a new URL for the blob `sha`, which is called `path` in that repository."""
        ends_at, number = int(now) + LIFETIME_S, next(self._numbers)
        proof = self._proof(repository_id, sha, path, ends_at, number)
        return f"{base_url}/downloads/{full_name}/{sha}/{quoted(path)}?token={ends_at:x}.{number:x}.{proof}"

    def redeem(self, repository_id: int, sha: str, path: str, token: str, now: float) -> bool:
        """Return whether the token is good for this blob, now and for the first time; it can't be used again."""
        try:
            end, serial, proof = token.split(".")
            ends_at, number = int(end, 16), int(serial, 16)
        except ValueError:
            return False
        expected = self._proof(repository_id, sha, path, ends_at, number)
        if not hmac.compare_digest(proof.encode(), expected.encode()) or now >= ends_at or number in self._used:
            return False
        if len(self._used) >= _SWEEP_AT:
            self._used = {each: until for each, until in self._used.items() if now < until}
        self._used[number] = ends_at
        return True

    def _proof(self, repository_id: int, sha: str, path: str, ends_at: int, number: int) -> str:
        text = f"{repository_id}\0{sha}\0{path}\0{ends_at}\0{number}"
        return blake2b(text.encode(), digest_size=12, key=self._key).hexdigest()


async def download(call: Call) -> Answer:
    """GET /downloads/{owner}/{repo}/{sha}/{path...}: the bytes of a file, once."""
    owner, name, sha, path = (call.params[each] for each in ("owner", "repo", "sha", "path"))
    state = call.context.state
    organization = state.organization(owner)
    repository = state.repository(organization, name) if organization else None
    token = call.query.get("token") or ""
    if repository is None or not call.context.get(Downloads).redeem(repository.id, sha, path, token, call.now):
        raise not_found()
    repositories = call.context.get(Repositories)
    data = await call.context.blocking(lambda: repositories.blob(repository, sha))
    is_text = b"\0" not in data[:8192]
    return Answer(raw=data, content_type="text/plain; charset=utf-8" if is_text else "application/octet-stream")


ROUTE = Route("GET", "/downloads/{owner}/{repo}/{sha}/{path...}", download, category=None, anonymous=True)
