"""The files of the page: the same for every user, without data."""

import functools
from collections.abc import Awaitable, Callable, Sequence
from importlib import resources

from aiohttp import web

PAGES = (
    "/",
    "/run/{name}",
    "/run/{name}/items",
    "/run/{name}/items/{job}/{index}",
    "/budgets",
    "/workers",
    "/audits",
    "/audit/{name}",
    "/audit/{name}/{list:violations|changes}",
)
"""The addresses that a person opens; the module of the page shows at each what belongs there."""
SCRIPTS = ("plot", "curves", "dom", "steering", "runs", "run", "items", "audits", "workers", "page")
_WORKERS = b' <a href="/workers">Workers</a>'
"""A link that only a page with a store has."""
_ASSETS = resources.files("bulk.serve").joinpath("assets")
_REPORT_ASSETS = resources.files("bulk.report.render").joinpath("templates")


def routes(*, has_store: bool) -> Sequence[web.RouteDef]:
    """Return the addresses of the files and their handlers."""
    page = _joined("page.html")
    files = [
        *((path, page if has_store else page.replace(_WORKERS, b""), "text/html") for path in PAGES),
        ("/page.js", _joined(*(f"{name}.js" for name in SCRIPTS)), "text/javascript"),
        ("/page.css", _joined("report.css", "page.css"), "text/css"),
        ("/icon.svg", _joined("icon.svg"), "image/svg+xml"),
    ]
    return [web.get(path, _file(body, kind)) for path, body, kind in files]


def _file(body: bytes, kind: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type=kind, charset="utf-8")

    return answer


@functools.cache
def _joined(*names: str) -> bytes:
    """Return the files, joined in this order; files that the assets lack are those of the report."""
    found = []
    for name in names:
        own = _ASSETS.joinpath(name)
        found.append((own if own.is_file() else _REPORT_ASSETS.joinpath(name)).read_bytes())
    return b"\n".join(found)
