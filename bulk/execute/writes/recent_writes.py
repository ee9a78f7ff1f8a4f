"""What this run itself has written last, for the item that changes the same thing next.

A copy of the platform may lag: a look that comes at once can show the file as it was before the last item, or no file.
Believed, it would make a delete `unchanged` while the file is there; after a lost answer our own blob would be taken
for somebody else's, or no file for our delete. So within the settle time of a write the next item is told what that
left, and does not look: the platform's own comparison guards it. What it lost is settled when that time is over. Pure;
monotonic times come in. Source: failures.md rows 7, 21, 22.
"""

from typing import Any

from bulk.capabilities import ComparesState
from bulk.execute.writes.expiring_map import ExpiringMap
from bulk.model import Effect, Outcome
from bulk.operation import AnyOperation, Item, Steps


class RecentWrites:
    """Those of a run, by what they changed; `settle_s`: how long each counts (seconds)."""

    def __init__(self, settle_s: float) -> None:
        self._left: ExpiringMap[str] = ExpiringMap(settle_s)

    def steps(self, operation: AnyOperation, item: Item, now: float) -> Steps:
        """Return the steps of `item`, which know what an item before it has just left."""
        left, until = self._last(operation, item)
        if until > now and isinstance(operation, ComparesState):
            return operation.steps_after(item, left, until - now)
        return operation.steps(item)

    def until(self, operation: AnyOperation, item: Item) -> float:
        """Return when every copy shows what an item before `item` has left (monotonic seconds); 0.0: they all do."""
        return self._last(operation, item)[1]

    def add(self, operation: AnyOperation, item: Item, effect: Effect | None, outcome: Outcome, now: float) -> None:
        """Note that `item` ended so at `now`; what is older than the settle time is forgotten.

        Args:
            effect: of what it has sent; None: nothing was sent, so what stands there is as it was.
        """
        if not isinstance(operation, ComparesState):
            return
        left = operation.left(item, outcome)
        if left is not None or effect is not None:
            key = _key(operation, item)
            if left is not None:
                self._left.note(key, left, now)
            else:
                self._left.forget(key)
        self._left.forget_old(now)

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


def _key(operation: ComparesState[Any], item: Item) -> str:
    return f"{operation.resource}:{operation.identities(item)[0]}"
