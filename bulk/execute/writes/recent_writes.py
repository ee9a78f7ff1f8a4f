"""Remembers the last writes and creations of this run, for the items that come to the same thing next.

A copy of the platform may lag: a look that comes at once can show the file as it was before the last item, or no file.
If such a look were believed, a delete would end as `unchanged` while the file is there; after a lost answer, our own
blob would be taken for another writer's, or a missing file for the effect of our delete. So within the settle time of a
write the next item is told the state that the write left, and does not look: the platform's own comparison guards the
item. If the item loses an answer, the loss is settled when that time is over. Where the platform compares nothing, as
with a webhook, the next item looks once more when that time is over, unless its look shows that state. A creation does
not believe that its like is there while that may just have been deleted. Nor does it believe that its like is not there
before the list shows the last creation of the run. A thing that was just created counts as changed.

A platform may show a new organization or configuration only a moment after its 201: a request for it at once gets
404. So within the settle time of a creation a 404 whose path names the new thing is not an answer yet: the item starts
over, with growing pauses. After that time, and for everything else, a 404 is final. Numbers are counted for each
kind, and some for each organization: a thing with a number is known by the place where it lies. Pure; monotonic times
come in. Source: failures.md rows 7, 21, 22.
"""

from collections import OrderedDict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar
from urllib.parse import unquote

from bulk import urls
from bulk.capabilities import ChangesThings, Combinable, CombinedSteps, ComparesState, CreatesNames
from bulk.model import Effect, ErrorCode, Outcome, OutcomeKind, Reply, Request
from bulk.operation import AnyOperation, Item, Steps

T = TypeVar("T")

PAUSE_FIRST_S, PAUSE_MOST_S = 0.2, 2.0

CREATES = (Effect.CREATE, Effect.CREATE_UNIQUE)
_BEFORE_NAMES = ("orgs", "repos", "organizations")
_OF_ALL = "/enterprises/"


class RecentWrites:
    """The recent writes of a run, by what they changed; `settle_s`: how long each counts (seconds)."""

    def __init__(self, settle_s: float) -> None:
        self._left: ExpiringMap[str] = ExpiringMap(settle_s)
        self._changed: ExpiringMap[Any] = ExpiringMap(settle_s)
        self._newest: ExpiringMap[str] = ExpiringMap(settle_s)  # the number of what was created last, by collection

    def steps(self, operation: AnyOperation, item: Item, now: float) -> Steps:
        """Return the steps of `item`, which know what an item before it has just left."""
        left, until = self._last(operation, item)
        if until > now and isinstance(operation, ComparesState):
            return operation.steps_after(item, left, until - now)
        lag_s = self._changed_until(operation, item) - now
        if lag_s > 0.0:
            return self._looking_twice(operation, item, lag_s)
        if self._newest and isinstance(operation, CreatesNames):
            newest, until = self._newest.find(urls.place(operation.collection(item), "")) or ("", 0.0)
            if until > now:
                return _seeing(newest, operation, item, until - now)
        return operation.steps(item)

    def steps_combined(self, operation: Combinable[Any], items: Sequence[Item], now: float) -> CombinedSteps:
        """Return the steps of items that share their requests; the look at what was just changed comes late."""
        lag_s = max(self._changed_until(operation, item) for item in items) - now
        steps = operation.steps_combined(items)
        return steps if lag_s <= 0.0 else _looking_late(steps, lag_s)

    def _looking_twice(self, operation: AnyOperation, item: Item, lag_s: float) -> Steps:
        """Do what the operation's steps do; begin with another look `lag_s` later if the first one may be outdated."""
        assert isinstance(operation, ChangesThings), "nothing else is noted"
        left = [changed[0] for changed in map(self._changed.find, operation.things(item)) if changed is not None]
        steps = operation.steps(item)
        try:
            request = next(steps)
            if request.effect is Effect.READ:
                reply = yield request
                if all(operation.shows(result, reply.body) for result in left):
                    return (yield from _going_on(steps, steps.send(reply)))
                steps.close()
                return (yield from _looking_late(operation.steps(item), lag_s))
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome
        return (yield from _going_on(steps, request))

    def doubt_s(self, operation: AnyOperation, item: Item, outcome: Outcome, now: float) -> float:
        """Return how long the thing that a creation has found in its way may be deleted already (seconds)."""
        if not self._changed or not isinstance(operation, CreatesNames):
            return 0.0
        is_in_the_way = outcome.error is not None and outcome.error.code is ErrorCode.CONFLICT
        if outcome.kind is not OutcomeKind.UNCHANGED and not is_in_the_way:
            return 0.0
        changed = self._changed.find(urls.place(operation.collection(item), ""))
        return changed[1] - now if changed is not None else 0.0

    def until(self, operation: AnyOperation, item: Item) -> float:
        """Return when every copy shows what an item before `item` has left (monotonic seconds); 0.0: they all do."""
        return max(self._last(operation, item)[1], self._changed_until(operation, item))

    def add(self, operation: AnyOperation, item: Item, effect: Effect | None, outcome: Outcome, now: float) -> None:
        """Note that `item` ended with `outcome` at `now`; forget what is older than the settle time.

        Args:
            effect: the effect of the write that the item has sent; None: nothing was sent, so nothing has changed.
        """
        if isinstance(operation, ComparesState):
            left = operation.left(item, outcome)
            if left is not None:
                self._left.note(_key(operation, item), left, now)
            elif effect is not None:
                self._left.forget(_key(operation, item))
            self._left.forget_old(now)
        elif effect is not None and isinstance(operation, ChangesThings) and _may_have_changed(outcome):
            for thing in operation.things(item):
                self._changed.note(thing, _without_note(outcome.result), now)
                collection = thing[: thing.rfind("/") + 1]
                self._changed.note(collection, None, now)  # a list shows the change late, too
                self._newest.forget(collection)  # it may be gone
            self._changed.forget_old(now)
        else:
            for name in names_made(operation, item, effect, outcome):
                if name.startswith("/"):  # the place of a thing with a number
                    self._changed.note(name, _without_note(outcome.result), now)
            self._changed.forget_old(now)
        self._note_newest(operation, item, effect, outcome, now)

    def _note_newest(
        self, operation: AnyOperation, item: Item, effect: Effect | None, outcome: Outcome, now: float
    ) -> None:
        """Note what was created last in a collection."""
        if effect in CREATES and outcome.kind is OutcomeKind.SUCCEEDED and isinstance(operation, CreatesNames):
            number = outcome.result.get("id") if isinstance(outcome.result, Mapping) else None
            if number is not None:
                self._newest.note(urls.place(operation.collection(item), ""), str(number), now)
            self._newest.forget_old(now)

    def forget(self, operation: AnyOperation, item: Item) -> None:
        """Forget what was left where `item` writes: another writer has changed it, or its state is unknown."""
        if self._left and isinstance(operation, ComparesState):
            self._left.forget(_key(operation, item))

    def _last(self, operation: AnyOperation, item: Item) -> tuple[str, float]:
        """Return what an earlier item left, and until when a read may not show it (monotonic seconds; 0.0: every read
        shows what is there)."""
        if not self._left or not isinstance(operation, ComparesState):
            return "", 0.0
        return self._left.find(_key(operation, item)) or ("", 0.0)

    def _changed_until(self, operation: AnyOperation, item: Item) -> float:
        if not self._changed or not isinstance(operation, ChangesThings):
            return 0.0
        found = map(self._changed.find, operation.things(item))
        return max((changed[1] for changed in found if changed is not None), default=0.0)


def _key(operation: ComparesState[Any], item: Item) -> str:
    return f"{operation.resource}:{operation.identities(item)[0]}"


def _may_have_changed(outcome: Outcome) -> bool:
    """Return whether an item that ended so may have changed something: a failure that has a result did so in part."""
    return outcome.kind in (OutcomeKind.SUCCEEDED, OutcomeKind.UNKNOWN) or (
        outcome.kind is OutcomeKind.FAILED and outcome.result is not None
    )


def _without_note(result: Any) -> Any:
    return {name: value for name, value in result.items() if name != "note"} if isinstance(result, dict) else result


def _seeing(newest: str, operation: AnyOperation, item: Item, lag_s: float) -> Steps:
    """Do what the steps of a creation do; where they are about to create and have not seen what was created last, the
    list may lag, and may lack the like of this item: begin again, for at most `lag_s` seconds."""
    waited_s, pause_s = 0.0, PAUSE_FIRST_S
    steps = operation.steps(item)
    try:
        request = next(steps)
        while True:
            while request.effect is Effect.READ:
                request = steps.send((yield request))
            is_seen = not isinstance(request.before, list) or newest in map(str, request.before)
            if is_seen or waited_s >= lag_s:
                return (yield from _going_on(steps, request))
            steps.close()
            steps = operation.steps(item)
            request = replace(next(steps), pause_s=pause_s)
            waited_s, pause_s = waited_s + pause_s, min(PAUSE_MOST_S, pause_s * 2.0)
    except StopIteration as end:
        ended: Outcome = end.value
        return ended
    finally:
        steps.close()


def _looking_late(steps: Generator[Request, Reply, T], lag_s: float) -> Generator[Request, Reply, T]:
    """Do what `steps` does, from a first read that waits for `lag_s` seconds."""
    try:
        request = next(steps)
    except StopIteration as end:
        ended: T = end.value
        return ended
    if request.effect is Effect.READ:
        request = replace(request, pause_s=lag_s)
    return (yield from _going_on(steps, request))


def _going_on(steps: Generator[Request, Reply, T], request: Request) -> Generator[Request, Reply, T]:
    """Do what `steps` still does, from `request` on."""
    try:
        while True:
            request = steps.send((yield request))
    except StopIteration as end:
        ended: T = end.value
        return ended
    finally:
        steps.close()


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
            path: percent-encoded, of the request that decided, or of the thing that a list lacks.
        """
        is_missing = outcome.kind is OutcomeKind.FAILED and outcome.error and outcome.error.code is ErrorCode.NOT_FOUND
        if not self._made or not (is_missing or outcome.is_missing):
            return 0.0
        named = map(self._made.find, _named_in(path))
        left_s = max((made[1] - now for made in named if made is not None), default=0.0)
        return max(0.0, min(left_s, PAUSE_MOST_S, PAUSE_FIRST_S * 2.0 ** min(tries, 10)))


def may_create(operation: AnyOperation, effect: Effect | None) -> bool:
    """Return whether a write with that effect can bring something new into the world: most can't."""
    return effect in CREATES or isinstance(operation, CreatesNames)


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
    if effect not in CREATES or not collection or not isinstance(number, int):
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


class ExpiringMap(Generic[T]):
    """A map that forgets each entry after a while.

    Args:
        lasts_s: how long each entry counts (seconds).
    """

    def __init__(self, lasts_s: float) -> None:
        self._lasts_s = lasts_s
        # finding the oldest entry of a plain dict means passing by all that were removed before it
        self._noted: OrderedDict[str, tuple[T, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._noted)

    def note(self, name: str, value: T, now: float) -> None:
        """Note that `name` stands for `value` since `now`, whatever it stood for before."""
        self._noted.pop(name, None)  # the newest is the last
        self._noted[name] = (value, now + self._lasts_s)

    def names(self) -> frozenset[str]:
        """Return all names that were noted and not forgotten."""
        return frozenset(self._noted)

    def find(self, name: str) -> tuple[T, float] | None:
        """Return what `name` stands for, and until when that counts, which may be over; None: nothing is known."""
        return self._noted.get(name)

    def forget(self, name: str) -> None:
        """Note that `name` stands for nothing any more."""
        self._noted.pop(name, None)

    def forget_old(self, now: float) -> None:
        """Forget all that no longer counts at `now`."""
        while self._noted and next(iter(self._noted.values()))[1] <= now:
            self._noted.popitem(last=False)
