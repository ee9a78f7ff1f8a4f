"""The items of a job, kept apart by the account that pays: those of an App, where each owner has its own installation.

A drained account must not hold up the others, in whatever order the items stand. Items are read from the place of an
account's next one; items of other accounts that lie there are put by for them, as long as there are not too many. So
every item of a mixed source is read once, and in a source in the order of owners no item is read that can't be sent.
Only reads go this way, because nothing relies on their order: an item that was put by for an account may lie behind
items that are still to be found.
"""

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from bulk.manifest.manifest import Entry
from bulk.schedule.queues import Stream

AHEAD = 256
"""Items that are read together (count)."""
PUT_BY_MOST = 20_000
"""Most items that are put by for other accounts (count); above, only items of the asking account are read."""
OPEN_MOST = 16
"""Streams of one source that are open at once (count)."""


class RoutedJob:
    """The items of one job, kept apart by account.

    Args:
        names: names of the accounts. account_of: for each item, the number of its account (indexed by item).
        open_stream: opens the items anew, from the first on.

    Attributes:
        left: items of each account without an outcome in this process (count). in_flight: those of them that were
            taken and have not ended, for each account (count).
    """

    def __init__(self, names: Sequence[str], account_of: "array[int]", open_stream: Callable[[], Stream]) -> None:
        self.names, self._account_of, self._open = names, account_of, open_stream
        self.left = [account_of.count(number) for number in range(len(names))]
        self.in_flight = [0 for _ in names]
        self._put_by: list[deque[Entry]] = [deque() for _ in names]
        self._count = 0
        self._next = [0 for _ in names]
        self._is_taken = bytearray(len(account_of))
        self._streams: list[_Place] = []

    def account(self, index: int) -> int:
        """Return the number of an item's account."""
        return self._account_of[index]

    def note_done(self, index: int) -> None:
        """Note that this item has an outcome."""
        self.left[self._account_of[index]] -= 1

    def take_on(self, indexes: Iterable[int]) -> None:
        """Take on these items, which were not to be done here before."""
        for index in indexes:
            account = self._account_of[index]
            self.left[account] += 1
            self._is_taken[index] = 0
            self._next[account] = min(self._next[account], index)

    def stream(self, account: int) -> Stream:
        """Return the items of one account."""
        return _AccountStream(self, account)

    def take(self, account: int, count: int, next_left: Callable[[int], int]) -> list[Entry]:
        """Return the next items of an account that are not done, at most `count`; none at the end."""
        own = self._put_by[account]
        while not own:
            index = self._find(account, next_left)
            if index is None:
                return []
            self._read(account, index, next_left)
        found = [own.popleft() for _ in range(min(count, len(own)))]
        self._count -= len(found)
        return found

    def _find(self, account: int, next_left: Callable[[int], int]) -> int | None:
        """Return the first item of an account that was not taken and is not done."""
        index, end = self._next[account], len(self._account_of)
        while index < end:
            try:
                index = self._account_of.index(account, index)
            except ValueError:
                break
            if not self._is_taken[index] and next_left(index) == index:
                self._next[account] = index
                return index
            index += 1
        self._next[account] = end
        return None

    def _read(self, account: int, index: int, next_left: Callable[[int], int]) -> None:
        """Read items from `index` on, and put each by for its account."""
        is_alone = self._count >= PUT_BY_MOST
        of, taken, end = self._account_of, self._is_taken, len(self._account_of)

        def wanted(at: int) -> int:
            at = max(at, index)
            while (at := next_left(at)) < end and (taken[at] or (is_alone and of[at] != account)):
                at += 1
            return at

        place = self._place_before(index)
        entries = place.stream.take(AHEAD, wanted) or ()
        for entry in entries:
            taken[entry.index] = 1
            self._put_by[of[entry.index]].append(entry)
            place.next = entry.index + 1
        self._count += len(entries)
        if not entries:
            self._streams.remove(place)

    def _place_before(self, index: int) -> "_Place":
        """Return an open stream that has not passed by that item: the nearest one, or a new one."""
        near = [place for place in self._streams if place.next <= index]
        best = max(near, key=lambda place: place.next, default=None)
        if best is None or (index - best.next > AHEAD and len(self._streams) < OPEN_MOST):
            best = _Place(self._open())
            self._streams.append(best)
        if len(self._streams) > OPEN_MOST:
            self._streams.pop(0)
        return best


class _Place:
    """An open stream, and the item that it gives next at the earliest."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.next = stream, 0


class _AccountStream:
    def __init__(self, job: RoutedJob, account: int) -> None:
        self._job, self._account = job, account

    def take(self, count: int, next_left: Callable[[int], int], *, near: int | None = None) -> Sequence[Entry] | None:
        """Take the next entries as `Stream.take` does."""
        return self._job.take(self._account, count, next_left)
