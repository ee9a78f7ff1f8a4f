"""Where these tests keep their ledgers and platforms."""

from tests.figures import figure
from tests.simulation.conftest import folder

__all__ = ["figure", "folder"]
