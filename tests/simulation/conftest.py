"""Where simulations keep their files: in memory, where the system has such a place: ledgers sync every group."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import canaries, figures
from tests.figures import figure

__all__ = ["figure"]

MEMORY = Path("/dev/shm")


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder for one test."""
    place = MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="bulk-simulation-", dir=place) as path:
        yield Path(path)
        assert canaries.leaks(Path(path)) == []


def pytest_configure(config: pytest.Config) -> None:
    """Figures are shown at the end of the run."""
    if not config.pluginmanager.has_plugin(figures.__name__):
        config.pluginmanager.register(figures, figures.__name__)
