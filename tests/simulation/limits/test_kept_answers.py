"""A 304 that names another version than the one that is kept does not confirm that one."""

from pathlib import Path

from tests.simulation.schedules import readmes
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer
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
