"""One turn of the platform: a request, the moment, and what its handler may look at and change."""

import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from tests.hostile.http.messages import Answer, Ask, shown
from tests.hostile.store.effects import Effect, Effects
from tests.hostile.store.normal import Normal
from tests.hostile.store.state import Key, State

BASE_URL = "https://git.example.test/api/v3"


@dataclass(slots=True)
class Turn:
    """What a handler is given.

    Attributes:
        now: seconds since 1970, UTC. read_at: the moment that reads show; before `now` where they are stale.
        names: what the braces of the route stood for.
        normal: the form in which this platform keeps what it is given.
    """

    ask: Ask
    state: State
    effects: Effects
    now: float
    read_at: float
    normal: Normal
    names: dict[str, str]

    def get(self, *key: Any) -> Any:
        """What is there; as of `read_at`."""
        return self.state.get(key, self.read_at)

    def all(self, *prefix: Any) -> list[tuple[Key, Any]]:
        """Everything below."""
        return list(self.state.under(prefix, self.read_at))

    def coming(self, *key: Any) -> Any:
        """What will be there once all that was begun is done."""
        return self.state.get(key, float("inf"))

    def change(self, kind: str, key: Key, value: Any, after_s: float = 0.0) -> None:
        """Make an effect; it shows `after_s` seconds from now."""
        at = self.now + after_s
        self.state.set(key, value, at)
        self.effects.add(Effect(at, kind, key, value, self.ask.by))

    def stamp(self, at: float | None = None) -> str:
        """A moment as the platform writes it."""
        return stamp(self.now if at is None else at)


def stamp(at: float) -> str:
    """ISO 8601, YYYY-MM-DDTHH:MM:SSZ."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def paged(turn: Turn, things: list[Any], *, default: int = 30, most: int = 100) -> Answer:
    """One page of a list, with links to its neighbours."""
    begin, size = _page(turn, default, most)
    headers = []
    if begin + size < len(things):
        headers.append(("link", _link(turn, page=begin // size + 2, per_page=size)))
    return shown(200, things[begin : begin + size], *headers)


def paged_part(turn: Turn, whole: dict[str, Any], name: str) -> Answer:
    """An object of which one list comes in pages."""
    begin, size = _page(turn, 30, 100)
    headers = []
    if begin + size < len(whole[name]):
        headers.append(("link", _link(turn, page=begin // size + 2, per_page=size)))
    return shown(200, {**whole, name: whole[name][begin : begin + size]}, *headers)


def cursor_paged(turn: Turn, things: list[Any]) -> Answer:
    """One page of a list that is followed by cursors, which say nothing to anybody."""
    size = max(1, min(int(turn.ask.one("per_page", "30")), 100))
    after = turn.ask.one("after")
    begin = int(after.removeprefix("c")[::-1]) if after else 0
    headers = []
    if begin + size < len(things):
        headers.append(("link", _link(turn, after=f"c{str(begin + size)[::-1]}", per_page=size)))
    return shown(200, things[begin : begin + size], *headers)


def _page(turn: Turn, default: int, most: int) -> tuple[int, int]:
    size = max(1, min(int(turn.ask.one("per_page", str(default))), most))
    return (max(1, int(turn.ask.one("page", "1"))) - 1) * size, size


def _link(turn: Turn, **changed: Any) -> str:
    query = {name: values[-1] for name, values in turn.ask.query.items()}
    query.update({name: str(value) for name, value in changed.items()})
    return f'<{BASE_URL}{turn.ask.path}?{urlencode(query)}>; rel="next"'
