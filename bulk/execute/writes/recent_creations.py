"""What this run has just created, and how long an item waits that comes to it too early.

A platform may show a new organization or configuration only a moment after its 201: a request for it at once gets
404. So within the settle time of a creation a 404 whose path names what was created is no answer yet: the item starts
over, with growing pauses. After that time, and for everything else, a 404 is final. Numbers are counted for each kind,
and some for each organization: a thing with a number is known by the place where it lies. Pure; monotonic times
come in. Source: failures.md row 21.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from bulk import urls
from bulk.capabilities import CreatesNames
from bulk.execute.writes.expiring_map import ExpiringMap
from bulk.model import Effect, ErrorCode, Outcome, OutcomeKind
from bulk.operation import AnyOperation, Item

PAUSE_FIRST_S, PAUSE_MOST_S = 0.2, 2.0

_CREATES = (Effect.CREATE, Effect.CREATE_UNIQUE)
_BEFORE_NAMES = ("orgs", "repos", "organizations")
_OF_ALL = "/enterprises/"


class RecentCreations:
    """Names and places of a run's last creations; `settle_s`: how long each counts (seconds)."""

    def __init__(self, settle_s: float) -> None:
        self._made: ExpiringMap[None] = ExpiringMap(settle_s)

    def add(self, names: Iterable[str], now: float) -> None:
        """Note that these names are there since `now`; forget names that are older than the settle time."""
        for name in names:
            self._made.note(name.casefold(), None, now)
        self._made.forget_old(now)

    def names(self) -> frozenset[str]:
        """Return all names that were created lately, folded."""
        return self._made.names()

    def pause_s(self, outcome: Outcome, path: str, tries: int, now: float) -> float:
        """Return seconds to wait before `path` is asked for again, after `tries` tries; 0.0: the outcome stands.

        Args:
            path: percent-encoded, of the request that decided.
        """
        is_missing = outcome.kind is OutcomeKind.FAILED and outcome.error and outcome.error.code is ErrorCode.NOT_FOUND
        if not self._made or not is_missing:
            return 0.0
        named = map(self._made.find, _named_in(path))
        left_s = max((made[1] - now for made in named if made is not None), default=0.0)
        return max(0.0, min(left_s, PAUSE_MOST_S, PAUSE_FIRST_S * 2.0 ** min(tries, 10)))


def may_create(operation: AnyOperation, effect: Effect | None) -> bool:
    """Return whether a write with that effect can bring something new into the world: most can't."""
    return effect in _CREATES or isinstance(operation, CreatesNames)


def names_made(operation: AnyOperation, item: Item, effect: Effect | None, outcome: Outcome) -> tuple[str, ...]:
    """Return names of what a write that succeeded has created: those that the item gave, and the place of a thing that
    got an id.

    Args:
        effect: of the write; None where nothing was written.
    """
    if outcome.kind is not OutcomeKind.SUCCEEDED or not isinstance(operation, CreatesNames):
        return ()
    new_names, result, collection = tuple(operation.new_names(item)), outcome.result, operation.collection(item)
    number: Any = result.get("id") if isinstance(result, Mapping) else None
    if effect not in _CREATES or not collection or not isinstance(number, int):
        return new_names
    return (*new_names, urls.place(collection, number), *_within(urls.place(collection, number)))


def _within(place: str) -> Iterator[str]:
    """Yield the name under which every organization of an enterprise has the thing that lies in that enterprise."""
    if place.startswith(_OF_ALL):
        yield place.removeprefix(_OF_ALL).partition("/")[2]


def _named_in(path: str) -> Iterator[str]:
    """Yield names and places of all that a path leads through."""
    place, segments = "", [unquote(segment).casefold() for segment in path.split("/")[1:]]
    for before, segment in zip(("", *segments), segments, strict=False):
        place = f"{place}/{segment}"
        # a number is a name only where names stand
        if not segment.isdecimal() or before in _BEFORE_NAMES:
            yield segment
        if segment.isdecimal():
            yield place
            if segments[0] == "orgs":
                yield "/".join(place.split("/")[3:])
