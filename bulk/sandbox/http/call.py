"""One request as an area function sees it, after authentication and limits.

`params` are the decoded parts of the path, `query` the query, `json_object()` the body. `user` is None for an
anonymous caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import orjson

from bulk.sandbox.http.access import Access
from bulk.sandbox.http.refusals import Refused, bad_request, conflict
from bulk.sandbox.store.records import Token, User

if TYPE_CHECKING:
    from collections.abc import Hashable

    from bulk.sandbox.http.context import Context


class Query:
    """A query string. An array parameter is sent once for each entry with `[]` after its name."""

    __slots__ = ("_pairs",)

    def __init__(self, text: str) -> None:
        self._pairs = parse_qsl(text, keep_blank_values=True) if text else []

    def get(self, name: str) -> str | None:
        """Return the last value given to `name`."""
        return next((value for key, value in reversed(self._pairs) if key == name), None)

    def every(self, name: str) -> list[str]:
        """Return all values given to `name` or `name[]`, in order."""
        return [value for key, value in self._pairs if key in (name, f"{name}[]")]

    def words(self, name: str) -> set[str]:
        """Return all words given to `name` or `name[]`; one value may have several words with commas between them."""
        return {word.strip() for value in self.every(name) for word in value.split(",")} - {""}

    def without(self, *names: str) -> list[tuple[str, str]]:
        """Return all pairs but those of `names`, as given: for links to other pages."""
        return [(key, value) for key, value in self._pairs if key not in names]


class Call:
    """One admitted request.

    Attributes:
        context: the running sandbox.
        access: the rights that its route asks of a token; None: any token will do. anonymous: whether a request without
            a token is let in, too.
        method, path: as sent; `path` is decoded nowhere and has no `/api/v3` and no query.
        params: the pattern's parameters, decoded.
        query: the query parameters.
        headers: the request's headers, by their names in any case.
        version: `2022-11-28` or `2026-03-10`.
        media: what the caller accepts: `json`, `raw`, `html`, `object`, `text` or `full`.
        token, user: the caller's; None: the caller is anonymous.
        payer: whose budgets pay (`Token.payer`), or an anonymous caller's address.
        base_url: `http(s)://HOST:PORT/PATH` as the caller named it; every URL in an answer begins so.
        raw: the body's bytes.
        now: when the request came (UTC epoch seconds).
    """

    __slots__ = (
        "_paused",
        "access",
        "anonymous",
        "base_url",
        "context",
        "headers",
        "media",
        "method",
        "now",
        "params",
        "path",
        "payer",
        "query",
        "raw",
        "token",
        "user",
        "version",
    )

    def __init__(
        self,
        *,
        context: Context,
        access: Access | None,
        anonymous: bool,
        method: str,
        path: str,
        params: dict[str, str],
        query: Query,
        headers: Mapping[str, str],
        version: str,
        media: str,
        token: Token | None,
        payer: str,
        base_url: str,
        raw: bytes,
        now: float,
    ) -> None:
        self.context, self.access, self.anonymous = context, access, anonymous
        self.method, self.path, self.params = method, path, params
        self.query, self.headers, self.version, self.media = query, headers, version, media
        self.token, self.user = token, token.user if token else None
        self.payer, self.base_url, self.raw, self.now = payer, base_url, raw, now
        self._paused = False

    @property
    def site_url(self) -> str:
        """The caller's `http(s)://HOST:PORT`, where pages for people would be."""
        return self.base_url.removesuffix(self.context.settings.base_path)

    @property
    def caller(self) -> User:
        """The user of a route that is not for anonymous callers."""
        if self.user is None:
            raise RuntimeError(f"{self.path} may be called anonymously, so its caller must not be relied on")
        return self.user

    def json_object(self) -> dict[str, object]:
        """Return the body as a JSON object; an empty body is an empty object.

        Raises:
            Refused: 400, the body is not JSON, or not an object.
        """
        if not self.raw.strip():
            return {}
        try:
            body = orjson.loads(self.raw)
        except orjson.JSONDecodeError:
            raise bad_request("Problems parsing JSON") from None
        if not isinstance(body, dict):
            raise bad_request("Body should be a JSON object")
        return body

    async def pause(self) -> None:
        """Wait for the request's latency, once; the pipeline calls this after the area function, if that has not."""
        if not self._paused:
            self._paused = True
            latency_ms = self.context.settings.latency_ms
            if latency_ms:
                await self.context.clock.sleep(latency_ms / 1000)

    def writing(self, key: Hashable, refusal: Refused | None = None) -> AbstractAsyncContextManager[None]:
        """Be the only writer of `key` during the block, which begins with the request's latency.

        A second request that comes meanwhile gets `refusal` (default: 409).
        """
        refused = refusal or conflict("Another write to the same resource is in progress")
        return self.context.writing.claim(key, refused, self.pause)
