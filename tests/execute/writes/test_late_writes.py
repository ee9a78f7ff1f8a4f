"""Which writes wait for an earlier send that may still arrive: pure."""

from collections.abc import Callable

import pytest

from bulk.execute.writes.late_writes import Echo, Echoes, folded
from bulk.model import Effect

LANE = folded("contents", ("Acme/Api",))


def echo(effect: Effect = Effect.COMPARE_AND_SWAP, path: str = "/a", until: float = 10.0) -> Echo:
    return Echo((0, 1), "contents", LANE, path, effect, until)


def of_this_process(effect: Effect) -> Echoes:
    echoes = Echoes()
    echoes.add(echo(effect), now=0.0)
    return echoes


def of_an_unknown_lane(effect: Effect) -> Echoes:
    return Echoes([Echo((0, 1), "contents", None, "/a", effect, until=10.0)])


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
    sent_twice: Callable[[Effect], Echoes], effect: Effect, owner: tuple[int, int], lanes: frozenset[str], path: str,
    wait_s: float,
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
    echoes = Echoes()
    assert not echoes
    echoes.add(echo(until=1.0), now=0.0)
    echoes.add(echo(until=9.0), now=2.0)
    assert echoes
    assert len(echoes._echoes) == 1
    assert echoes.wait_s((0, 2), LANE, "/a", now=20.0) == 0.0


def test_the_longest_wait_counts() -> None:
    """Of several echoes the last one to be over decides."""
    echoes = Echoes()
    for until in (5.0, 8.0, 7.0):
        echoes.add(echo(until=until), now=0.0)
    assert echoes.wait_s((0, 2), LANE, "/a", now=1.0) == 7.0
