"""A fresh run directory for every test."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.report.ledgers import Run


@pytest.fixture
def new_run(tmp_path: Path) -> Callable[..., Run]:
    """Makes a run: `new_run(readmes=3, codeowners=10)`."""
    numbers = itertools.count(1)
    return lambda **items: Run(tmp_path / f"run-{next(numbers)}", **items)
