"""The length of a window: shown by an untouched one, learned from the ones before, or judged by what is known."""

import math

USUAL_WINDOWS_S = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 60, 3_600, 86_400)
HOURLY = frozenset(("core", "graphql", "integration_manifest", "scim", "actions_runner_registration"))
HOURLY_LIMIT = 1_000
"""With at least this limit (count), a category that is hourly by its documentation is taken for hourly, however soon it
resets."""


def window_length(category: str, limit: int, left: int, until_reset_s: float) -> float:
    """Return the length of a window of which only the end is known (seconds).

    An untouched window shows its whole length. Otherwise the length is at least the time left: an hour if the
    documentation and the limit say so, and else the shortest usual length that holds the time left.

    Args:
        limit, left: requests in a window, and left in this one (count). until_reset_s: time until its end (seconds).
    """
    seen_s = max(1, math.ceil(until_reset_s - 0.001))
    if left >= limit:
        return float(seen_s)
    if category in HOURLY and limit >= HOURLY_LIMIT:
        return float(max(3_600, seen_s))
    return float(next((usual for usual in USUAL_WINDOWS_S if usual >= seen_s), seen_s))
