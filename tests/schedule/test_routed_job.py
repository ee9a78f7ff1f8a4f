"""The items of a job apart by account: each once, whoever asks and however often."""

from array import array
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bulk.manifest.manifest import Entry
from bulk.operation import Item
from bulk.schedule.routed_job import RoutedJob


class Rows:
    """A source of so many items, which only goes forward."""

    def __init__(self, count: int, opened: list[int]) -> None:
        self._count, self._next = count, 0
        opened[0] += 1

    def take(self, count, next_left, *, near=None):
        """As `EntryStream.take`."""
        found: list[Any] = []
        wanted = next_left(self._next)
        while len(found) < count and wanted < self._count:
            assert wanted >= self._next, "a stream never goes back"
            found.append(Entry(0, wanted, Item(), {}))
            self._next = wanted + 1
            wanted = next_left(self._next)
        return found


@given(
    owners=st.lists(st.integers(0, 4), min_size=1, max_size=200),
    done=st.sets(st.integers(0, 199)),
    asks=st.lists(st.integers(0, 4), max_size=300),
    is_sorted=st.booleans(),
)
def test_each_item_once_for_its_own_account(owners, done, asks, is_sorted):
    """Whatever the order of items and of questions, each item that is not done is given once, and to its account;
    the source is opened a few times."""
    owners = sorted(owners) if is_sorted else owners
    opened = [0]
    routed = RoutedJob(list("abcde"), array("I", owners), lambda: Rows(len(owners), opened))

    def next_left(index: int) -> int:
        while index < len(owners) and index in done:
            index += 1
        return index

    given_out: dict[int, list[int]] = {account: [] for account in range(5)}
    for account in [*asks, *range(5)]:
        count = 3 if account in asks else len(owners)
        given_out[account] += [entry.index for entry in routed.stream(account).take(count, next_left) or ()]
    for account in range(5):
        while found := routed.take(account, 7, next_left):
            given_out[account] += [entry.index for entry in found]
    for account, indexes in given_out.items():
        assert sorted(indexes) == [at for at, owner in enumerate(owners) if owner == account and at not in done]
    assert opened[0] <= 16 + 5


def test_what_is_left_is_counted():
    """An account's items without an outcome are known at any moment."""
    routed = RoutedJob(["a", "b"], array("I", [0, 1, 0]), lambda: Rows(3, [0]))
    assert routed.left == [2, 1]
    routed.note_done(2)
    assert (routed.left, routed.account(1)) == ([1, 1], 1)
