"""A 304 that names another version than the one that is kept does not confirm that one, and one that can't be read is
not waited for."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.simulation.schedules import readmes
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, FINE, Fate, answer
from tests.simulation.world import simulate, world


def read_again(folder: Path, fate_of: Callable[[Exchange], Fate]) -> tuple[list[str], list[Exchange]]:
    """Read three files twice; return the outcomes and the requests of the second run, to which `fate_of` applies."""
    jobs = {"reads": {"operation": "readme.get", "items": readmes(3)}}
    outcomes: list[str] = []
    reads: list[Exchange] = []

    async def main() -> None:
        async with world(folder) as made:
            made.cache = folder / "cache"
            assert (await made.run(made.write("first", jobs))).exit_code == 0
            sent = len(made.network.exchanges)
            made.network.fate_of = fate_of
            again = made.write("again", jobs)
            assert (await made.run(again)).exit_code == 0
            outcomes.extend(line["outcome"] for line in made.lines(again))
            reads.extend(each for each in made.network.exchanges[sent:] if "readme" in each.path)

    simulate(main)
    return outcomes, reads


def test_a_304_of_another_version_confirms_nothing(folder: Path) -> None:
    """failures.md row 13: a cache on the way confirms something newer: one more request, without conditions."""

    def newer(each: Exchange) -> Fate:
        is_one = each.is_conditional and "repo-00001" in each.path
        return answer(304, b"", ETag='"another"') if is_one else FINE

    outcomes, reads = read_again(folder, newer)
    assert outcomes == ["unchanged", "succeeded", "unchanged"]
    assert len(reads) == 4


@pytest.mark.parametrize("fate", [answer(304, b'{"size": 1}'), DROP_AFTER], ids=["with a body", "lost"])
def test_what_lets_no_304_through_is_asked_without_conditions(folder: Path, fate: Fate) -> None:
    """failures.md row 13: a read whose conditional requests fail four times is sent without conditions."""
    _, reads = read_again(folder, lambda each: fate if each.is_conditional else FINE)
    assert [each.is_conditional for each in reads].count(False) == 3
    assert len(reads) <= 3 * 5
