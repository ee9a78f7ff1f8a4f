"""Pools whose members are wrong, each in its own way: what is said is so, nothing is done twice or sent beyond budgets,
nothing waits while a member could be used, and `/rate_limit` is not asked without end.

`python -m tests.hostile.pools` prints the whole table.
"""

from collections.abc import Callable

import pytest

from tests.hostile.pools.running import Work, told, try_way
from tests.hostile.pools.ways import WAYS, Way

NAMES = {way.name: way for way in WAYS}
BRIEF = (
    "plain",
    "revoked in the middle",
    "revoked while nobody sends",
    "told to wait, and back",
    "one at a time, Retry-After: 1",
    "502 for ever",
    "headers: the first's to the second",
    "no limit for the first",
    "no limit for any",
    "a Date of each",
    "one user, told at the second try",
)
"""What reads are tried with at each change; the others follow in the slow tests."""


def holds(way: Way, work: Work, count: int, size: int, figure: Callable[[str], None]) -> None:
    """What every way owes."""
    tried = try_way(way, work, count, size)
    figure(told(tried))
    assert tried.broken() == [], told(tried)


@pytest.mark.parametrize("name", BRIEF)
def test_a_pool_reads_in_spite_of_a_member(name: str, figure: Callable[[str], None]) -> None:
    """failures.md row 102: 140 reads with three members, of which one or two are wrong."""
    holds(NAMES[name], "reads", 140, 3, figure)


@pytest.mark.parametrize("way", [way for way in WAYS if way.name not in BRIEF], ids=lambda way: way.name)
def test_a_pool_reads_in_every_way(way: Way, figure: Callable[[str], None]) -> None:
    """The same in every other way."""
    holds(way, "reads", 140, 3, figure)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_pool_writes_each_file_once(way: Way, figure: Callable[[str], None]) -> None:
    """70 files in twelve lanes, with three members."""
    holds(way, "files", 70, 3, figure)


@pytest.mark.soak
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_pool_that_is_killed_says_what_is_so(way: Way) -> None:
    """Killed twice and begun again, in the middle of a window: a new process knows neither what was spent nor what its
    members were told."""
    works: tuple[tuple[Work, int], ...] = (("files", 70), ("hooks", 12))
    for work, count in works[: 1 + way.lets_create]:
        tried = try_way(way, work, count, kills=(0.12, 0.2))
        assert tried.report is not None, tried.trouble
        assert list(tried.lies()) == [], told(tried)


@pytest.mark.soak
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_pools_of_other_sizes(way: Way, size: int, figure: Callable[[str], None]) -> None:
    """Two members, and four: reads, files, and webhooks, which could be created twice."""
    holds(way, "reads", 140, size, figure)
    holds(way, "files", 70, size, figure)
    if way.lets_create:
        holds(way, "hooks", 12, size, figure)
