"""An item that has ended, with the type of its result, as `map` yields it. At run time it is a `Finished`."""

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from bulk.model import ItemError, OutcomeKind

ResultT_co = TypeVar("ResultT_co", covariant=True)


class FinishedItem(Protocol[ResultT_co]):
    """How one item ended: the fields of a line of `results.jsonl` (interface.md §5).

    Attributes:
        index: place of the item among the items, from 0. id: the caller's own `id` of the item, or None.
        item: the item as it was given, without large fields that were sent and without secrets.
        outcome: `succeeded`, `unchanged`, `failed`, `skipped` or `unknown`.
        attempts: how often the request that decided the outcome was sent (count).
        started_at: when the first request was sent, or when the item was skipped (UTC epoch seconds).
        elapsed_ms: time from the first send to the outcome (milliseconds).
        result: a value of the type that the operation declares (`Returns`); None if the item failed or was skipped.
        error: code and message of the error; None if the item succeeded or was unchanged.
    """

    @property
    def index(self) -> int: ...  # noqa: D102 - the docstring of the class explains the members

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
