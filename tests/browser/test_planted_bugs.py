"""A bug that a tired engineer could put into the script of the page, seen by a scenario that passes without it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bulk.serve import page_files
from tests.browser.fleet import Tabs
from tests.browser.runs import write_hostile
from tests.serve.conftest import asking

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

RIGHT = b"  found.append(...children.flat()"
WRONG = (
    b"""  for (const each of children.flat().filter(Boolean)) {
    if (typeof each === "string") found.insertAdjacentHTML("beforeend", each); else found.append(each);
  }
  if (false)"""
    + RIGHT
)


def names_are_words(browser: Browser, folder: Path) -> None:
    """A name that holds elements makes none, also where the browser's policy does not help."""
    write_hostile(folder / "runs" / "hostile")
    with asking(folder / "runs", cache=folder / "cache") as asker:
        tabs = Tabs(browser, asker.served)
        seen = tabs.open("/run/hostile", is_policy_lifted=True)
        made = seen.page.locator("#view img, #view script").count()
        assert made == 0, "a name became an element"
        tabs.close()


def test_names_are_words_without_the_policy(browser: Browser, tmp_path: Path) -> None:
    """Names that hold HTML are shown as text, also where no policy of the page would stop their scripts."""
    names_are_words(browser, tmp_path)


def test_words_that_become_html_are_seen(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With HTML in place of text nodes the scenario fails."""
    real = page_files._joined

    def joined(*names: str) -> bytes:
        found = real(*names)
        assert "dom.js" not in names or RIGHT in found
        return found.replace(RIGHT, WRONG)

    monkeypatch.setattr(page_files, "_joined", joined)
    with pytest.raises(AssertionError, match="a name became an element"):
        names_are_words(browser, tmp_path)
