"""An item that has ended, with the type of its result: what `map` gives. At run time it is a `Finished`."""

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from bulk.model import ItemError, OutcomeKind

ResultT_co = TypeVar("ResultT_co", covariant=True)


class FinishedItem(Protocol[ResultT_co]):
    """How one item ended: the fields of a line of `results.jsonl` (interface.md §5).

    Attributes:
        index: its place among the items, from 0. id: the caller's own, or None.
        item: as it was given, without large fields that were sent and without secrets.
        outcome: `succeeded`, `unchanged`, `failed`, `skipped` or `unknown`.
        attempts: sends of the request that decided (count).
        started_at: the first send, or when the item was skipped (UTC epoch seconds).
        elapsed_ms: from the first send to the outcome.
        result: of the type that the operation declares (`Returns`); None where the item failed or was skipped.
        error: code and message; None where the item succeeded or was unchanged.
    """

    @property
    def index(self) -> int: ...  # noqa: D102 - the class says what the members are

    @property
    def id(self) -> str | None: ...  # noqa: D102

    @property
    def item(self) -> Mapping[str, Any]: ...  # noqa: D102

    @property
    def outcome(self) -> OutcomeKind: ...  # noqa: D102

    @property
    def http_status(self) -> int | None: ...  # noqa: D102

    @property
    def attempts(self) -> int: ...  # noqa: D102

    @property
    def started_at(self) -> float: ...  # noqa: D102

    @property
    def elapsed_ms(self) -> float: ...  # noqa: D102

    @property
    def request_id(self) -> str | None: ...  # noqa: D102

    @property
    def result(self) -> ResultT_co: ...  # noqa: D102

    @property
    def error(self) -> ItemError | None: ...  # noqa: D102
