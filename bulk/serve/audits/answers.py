"""The answers about audits.

GET /api/audits                    all audits
GET /api/audits/NAME               one audit; …/violations and …/changes are its lists
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from aiohttp import web

from bulk.serve.audits.audit_pages import AuditPages
from bulk.serve.audits.histories import Histories
from bulk.serve.audits.rows import AuditRows

Tell: TypeAlias = Callable[[web.Request, Callable[[], Any]], Awaitable[web.Response]]
"""Answers with the data that the function returns; the function is called in a thread."""

_FILTERS = {"violations": ("policy", "severity", "status"), "changes": ("job", "kind")}
"""List -> the facts by which it can be filtered."""


class AuditAnswers:
    """Answers the requests about audits."""

    def __init__(self, histories: Histories, pages: AuditPages, tell: Tell) -> None:
        self._histories, self._pages, self._tell = histories, pages, tell
        self._rows = AuditRows(histories)

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the addresses and their handlers."""
        return [
            web.get("/api/audits", self._listed),
            web.get("/api/audits/{name}", self._one),
            web.get("/api/audits/{name}/{list:violations|changes}", self._list),
        ]

    async def _listed(self, request: web.Request) -> web.Response:
        return await self._tell(request, self._pages.listed)

    async def _one(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]

        def made() -> Any:
            page = self._pages.of(name)
            if page is None:
                raise web.HTTPNotFound
            return page

        return await self._tell(request, made)

    async def _list(self, request: web.Request) -> web.Response:
        name, kind, asked = request.match_info["name"], request.match_info["list"], request.query
        wanted = {fact: asked.get(fact, "") for fact in _FILTERS[kind]}
        first = asked.get("first", "0")
        if not first.isdecimal() or len(first) > 7:
            raise web.HTTPNotFound

        def made() -> Any:
            audit = self._histories.find(name)
            if audit is None:
                raise web.HTTPNotFound
            of = self._rows.violations if kind == "violations" else self._rows.changes
            return of(audit, asked.get("night", ""), wanted, " ".join(asked.get("q", "").split()), int(first))

        return await self._tell(request, made)
