"""What every test may rely on: asyncio as the event loop, no setting of the user's own, a cache of its own.

Every answer that a sandbox gives in a test is checked against the schemas of `tests/schemas`, and no test leaves a
secret in a file (`tests/canaries.py`).
"""

import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests import figures
from tests.canaries import _no_secret_is_written, pytest_runtest_makereport
from tests.endpoints import pytest_addoption, pytest_sessionfinish, pytest_terminal_summary
from tests.schemas.watch import _watched_sandboxes, pytest_runtest_call, pytest_runtest_teardown
from tests.slow import marks
from tests.store.postgres import postgres, shared_store, store_text

__all__ = [
    "_no_secret_is_written",
    "_watched_sandboxes",
    "postgres",
    "pytest_addoption",
    "pytest_runtest_call",
    "pytest_runtest_makereport",
    "pytest_runtest_teardown",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "shared_store",
    "store_text",
]


LONG = tuple(
    f"tests/{name}.py"
    for name in (
        "simulation/storms/test_storms",
        "simulation/migrations/test_undo",
        "simulation/migrations/test_live_plan",
        "simulation/effects/test_lost_answers",
        "simulation/limits/test_limits",
        "simulation/test_endings",
        "simulation/test_cancellation",
        "simulation/storms/test_machine",
        "hostile/test_table",
        "hostile/test_budgets",
        "govern/budgets/test_no_date",
        "test_project",
        "test_building",
        "docs/test_examples_run",
        "docs/test_how_to",
        "crash/test_kills",
        "crash/test_every_file",
        "cluster/test_shared_limits",
        "cluster/test_two_workers",
        "cluster/waves/test_waves",
        "audit/test_broken_off",
        "audit/test_nights",
        "audit/test_lost_histories",
        "e2e/limits/test_budgets",
        "e2e/limits/test_limits",
        "e2e/limits/test_scarcity",
        "e2e/limits/test_scheduling",
        "e2e/steering/test_steering",
        "e2e/trouble/test_first_contact",
        "e2e/trouble/test_broken_manifests",
        "e2e/trouble/test_stopping",
        "e2e/trouble/test_surroundings",
        "e2e/migrations/test_keyed_needs",
        "e2e/migrations/test_waves",
        "e2e/test_bills_of_materials",
        "e2e/test_commands",
        "e2e/test_large_results",
        "engine/library/test_synchronous",
        "serve/test_steering",
    )
)
"""What takes a quarter of a minute and more would keep one worker busy at the end, with nothing left for the others."""
WAITING = tuple(
    f"tests/{name}/"
    for name in ("audit", "cluster", "control", "crash", "docs", "e2e", "engine/library", "serve", "store")
)
"""Where processes are waited for; all other tests are work for a processor."""


SOAK_S = 600
"""What a soak test may take that names no time of its own: the time of all others is for a quiet machine (seconds)."""


SELDOM, LOOKS = (500_000, 10, 10), (10_000, 10, 10)
"""How often Python looks for garbage (objects): while tests are collected, which leaves hardly any, and in them."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that wait beside those that work, and the long ones of both first; soaks have their time."""
    marks.mark(items)
    for item in items:
        if item.get_closest_marker("soak") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SOAK_S))
    places: dict[str, float] = {}
    for waits in (True, False):
        files = dict.fromkeys(file for file in map(_file_of, items) if file.startswith(WAITING) == waits)
        for place, file in enumerate(sorted(files, key=lambda file: file not in LONG)):
            places[file] = (place + 0.5) / len(files)
    items.sort(key=lambda item: places[_file_of(item)])


def _file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def pytest_collection_finish() -> None:
    """What was collected lives as long as the process, so nobody looks for garbage in it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*LOOKS)


def pytest_configure(config: pytest.Config) -> None:
    """Figures are shown at the end of the run; what is run first must be there. What is started in the background has
    Ctrl-C ignored, and so would all that it starts: commands are interrupted here as at a terminal."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(*SELDOM)
    gone = [path for path in LONG if not (config.rootpath / path).is_file()]
    if gone:
        raise pytest.UsageError(f"tests/conftest.py, LONG: no {', '.join(gone)}")
    if not config.pluginmanager.has_plugin(figures.__name__):
        config.pluginmanager.register(figures, figures.__name__)
    hypothesis.settings.register_profile("explore", deadline=None, max_examples=2_000)  # see `make soak`
    if hypothesis.settings.get_current_profile_name() == "default":  # mutation has its own
        # a busy machine is not a defect, and the same examples each time tell a change's defects from those that it
        # found; as many notice at least 90% of the mutants
        hypothesis.settings.register_profile("tests", deadline=None, derandomize=True, max_examples=50)
        hypothesis.settings.load_profile("tests")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The engine runs on asyncio, with uvloop or without."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def _compiled_once() -> Iterator[None]:
    """Hundreds of processes are started: the first leaves what it compiled to the others, whatever the user's wish."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        yield


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No variable of the user's environment reaches a test, and no test writes into the user's folders."""
    for name in ("BULK_TOKEN", "BULK_BASE_URL", "BULK_VENDOR", "NO_COLOR", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    home: Path = tmp_path_factory.getbasetemp() / "home"
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
