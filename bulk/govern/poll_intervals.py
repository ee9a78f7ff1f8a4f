"""Obeys `X-Poll-Interval`: says when a list that is made for polling may be asked again, for each credential and list.

A list is polled by one item at a time, because only the answer says how long to wait for the next poll, and that time
may grow under load. Source: specification, Events 5; design.md §4 (the pages of one listing are one poll).
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import anyio

from bulk.platform.moments import MOST_WAIT_S

HEADER = "x-poll-interval"


@dataclass(slots=True, eq=False)
class Poll:
    """One list, as one credential polls it.

    Attributes:
        turn: held while it is polled.
        not_before: the next poll waits until then (monotonic).
        waiting: items that want to poll the list, or do (count).
    """

    turn: anyio.Lock = field(default_factory=anyio.Lock)
    not_before: float = 0.0
    waiting: int = 0

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count the caller as one that wants to poll the list, for the time of the block."""
        self.waiting += 1
        try:
            yield
        finally:
            self.waiting -= 1

    def wait_s(self, now: float) -> float:
        """Return the seconds until the list may be polled; 0.0 means now. `now` is monotonic."""
        return max(0.0, self.not_before - now)

    def answered(self, headers: Mapping[str, str], now: float) -> None:
        """Note that a poll was answered at `now` (monotonic); header names are in lower case. No header: no wait."""
        self.not_before = now + interval_s(headers)


class PollIntervals:
    """All lists that were polled."""

    def __init__(self) -> None:
        self._polls: dict[tuple[str, str], Poll] = {}

    def of(self, credential: str, path: str) -> Poll:
        """Return the list at `path`, as `credential` sees it."""
        return self._polls.setdefault((credential, path), Poll())

    def waits(self, now: float) -> list[tuple[str, Poll]]:
        """Return the paths and polls of the lists that are waited for because of their interval. `now` is monotonic."""
        return [(path, poll) for (_, path), poll in self._polls.items() if poll.waiting and poll.not_before > now]


def interval_s(headers: Mapping[str, str]) -> float:
    """Return what `X-Poll-Interval` asks for (seconds, 0..3700); 0.0 where it is missing or no number."""
    text = headers.get(HEADER, "").strip()
    if not text.isascii() or not text.isdigit():
        return 0.0
    return min(MOST_WAIT_S, float(text[:15])) if len(text) <= 15 else MOST_WAIT_S
