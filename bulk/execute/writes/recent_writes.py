"""What this run itself has written last, for the item that changes the same thing next.

A copy of the platform may lag: a look that comes at once can show the file as it was before the last item, or no file.
Believed, it would make a delete `unchanged` while the file is there; after a lost answer our own blob would be taken
for somebody else's, or no file for our delete. So within the settle time of a write the next item is told what that
left, and does not look: the platform's own comparison guards it. What it lost is settled when that time is over. Where
the platform compares nothing, as of a webhook, the next item's look waits until then; and a creation does not believe
that its like is there while the like may be what was just deleted. Pure; monotonic times come in. Source: failures.md
rows 7, 21, 22.
"""

from collections.abc import Sequence
from typing import Any

from bulk import urls
from bulk.capabilities import ChangesThings, ComparesState, CreatesNames
from bulk.execute.writes.expiring_map import ExpiringMap
from bulk.model import Effect, ErrorCode, Outcome, OutcomeKind
from bulk.operation import AnyOperation, Item, Steps


class RecentWrites:
    """Those of a run, by what they changed; `settle_s`: how long each counts (seconds)."""

    def __init__(self, settle_s: float) -> None:
        self._left: ExpiringMap[str] = ExpiringMap(settle_s)
        self._changed: ExpiringMap[None] = ExpiringMap(settle_s)

    def steps(self, operation: AnyOperation, item: Item, now: float) -> Steps:
        """Return the steps of `item`, which know what an item before it has just left."""
        left, until = self._last(operation, item)
        if until > now and isinstance(operation, ComparesState):
            return operation.steps_after(item, left, until - now)
        return operation.steps(item)

    def wait_s(self, operation: AnyOperation, items: Sequence[Item], now: float) -> float:
        """Return how long a look at what `items` change has to wait, so that it shows what was just left (seconds)."""
        if not self._changed:
            return 0.0
        return max(self._changed_until(operation, item) for item in items) - now

    def doubt_s(self, operation: AnyOperation, item: Item, outcome: Outcome, now: float) -> float:
        """Return how long it can't be told whether what a creation has found in its way is still there (seconds)."""
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
        """Note that `item` ended so at `now`; what is older than the settle time is forgotten.

        Args:
            effect: of what it has sent; None: nothing was sent, so what stands there is as it was.
        """
        if isinstance(operation, ComparesState):
            left = operation.left(item, outcome)
            if left is not None:
                self._left.note(_key(operation, item), left, now)
            elif effect is not None:
                self._left.forget(_key(operation, item))
            self._left.forget_old(now)
        elif effect is not None and isinstance(operation, ChangesThings):
            for thing in operation.things(item):
                self._changed.note(thing, None, now)
                self._changed.note(thing[: thing.rfind("/") + 1], None, now)  # what lists it shows it late, too
            self._changed.forget_old(now)

    def forget(self, operation: AnyOperation, item: Item) -> None:
        """Forget what `item` changes: somebody else has changed it, or nobody knows."""
        if self._left and isinstance(operation, ComparesState):
            self._left.forget(_key(operation, item))

    def _last(self, operation: AnyOperation, item: Item) -> tuple[str, float]:
        """Return what is left, and until when a read may not show it (monotonic seconds, 0.0: each shows what is
        there)."""
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
