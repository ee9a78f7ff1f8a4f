"""Runs of a store on the page: what is told, filtered, searched and steered, against the store itself."""

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bulk.clock import Clock, iso_utc
from bulk.cluster.budgets import encoded
from bulk.govern.budgets.buckets import Bucket
from bulk.govern.budgets.shared_bucket import Hold, SharedBucket
from bulk.model import ErrorCode, OutcomeKind
from bulk.store import runs
from bulk.store.connections import SILENT_S
from bulk.store.ledger import StoreLedger
from tests.browser.stored import keep_leases
from tests.ledger.samples import STATUS, identity, record
from tests.report.ledgers import bucket
from tests.serve.conftest import Asker, asking
from tests.serve.test_planted_bugs import each_stands_once, pages_by_number
from tests.store.places import StorePlace, connection_to, ranges
from tests.store.proxy import link_to

DONE, GONE, REFUSED = 150, 20, 5


@pytest.fixture(scope="module")
def place(shared_store: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorePlace]:
    """A run of two jobs in three shards: one was taken over from a dead worker, one is held, one is free."""
    whose = identity(jobs=(("readmes", "readme.get", 200), ("codeowners", "contents.put", 100)))
    shards = ranges(((0, 0, 100), (0, 100, 200), (1, 0, 100)))
    made = StorePlace(shared_store, tmp_path_factory.mktemp("place"), shards=shards, whose=whose)
    dead = made.opened(0)
    dead.commit([record(index) for index in range(60)], STATUS)
    ledger = made.opened(0, 1)
    group = [record(index) for index in range(60, DONE)]
    group += [record(index, OutcomeKind.FAILED) for index in range(DONE, DONE + GONE)]
    group += [
        record(index, OutcomeKind.FAILED, code=ErrorCode.FORBIDDEN)
        for index in range(DONE + GONE, DONE + GONE + REFUSED)
    ]
    at_work = msgspec.structs.replace(
        STATUS, state="running", per_second=12.5, in_flight=3, concurrency=8, requests=200, buckets=(bucket(used=77),)
    )
    ledger.commit(group, at_work)
    keep_leases(made)
    yield made
    made.close()


@pytest.fixture(scope="module")
def asker(place: StorePlace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """Who asks a server of that store."""
    folder = tmp_path_factory.mktemp("runs")
    with asking(folder, cache=folder / "cache", store=place.text) as asker:
        yield asker


def test_a_run_of_a_store_is_among_the_others(asker: Asker, place: StorePlace) -> None:
    """In the list and on its page it says what the store says, as if it were one process."""
    (row,) = [row for row in asker.get("/runs").data["runs"] if row["name"] == f"store:{place.name}"]
    assert (row["state"], row["items"], row["outcomes"]["failed"]) == ("running", 300, GONE + REFUSED)
    page = asker.get(f"/runs/store:{place.name}").data
    run = page["run"]
    assert (run["state"], run["left"], run["outcomes"]["succeeded"]) == ("running", 125, DONE)
    assert {(each["code"], each["items"]) for each in page["failures"]} == {("not_found", GONE), ("forbidden", REFUSED)}
    assert (run["status"]["per_second"], run["status"]["in_flight"], run["status"]["requests"]) == (12.5, 3, 200)
    assert run["status"]["finish_at"] > run["status"]["at"]
    assert [each["used"] for each in run["status"]["buckets"]] == [77]
    shards = page["shares"]["shards"]
    assert (shards["shards"], shards["leased"], shards["taken_again"]) == (3, 2, 1)
    assert [(each["state"], each["work"][0]["shards"]) for each in page["shares"]["workers"]] == [
        ("working", 2),
        ("idle", 0),
    ]
    began_at = {iso_utc(row[0]) for row in place.sql("SELECT extract(epoch FROM began_at)::float8 FROM worker")}
    assert all(each["began_at"] in began_at for each in page["shares"]["workers"])
    assert asker.get(f"/runs/store:{place.name}/plots").status == 200
    assert asker.get("/runs/store:nobody").status == 404
    text = asker.send("GET", "/metrics", {"Authorization": f"Bearer {asker.served.metrics_key}"}).body.decode()
    assert f'bulk_items_total{{run="store:{place.name}",job="readmes",outcome="failed"}} {GONE + REFUSED}' in text


@pytest.mark.parametrize("what", ["%00", "a%00b", "%ED%B3%BF", "%FF"])
def test_what_a_store_can_not_hold_is_not_there(asker: Asker, place: StorePlace, what: str) -> None:
    """A name or a search with a character that no text in the store can have finds nothing; the store is in reach."""
    assert asker.get(f"/runs/store:{what}").status in (400, 404)
    for field in ("search", "job", "outcome", "code", "after"):
        assert asker.get(f"/runs/store:{place.name}/items?{field}={what}").status in (200, 400, 404), field


def test_items_of_a_store_are_filtered_and_searched(asker: Asker, place: StorePlace) -> None:
    """In pages that together are all; a search without an index looks at every item."""
    path = f"/runs/store:{place.name}/items"

    def every(query: str) -> list[dict[str, Any]]:
        rows, after = list[dict[str, Any]](), ""
        while True:
            page = asker.get(f"{path}?{query}&after={after}").data
            rows += page["rows"]
            after = page["next"]
            if not after:
                return rows

    rows = every("")
    assert [row["index"] for row in rows] == list(range(DONE + GONE + REFUSED))
    assert Counter(row["outcome"] for row in rows) == {"succeeded": DONE, "failed": GONE + REFUSED}
    refused = every("code=forbidden")
    assert [row["index"] for row in refused] == list(range(DONE + GONE, DONE + GONE + REFUSED))
    assert asker.get(f"{path}?code=forbidden").data["count"] == REFUSED
    assert [row["label"] for row in every("q=ACME%2FR17")] == ["acme/r17", *(f"acme/r{n}" for n in range(170, 175))]
    assert every("job=codeowners") == every("job=nobody") == []
    assert asker.get(f"{path}?after=x").status == 400
    line = asker.get(f"{path}/readmes/{DONE}").data
    assert (line["item"]["repo"], line["error"]["code"]) == (f"r{DONE}", "not_found")
    assert asker.get(f"{path}/readmes/199").status == 404


def test_pages_follow_each_other(shared_store: str, tmp_path: Path) -> None:
    """Whatever ends between two pages, no item stands on both; with pages by number one does."""
    for number, plant in enumerate((None, pages_by_number)):
        place = StorePlace(shared_store, tmp_path / str(number), shards=ranges(((0, 0, 1000), (1, 0, 1000))))
        ledger = place.opened()

        def end_more(numbers: range, ledger: StoreLedger = ledger) -> None:
            ledger.commit([record(each) for each in numbers])

        end_more(range(300, 600))
        with (
            asking(tmp_path, cache=tmp_path / "cache", store=place.text) as asker,
            pytest.MonkeyPatch.context() as patch,
        ):
            if plant is None:
                each_stands_once(asker, f"store:{place.name}", end_more)
            else:
                plant(patch)
                with pytest.raises(AssertionError, match="an item stands on two pages"):
                    each_stands_once(asker, f"store:{place.name}", end_more)
        place.close()


def test_the_cluster_is_told(asker: Asker, place: StorePlace) -> None:
    """Who works, what is held, what was taken over, what is lent of a budget; of a token nothing but its name."""
    shared = SharedBucket(Bucket(5000, 4200, 4_000_000_000.0, 3600.0, sent=700))
    worker = place.sql("SELECT owner FROM shard WHERE run = %s AND owner IS NOT NULL", place.run)[0][0]
    shared.holds[worker] = Hold(1, 25, 4_000_000_000.0)
    place.sql(
        "INSERT INTO account (platform, credential, token_tag) VALUES ('p', 'default 0123456789abcdef01234567', '')"
    )
    place.sql("INSERT INTO bucket VALUES ('p', 'default 0123456789abcdef01234567', 'core', %s)", encoded(shared))
    found = asker.get("/cluster").data
    (row,) = [row for row in found["runs"] if row["run"] == place.name]
    assert (row["shards"], row["done"], row["leased"], row["lapsed"]) == (3, 0, 2, 0)
    assert {(each["shard"], each["holders"]) for each in found["takeovers"] if each["run"] == place.name} == {(0, 2)}
    (budget,) = found["budgets"]
    assert (budget["credential"], budget["free"], budget["held"]) == (
        "default 0123",
        4200,
        [{"worker": "worker", "tokens": 25}],
    )
    at_work = [work["run"] for each in found["workers"] if each["state"] == "working" for work in each["work"]]
    assert at_work.count(place.name) == 1
    assert "01234567" not in str(found)


def test_a_run_of_a_store_is_steered(asker: Asker, place: StorePlace) -> None:
    """Each goes through the store's control, and stands in its actions; what can't be is refused with a reason."""
    path = f"/runs/store:{place.name}"
    assert asker.post(f"{path}/pause", {}).data["state"] == "pausing"
    with connection_to(place.text) as store:
        assert runs.find(store, place.name).state == "pausing"
    refused = asker.post(f"{path}/retry", {"code": "forbidden"})
    assert (refused.status, "workers are at work on it" in refused.data["error"]) == (409, True)
    unknown = asker.post(f"{path}/retry", {"job": "nothing"})
    assert (unknown.status, "it has readmes, codeowners" in unknown.data["error"]) == (409, True)
    assert asker.post(f"{path}/set", {"concurrency": 2}).status == 409
    assert asker.post(f"{path}/resume", {}).data["state"] == "running"
    done = asker.get(path).data["actions"]
    assert [each["verb"] for each in done] == ["pause", "resume"]
    assert all(each["who"].endswith(" (web)") for each in done)


def test_a_part_of_a_run_is_done_again(shared_store: str, tmp_path: Path) -> None:
    """What is filtered by job and code is to do again, no other item is, and who asked stands in the actions."""
    whose = identity(jobs=(("readmes", "readme.get", 100), ("codeowners", "contents.put", 50)))
    place = StorePlace(shared_store, tmp_path, shards=ranges(((0, 0, 100), (1, 0, 50))), whose=whose)
    ledger = place.opened()
    codes = {0: ErrorCode.NOT_FOUND, 1: ErrorCode.FORBIDDEN}
    for job, items in enumerate((100, 50)):
        failed_ones = {index: codes[index % 10] for index in range(items) if index % 10 in codes}
        ledger.commit([record(index, job=job) for index in range(items) if index not in failed_ones])
        ledger.commit([record(each, OutcomeKind.FAILED, job=job, code=code) for each, code in failed_ones.items()])
    place.let_lapse()
    with asking(tmp_path, cache=tmp_path / "cache", store=place.text) as asker:
        path = f"/runs/store:{place.name}"

        def failed() -> dict[tuple[str, str], int]:
            return {(each["job"], each["code"]): each["items"] for each in asker.get(path).data["failures"]}

        before = failed()
        assert set(before.values()) == {10, 5}
        assert asker.post(f"{path}/retry", {"job": "readmes", "code": "forbidden"}).data["state"] == "running"
        assert failed() == {key: items for key, items in before.items() if key != ("readmes", "forbidden")}
        (action,) = asker.get(path).data["actions"]
        assert (action["verb"], action["args"]) == ("retry", {"job": "readmes", "code": "forbidden"})
        again = asker.post(f"{path}/retry", {"job": "readmes", "code": "forbidden"})
        assert (again.status, again.data["error"]) == (409, "no item fits any more")
    place.close()


def test_a_store_that_is_away_holds_nobody_up(place: StorePlace, tmp_path: Path) -> None:
    """The list comes at once and says why the store's part is missing; local runs are there; pages of it say why."""
    nowhere = "postgresql://nobody@127.0.0.1:9/none"
    with asking(tmp_path, cache=tmp_path / "cache", store=nowhere) as asker:
        listed = asker.get("/runs").data
        assert "can't be reached" in listed["trouble"]
        gone = asker.get("/cluster")
        assert (gone.status, "can't be reached" in gone.data["error"]) == (503, True)
        assert asker.get("/runs/store:x").status == 503
    with asking(tmp_path, cache=tmp_path / "cache") as plain:
        assert plain.get("/cluster").status == 404
        assert b"/workers" not in plain.send("GET", "/").body


def test_a_store_that_says_nothing_holds_up_its_own_pages_alone(place: StorePlace, tmp_path: Path) -> None:
    """However many ask for what is in it, the list and all else come (failures.md row 92)."""
    with link_to(place.text) as (link, text), asking(tmp_path, cache=tmp_path / "cache", store=text) as asker:
        assert asker.get("/cluster").status == 200
        link.part()
        asked = [f"/{what}?x={number}" for number in range(4) for what in ("cluster", f"runs/store:{place.name}")]
        waiting = [threading.Thread(target=asker.get, args=(path,)) for path in asked]
        for each in waiting:
            each.start()
        began = Clock().monotonic()
        for path in ("/runs", "/budgets", "/audits"):
            assert asker.get(path).status == 200
        took_s = Clock().monotonic() - began
        link.heal()
        for each in waiting:
            each.join()
        assert took_s < SILENT_S / 2
