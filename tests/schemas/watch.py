"""The whole suite under watch: a test fails where the sandbox gave it an answer that no schema allows.

`tests/conftest.py` takes the fixture and the hooks from here. Sandboxes in this process and in those that tests start
note violations in one file; after each step of a test whatever is new there fails it. Which endpoints it asked goes
into the table of `tests/endpoints.py`.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

import pytest

from bulk.sandbox.http.observing import VARIABLE
from tests import endpoints
from tests.schemas import asked
from tests.schemas.checker import VIOLATIONS

ROOT: Final = Path(__file__).parents[2]
MODULE: Final = "tests.schemas.checker"
MOST_SHOWN: Final = 10
_NOTED: Final[dict[Path, int]] = {}
"""The file of this run, and how much of it was read (bytes)."""


class SchemaViolation(AssertionError):
    """An answer of the sandbox is not as its schema says."""


@pytest.fixture(scope="session", autouse=True)
def _watched_sandboxes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every sandbox of this run is watched, in whatever process it is."""
    path = tmp_path_factory.mktemp("schemas") / "violations.txt"
    path.touch()
    _NOTED[path] = 0
    places = path.with_name("endpoints.txt")
    asked.begin(places)
    found = {
        VARIABLE: MODULE,
        VIOLATIONS: str(path),
        asked.VARIABLE: str(places),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in found.items():
            patch.setenv(name, value)
        yield


def violations() -> list[str]:
    """What was noted since this was last asked."""
    found: list[str] = []
    for path, start in _NOTED.items():
        if path.stat().st_size > start:
            content = path.read_bytes()
            _NOTED[path] = len(content)
            found += content[start:].decode().splitlines()
    return found


def _judge(item: pytest.Item) -> None:
    endpoints.remember(item)
    found = violations()
    if found:
        more = f"\n… and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else ""
        raise SchemaViolation(
            "the sandbox gave answers that its schemas do not allow:\n" + "\n".join(found[:MOST_SHOWN]) + more
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """After the test itself, and whatever its fixtures asked before it."""
    result = yield
    _judge(item)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """After its fixtures have ended."""
    result = yield
    _judge(item)
    return result
