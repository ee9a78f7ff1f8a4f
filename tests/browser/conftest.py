"""A real browser, and the pages that it opens. `make test-browser` runs these tests; `tests/browser/__main__.py` finds
the browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bulk.report import exploration
from tests.browser import runs
from tests.browser.audits import write_fleet, write_hostile_audit
from tests.browser.fleet import Tabs
from tests.browser.pages import Opened, Pages
from tests.browser.stored import write_stored
from tests.serve.conftest import Asker, asking
from tests.store.postgres import new_store

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LAUNCH_MS = 30_000
"""A browser that can't start may hang: it is waited for this long."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser that `$BULK_BROWSER` names."""
    from playwright.sync_api import sync_playwright

    program = os.environ["BULK_BROWSER"]
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=arguments, timeout=LAUNCH_MS)
        yield started
        started.close()


@pytest.fixture
def pages(browser: Browser) -> Iterator[Pages]:
    """Opens reports; afterwards none of them has asked for anything or has broken its policy."""
    opening = Pages(browser)
    yield opening
    opening.close()


@pytest.fixture
def report(pages: Pages, small_report: Path) -> Opened:
    """The small report, open."""
    return pages.open(small_report)


@pytest.fixture(scope="session")
def small_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """See `runs.write_small`."""
    return runs.write_small(tmp_path_factory.mktemp("small") / "run")


@pytest.fixture(scope="session")
def large_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """See `runs.write_large`."""
    return runs.write_large(tmp_path_factory.mktemp("large") / "run")


@pytest.fixture(scope="session")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """See `runs.write_hostile`."""
    return runs.write_hostile(tmp_path_factory.mktemp("hostile") / "run")


@pytest.fixture
def cut_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small one, as if a page could hold 20 items."""
    monkeypatch.setattr(exploration, "MOST_ITEMS", 20)
    return runs.write_small(tmp_path / "run")


@pytest.fixture(scope="session")
def asker(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """A server over a small run and a hostile one, over an audit of each kind, and over a store."""
    folder, audits = tmp_path_factory.mktemp("fleet"), tmp_path_factory.mktemp("audits")
    runs.write_small(folder / "small")
    runs.write_hostile(folder / "hostile")
    write_fleet(audits / "fleet")
    write_hostile_audit(audits / "hostile")
    store = new_store(postgres)
    stored = write_stored(store, tmp_path_factory.mktemp("stored"))
    with asking(folder, cache=tmp_path_factory.mktemp("cache"), audits=(audits,), store=store) as asker:
        yield asker
    stored.close()


@pytest.fixture
def tabs(browser: Browser, asker: Asker) -> Iterator[Tabs]:
    """Opens its pages."""
    opened = Tabs(browser, asker.served)
    yield opened
    opened.close()
