"""The cost of lost answers: requests that are sent again, reads that settle a write, lanes that wait meanwhile."""

import math
from dataclasses import replace

from bulk.forecast.work import Work


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
