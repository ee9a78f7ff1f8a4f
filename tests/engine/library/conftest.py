"""Figures are shown at the end; one platform for each module."""

from collections.abc import Iterator

import pytest

from tests.e2e.support.platform import Served, served
from tests.figures import figure

__all__ = ["figure"]

COUNT = 1_500
"""Repositories that are there; more than `FEED_MOST`."""
FLEET = {"organization": "acme-fleet", "count": COUNT, "readme_bytes": 200}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A platform for all tests of a module."""
    folder = tmp_path_factory.mktemp("sandbox")
    with served(folder, "--rate-limit", "core=100000/3600", seed={"repositories": FLEET}) as sandbox:
        yield sandbox
