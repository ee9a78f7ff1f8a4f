"""The page for the fleet, in a real browser: what it shows, what a click does, and what nobody else can do with it."""

from __future__ import annotations

import http.server
import json
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bulk.errors import BulkError
from bulk.ledger.directory import is_held
from bulk.ledger.view import LedgerView
from tests.browser.fleet import Seen, Tabs
from tests.browser.pages import barriers
from tests.browser.runs import FAILED
from tests.browser.stored import NAME
from tests.e2e.support.platform import Home, served
from tests.serve.conftest import Asker, asking

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

pytestmark = pytest.mark.browser

LOOKS = [(1280, "light"), (400, "dark")]
PAGES = [
    "/",
    "/run/small",
    "/run/small/items?outcome=failed",
    "/run/small/items/codeowners/10",
    "/budgets",
    "/audits",
    "/audit/fleet",
    "/audit/fleet/violations?q=service-0001",
    "/audit/fleet/changes?q=service-000",
    "/workers",
    f"/run/store:{NAME}",
]
HOSTILE_PAGES = [
    "/audit/hostile",
    "/audit/hostile/violations",
    "/audit/hostile/changes",
    "/run/audit:hostile:hostile-1",
    "/run/hostile",
    "/run/hostile/items",
]
LIST = "**/api/runs/small/items*"
ITEMS = 400
MOMENTS, BEHIND_S = 20, 1.5
"""The page asks once a second, and an answer serves for 0.4 s."""
MOST_BEHIND = MOMENTS // 4
"""A machine that stands still for a second makes every page late: at most this many moments may be."""


def test_a_run_is_watched_and_steered_to_its_end(browser: Browser, tmp_path: Path) -> None:
    """The page never says more than the ledger, and is at most a second behind it; paused by a click, nothing is sent;
    resumed by a click, it ends; stopped items are none. Who did it is on the page.
    """
    options = ("--latency", "40", "--rate-limit", "core=60/2")  # items are left for the pause on a slow machine, too
    seed = {"repositories": {"organization": "acme-fleet", "count": ITEMS, "readme_bytes": 50}}
    home = Home(tmp_path)
    with (
        served(tmp_path / "sandbox", *options, seed=seed) as sandbox,
        asking(tmp_path, cache=tmp_path / "cache") as asker,
    ):
        items = [{"owner": "acme-fleet", "repo": f"repo-{n:05d}"} for n in range(ITEMS - 5)]
        items += [{"owner": "acme-fleet", "repo": f"gone-{n}"} for n in range(5)]
        home.manifest(sandbox.base_url, {"readmes": {"operation": "readme.get", "items": items}})
        with home.running("run", "manifest.yaml", "--run-dir", "run", "--no-cache") as process:
            while not _is_begun(tmp_path / "run"):
                assert process.poll() is None
            tabs = Tabs(browser, asker.served)
            seen = tabs.open("/run/run")
            seen.page.locator("#waits li").first.wait_for()
            view = LedgerView(tmp_path / "run")
            _watch(seen, view)
            seen.agree("Pause")
            seen.page.locator(".pill", has_text="paused").wait_for()
            sent = len(sandbox.requests())
            seen.page.locator("#waits li", has_text="paused").wait_for()
            seen.page.wait_for_timeout(1000 * BEHIND_S)
            assert len(sandbox.requests()) == sent
            assert _told(seen) == _ended(view), "paused, it says exactly what the ledger says"
            seen.agree("Resume")
            seen.page.locator(".pill", has_text="complete").wait_for()
            assert process.wait(60) == 1
        seen.page.locator("#plots figure").first.wait_for()
        assert f"{ITEMS} of {ITEMS} items" in seen.text("#standing")
        assert "bulk retry" in seen.text(".go")
        done = seen.text("#actions").replace("\n", " ").replace("\t", " ")
        assert done.count("(web)") == 2
        assert "pause" in done
        assert "resume" in done
        _retry(seen, home)
        tabs.close()


def _watch(seen: Seen, view: LedgerView) -> None:
    """At `MOMENTS` moments, what the page says is at most what the ledger says, and at nearly all of them at least what
    it said a while ago."""
    before: list[tuple[float, int]] = []
    moments, behind, grown = 0, 0, set[int]()
    while moments < MOMENTS:
        told, at = _told(seen), time.monotonic()
        ended = _ended(view)
        before.append((at, ended))
        old = [number for when, number in before if when <= at - BEHIND_S]
        assert told <= ended, "it says what never was"
        if old:
            moments += 1
            behind += told < old[-1]
            grown.add(old[-1])
        seen.page.wait_for_timeout(120)
    assert behind <= MOST_BEHIND, "it is behind"
    assert len(grown) > 2, "the run stood still meanwhile"


def _told(seen: Seen) -> int:
    """How many items have ended, as the page says."""
    return int(seen.text("#standing .facts span >> nth=0").split(" of ")[0].replace(",", ""))


def _ended(view: LedgerView) -> int:
    """How many items have ended, as the ledger says."""
    return sum(sum(each.values()) for each in view.counts().values())


def _is_begun(run_dir: Path) -> bool:
    """Whether there is something to show of it; before, the page asks again, and a browser's console says so."""
    try:
        return bool(LedgerView(run_dir).identity())
    except BulkError:
        return False


def _retry(seen: Seen, home: Home) -> None:
    """What failed is shown by one click, and run again by another one and a dialog that names its count."""
    seen.page.get_by_role("link", name="Show the 5 items with not_found in readmes").click()
    seen.page.locator("#found", has_text="5 of 5 items").wait_for()
    assert seen.page.locator("tbody tr").count() == 5
    while is_held(home.folder / "run"):  # it writes its reports
        seen.page.wait_for_timeout(20)
    os.environ["BULK_TOKEN"] = home.token
    try:
        seen.page.get_by_role("button", name="Retry these 5").click()
        assert "5 items (readmes, not_found)" in seen.text("dialog")
        seen.page.locator("dialog button[type=submit]").click()
        seen.page.locator("dialog[open]").wait_for(state="detached")
    finally:
        del os.environ["BULK_TOKEN"]
    seen.page.get_by_role("link", name="manifest").first.click()
    seen.page.locator("#actions tbody tr").nth(2).wait_for()
    assert "retry" in seen.text("#actions")
    while is_held(home.folder / "run"):
        seen.page.wait_for_timeout(20)


def test_runs_are_found_and_opened(tabs: Tabs) -> None:
    """The list can be searched; a click opens a run, and the browser's way back leads to the same search."""
    seen = tabs.open()
    seen.page.locator("tbody tr").nth(2).wait_for()
    seen.page.get_by_label("Search").fill("SMALL")
    seen.page.locator("tbody tr").nth(1).wait_for(state="detached")
    assert seen.page.url == f"{tabs.served.url}/?q=SMALL"
    seen.page.get_by_role("link", name="small").click()
    seen.page.locator("#failures").wait_for()
    assert "112 of 160 items" in seen.text("#standing")
    seen.page.go_back()
    seen.page.locator("table.runs").wait_for()
    assert seen.page.get_by_label("Search").input_value() == "SMALL"
    assert seen.page.locator("tbody tr").count() == 1


def test_failures_are_one_click_away(tabs: Tabs) -> None:
    """A cause leads to exactly its items; the filter is the address; a search finds request ids; one is shown whole."""
    seen = tabs.open("/run/small")
    assert sum(int(text) for text in seen.page.locator("#failures td[data-head=Items]").all_inner_texts()) == FAILED
    seen.page.get_by_role("link", name="Show the 10 items with forbidden in readmes").click()
    seen.page.locator("tbody tr").nth(9).wait_for()
    assert seen.page.url.endswith("/run/small/items?job=readmes&code=forbidden")
    assert seen.page.locator("tbody td[data-head=Code]").all_inner_texts() == ["forbidden"] * 10
    seen.page.locator("select[name=code]").select_option("")
    seen.page.locator("select[name=job]").select_option("")
    seen.page.get_by_label("Search").fill("f00d")
    seen.page.locator("#found", has_text="1 item found").wait_for()
    seen.page.locator("tbody a").click()
    seen.page.locator(".command", has_text="Request id").wait_for()
    assert "?" not in seen.page.url
    assert "F00D" in seen.text()
    assert "unknown_outcome" in seen.text()


def test_pages_of_a_list_follow_each_other(tabs: Tabs) -> None:
    """A hundred rows at first, and the rest on demand."""
    seen = tabs.open("/run/small/items")
    seen.page.locator("tbody tr").nth(99).wait_for()
    seen.page.get_by_role("button", name="More").click()
    seen.page.locator("tbody tr").nth(111).wait_for()
    assert seen.text("#found") == "112 of 112 items"


def test_what_more_has_brought_stays(tabs: Tabs) -> None:
    """The page asks anew by itself. Where the answer to that comes behind the one to a click, it takes nothing away."""
    seen = tabs.open("/run/small/items")
    seen.page.locator("tbody tr").nth(99).wait_for()
    held: list[Route] = []

    def hold(route: Route) -> None:
        if held or "after" in route.request.url:
            route.continue_()
        else:
            held.append(route)

    with seen.page.expect_request(LIST):
        seen.page.route(LIST, hold)
    seen.page.get_by_role("button", name="More").click()
    seen.page.locator("tbody tr").nth(111).wait_for()
    with seen.page.expect_request("**/api/runs/small"):  # it begins once that answer is taken in
        held[0].continue_()
    assert seen.text("#found") == "112 of 112 items"


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_nothing_keeps_anybody_from_reading_it(tabs: Tabs, width: int, scheme: str) -> None:
    """axe finds nothing serious on any page, wide and narrow, light and dark, and no page scrolls sideways."""
    first = tabs.open(width=width, scheme=scheme, is_policy_lifted=True)
    told = []
    for path in PAGES:
        seen = tabs.open(path, context=first.page.context)
        if path == "/run/small":
            seen.page.locator("#plots figure").nth(4).wait_for()
            seen.page.locator("#plots summary").first.click()
            seen.page.get_by_role("button", name="Resume").click()
        elif path == "/audit/fleet":
            seen.page.locator("#plots figure").nth(3).wait_for()
        elif "items?" in path:
            seen.page.locator("tbody tr").nth(10).wait_for()
        told += [(path, *found) for found in barriers(seen.page)]
        assert seen.overflow() <= 0, path
    assert told == []


def test_a_keyboard_is_enough(tabs: Tabs) -> None:
    """From the list into a run, through a dialog and out of it again, into the items and a search: without a mouse, and
    what is polled meanwhile takes the focus away from nobody.
    """
    seen = tabs.open()
    keys = seen.page.keyboard
    _tab_to(seen, "small")
    keys.press("Enter")
    seen.page.locator("#failures").wait_for()
    assert _focused(seen) == "migration"
    _tab_to(seen, "Resume")
    keys.press("Enter")
    seen.page.locator("dialog[open]").wait_for()
    assert _focused(seen) == "Cancel"
    keys.press("Escape")
    seen.page.locator("dialog[open]").wait_for(state="detached")
    assert _focused(seen) == "Resume"
    seen.page.wait_for_timeout(1300)
    assert _focused(seen) == "Resume"
    _tab_to(seen, "Show")
    keys.press("Enter")
    seen.page.locator("tbody tr").nth(9).wait_for()
    seen.page.get_by_label("Search").focus()
    keys.type("r12", delay=150)
    seen.page.locator("tbody tr").nth(1).wait_for(state="detached")
    assert seen.page.get_by_label("Search").input_value() == "r12"
    assert seen.page.evaluate("() => document.activeElement.name") == "q"


def _focused(seen: Seen) -> str:
    return str(seen.page.evaluate("() => document.activeElement.innerText"))


def _tab_to(seen: Seen, words: str) -> None:
    for _ in range(40):
        seen.page.keyboard.press("Tab")
        if _focused(seen) == words:
            return
    raise AssertionError(f"no way to {words!r}")


def test_hostile_names_are_words(tabs: Tabs) -> None:
    """A name that holds elements, scripts, controls and bidirectional marks is text on every page, and shows what it
    holds.
    """
    for path in HOSTILE_PAGES:
        seen = tabs.open(path)
        seen.page.locator("tbody tr").first.wait_for()
        assert "<script>alert(1)</script>" in seen.text()
        assert r"\u202e" in seen.text()
        assert r"\u001b" in seen.text()
        assert not set("\u202e\x1b\x07") & set(seen.text("body"))
        assert seen.page.locator("#view img, #view script, #view iframe").count() == 0
        assert seen.page.locator('a[href^="javascript:"]').count() == 0
    seen.page.locator("tbody a").first.click()
    seen.page.locator("pre").first.wait_for()
    assert "<script>alert(1)</script>" in seen.text("h1")


def test_the_key_is_taken_out_of_the_address(tabs: Tabs) -> None:
    """It stays in this tab alone; without it the page asks for it, and takes the whole address."""
    seen = tabs.open("/run/small")
    assert seen.page.url == f"{tabs.served.url}/run/small"
    assert seen.page.evaluate("() => document.cookie + JSON.stringify(localStorage)") == "{}"
    other = tabs.open("/run/small", has_key=False)
    other.complaints.expected.append("401 (Unauthorized)")
    other.page.get_by_label("Address or key").fill(tabs.served.address)
    other.page.keyboard.press("Enter")
    other.page.locator("#failures").wait_for()


def test_eight_tabs_are_all_answered(tabs: Tabs) -> None:
    """A browser has six connections for one server: polling leaves them to others, so an eighth tab is as good."""
    first = tabs.open("/run/small")
    for _ in range(7):
        seen = tabs.open("/run/small", context=first.page.context)
        seen.page.locator("#failures").wait_for()
    seen.page.locator("#plots figure").nth(4).wait_for()


ATTACK = """<!doctype html><title>x</title>
<form id=f method=post action="{url}/api/runs/small/stop" enctype="text/plain">
<input name='{{"now":true,"x":"' value='"}}'></form><iframe name=t src="{url}/"></iframe><script>
const tried = [];
const send = (path, more) => fetch("{url}" + path, more).then(answer => answer.text())
  .then(text => tried.push("READ " + text), () => tried.push("refused"));
(async () => {{
  await send("/api/runs", {{}});
  await send("/api/runs", {{headers: {{Authorization: "Bearer guess"}}}});
  await send("/page.js", {{}});
  await send("/api/runs/small/stop", {{method: "POST", mode: "no-cors", body: "{{}}"}});
  document.getElementById("f").target = "t"; document.getElementById("f").submit();
  await new Promise(done => setTimeout(done, 300));
  document.title = JSON.stringify(tried);
}})();
</script>"""


class _Evil(http.server.BaseHTTPRequestHandler):
    page = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_another_site_gets_nothing(browser: Browser, asker: Asker) -> None:
    """A page of another site, open beside ours, reads nothing by fetch or frame, and its form changes nothing."""
    _Evil.page = ATTACK.format(url=asker.served.url).encode()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Evil) as evil:
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        page = browser.new_page()
        answers: dict[str, list[int]] = {}
        page.on("response", lambda answer: answers.setdefault(answer.url, []).append(answer.status))
        page.goto(f"http://127.0.0.1:{evil.server_port}/")
        page.wait_for_function("() => document.title.startsWith('[')")
        tried = json.loads(page.title())
        page.close()
        evil.shutdown()
    assert tried[:3] == ["refused"] * 3
    assert not any(word.startswith("READ {") for word in tried)
    ours = {url: statuses for url, statuses in answers.items() if url.startswith(asker.served.url)}
    assert ours
    assert {status for statuses in ours.values() for status in statuses} == {403}
    assert asker.get("/runs/small").data["run"]["state"] == "stopped"
