"""The input and the result of a forecast. Moments are UTC epoch seconds of one clock, the caller's."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

Key: TypeAlias = tuple[str, str]
"""Who pays: (credential, category)."""
WRITE_S = 0.006
"""Time that a write takes beside the way to the platform and back (seconds), until one was seen: its intent is synced
to the disk, and it is applied. Measured on a local disk with a sandbox on the same machine; 0.014 where both are busy.
"""


@dataclass(frozen=True, slots=True)
class Budget:
    """The requests that one credential may send in one category.

    Attributes:
        limit: requests in a window, the reserve taken off (count).
        left: requests that may still leave in this window, the reserve taken off (count, >= 0).
        window_s: length of a window (seconds).
        reset_at: end of this window; None: the next request opens one.
        opens_at: nothing leaves before this moment, whatever is left.
        is_even: if the work needs more requests than are left, these are spread over the time to the reset.
    """

    limit: float
    left: float
    window_s: float
    reset_at: float | None = None
    opens_at: float = 0.0
    is_even: bool = True


@dataclass(frozen=True, slots=True)
class Work:
    """The remaining work of a job.

    Attributes:
        items: items that have not ended (count), those under way included.
        cost: requests that an item takes from its budget (count).
        item_s: time from an item's first request to its end, without waits for a permit (seconds, > 0).
        lanes: items that may be under way at once, as no two of them share a lane (count).
        longest: items of its longest lane (count); 0: the job has no lanes.
        lane_s: `item_s` of an item in that lane; None: the same.
        needs: names of jobs that end before the job begins.
        follows: names of jobs of which each item needs some items; these are taken to be needed evenly.
        opened: items that need nothing more of those jobs (count), items under way included.
        is_running: some of its items are under way.
        tail_s: time from the last answer to the last end, as for a lost answer that must be settled (seconds).
    """

    name: str
    pays: Key
    items: float
    cost: float
    item_s: float
    lanes: float = math.inf
    longest: float = 0.0
    lane_s: float | None = None
    needs: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    opened: float = 0.0
    priority: int = 0
    is_running: bool = False
    tail_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Capacity:
    """Items that may be under way, one request of each in flight.

    Attributes:
        now, most: limit at the beginning, and once it has grown (count). round_s: time in which the limit doubles while
            it is used up (seconds).
        each: most items of one budget (count).
        per_second: requests that can be answered in a second, over all payers (count).
        reset_s: time from the end of a window until requests leave in the next one (seconds).
    """

    now: float
    most: float
    each: float
    round_s: float = 0.0
    per_second: float = math.inf
    reset_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Forecast:
    """The result of a forecast.
    Attributes:
        end_at: when the last job ends; None: never, or not within reason.
        ends: when each job ends, by its name; a job that never ends is missing.
    """

    end_at: float | None
    ends: Mapping[str, float]


def with_losses(work: Work, share: float, pause_s: float, requests: float, *, is_read: bool) -> Work:
    """Return `work` with the time and requests that it takes if `share` of its answers is lost.

    It takes more in one case in forty only.

    Args:
        share: lost share of all answers (0 to 1). pause_s: time until a lost one is settled or sent again (seconds).
        requests: requests that an item of the work sends (count).
    """
    if not work.items or not share:
        return work
    lost, lost_in_lane = (_at_most(share * requests * items) for items in (work.items, work.longest))
    once_s = work.item_s + pause_s
    item_s = work.item_s + share * requests * once_s
    lane_s = work.item_s + lost_in_lane * once_s / work.longest if work.longest else item_s
    return replace(
        work,
        item_s=item_s,
        lane_s=max(item_s, lane_s),
        cost=work.cost + lost * (requests if is_read else requests + 1.0) / work.items,
        tail_s=work.tail_s + once_s if lost >= 0.5 else work.tail_s,
    )


def _at_most(expected: float) -> float:
    """Return how many rare events happen at most where `expected` are, in all but one case in forty (count)."""
    return expected + 2.0 * math.sqrt(expected)
