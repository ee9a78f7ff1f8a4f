"""The page of a report, in a real browser: what it finds, what it shows, and what it never does."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.browser.pages import Opened, Pages, barriers
from tests.browser.runs import FAILED, HOSTILE, MANY
from tests.tries import TRIES, quickest

pytestmark = pytest.mark.browser

LOOKS = [(1280, "light"), (1280, "dark"), (400, "light"), (400, "dark")]
READ_IN = [LOOKS[0], LOOKS[3]]
"""Each width and each scheme once: a width changes no color, and axe takes seconds."""
READY_S, SEARCH_MS, SORT_MS = 2.0, 300.0, 500.0


def test_all_of_a_hundred_thousand_are_searched_and_sorted_at_once(
    pages: Pages, large_report: Path, figure: Callable[[str], None]
) -> None:
    """At most 6 MB, ready within 2 s, what is typed is found within 300 ms, a column is sorted within half a second."""
    opened = pages.open(large_report)
    for _ in range(3 * TRIES):  # the first page waits for the browser, and all else that is tested runs beside this
        if opened.ready_s > READY_S:
            opened.page.close()  # a hundred thousand rows in another tab would slow this one down
            opened = pages.open(large_report)

    def searched(words: str, _: int = 0) -> float:
        value = "field.value = '{}'; field.dispatchEvent(new Event('input'))"
        typed = "const field = document.getElementById('search'); " + value
        opened.milliseconds(typed.format(""))
        return opened.milliseconds(typed.format(words))

    def sorted_by(place: int, _: int) -> float:
        click = f"document.querySelectorAll('#heads button')[{place}].click()"
        return min(opened.milliseconds(click), opened.milliseconds(click))  # the quicker of both directions

    words = ("service-00", "readme", "no such thing", "4")
    searches = [quickest(partial(searched, each), SEARCH_MS) for each in words]
    searched("")
    heads = opened.page.locator("#heads button").count()
    sorts = [quickest(partial(sorted_by, place), SORT_MS) for place in range(heads)]
    megabytes = large_report.stat().st_size / 1e6
    figure(
        f"{MANY:,} failures: {megabytes:.1f} MB, ready {opened.ready_s:.2f} s, searches up to {max(searches):.0f} ms, "
        f"sorts up to {max(sorts):.0f} ms"
    )
    assert f"{MANY:,} items" in opened.count()
    assert megabytes <= 6
    assert opened.ready_s <= READY_S
    assert max(searches) <= SEARCH_MS
    assert max(sorts) <= SORT_MS


def test_a_search_finds_items_by_whatever_is_known_of_them(report: Opened) -> None:
    """Their name, number, id, code, message or request id, in any case; and nothing else."""
    for words, expected in (
        ("ACME/R17 ", 1), ("#17", 1), ("my-5", 1), ("conflict", 10), ("not found", 41), ("F00D", 1), ("nowhere", 0),
    ):  # fmt: skip
        report.page.fill("#search", words)
        assert len(report.rows()) == expected, words
        assert report.count().startswith(f"{expected} of {FAILED} items")
    report.page.click("#clear")
    assert report.count().startswith(f"{FAILED} items")


def test_filters_and_the_search_work_together(report: Opened) -> None:
    """Job, outcome and code narrow what is listed, and clearing brings everything back."""
    report.page.select_option("#job", label="codeowners")
    assert report.count().startswith(f"12 of {FAILED} items")
    report.page.select_option("#outcome", label="unknown")
    assert len(report.rows()) == 1
    report.page.fill("#search", "r99")
    assert report.rows() == []
    report.page.click("#clear")
    assert report.count().startswith(f"{FAILED} items")


def test_columns_sort_in_both_directions(report: Opened) -> None:
    """A head sorts by its column, again the other way round, and says so."""
    head = report.page.get_by_role("button", name="Status")
    head.click()
    statuses = [int(text) for text in report.page.locator("#rows td[data-head=Status]").all_inner_texts()]
    assert statuses == sorted(statuses)
    head.click()
    statuses = [int(text) for text in report.page.locator("#rows td[data-head=Status]").all_inner_texts()]
    assert statuses == sorted(statuses, reverse=True)
    assert report.page.locator("#heads [aria-sort=descending]").inner_text().startswith("Status")


def test_a_cause_shows_its_items(report: Opened) -> None:
    """The most frequent cause comes first, with its count and examples; its button lists exactly its items."""
    first = report.page.locator(".causes tbody tr").first
    assert re.match(r"30\s+not_found in readmes\s+Not Found", first.inner_text())
    assert len(re.findall(r"#\d+", first.inner_text())) == 3
    first.get_by_role("button").click()
    assert report.count().startswith(f"30 of {FAILED} items")


def test_more_can_be_shown(pages: Pages, large_report: Path) -> None:
    """A hundred rows at first, so that the page stays quick; then a thousand more with each wish."""
    opened = pages.open(large_report)
    assert opened.page.locator("#rows tr").count() == 100
    opened.page.click("#more")
    assert opened.page.locator("#rows tr").count() == 1100


def test_each_plot_has_its_figures_as_a_table(report: Opened) -> None:
    """What is drawn can be read as a table that is made when it is opened."""
    figures = report.page.locator("#plots figure")
    titles = figures.locator("figcaption").all_inner_texts()
    assert titles == [
        "Items that ended, per second",
        "Budget default/core: requests left",
        "How long good answers took",
        "Items that waited, by reason",
        "Requests in flight",
    ]
    for place in range(figures.count()):
        plot = figures.nth(place)
        assert plot.locator("svg").locator("rect, path").count() >= 1
        plot.locator("summary").click()
        plot.locator("tbody tr").nth(9).wait_for()
    assert report.page.locator("#plots .reset").count() == 1


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_it_is_readable_at_every_width(pages: Pages, small_report: Path, width: int, scheme: str) -> None:
    """Nothing is wider than the window, and no letter of a plot is smaller than 11 pixels."""
    opened = pages.open(small_report, width=width, scheme=scheme)
    assert opened.overflow() <= 0
    boxes = opened.page.evaluate(
        "() => [...document.querySelectorAll('svg text')].map(text => text.getBoundingClientRect())"
        ".map(box => [box.left, box.right, box.height])"
    )
    assert len(boxes) > 20
    assert all(left >= 0 and right <= width and height >= 11 for left, right, height in boxes)


@pytest.mark.parametrize(("width", "scheme"), READ_IN)
def test_nothing_keeps_anybody_from_reading_it(pages: Pages, small_report: Path, width: int, scheme: str) -> None:
    """axe finds nothing serious, light or dark, wide or narrow, with tables open."""
    opened = pages.open(small_report, width=width, scheme=scheme, is_policy_lifted=True)
    for summary in opened.page.locator("summary").all():
        if summary.is_visible():
            summary.click()
    assert barriers(opened.page) == []


def test_hostile_names_are_inert(pages: Pages, hostile_report: Path) -> None:
    """A name that holds elements, scripts, controls and bidirectional marks is words, and shows what it holds."""
    opened = pages.open(hostile_report)
    row = opened.rows()[0]
    assert "<script>alert(1)</script>" in row
    assert r"\u202e" in row
    assert r"\u001b" in row
    assert not set("\u202e\x1b\x07") & set(opened.page.locator("body").inner_text())
    assert opened.page.locator("img, a, iframe").count() == 0
    opened.page.fill("#search", HOSTILE[:20])
    assert len(opened.rows()) == 2


def test_without_scripts_there_are_the_tables(pages: Pages, small_report: Path) -> None:
    """Causes, jobs and the first items of each job can be read; what needs a script is not there."""
    opened = pages.open(small_report, has_scripts=False)
    assert opened.page.locator("#plain table").first.is_visible()
    assert opened.page.locator(".causes tbody tr").count() == 5
    for each in ("#explorer", "#plots", "[data-cause]"):
        assert not opened.page.locator(each).first.is_visible()


def test_a_page_that_was_changed_runs_nothing(pages: Pages, small_report: Path, tmp_path: Path) -> None:
    """The policy names the digest of the one script: another one does not run, and the tables stay."""
    changed = tmp_path / "report.html"
    text = small_report.read_text()
    assert text.count("const PAGE = 100;") == 1
    changed.write_text(text.replace("const PAGE = 100;", "const PAGE = 101;"))
    opened = pages.open(changed, has_scripts=True, is_ready_expected=False)
    opened.complaints.expected.append("script-src")
    assert opened.page.locator("#plain").is_visible()
    assert not opened.page.locator("#explorer").is_visible()


def test_it_can_be_printed(report: Opened) -> None:
    """On paper there is nothing to click, and there are pages."""
    report.page.emulate_media(media="print")
    assert not report.page.locator(".tools").is_visible()
    assert report.page.locator(".causes tbody tr").count() == 5
    assert report.page.pdf().startswith(b"%PDF")


def test_what_a_page_cannot_hold_is_said(pages: Pages, cut_report: Path) -> None:
    """Of more items than a page holds, it says how many there are, and the command that lists them all."""
    opened = pages.open(cut_report)
    assert f"The first 20 of {FAILED} are here." in opened.page.locator("#explorer").inner_text()
    assert "--format csv --only failed,skipped,unknown" in opened.page.locator("#explorer code").inner_text()
