"""Waves of items that wait by key, against a model that looks at every item."""

from bisect import bisect_right
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bulk.manifest.manifest import Job, KeyedNeed
from bulk.manifest.needs.wave_ends import inheriting
from bulk.schedule.waves import wave_numbers
from tests.schedule.test_keyed_scheduler import linked
from tests.schedule.test_scheduler import Read, Write


def a_job(number: int, *needs: str, by_key: tuple[str, ...] = (), is_read: bool = False, **more: Any) -> Job:
    """A job that needs these whole jobs, and those by key; they are named by their numbers."""
    keyed = tuple(KeyedNeed(name, (("a", "b"),)) for name in by_key)
    operation = Read() if is_read else Write()
    return Job(
        number=number, name=str(number), operation=operation, items=(), needs=(*needs, *by_key), by_key=keyed, **more
    )


@pytest.mark.parametrize(
    ("jobs", "found"),
    [
        ([a_job(0), a_job(1, by_key=("0",)), a_job(2, by_key=("1",))], {1, 2}),
        # behind reads that are not cut, a job is cut itself; behind reads that wait by key for one, it is not
        ([a_job(0, is_read=True), a_job(1, by_key=("0",))], set()),
        ([a_job(0), a_job(1, by_key=("0",), is_read=True), a_job(2, by_key=("1",))], {1, 2}),
        # what nothing holds back would all be in the first wave
        ([a_job(0), a_job(1, by_key=("0",), is_free_unmatched=True)], set()),
        # what a whole job holds up until its last wave would all be in that one
        ([a_job(0), a_job(1), a_job(2, "0", by_key=("1",))], set()),
        ([a_job(0), a_job(1, "0", is_read=True), a_job(2), a_job(3, "1", by_key=("2",))], set()),
        ([a_job(0, is_read=True), a_job(1), a_job(2, "0", by_key=("1",))], {2}),
    ],
)
def test_which_jobs_inherit(jobs: list[Job], found: set[int]) -> None:
    """A job goes in the waves of what it needs by key where these hold back each of its items, and nothing else."""
    assert inheriting(jobs) == found


KEYS = st.lists(st.integers(0, 5), min_size=1, max_size=20)


@settings(max_examples=200)
@given(first=KEYS, second=KEYS, waiting=KEYS, behind=KEYS, ends=st.lists(st.integers(1, 20), min_size=1, max_size=3))
def test_an_item_is_in_the_latest_wave_of_what_it_needs(
    first: list[int], second: list[int], waiting: list[int], behind: list[int], ends: list[int]
) -> None:
    """Of two jobs that are cut, and of one that waits for those in turn."""
    jobs = [a_job(0), a_job(1), a_job(2, by_key=("0", "1")), a_job(3, by_key=("2",))]
    links = linked(jobs, ([first, second, waiting], [waiting, waiting, behind]))
    counts = dict(enumerate(map(len, (first, second, waiting, behind))))
    cuts = {0: sorted(ends), 1: [len(second)]}
    found = wave_numbers(links, inheriting(jobs), cuts, counts)

    def latest(its: list[int], waves: list[int], key: int) -> int:
        return max((wave for other, wave in zip(its, waves, strict=True) if other == key), default=1)

    roots = [
        [bisect_right(cuts[job], index) + 1 for index in range(len(its))] for job, its in enumerate((first, second))
    ]
    middle = [max(latest(first, roots[0], key), latest(second, roots[1], key)) for key in waiting]
    assert {job: list(numbers) for job, numbers in found.items()} == {
        2: middle,
        3: [latest(waiting, middle, key) for key in behind],
    }
