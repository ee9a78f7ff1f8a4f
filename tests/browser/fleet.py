"""The page of `bulk serve` as a person has it before them, in a browser that is watched."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.browser.complaints import Complaints, close
from tests.browser.pages import READY_MS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

    from bulk.serve.server import Served


@dataclass
class Seen:
    """One tab.

    Attributes:
        complaints: what the console said. requests: addresses of what was asked for, and headers.
    """

    page: Page
    complaints: Complaints
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def text(self, selector: str = "#view") -> str:
        """The words of a part of the page."""
        return str(self.page.locator(selector).inner_text())

    def overflow(self) -> int:
        """By how much the page is wider than the window (pixels)."""
        return int(self.page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth"))

    def agree(self, button: str) -> None:
        """Press a button, and agree to what the dialog asks."""
        self.page.locator("main").get_by_role("button", name=button, exact=True).click()
        dialog = self.page.locator("dialog[open]")
        dialog.locator("button[type=submit]").click()
        dialog.wait_for(state="detached")


class Tabs:
    """Opens tabs of one server; none of them ever complains, or asks anybody else."""

    def __init__(self, browser: Browser, served: Served) -> None:
        self._browser, self.served = browser, served
        self._contexts: list[BrowserContext] = []
        self._seen: list[Seen] = []

    def open(
        self,
        path: str = "/",
        *,
        width: int = 1280,
        scheme: str = "light",
        has_key: bool = True,
        is_policy_lifted: bool = False,
        context: BrowserContext | None = None,
    ) -> Seen:
        """Open a page of it and wait until it is there.

        Args:
            width: of the window (pixels). scheme: `light` or `dark`.
            is_policy_lifted: for tools that have to run scripts of their own.
            context: of an earlier tab, to open another one beside it.
        """
        if context is None:
            context = self._browser.new_context(
                viewport={"width": width, "height": 900},
                color_scheme="dark" if scheme == "dark" else "light",
                bypass_csp=is_policy_lifted,
            )
            context.set_default_timeout(READY_MS)
            self._contexts.append(context)
        page = context.new_page()
        seen = Seen(page, Complaints(page))
        page.on("request", lambda request: seen.requests.append((request.url, request.headers)))
        page.goto(f"{self.served.url}{path}" + (f"#key={self.served.key}" if has_key else ""))
        page.locator("html[data-ready=yes]").wait_for(state="attached")
        self._seen.append(seen)
        return seen

    def close(self) -> None:
        """Close them all: the console said what was expected and no more, and nobody else was asked."""
        close(self._contexts, [seen.complaints for seen in self._seen])
        for seen in self._seen:
            for url, headers in seen.requests:
                assert url.startswith(self.served.url), url
                assert not headers.get("referer"), (url, headers)
                assert self.served.key not in url.partition("#")[0], url
