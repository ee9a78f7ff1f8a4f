"""Which endpoints a test really asked, noted as it happens: by sandboxes for their answers, by scripts for requests.

A line of the file that `BULK_ENDPOINTS_ASKED` names is one endpoint that answered below 400, in whatever process. What
is read from there belongs to the test that runs. In the tests' own process an endpoint is noted once for each test.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bulk.sandbox.http.observing import Observed
    from bulk.sandbox.http.routes import Router

VARIABLE: Final = "BULK_ENDPOINTS_ASKED"
_OURS: Final = "bulk.sandbox."
_PLACES: Final[dict[Path, int]] = {}
"""The file of this run, and how much of it was read (bytes); none in the process of a sandbox."""
_KNOWN: Final[set[str]] = set()
"""What this test has noted already."""


@cache
def key(method: str, pattern: str) -> str:
    """How an endpoint is found, whatever its parameters are called."""
    return f"{'GET' if method == 'HEAD' else method} {re.sub(r'{[^}]*}', '{}', pattern)}"


def begin(path: Path) -> None:
    """Note everything in `path` from now on: in this process, and in those that it starts."""
    path.touch()
    _PLACES[path] = 0


def note(seen: Observed) -> None:
    """A sandbox answered."""
    if seen.status < 400 and seen.route is not None and seen.route.function.__module__.startswith(_OURS):
        _note(key(seen.method, seen.route.path))


def note_scripted(method: str, path: str, status: int) -> None:
    """A script gave an answer in the platform's place; `path` is relative to the base address."""
    found = _router().match(method, path) if status < 400 else None
    if found is not None:
        _note(key(method, found[0].path))


def noted() -> list[str]:
    """What was noted since this was last asked."""
    _KNOWN.clear()
    found: list[str] = []
    for path, start in _PLACES.items():
        if path.stat().st_size > start:
            content = path.read_bytes()
            _PLACES[path] = len(content)
            found += content[start:].decode().splitlines()
    return found


def _note(name: str) -> None:
    place = os.environ.get(VARIABLE)
    if not place or name in _KNOWN:
        return
    if _PLACES:
        _KNOWN.add(name)
    os.write(_opened(place), f"{name}\n".encode())


@cache
def _opened(place: str) -> int:
    """A descriptor for as long as the process lives: sandboxes note every answer, and some tests ask for thousands."""
    return os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


@cache
def _router() -> Router:
    from bulk.sandbox.areas.served import AREAS
    from bulk.sandbox.http.routes import Router

    return Router(route for area in AREAS for route in area.routes)
