"""A row of the table: an operation, the item that is tried, and how the effects judge what the engine says of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.hostile.platform import Platform
from tests.hostile.store.effects import Effect
from tests.hostile.store.state import Key, State


@dataclass(frozen=True, slots=True)
class Look:
    """The platform's state as it was at a moment."""

    state: State
    at: float

    def get(self, *key: Any) -> Any:
        """What was under a key."""
        return self.state.get(key, self.at)

    def all(self, *prefix: Any) -> list[tuple[Key, Any]]:
        """Everything below."""
        return list(self.state.under(prefix, self.at))


def _nobody(platform: Platform, now: float) -> None:
    """Nobody meddles."""


@dataclass(frozen=True, slots=True)
class Row:
    """One operation with the items of one job.

    Attributes:
        name: of the row; an operation may have several.
        holds: for each item whether what it asks for is so, at a moment (writes).
        is_right: whether a result belongs to the item and is what the platform has (reads).
        belongs: whether one of our effects is that of an item; the one item of a row has them all.
        meddle: what somebody else does to the same thing.
        proofs: statuses whose answers have no body in the specification, so that the status is the proof.
        is_told: whether a message is all that the body of its 202 shows.
        has_any_body: whatever bytes an answer has are right (raw files).
        names_itself: something in an answer says which item it belongs to.
        is_blind: nothing that can be read shows whether it was done, or nobody looks whether it was so before.
        is_unseen: nobody looks whether it was so before: after a refusal it may be called unchanged, with a note.
        is_list: an empty array is a right answer to what it reads.
        is_only_listed: what it creates could be created twice, and only a list shows it.
        is_empty_elsewhere: what is read of another item is an empty list, which does not say whose it is.
        prepare: what the platform has besides the seeds, at a moment.
    """

    name: str
    items: Sequence[dict[str, Any]]
    holds: Callable[[Look, dict[str, Any]], bool] | None = None
    is_right: Callable[[Any], bool] | None = None
    belongs: Callable[[Effect, dict[str, Any]], bool] = lambda effect, item: True
    meddle: Callable[[Platform, float], None] = _nobody
    proofs: tuple[int, ...] = ()
    is_told: bool = False
    has_any_body: bool = False
    names_itself: bool = True
    is_blind: bool = False
    is_unseen: bool = False
    is_list: bool = False
    is_only_listed: bool = False
    is_empty_elsewhere: bool = False
    prepare: Callable[[State, float], None] = lambda state, at: None
    with_: dict[str, Any] = field(default_factory=dict)

    @property
    def operation(self) -> str:
        """Its name in a manifest."""
        return self.name.partition(" ")[0]

    @property
    def writes(self) -> bool:
        """Whether it changes anything."""
        return self.holds is not None

    @property
    def meddles(self) -> bool:
        """Whether somebody else could change the same thing."""
        return self.meddle is not _nobody
