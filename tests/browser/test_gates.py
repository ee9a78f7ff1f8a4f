"""Gates of waves on the page of a run: what waits, and what a click does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bulk.ledger.directory import is_held
from tests.browser.fleet import Tabs
from tests.e2e.migrations.test_waves import RUN, manifest
from tests.e2e.support.platform import Home, served
from tests.serve.conftest import asking

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

FLEET = {"organization": "acme-fleet", "count": 4, "readme_bytes": 100}


def test_waves_are_opened_and_accepted_by_a_click(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wave that waits is opened, one that is over its budget is accepted; each is asked once, goes on at once, and
    stands in the actions. Another wave than the one that waits is refused.
    """
    home = Home(tmp_path)
    with (
        served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox,
        asking(tmp_path, cache=tmp_path / "cache") as asker,
    ):
        manifest(home, sandbox, 12, {4}, waves=[1, "rest"], gate="manual", errors={"not_found": 0})
        assert home.run(*RUN).exit_code == 3
        monkeypatch.setitem(os.environ, "BULK_TOKEN", home.token)
        assert asker.post("/runs/run/gate", {"wave": 3}).status == 409
        assert asker.post("/runs/run/gate", {}).status == 409
        tabs = Tabs(browser, asker.served)
        seen = tabs.open("/run/run", width=400)
        assert "Wave 2 of 2 of files" in seen.text("#gate")
        assert seen.overflow() <= 0
        seen.agree("Open wave 2")
        seen.page.get_by_role("button", name="Accept wave 2").wait_for()
        assert "1 not_found of 11 items, 0 allowed" in seen.text("#standing")
        while is_held(tmp_path / "run"):
            seen.page.wait_for_timeout(20)
        seen.agree("Accept wave 2")
        seen.page.locator(".pill", has_text="complete").wait_for()
        assert len(home.results("run")) == 12
        done = seen.text("#actions")
        for what in ("wave 2 opened", "wave 2 accepted"):
            assert what in done
        tabs.close()
