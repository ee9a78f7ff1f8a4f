"""Which writes wait for an earlier send that may still arrive: pure."""

from collections.abc import Callable

import pytest

from bulk.execute.writes.late_writes import LateWrite, LateWrites, folded
from bulk.model import Effect

LANE = folded("contents", ("Acme/Api",))


def late_write(effect: Effect = Effect.COMPARE_AND_SWAP, path: str = "/a", until: float = 10.0) -> LateWrite:
    return LateWrite((0, 1), "contents", LANE, path, effect, until)


def of_this_process(effect: Effect) -> LateWrites:
    late_writes = LateWrites()
    late_writes.add(late_write(effect), now=0.0)
    return late_writes


def of_an_unknown_lane(effect: Effect) -> LateWrites:
    return LateWrites([LateWrite((0, 1), "contents", None, "/a", effect, until=10.0)])


@pytest.mark.parametrize("sent_twice", [of_this_process, of_an_unknown_lane])
@pytest.mark.parametrize(
    ("effect", "owner", "lanes", "path", "wait_s"),
    [
        (Effect.COMPARE_AND_SWAP, (0, 2), LANE, "/a", 6.0),
        (Effect.COMPARE_AND_SWAP, (0, 2), LANE, "/b", 0.0),
        (Effect.COMPARE_AND_SWAP, (0, 1), LANE, "/a", 0.0),
        (Effect.CREATE_UNIQUE, (1, 1), LANE, "/b", 6.0),
        (Effect.ORDERED, (1, 1), folded("snapshot", ("acme/api",)), "/a", 0.0),
        (Effect.CREATE_UNIQUE, (1, 1), folded("contents-of-others", ("acme/api",)), "/a", 0.0),
    ],
)
def test_who_waits(
    sent_twice: Callable[[Effect], LateWrites], effect: Effect, owner: tuple[int, int], lanes: frozenset[str],
    path: str, wait_s: float,
) -> None:  # fmt: skip
    """Another item of the same lane waits; in a lane of several things only one of the same path; nobody else does."""
    assert sent_twice(effect).wait_s(owner, lanes, path, now=4.0) == wait_s


def test_another_lane_waits_where_it_may_be_the_same() -> None:
    """Where the ledger can't tell the lane, what may free a name that was created holds up its whole kind."""
    other = folded("contents", ("acme/web",))
    assert of_this_process(Effect.CREATE_UNIQUE).wait_s((1, 1), other, "/b", now=4.0) == 0.0
    assert of_an_unknown_lane(Effect.CREATE_UNIQUE).wait_s((1, 1), other, "/b", now=4.0) == 6.0


def test_lanes_ignore_case() -> None:
    """The platform ignores the case of names, so an echo is found however its lane is written."""
    assert folded("contents", ("acme/API",)) == LANE
    assert folded("snapshot", ("acme/api",)) != LANE


def test_what_is_over_is_forgotten() -> None:
    """An echo that is over hinders nobody, and makes no room in memory."""
    late_writes = LateWrites()
    assert not late_writes.all
    late_writes.add(late_write(until=1.0), now=0.0)
    late_writes.add(late_write(until=9.0), now=2.0)
    assert len(late_writes.all) == 1
    assert late_writes.wait_s((0, 2), LANE, "/a", now=20.0) == 0.0


def test_the_longest_wait_counts() -> None:
    """Of several late writes the last one to be over decides."""
    late_writes = LateWrites()
    for until in (5.0, 8.0, 7.0):
        late_writes.add(late_write(until=until), now=0.0)
    assert late_writes.wait_s((0, 2), LANE, "/a", now=1.0) == 7.0
