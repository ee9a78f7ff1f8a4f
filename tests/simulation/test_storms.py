"""Random work in random weather, seed after seed: every invariant holds, and the same seed is the same run.

A seed that fails says how it is replayed (`storm.py`).
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.simulation.storm import pass_seed

ROOT = Path(__file__).parents[2]
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


def test_the_same_seed_is_the_same_run(folder: Path) -> None:
    """Every byte on the wire comes at the same moment, in this process and in another one that hashes differently."""
    first, second = pass_seed(7, folder / "first"), pass_seed(7, folder / "second")
    assert first == second
    assert len(first.trace) > 200
    elsewhere = subprocess.run(
        [sys.executable, "-m", "tests.simulation.storm", "7"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "99", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert elsewhere.stdout.splitlines()[:-1] == list(first.trace)


def test_another_seed_is_another_run(folder: Path) -> None:
    """Seeds differ from their first requests on."""
    assert pass_seed(8, folder / "first").trace != pass_seed(9, folder / "second").trace
