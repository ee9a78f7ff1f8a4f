"""Reports as a person has them before them: opened from disk, in a browser that is watched."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser.complaints import Complaints, close

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

READY_MS = 15_000


def barriers(page: Page) -> list[tuple[str, list[str]]]:
    """What keeps somebody from reading a page, according to axe: each rule that is broken seriously, and elements that
    break it. It lists nothing else, which takes it half of the time."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        (each["id"], [node["html"][:120] for node in each["nodes"][:3]])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


@dataclass
class Opened:
    """One page.

    Attributes:
        ready_s: from the click to the page that can be searched (seconds).
        complaints: what the console said. requests: addresses of what was asked for.
    """

    page: Page
    complaints: Complaints
    ready_s: float = 0.0
    requests: list[str] = field(default_factory=list)

    def rows(self) -> list[str]:
        """The words of each row of the list of items."""
        return [str(text) for text in self.page.locator("#rows tr").all_inner_texts()]

    def count(self) -> str:
        """How many items are found and shown."""
        return str(self.page.locator("#count").inner_text())

    def milliseconds(self, script: str) -> float:
        """How long `script` (statements) takes, until the page is laid out anew."""
        body = f"{script}; document.body.offsetHeight; return performance.now() - since;"
        return float(self.page.evaluate(f"() => {{ const since = performance.now(); {body} }}"))

    def overflow(self) -> int:
        """By how much the page is wider than the window (pixels)."""
        return int(self.page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth"))


class Pages:
    """Opens pages, each in a context of its own."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self.opened: list[Opened] = []

    def open(
        self,
        path: Path,
        *,
        width: int = 1280,
        scheme: str = "light",
        has_scripts: bool = True,
        is_policy_lifted: bool = False,
        is_ready_expected: bool = True,
    ) -> Opened:
        """Open the file at `path` and wait until it is ready.

        Args:
            width: of the window (pixels).
            scheme: `light` or `dark`, as the person prefers.
            is_policy_lifted: for tools that have to run scripts of their own.
            is_ready_expected: False for a page whose script must not run.
        """
        context = self._browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
            java_script_enabled=has_scripts,
            bypass_csp=is_policy_lifted,
        )
        self._contexts.append(context)
        context.set_default_timeout(READY_MS)
        page = context.new_page()
        opened = Opened(page, Complaints(page))
        page.on("request", lambda request: opened.requests.append(request.url))
        since = time.monotonic()
        page.goto(path.as_uri())
        if has_scripts and is_ready_expected:
            page.locator("html[data-ready=yes]").wait_for(state="attached")
        opened.ready_s = time.monotonic() - since
        self.opened.append(opened)
        return opened

    def close(self) -> None:
        """Close them all; none has said what was not expected, or asked for anything but its own file."""
        close(self._contexts, [opened.complaints for opened in self.opened])
        for opened in self.opened:
            assert len(opened.requests) == 1, opened.requests
            assert opened.requests[0].startswith("file://")
