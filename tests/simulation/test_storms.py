"""Random work in random weather, seed after seed: every invariant holds.

A seed that fails says how it is replayed (`storm.py`).
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.simulation.storm import pass_seed

SEEDS, SOAK_SEEDS = 20, 20_000
"""A seed of 200 items is about a second of computing: an engine, a ledger, a server, 500 requests on the wire."""


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_invariant_holds(folder: Path, seed: int, figure: Callable[[str], None]) -> None:
    """Lost and late answers, errors, limits, stops and resumes, over 200 items: each item ends once and right, each
    effect is there once, lanes, budgets, permits and connections are kept."""
    passed = pass_seed(seed, folder, items=200)
    figure(f"{passed.requests} requests, {passed.runs} runs, {passed.seconds:,.0f} virtual s: 0 broken")


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("first", range(1_000, 1_000 + SOAK_SEEDS, 100))
def test_every_invariant_holds_for_long(folder: Path, first: int) -> None:
    """The same for 20,000 seeds of 200 items."""
    for seed in range(first, first + 100):
        pass_seed(seed, folder / str(seed), items=200)
