"""What the page is told: lists, one run, its items with filter, search and pages, and one item."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bulk.serve.items
from bulk.clock import Clock
from bulk.ledger.records import Finished
from bulk.ledger.view import LedgerView
from bulk.model import OutcomeKind
from bulk.serve.items import PAGE, Filter, Items
from bulk.serve.search_index import SearchIndex, Wanted
from tests.browser.runs import FAILED, HOSTILE
from tests.report.ledgers import START, Run, finished, status
from tests.serve.conftest import Asker, asking, counted

WORDS = ("Acme", "Straße", "API", "web", "Ünïcode", "x", "über", "r1", "not_found", "#7")
OUTCOMES = ("succeeded", "failed", "unknown", "skipped", "unchanged")


@pytest.fixture
def items(tmp_path: Path) -> Iterator[Items]:
    """Pages and searches, with an index of their own."""
    made = Items(tmp_path / "cache", Clock())
    yield made
    made.close()


def every(items: Items, view: LedgerView, wanted: Filter) -> list[tuple[str, int]]:
    """Job and index of each item of all pages."""
    found, after = [], ""
    for _ in range(1000):
        page = items.page(view, wanted, after)
        assert len(page.rows) <= PAGE
        if page.indexed is not None and page.indexed < 1:
            continue
        found += [(row.job, row.index) for row in page.rows]
        after = page.next
        if not after:
            return found
    raise AssertionError("it never ends")


def lines(view: LedgerView) -> list[dict[str, Any]]:
    """Every current line of the results."""
    return list(view.finished())


def is_wanted(line: dict[str, Any], wanted: Filter) -> bool:
    """What the filter means, said once more."""
    error = line["error"] or {"code": "", "message": ""}
    words = [*map(str, line["item"].values()), line["id"] or "", line["request_id"] or ""]
    text = "\t".join([*words, f"#{line['index']}", error["code"], error["message"]]).lower()
    return (
        wanted.job in ("", line["job"])
        and wanted.outcome in ("", line["outcome"])
        and wanted.code in ("", error["code"])
        and wanted.text.lower() in text
    )


def write(run: Run, dice: random.Random, size: int) -> None:
    """Items in no order; those that had failed are to do again, so that some end a second time."""
    with run.open() as ledger:
        ledger.reopen({OutcomeKind.FAILED})
        done = {(line["job"], line["index"]) for line in run.view.finished()}
        todo = [(job, index) for job, items in run.jobs.items() for index in range(items) if (job, index) not in done]
        records = [run.record(some_item(dice, *each)) for each in dice.sample(todo, size)]
        for first in range(0, size, 50):
            ledger.commit(records[first : first + 50])


def some_item(dice: random.Random, job: str, index: int) -> Finished:
    """An item with some words."""
    outcome = dice.choice(OUTCOMES)
    words = {"name": dice.choice(WORDS), "topic": f"{dice.choice(WORDS)} {dice.choice(WORDS)}"}
    return finished(
        index,
        outcome,
        job,
        item=words,
        code=dice.choice(("not_found", "conflict", "server_error")),
        message=f"{dice.choice(WORDS)}\nis closed",
        request_id=f"{dice.getrandbits(32):08X}" if dice.random() < 0.5 else None,
        result={"text": "Acme api " * dice.choice((1, 3_000))} if outcome == "succeeded" else None,
    )


def test_filter_and_search_find_exactly_what_is_there(items: Items, tmp_path: Path) -> None:
    """Whatever is filtered and searched for, in whatever case, each current item that fits is found once, on some page,
    also while the run grows; an item's older line is never found.
    """
    dice = random.Random(11)
    run = Run(tmp_path / "run", readmes=90, codeowners=700)
    checked = 0
    for size in (300, 500):
        write(run, dice, size)
        view = run.view
        there = lines(view)
        for text in ("", *WORDS, "ACME", "is closed", "0", "nothing such"):
            for wanted in (
                Filter(text=text),
                Filter(text=text, outcome="failed"),
                Filter(text=text, job="readmes", code="conflict"),
                Filter(text=text, code="no_such_code"),
                Filter(text=text, job="no such job"),
            ):
                expected = [(line["job"], line["index"]) for line in there if is_wanted(line, wanted)]
                found = every(items, view, wanted)
                assert sorted(found) == sorted(expected), wanted
                checked += len(found)
                if not text:
                    assert found == expected, "pages come in the order of jobs and items"
    assert checked > 3_000


def test_a_rare_filter_is_answered_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few items fit, an answer looks at a bounded number of them and says where the next one goes on; all that
    fit are found, once and in order, and where many fit a page is full at once."""
    monkeypatch.setattr(bulk.serve.items, "LOOKED_AT", 50)
    monkeypatch.setattr(bulk.serve.items, "FIND_S", 0.0)
    run, rare = Run(tmp_path / "run", readmes=900, codeowners=300), {700, 701, 899}
    with run.open() as ledger:
        for job in ("readmes", "codeowners"):
            made = [finished(at, "failed" if at in rare else "succeeded", job) for at in range(run.jobs[job])]
            ledger.commit([run.record(each) for each in made])
    pages, view = Items(tmp_path / "cache", Clock()), run.view
    try:
        for wanted, numbers, least in (
            (Filter(outcome="failed"), sorted(rare), 15),
            (Filter(outcome="failed", job="readmes", code="not_found"), sorted(rare), 15),
            (Filter(outcome="succeeded", job="codeowners"), list(range(300)), 3),
        ):
            found, after, answers = list[int](), "", 0
            while True:
                with counted() as steps:
                    page = pages.page(view, wanted, after)
                answers += 1
                found += [row.index for row in page.rows]
                assert len(steps) < 400, "an answer goes through the whole run"
                after = page.next
                if not after:
                    break
            assert (found, page.count) == (numbers, len(numbers))
            assert answers >= least
    finally:
        pages.close()


def test_the_index_is_found_again_and_made_anew_where_the_results_were(tmp_path: Path) -> None:
    """A later server goes on with the index of an earlier one; after a rewrite of the results, and for another run in
    the same folder, it is made anew.
    """
    run, wanted = Run(tmp_path / "run", readmes=500), Filter(text="api")
    write(run, random.Random(1), 300)
    for _ in range(2):
        first = Items(tmp_path / "cache", Clock())
        found = every(first, run.view, wanted)
        assert sorted(found) == sorted(
            (line["job"], line["index"]) for line in lines(run.view) if is_wanted(line, wanted)
        )
        first.close()
        with run.open() as ledger:
            ledger.reopen({OutcomeKind.FAILED})
            ledger.finish(1, "", status(START + 1))
    assert len([each for each in (tmp_path / "cache").iterdir() if each.is_dir()]) == 1
    (tmp_path / "cache" / "else").mkdir()
    (tmp_path / "run").rename(tmp_path / "gone")
    Items(tmp_path / "cache", Clock()).close()
    assert [each.name for each in (tmp_path / "cache").iterdir() if each.is_dir()] == ["else"]


def test_two_servers_never_share_an_index(tmp_path: Path) -> None:
    """The folder of the indexes is one process's; another has its own, and both find the same."""
    run = Run(tmp_path / "run", readmes=500)
    write(run, random.Random(2), 100)
    one, other = Items(tmp_path / "cache", Clock()), Items(tmp_path / "cache", Clock())
    assert every(one, run.view, Filter(text="web")) == every(other, run.view, Filter(text="web")) != []
    assert len([each for each in (tmp_path / "cache").iterdir() if each.is_dir()]) == 1
    one.close()
    other.close()


def test_a_search_reads_only_what_the_filter_leaves(tmp_path: Path) -> None:
    """Items that ended alike are one stretch of the text for each growth of the index, however they ended in turns; a
    search that has no time goes on after each stretch, and finds the same.
    """
    run = Run(tmp_path / "run", readmes=400)
    write_in_turns(run, 0, 200)
    index = SearchIndex(run.view, tmp_path / "index", lambda: 0.0)
    assert index.grow(1.0) == 1.0
    write_in_turns(run, 200, 400)
    assert index.grow(1.0) == 1.0
    for needle, outcome, expected, most in (
        ("acme", "failed", list(range(0, 400, 2)), 200 + 3),
        ("not_found", "failed", list(range(0, 400, 2)), 200 + 3),
        ("not_found", "succeeded", [], 3),
        ("acme", "unknown", [], 1),
    ):
        after, looks, found = 0, 0, list[int]()
        while True:
            seen = index.find(needle, Wanted(0, outcome, ""), after, 1, seconds=0.0)
            found += [hit.place for hit in seen.hits]
            after, looks = seen.next, looks + 1
            if seen.is_complete:
                break
        assert found == expected
        assert looks <= most, "a look for each hit, one for each of two stretches, and the last"


def write_in_turns(run: Run, first: int, behind: int) -> None:
    """Every second of these items fails."""
    with run.open() as ledger:
        outcomes = {number: "succeeded" if number % 2 else "failed" for number in range(first, behind)}
        ledger.commit([run.record(finished(number, outcome)) for number, outcome in outcomes.items()])


def test_the_list_says_where_each_run_stands(asker: Asker) -> None:
    """Runs can be searched by name and state; what is told is what the ledger counts."""
    told = asker.get("/runs").data
    assert {run["name"] for run in told["runs"]} == {"small", "hostile"}
    (small,) = asker.get("/runs?q=SMALL").data["runs"]
    assert small["outcomes"] == {"succeeded": 60, "unchanged": 0, "failed": 50, "skipped": 1, "unknown": 1}
    assert (small["items"], small["state"], small["exit_code"]) == (160, "stopped", 1)
    assert asker.get("/runs?q=small&state=complete").data["runs"] == []


def test_a_second_folder_has_names_of_its_own(fleet: Path, tmp_path: Path) -> None:
    """Runs of the same name in two folders are two runs; a run directory can be named itself."""
    with asking(fleet, fleet / "small", cache=tmp_path) as asker:
        names = {run["name"] for run in asker.get("/runs").data["runs"]}
        assert names == {"small", "hostile", "2:small"}
        assert asker.get("/runs/2:small").data["run"]["run_dir"] == str(fleet / "small")
        assert asker.get("/runs/2%3Asmall/items").data["count"] == 112


def test_a_run_says_what_fails_and_why(asker: Asker) -> None:
    """Codes with their counts and a message, the most frequent first, and the next command."""
    told = asker.get("/runs/small").data
    causes = [(each["code"], each["job"], each["items"], each["message"]) for each in told["failures"]]
    assert causes[:2] == [
        ("not_found", "readmes", 30, "Not Found"),
        ("conflict", "codeowners", 10, "Not Found"),
    ] or causes[:2] == [("not_found", "readmes", 30, "Not Found"), ("forbidden", "readmes", 10, "r30 is closed")]
    assert sum(each[2] for each in causes) == FAILED
    assert told["run"]["next_command"].startswith("bulk resume ")


def test_what_has_not_changed_is_not_sent_again(asker: Asker) -> None:
    """An answer carries an ETag, and who has it already hears 304 without a body."""
    for path in ("/runs", "/runs/small", "/runs/small/plots", "/runs/small/items?outcome=failed"):
        first = asker.get(path)
        again = asker.get(path, **{"If-None-Match": first.headers["etag"]})
        assert (again.status, again.body) == (304, b"")


def test_plots_say_what_the_samples_say(asker: Asker) -> None:
    """Throughput is in bins of a second, and adds up to what the samples say; a budget shows its reset."""
    told = asker.get("/runs/small/plots").data
    assert told["bin_s"] == 1.0
    assert sum(succeeded for succeeded, *_ in told["outcomes"]) == 2 * 109
    (budget,) = told["budgets"]
    assert (budget["name"], budget["limit"], len(budget["resets"])) == ("default/core", 5000, 1)
    assert set(told["waits"]) == {"pace", "budget"}


def test_an_item_is_told_whole(asker: Asker) -> None:
    """The line of the results, as it stands there; an item that has not ended is none."""
    told = asker.get("/runs/small/items/codeowners/10").data
    assert (told["outcome"], told["request_id"], told["error"]["code"]) == ("unknown", "F00D", "unknown_outcome")
    assert asker.get("/runs/small/items/codeowners/59").status == 404


def test_a_hostile_name_is_data(asker: Asker) -> None:
    """Names are JSON text wherever they stand, and are found by what they hold (failures.md row 68)."""
    told = asker.get("/runs/hostile/items?q=%3Cscript%3Ealert").data
    assert [row["job"] for row in told["rows"]] == [HOSTILE] * 2
    assert told["rows"][0]["message"] == HOSTILE


@pytest.mark.parametrize("after", ["x", "1", "1:2:3", "-1", "1:x"])
def test_a_page_that_never_was_is_refused(asker: Asker, after: str) -> None:
    """What is not a key of a page is said to be none."""
    assert asker.get(f"/runs/small/items?after={after}").status == 400


def test_a_search_without_a_place_for_its_index_says_so(fleet: Path, tmp_path: Path) -> None:
    """The page says what this machine lacks, as on a full disk, and everything else is answered."""
    cache = tmp_path / "cache"
    with asking(fleet, cache=cache) as asker:
        shutil.rmtree(cache)
        cache.write_bytes(b"")
        refused = asker.get("/runs/small/items?q=r0")
        assert (refused.status, refused.data["error"]) == (503, "this machine can't do that: Not a directory")
        assert asker.get("/runs/small/items").status == 200
