"""Random work in random weather, seed after seed: every invariant holds.

A seed that fails says how it is replayed (`storm.py`).
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.simulation.storm import pass_seed

SEEDS, SOAK_SEEDS, TOGETHER = 40, 20_000, 5
"""A seed of 200 items is about half a second of computing: an engine, a ledger, a server, 500 requests on the wire."""


@pytest.mark.parametrize("first", range(0, SEEDS, TOGETHER))
def test_every_invariant_holds(folder: Path, first: int, figure: Callable[[str], None]) -> None:
    """Lost and late answers, errors, limits, stops and resumes, over 200 items: each item ends once and right, each
    effect is there once, lanes, budgets, permits and connections are kept."""
    passed = [pass_seed(seed, folder / str(seed), items=200) for seed in range(first, first + TOGETHER)]
    requests, runs = sum(one.requests for one in passed), sum(one.runs for one in passed)
    seconds = sum(one.seconds for one in passed)
    figure(f"{TOGETHER} seeds, {requests:,} requests, {runs} runs, {seconds:,.0f} virtual s: 0 broken")


def test_outages_that_come_and_go_cost_no_item(folder: Path) -> None:
    """failures.md row 25: a read meets three outages with good spells between them, and then two lost answers."""
    pass_seed(2_689, folder, items=200)


def test_an_end_that_moves_on_is_reached(folder: Path) -> None:
    """failures.md row 31: each word says that the window has not begun, and names a later end, while all is spent:
    the first end that was named stands, and one request goes and sees."""
    pass_seed(5_448, folder, items=200)


def test_who_looks_too_early_opens_no_window(folder: Path) -> None:
    """failures.md row 34: the platform's clock is set back, and who goes to see whether a window is over is served out
    of it, because some of what was sent never arrived."""
    pass_seed(16_038, folder, items=200)


@pytest.mark.parametrize("seed", [1_121, 1_148, 1_187])
def test_requests_that_never_arrived_blame_nobody(folder: Path, seed: int) -> None:
    """failures.md row 31: the platform counts less than this run has sent, looks are served, and words still count."""
    pass_seed(seed, folder, items=200)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("first", range(1_000, 1_000 + SOAK_SEEDS, 100))
def test_every_invariant_holds_for_long(folder: Path, first: int) -> None:
    """The same for 20,000 seeds of 200 items."""
    for seed in range(first, first + 100):
        pass_seed(seed, folder / str(seed), items=200)
