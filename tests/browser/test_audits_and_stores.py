"""The pages of audits and of a store, as a person goes through them."""

from __future__ import annotations

import pytest

from tests.browser.fleet import Tabs

pytestmark = pytest.mark.browser


def test_an_audit_is_followed_to_its_runs(tabs: Tabs) -> None:
    """From the list to one audit, its policies over time, what they find, an earlier night, and that night's run."""
    seen = tabs.open("/audits")
    seen.page.get_by_role("link", name="fleet").click()
    seen.page.locator("#plots figure").nth(3).wait_for()
    assert seen.page.locator("#plots figure").first.locator("rect").count() >= 17
    assert "1 waiver covers" in seen.text("#waivers")
    seen.page.locator("#policies a", has_text="owners").click()
    seen.page.locator("#found").wait_for()
    seen.page.get_by_label("Search").fill("team-3/")
    seen.page.locator("tbody tr").nth(30).wait_for(state="detached")
    policies = seen.page.locator("tbody td[data-head=Policy]").all_inner_texts()
    assert set(policies) == {"owners"}
    assert "q=team-3" in seen.page.url
    seen.page.get_by_label("Search").fill("")
    seen.page.locator("select[name=policy]").select_option("")
    seen.page.get_by_role("link", name="Next").click()
    seen.page.locator("#found", has_text="101 to").wait_for()
    seen.page.get_by_role("link", name="fleet").click()
    seen.page.locator("#nights tbody tr").nth(1).locator("td[data-head=Changed] a").click()
    seen.page.locator("h1", has_text="Changes of").wait_for()
    assert "night=fleet-" in seen.page.url
    assert seen.page.locator("tbody tr").count() >= 1
    seen.page.go_back()
    seen.page.get_by_role("link", name="The run of").click()
    seen.page.locator("#failures").wait_for()


def test_a_run_of_a_store_is_steered_by_a_click(tabs: Tabs) -> None:
    """From the workers to what they do, paused and resumed as a run of this machine; it says what it fails by."""
    seen = tabs.open("/workers")
    assert "1 worker at work" in seen.text("#workers")
    assert "shard 0" in seen.text("#takeovers")
    seen.page.locator("#shards a").click()
    seen.page.locator("#shares").wait_for()
    assert "0 of 3 shards done, 2 held" in seen.text("#shares")
    seen.page.get_by_role("link", name="Show the 29 items").click()
    seen.page.locator("tbody tr").nth(28).wait_for()
    seen.page.get_by_label("Search").fill("R177")
    seen.page.locator("#found", has_text="1 item found").wait_for()
    seen.page.go_back()
    seen.agree("Pause")
    seen.page.locator(".pill", has_text="pausing").wait_for()
    seen.agree("Resume")
    seen.page.locator(".head .pill", has_text="running").wait_for()
    assert "(web)" in seen.text("#actions")
    seen.page.get_by_role("button", name="Limits").click()
    assert seen.page.locator("dialog input").count() == 3, "a reserve is not for one run"
    seen.page.get_by_label("Most requests in flight").fill("9")
    seen.page.locator("dialog button[type=submit]").click()
    seen.page.locator("dialog .error", has_text="started with 8").wait_for()
    seen.page.get_by_label("Most requests in flight").fill("4")
    seen.complaints.expected.append("409 (Conflict)")
    seen.page.locator("dialog button[type=submit]").click()
    seen.page.locator("dialog[open]").wait_for(state="detached")
    seen.page.locator("#actions", has_text="concurrency").wait_for()
