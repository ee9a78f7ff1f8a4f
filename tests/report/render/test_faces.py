"""Text, HTML and the files that they go to: what a person reads at the end of a run."""

import base64
import hashlib
import re
import stat
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.errors import RunDirectoryError
from bulk.ledger.view import LedgerView
from bulk.report.exploration import explore
from bulk.report.fold import fold
from bulk.report.record import OUTCOMES, Report
from bulk.report.render import html, text
from bulk.report.render.terminal import UNLIMITED, width
from bulk.report.report_files import write_reports
from bulk.status import Wait
from tests.report.ledgers import START, bucket, finished, status

HOSTILE = (
    "</td><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[31m\x1b]0;t\x07\"'><a href=javascript:x>"
)


@pytest.fixture
def report(new_run):
    """A run of two jobs with every outcome, resumed once."""
    run = new_run(readmes=50, codeowners=12)
    run.epoch([finished(index) for index in range(40)], exit_code=130, lasts_s=40.0, requests=40)
    items = [finished(40 + index, "unchanged", http_status=304, started_at=START + 1000 + index) for index in range(10)]
    items += [finished(index, "failed", "codeowners", code="conflict", started_at=START + 1010) for index in range(10)]
    items += [finished(10, "unknown", "codeowners", code="unknown_outcome", started_at=START + 1011)]
    items += [finished(11, "skipped", "codeowners", code="superseded", started_at=START + 1012)]
    view = run.epoch(
        items,
        started_at=START + 999,
        lasts_s=30.0,
        exit_code=6,
        requests=31,
        retries=2,
        settled=1,
        buckets=(
            bucket(used=31, reset_at=START + 2000),
            bucket("scim", credential="admin", used=1, limit=None, remaining=None),
        ),
    )
    return fold(view)


@pytest.fixture
def explored(report):
    """What there is to explore of it."""
    return explore(LedgerView(Path(report.run_dir)), report)


@pytest.fixture
def hostile(new_run):
    """A run in which every name and message is hostile."""
    run = new_run(readmes=3)
    run.jobs = {HOSTILE: 3}
    item = {"owner": HOSTILE, "repo": HOSTILE, "path": HOSTILE, HOSTILE: HOSTILE}
    items = [
        finished(index, "failed", HOSTILE, item=item, id=HOSTILE, code="rejected", message=HOSTILE, elapsed_ms=9e4)
        for index in range(2)
    ]
    view = run.epoch(
        items,
        exit_code=3,
        why=HOSTILE,
        name=HOSTILE,
        waits=(Wait(HOSTILE, None, 3),),
        buckets=(bucket(HOSTILE, credential=HOSTILE, used=2),),
    )
    return fold(view, notes=(HOSTILE,))


class _Page(HTMLParser):
    """A page as a browser would see its elements; balanced or not."""

    VOID = frozenset(("meta", "line", "br", "img", "link", "input"))

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "script"):
            self.words.append(data)


def test_text_says_what_matters(report):
    """The end of a run names its verdict, figures, what failed with the first items, the budget, and the way on."""
    shown = text.render(report)
    assert "the outcome of some items is unknown" in shown
    assert "62 items in 1 min 10 s" in shown
    assert "71 requests, 2 of them repeated, 1 lost answer settled by reading." in shown
    assert "10 answers had not changed (304)" in shown
    assert "10 × conflict" in shown
    assert shown.count("acme/r0: Not Found") == 1
    assert "acme/r3" not in shown
    assert "--only failed,unknown,skipped" in shown
    assert "Budget default/core: 31 used; 2,000 of 5,000 left" in shown
    assert "Budget admin/scim: 1 used, no limit." in shown
    assert shown.rstrip().endswith(f"bulk retry {report.run_dir}")


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_text_fits(report, hostile, columns):
    """No line is wider than the terminal, but for commands and places that must stay in one piece."""
    for each in (report, hostile):
        for line in text.render(each, columns=columns).splitlines():
            if not re.search(r"--only|Report:|Go on:", line):
                assert width(line) <= columns, line


@pytest.mark.parametrize("columns", [60, 80, UNLIMITED])
def test_the_slowest_item_keeps_its_figure(new_run, columns):
    """Its label may take several lines, and how long it took is said in full; a pipe breaks no line."""
    run = new_run(readmes=1)
    item = {"owner": "borealis-web-north", "repo": "api", "path": "docs/decisions/0001-record-architecture.md"}
    with run.open() as ledger:
        ledger.commit([run.record(finished(0, item=item, elapsed_ms=83_000.0))])
        ledger.finish(0, "", status(START + 90))
    shown = text.render(fold(run.view), columns=columns)
    (line,) = (part for part in " ".join(shown.split()).split("Budget")[0].split("Report:") if "Slowest:" in part)
    assert "0001-record-architecture.md, 1 min 23 s" in line
    assert "…" not in shown
    assert ("\n  " in shown.partition("Slowest:")[2]) == (columns < UNLIMITED)


def test_text_is_coloured_only_when_asked(report):
    """Without colour there is no escape character; with it the words are the same."""
    plain, coloured = text.render(report), text.render(report, is_coloured=True)
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain
    assert coloured != plain


def test_text_of_hostile_names_is_harmless(hostile):
    """Nothing of a name, message or note reaches the terminal that it would obey (failures.md row 66)."""
    shown = text.render(hostile)
    assert all(char.isprintable() or char == "\n" for char in shown)
    assert "alert(1)" in shown


def test_text_of_a_stopped_run(new_run):
    """A stopped run says why, what is left and what it waited for."""
    view = new_run(readmes=8).epoch(
        [finished(0)], exit_code=3, why="out of reach", waits=(Wait("bucket core", START + 99, 5),)
    )
    shown = text.render(fold(view))
    assert "stopped early: out of reach" in shown
    assert "7 items left (12% done)." in shown
    assert "waited for: bucket core until" in shown
    assert "bulk resume" in shown


def test_text_of_dozens_of_jobs_is_bounded(new_run):
    """Sixty jobs are summarised, and an empty run has a report as well."""
    run = new_run(**{f"job_{number}": 1 for number in range(60)})
    shown = text.render(fold(run.epoch(exit_code=3)))
    assert "and 20 more jobs" in shown
    assert "none of them has ended" in shown


def test_html_is_one_page_without_anything_from_outside(report, explored):
    """No link, no image, no style attribute; the policy allows the page's own style sheet and script and no more;
    elements are balanced."""
    for rendered in (html.render(report), html.render(report, explored)):
        page = _Page(rendered)
        assert page.open == []
        names = {tag for tag, _ in page.tags}
        assert not names & {"link", "img", "iframe", "object", "a", "form", "base"}
        policies = [
            given["content"] for tag, given in page.tags if given.get("http-equiv") == "Content-Security-Policy"
        ]
        assert len(policies) == 1
        assert str(policies[0]).startswith("default-src 'none'; style-src 'sha256-")
        assert "unsafe" not in str(policies[0])
        forbidden = ("src", "href", "srcset", "style")
        assert not any(name in forbidden or name.startswith("on") for _, given in page.tags for name in given)
        assert "url(" not in rendered
        assert "@import" not in rendered
        for tag in ("style", 'script type="module"'):
            for words in re.findall(rf"<{tag}>(.*?)</{tag.split()[0]}>", rendered, re.DOTALL):
                digest = base64.b64encode(hashlib.sha256(words.encode()).digest()).decode()
                assert f"'sha256-{digest}'" in str(policies[0])


def test_html_says_what_matters(report):
    """The page has the verdict, each job, each error with its meaning, the budget, each start, and the way on."""
    words = " ".join(" ".join(_Page(html.render(report)).words).split())
    for expected in (
        "the outcome of some items is unknown",
        "bulk retry",
        "codeowners",
        "conflict",
        "somebody else changed it",
        "Not Found",
        "Budget used",
        "Starts",
        "exit 130",
        "10 by 304",
        "All 11 items",
    ):
        assert expected in words, expected


def test_html_can_be_read_aloud(report):
    """Every column has a header with a scope, every drawing a description, and the language is named."""
    page = _Page(html.render(report))
    assert ("html", {"lang": "en"}) in page.tags
    assert all(given.get("scope") in ("col", "row") for tag, given in page.tags if tag == "th")
    assert all(given.get("aria-label") for tag, given in page.tags if tag == "svg" or given.get("role") == "img")
    assert any(tag == "svg" for tag, _ in page.tags)
    style = html.render(report)
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style


def test_html_of_hostile_names_is_harmless(report, hostile):
    """A name is text whatever it holds: it adds no element, no attribute, no order (failures.md row 68)."""
    rendered = html.render(hostile)
    page = _Page(rendered)
    assert page.open == []
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in _Page(html.render(report)).tags} | {"ul", "li"}
    assert not any(name.startswith("on") or name in ("href", "src") for _, given in page.tags for name in given)
    assert all(char.isprintable() or char == "\n" for char in rendered)
    assert "<script>alert(1)</script>" in " ".join(page.words)


def test_html_of_every_state(new_run):
    """A run that has done nothing yet, or was killed, or runs, has a page too."""
    run = new_run(readmes=2)
    assert "ended unexpectedly" in html.render(fold(run.epoch(exit_code=None)))
    with run.open(START + 50):
        assert "still running" in html.render(fold(run.view, now=START + 60))


@given(st.fixed_dictionaries({kind: st.integers(0, 10**6) for kind in OUTCOMES}), st.none() | st.integers(0, 10**6))
def test_the_bar_of_outcomes_stays_within_its_frame(outcomes, left):
    """Whatever the numbers: each outcome that occurred is seen, and no part leaves the bar."""
    parts = list(html.bar_parts(outcomes, left))
    assert {part.kind for part in parts} == {kind for kind, count in {**outcomes, "left": left}.items() if count}
    assert all(0 <= part.x <= part.x + part.width <= 1000.1 for part in parts)
    assert all(part.width >= 4 for part in parts)


def test_hidden_characters_are_written_out():
    """What a reader would obey, reorder or not see stands there as its number; scripts that need joiners keep them."""
    assert html.shown("a\u202eb\x1bc\u2028d\ne\u00a0f") == "a\\u202eb\\u001bc\\u2028d e f"
    assert html.shown("\u0645\u06cc\u200c\u062e") == "\u0645\u06cc\u200c\u062e"


def test_files_are_whole_and_private(report, tmp_path):
    """Both files are there, closed to others, and the JSON is the report."""
    write_reports(report, tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir() if each.is_file()) == ["report.html", "report.json"]
    for name in ("report.json", "report.html"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert msgspec.json.decode((tmp_path / "report.json").read_bytes(), type=Report) == report


def test_links_are_replaced_not_followed(report, tmp_path):
    """A link in the place of a report is replaced; what it led to stays as it was (failures.md row 49)."""
    target, twin = tmp_path / "precious", tmp_path / "twin"
    target.write_text("mine")
    twin.write_text("mine too")
    where = tmp_path / "reports"
    where.mkdir()
    (where / "report.json").symlink_to(target)
    (where / "report.html").hardlink_to(twin)
    write_reports(report, where)
    assert (target.read_text(), twin.read_text()) == ("mine", "mine too")
    assert not (where / "report.json").is_symlink()
    assert msgspec.json.decode((where / "report.json").read_bytes(), type=Report) == report


def test_what_cannot_be_written_is_an_error_with_a_way_out(report, tmp_path):
    """A vanished directory or a name that is taken ends as a RunDirectoryError, and nothing half-written stays."""
    with pytest.raises(RunDirectoryError, match="bulk report"):
        write_reports(report, tmp_path / "gone")
    where = tmp_path / "reports"
    (where / "report.html").mkdir(parents=True)
    with pytest.raises(RunDirectoryError):
        write_reports(report, where)
    assert sorted(each.name for each in where.iterdir()) == ["report.html", "report.json"]
