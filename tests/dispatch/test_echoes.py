"""Which writes wait for an earlier send that may still arrive: pure."""

import pytest

from bulk.dispatch.echoes import Echo, Echoes, earlier, folded
from bulk.ledger.records import Intent
from bulk.model import Effect

LANE = folded("contents", ("Acme/Api",))


def echo(effect: Effect = Effect.COMPARE_AND_SWAP, path: str = "/a", until: float = 10.0) -> Echo:
    return Echo((0, 1), "contents", LANE, path, effect, until)


@pytest.mark.parametrize(
    ("effect", "owner", "lanes", "path", "wait_s"),
    [
        (Effect.COMPARE_AND_SWAP, (0, 2), LANE, "/a", 6.0),
        (Effect.COMPARE_AND_SWAP, (0, 2), LANE, "/b", 0.0),
        (Effect.COMPARE_AND_SWAP, (0, 1), LANE, "/a", 0.0),
        (Effect.COMPARE_AND_SWAP, (0, 2), folded("contents", ("acme/web",)), "/a", 0.0),
        (Effect.CREATE_UNIQUE, (1, 1), LANE, "/b", 6.0),
        (Effect.ORDERED, (1, 1), folded("snapshot", ("acme/api",)), "/a", 0.0),
    ],
)
def test_who_waits(effect: Effect, owner: tuple[int, int], lanes: frozenset[str], path: str, wait_s: float) -> None:
    """Another item of the same lane waits; in a lane of several things only one of the same path; nobody else does."""
    echoes = Echoes()
    echoes.add(echo(effect), now=0.0)
    assert echoes.wait_s(owner, lanes, path, now=4.0) == wait_s


@pytest.mark.parametrize(
    ("effect", "owner", "lanes", "path", "wait_s"),
    [
        (Effect.COMPARE_AND_SWAP, (0, 2), LANE, "/a", 6.0),
        (Effect.COMPARE_AND_SWAP, (0, 2), LANE, "/b", 0.0),
        (Effect.COMPARE_AND_SWAP, (0, 1), LANE, "/a", 0.0),
        (Effect.CREATE_UNIQUE, (1, 1), folded("contents", ("other/repo",)), "/b", 6.0),
        (Effect.CREATE_UNIQUE, (1, 1), folded("contents-of-others", ("acme/api",)), "/a", 0.0),
    ],
)
def test_who_waits_for_an_earlier_process(
    effect: Effect, owner: tuple[int, int], lanes: frozenset[str], path: str, wait_s: float
) -> None:
    """What the ledger knows of hinders the same path, or, where one write can free another's name, its whole kind."""
    intent = Intent(job=0, index=1, method="PUT", path="/A", memo=None, effect=effect, sent_at=1.0)
    echoes = Echoes(earlier({(0, 1): intent}, ["contents"], until=10.0))
    assert echoes.wait_s(owner, lanes, path, now=4.0) == wait_s


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
