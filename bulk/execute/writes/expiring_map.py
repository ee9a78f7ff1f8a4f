"""A map whose entries count for a while after they were noted, each equally long. Pure; monotonic times come in."""

from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


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
