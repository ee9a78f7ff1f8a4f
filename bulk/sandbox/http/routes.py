"""The router, which finds the area function of a request by a tree of segments, literal before parameter before tail.

Patterns are relative to `/api/v3`: `/repos/{owner}/{repo}/contents/{path...}`. A path is cut into segments, and each is
percent-decoded, so that an encoded slash stays within its segment. A parameter is one whole segment, never empty. A
tail (`{name...}`, last only) takes the rest of the path, slashes included, and may be empty. The order of registration
never matters.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote

from bulk.sandbox.http.access import Access
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.context import Context


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint.

    Attributes:
        method: GET, POST, PUT, PATCH or DELETE (a GET also answers HEAD).
        path: the pattern, relative to `/api/v3`.
        function: the area function.
        category: the rate-limit category that pays; None: not counted.
        anonymous: whether it may be called without a token.
        access: the rights that a token must have; None: any token will do.
    """

    method: str
    path: str
    function: Callable[[Call], Awaitable[Answer]]
    category: str | None = "core"
    anonymous: bool = False
    access: Access | None = None


@dataclass(frozen=True, slots=True)
class Area:
    """One area of the platform: its routes, and its work when the server starts.

    Attributes:
        name: as in the specification's headings, for people.
        routes: its endpoints.
        start: called once before the first request, after the state was opened and seeded.
    """

    name: str
    routes: tuple[Route, ...]
    start: Callable[[Context], Awaitable[None]] | None = None


@dataclass(slots=True)
class _Node:
    literals: dict[str, _Node] = field(default_factory=dict)
    parameter: _Node | None = None
    routes: dict[str, tuple[Route, tuple[str, ...]]] = field(default_factory=dict)
    tails: dict[str, tuple[Route, tuple[str, ...]]] = field(default_factory=dict)


class Router:
    """Finds the route of a request."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        node, names = self._root, []
        segments = route.path.split("/")[1:]
        for place, segment in enumerate(segments):
            if segment.endswith("...}"):
                if place != len(segments) - 1:
                    raise ValueError(f"{route.path}: a tail must be last")
                names.append(segment[1:-4])
                table = node.tails
                break
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.literals.setdefault(segment, _Node())
        else:
            table = node.routes
        if route.method in table:
            raise ValueError(f"{route.method} {route.path} is registered twice")
        table[route.method] = (route, tuple(names))

    def match(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        """Return the route of a raw (encoded) path below `/api/v3`, and its decoded parameters; None: there is none."""
        if not path.startswith("/"):
            return None
        segments = path.split("/")
        if "%" in path:
            try:
                segments = [unquote(segment, errors="strict") for segment in segments]
            except UnicodeDecodeError:
                return None
        found = self._walk(self._root, "GET" if method == "HEAD" else method, segments, 1, ())
        if found is None:
            return None
        (route, names), values = found
        return route, dict(zip(names, values, strict=True))

    def _walk(
        self, node: _Node, method: str, segments: list[str], place: int, values: tuple[str, ...]
    ) -> tuple[tuple[Route, tuple[str, ...]], tuple[str, ...]] | None:
        if place == len(segments):
            return (node.routes[method], values) if method in node.routes else None
        segment = segments[place]
        literal = node.literals.get(segment)
        if literal is not None:
            found = self._walk(literal, method, segments, place + 1, values)
            if found is not None:
                return found
        if node.parameter is not None and segment:
            found = self._walk(node.parameter, method, segments, place + 1, (*values, segment))
            if found is not None:
                return found
        if method in node.tails:
            return node.tails[method], (*values, "/".join(segments[place:]))
        return None
