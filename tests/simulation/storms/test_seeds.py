"""The same seed is the same run: what one of `test_storms.py` finds can be looked at again."""

import os
import subprocess
import sys
from pathlib import Path

from tests.simulation.storm import pass_seed

ROOT = Path(__file__).parents[3]


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
