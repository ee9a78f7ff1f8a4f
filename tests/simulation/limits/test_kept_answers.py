"""A 304 that names another version than the one that is kept does not confirm that one, and one that can't be read is
not waited for."""

from pathlib import Path

import pytest

from tests.simulation.schedules import readmes
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, FINE, Fate, answer
from tests.simulation.world import simulate, world


def test_a_304_of_another_version_confirms_nothing(folder: Path) -> None:
    """failures.md row 13: a cache on the way confirms something newer: one more request, without conditions."""

    async def main() -> None:
        async with world(folder) as made:
            made.cache = folder / "cache"
            first = made.write("first", {"reads": {"operation": "readme.get", "items": readmes(3)}})
            assert (await made.run(first)).exit_code == 0
            sent = len(made.network.exchanges)

            def newer(each: Exchange) -> Fate:
                is_one = each.is_conditional and "repo-00001" in each.path
                return answer(304, b"", ETag='"another"') if is_one else FINE

            made.network.fate_of = newer
            again = made.write("again", {"reads": {"operation": "readme.get", "items": readmes(3)}})
            assert (await made.run(again)).exit_code == 0
            assert [line["outcome"] for line in made.lines(again)] == ["unchanged", "succeeded", "unchanged"]
            reads = [each for each in made.network.exchanges[sent:] if "readme" in each.path]
            assert len(reads) == 4

    simulate(main)


@pytest.mark.parametrize("fate", [answer(304, b'{"size": 1}'), DROP_AFTER], ids=["with a body", "lost"])
def test_what_lets_no_304_through_is_asked_without_conditions(folder: Path, fate: Fate) -> None:
    """failures.md row 13: a read whose conditional requests fail four times is sent without conditions."""

    async def main() -> None:
        async with world(folder) as made:
            made.cache = folder / "cache"
            first = made.write("first", {"reads": {"operation": "readme.get", "items": readmes(3)}})
            assert (await made.run(first)).exit_code == 0
            sent = len(made.network.exchanges)
            made.network.fate_of = lambda each: fate if each.is_conditional else FINE
            again = made.write("again", {"reads": {"operation": "readme.get", "items": readmes(3)}})
            assert (await made.run(again)).exit_code == 0
            reads = [each for each in made.network.exchanges[sent:] if "readme" in each.path]
            assert [each.is_conditional for each in reads].count(False) == 3
            assert len(reads) <= 3 * 5

    simulate(main)
