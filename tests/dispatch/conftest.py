"""Where these tests keep their ledgers and platforms."""

from tests.simulation.conftest import folder

__all__ = ["folder"]
