"""Writes that were refused: their effects are looked for, and many that are refused for a reason cost few looks."""

from pathlib import Path
from typing import Any

import pytest

from bulk.execute.writes.refused_writes import LOOKS_FIRST, LOOKS_THEN, TWICE_FIRST, RefusedWrites
from tests.execute.test_item_runner import JSON, play, sends
from tests.simulation.schedules import put
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer
from tests.simulation.world import World

KIND = ("contents.put", 422)


def test_the_first_refusals_of_a_kind_are_looked_into_and_a_part_of_the_others():
    """The first ones twice or once, then one in so many; another status is another kind."""
    refused = RefusedWrites()
    looks = [refused.looks(KIND) for _ in range(10 * LOOKS_THEN)]
    assert looks[:TWICE_FIRST] == [2] * TWICE_FIRST
    assert looks[TWICE_FIRST:LOOKS_FIRST] == [1] * (LOOKS_FIRST - TWICE_FIRST)
    assert sum(looks[LOOKS_FIRST:]) == 9
    assert refused.looks(("contents.put", 404)) == 2


def test_a_kind_that_has_lied_is_always_looked_into():
    """Once a write was done that was refused so, no refusal of its kind is believed without a look."""
    refused = RefusedWrites()
    for _ in range(LOOKS_FIRST):
        refused.looks(KIND)
    assert refused.looks(KIND) == 0
    refused.was_done(KIND)
    assert [refused.looks(KIND) for _ in range(5)] == [1] * 5


@pytest.mark.parametrize("status", [403, 422])
def test_many_that_are_refused_for_a_reason_cost_few_looks(folder: Path, status: int) -> None:
    """Of 220 writes that are refused and not done, 101 are looked into; each ends as it was refused."""
    refusal = answer(status, b'{"message": "Not for you, and this says why"}', JSON)

    def meet(exchange: Exchange) -> Fate:
        return refusal if exchange.is_write else FINE

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        assert (sends(made), code) == (220, 1)
        assert {(line["outcome"], line["http_status"], line["attempts"]) for line in lines} == {("failed", status, 1)}
        reads = sum("/contents/" in each.path and not each.is_write for each in made.network.exchanges)
        its_own = 440 if status == 422 else 220  # a 422 is looked into by the operation itself, too
        assert reads == its_own + LOOKS_FIRST + 1

    items = [put("repo-00000", f"docs/many/{number}.md", "a") for number in range(220)]
    play(folder, "contents.put", items, meet, check)
