"""What the console of a tab says."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Dialog, Page

COMPLAINT_S = 20.0
"""Longest time for which an expected complaint is under way: the browser tells of it later than of what it shows."""


@dataclass
class Complaints:
    """What the console of one tab said, errors of its scripts, and dialogs.

    Attributes:
        expected: parts of what has to be said at least once; it may be said again, because a page asks again.
    """

    page: Page
    said: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", self._dismiss)

    def await_expected(self) -> None:
        """Wait until all that is expected has been said; the tab is still open."""
        end = time.monotonic() + COMPLAINT_S
        while (missing := self._missing()) and time.monotonic() < end:
            self.page.wait_for_timeout(20)
        assert not missing, (missing, self.said)

    def unexpected(self) -> list[str]:
        """All else."""
        return [each for each in self.said if not any(part in each for part in self.expected)]

    def _dismiss(self, dialog: Dialog) -> None:
        """Close a dialog that a script has opened: otherwise it would hold the page."""
        self.said.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def _missing(self) -> list[str]:
        return [part for part in self.expected if not any(part in each for each in self.said)]


def close(contexts: Iterable[BrowserContext], told: Sequence[Complaints]) -> None:
    """Close all tabs: each has said what was expected of it, and no more."""
    try:
        for complaints in told:
            complaints.await_expected()
    finally:
        for context in contexts:
            context.close()
    for complaints in told:
        assert complaints.unexpected() == []
