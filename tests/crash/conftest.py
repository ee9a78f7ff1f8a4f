"""Figures are shown at the end."""

import pytest

from tests import figures
from tests.figures import figure

__all__ = ["figure"]


def pytest_configure(config: pytest.Config) -> None:
    """Once, however many folders ask for it."""
    if not config.pluginmanager.has_plugin(figures.__name__):
        config.pluginmanager.register(figures, figures.__name__)
