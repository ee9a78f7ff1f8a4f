"""An item that has ended, as results, the report and listeners see it."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bulk.model import Encoded, ItemError, OutcomeKind


@dataclass(init=False, slots=True, unsafe_hash=True)
class Finished:
    """An item that has ended: one line of `results.jsonl` (interface.md §5).

    Attributes:
        item: the item as the user gave it, without large fields that were sent and without secrets.
        attempts: how often the request that decided the outcome was sent (count).
        started_at: when the first request was sent, or when the item was skipped (UTC epoch seconds).
        unchanged_by: `date` if only the time of the last change shows that the answer is unchanged.
        elapsed_ms: time from the first send to the outcome (milliseconds).
        missing: the thing that was asked for is proven not to be there, which the job allows.
    """

    job: Final[str]
    index: Final[int]
    id: Final[str | None]
    item: Final[Mapping[str, Any]]
    outcome: Final[OutcomeKind]
    http_status: Final[int | None]
    attempts: Final[int]
    started_at: Final[float]
    elapsed_ms: Final[float]
    request_id: Final[str | None]
    result: Final[Any]
    error: Final[ItemError | None]
    missing: Final[bool]
    unchanged_by: Final[str | None]

    def __init__(
        self,
        job: str,
        index: int,
        id: str | None,  # noqa: A002 - the name that it has in results
        item: Mapping[str, Any],
        outcome: OutcomeKind,
        http_status: int | None,
        attempts: int,
        started_at: float,
        elapsed_ms: float,
        request_id: str | None,
        result: Any,
        error: ItemError | None,
        missing: bool = False,
        unchanged_by: str | None = None,
    ) -> None:
        self.unchanged_by = unchanged_by
        self.job, self.index, self.id, self.item = job, index, id, item
        self.outcome, self.http_status, self.attempts = outcome, http_status, attempts
        self.started_at, self.elapsed_ms, self.request_id = started_at, elapsed_ms, request_id
        self.result, self.error, self.missing = result, error, missing

    def decoded(self) -> "Finished":
        """Return this object with its result decoded, for listeners in this process."""
        result = self.result
        return dataclasses.replace(self, result=result.decoded()) if type(result) is Encoded else self
