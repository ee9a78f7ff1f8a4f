"""Stand-ins for operations in a rehearsal: with their lanes and categories, and with as many requests.

What the answers will say is not known, so that each item is taken to be written. Items that will be made from results
have a lane each.
"""

import functools
from collections.abc import Sequence
from typing import Any, ClassVar

from bulk.capabilities import CombinedSteps
from bulk.model import Effect, Lost, NotApplied, Outcome, Request, succeeded
from bulk.operation import AnyOperation, Item, Operation, Settling, Steps


class PendingItem(Item, frozen=True, kw_only=True):
    """An item that is not known yet, and that counts as another one than all others of its job, by its place."""

    place: int


def shaped(operation: AnyOperation) -> AnyOperation:
    """Return a stand-in for an operation, which has the same lanes and sends as many requests."""
    base: Any = type(operation)

    class Shaped(base):  # type: ignore[misc]
        name = operation.name
        result_is_reply = False
        file_fields: ClassVar[Any] = {}
        secret_fields: ClassVar[Any] = frozenset()

        def steps(self, item: Any) -> Steps:
            return _steps(operation, item)

        def steps_after(self, item: Any, left: Any, lag_s: float) -> Steps:
            return _steps(operation, item)

        def steps_combined(self, items: Sequence[Any]) -> CombinedSteps:
            return _combined(operation, items)

        def left(self, item: Any, outcome: Outcome) -> None:
            return None

        def new_names(self, item: Any) -> tuple[str, ...]:
            return ()

        def planned(self, item: Any, began_at: float) -> Any:
            return item

        def settle(self, item: Any, lost: Lost) -> Settling:
            return _settle(operation, item)

    Shaped.resource = operation.resource
    made: AnyOperation = Shaped()
    return made


@functools.cache
def pending(operation: AnyOperation) -> AnyOperation:
    """Return a stand-in for an operation whose items are not known yet: each item that writes has a lane of its own."""

    class Pending(Operation[PendingItem]):
        name = operation.name
        Item = PendingItem
        category = operation.category
        is_read = operation.is_read
        least_requests, most_requests = operation.least_requests, operation.most_requests

        def lanes(self, item: PendingItem) -> tuple[str, ...]:
            return () if operation.is_read else (str(item.place),)

        def steps(self, item: PendingItem) -> Steps:
            return _steps(operation, item)

        def settle(self, item: PendingItem, lost: Lost) -> Settling:
            return _settle(operation, item)

    return Pending()


def _request(operation: AnyOperation, kind: str, key: str, **more: Any) -> Request:
    path = f"/{operation.category}/{operation.name}/{kind}/{key}"
    if kind == "write":
        return Request(method="PUT", path=path, effect=Effect.SET, before=None, **more)
    return Request(method="GET", path=path, is_fresh=True)


def _steps(operation: AnyOperation, item: Any) -> Steps:
    key = str(id(item))
    reads = operation.most_requests - (0 if operation.is_read else 1)
    for _ in range(reads):
        yield _request(operation, "read", key)
    if not operation.is_read:
        yield _request(operation, "write", key)
    return succeeded(None)


def _combined(operation: AnyOperation, items: Sequence[Any]) -> CombinedSteps:
    key = str(id(items))
    yield _request(operation, "read", key)
    places = tuple(range(len(items)))
    path = f"/{operation.category}/{operation.name}/write/{key}"
    yield Request(method="PUT", path=path, effect=Effect.SET, before=[None] * len(items), shared_by=places)
    return [succeeded(None) for _ in items]


def _settle(operation: AnyOperation, item: Any) -> Settling:
    reply = yield _request(operation, "read", str(id(item)))
    return succeeded(None) if reply.body else NotApplied()
