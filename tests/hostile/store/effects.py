"""The list of effects: what was really changed, when, and by whom. It is the only judge of a run."""

from dataclasses import dataclass, field
from typing import Any

from tests.hostile.store.state import Key


@dataclass(frozen=True, slots=True)
class Effect:
    """One change.

    Attributes:
        at: from when on it shows (seconds); a change in the background begins after its answer.
        kind: what was done, such as `file` or `hook created`. key: of what was changed.
        value: what it is now; None where it is gone.
        by: "us", or "other".
    """

    at: float
    kind: str
    key: Key
    value: Any
    by: str


@dataclass(slots=True)
class Effects:
    """All of them, in the order in which they were decided."""

    listed: list[Effect] = field(default_factory=list)

    def add(self, effect: Effect) -> None:
        """Write one down."""
        self.listed.append(effect)

    def ours(self) -> list[Effect]:
        """Those that the run under test made."""
        return [effect for effect in self.listed if effect.by == "us"]
