"""Writes that were sent again while their first send may still arrive, and what has to wait for them.

The answer to such a write was lost and its effect was not found, so it was sent again: the platform refuses to apply it
twice. But the next write in its lane can take that guard away: the organization is renamed and its first name is free
again, the file is deleted and can be created anew. So until the settle time is over nothing else is sent in that
lane; where the lane is wider than what is written (the files of a repository), nothing else of the same path. What an
earlier process of the run has sent twice counts as sent now (`resume_state.py`). Pure; monotonic times come in. Source:
operations.md (policies C, K, O); failures.md row 7.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bulk.model import Effect


@dataclass(frozen=True, slots=True)
class LateWrite:
    """One send that may still arrive.

    Attributes:
        owner: (job, index) of its item, which need not wait for itself.
        lanes, path: what the send writes, folded. `lanes` None: any of `resource`; the ledger can't tell which.
        until: when the send is believed to be gone (monotonic seconds).
    """

    owner: tuple[int, int]
    resource: str
    lanes: frozenset[str] | None
    path: str
    effect: Effect
    until: float

    def hinders(self, owner: tuple[int, int], lanes: frozenset[str], path: str) -> bool:
        """Return whether a write of another item could let this one apply after all."""
        if owner == self.owner or not self._shares(lanes):
            return False
        return self.effect is not Effect.COMPARE_AND_SWAP or path == self.path

    def _shares(self, lanes: frozenset[str]) -> bool:
        if self.lanes is not None:
            return not lanes.isdisjoint(self.lanes)
        return any(lane.startswith(f"{self.resource}:") for lane in lanes)


class LateWrites:
    """All late writes of a run, and some that are over. There are few: only lost answers make one."""

    def __init__(self, earlier: Iterable[LateWrite] = ()) -> None:
        self.all = list(earlier)

    def add(self, late_write: LateWrite, now: float) -> None:
        """Remember a send; forget those that are over by `now`."""
        self.all = [each for each in self.all if each.until > now]
        self.all.append(late_write)

    def wait_s(self, owner: tuple[int, int], lanes: frozenset[str], path: str, now: float) -> float:
        """Return how long a write of the item `owner` has to wait (seconds); 0.0: it may leave."""
        waits = (each.until - now for each in self.all if each.hinders(owner, lanes, path))
        return max((0.0, *waits))


def folded(resource: str, lanes: Sequence[str]) -> frozenset[str]:
    """Return names of lanes as `LateWrite` compares them: the platform ignores case, and resources don't share
    lanes."""
    return frozenset(f"{resource}:{lane.casefold()}" for lane in lanes)
