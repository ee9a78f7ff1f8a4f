"""Bugs that a tired engineer could put into the page, each seen by a scenario that passes without it."""

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import bulk
from bulk.clock import Clock
from bulk.platform.auth import secrets
from bulk.redaction import forget
from bulk.serve import items
from bulk.serve.guard import Guard
from bulk.serve.items import PAGE, Filter, Items, ItemsPage
from bulk.serve.run_data import RunData
from tests.canaries import SECRETS, found_in
from tests.report.ledgers import Run, finished
from tests.serve.conftest import Asker, asking, counted

KNOWN = SECRETS[3]
PLANTED = "planted+5e0c/71d2b8a94f36"
"""It is leaked on purpose, so the search for secrets at the end of a session does not know it."""
MANY = 4_000


class _Echoing(http.server.BaseHTTPRequestHandler):
    """A platform that repeats the token that it was sent, in the message of a refusal."""

    def do_GET(self) -> None:
        is_item = self.path.endswith("/readme")
        token = self.headers.get("Authorization", "").rpartition(" ")[2]
        body = json.dumps({"message": f"{token} is not a good token" if is_item else "Not Found"}).encode()
        self.send_response(422 if is_item else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def echoing() -> Iterator[str]:
    """Serve it; its base URL."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Echoing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/api/v3"
        server.shutdown()


def no_secret_reaches_the_page(folder: Path, secret: str) -> None:
    """A run whose every item fails with a message that holds its token: no answer of the page holds it, in any form."""
    with echoing() as base_url:
        rows = [{"owner": "acme", "repo": f"r{number}"} for number in range(3)]
        given: dict[str, Any] = {"base_url": base_url, "environ": {"BULK_TOKEN": secret}, "cache": None}
        outcomes = {each.outcome for each in bulk.map("readme.get", rows, run_dir=folder / "runs" / "run", **given)}
    assert outcomes == {"failed"}
    forget(secret)  # the page is another process, which never knew it
    with asking(folder / "runs", cache=folder / "cache") as asker:
        told = [asker.get(path).body for path in ("/runs", "/runs/run", "/runs/run/plots", "/budgets")]
        told += [asker.get(f"/runs/run/items{query}").body for query in ("", "?q=token", "?q=planted", "/map/0")]
        told.append(asker.send("GET", "/metrics", {"Authorization": f"Bearer {asker.served.metrics_key}"}).body)
    told += [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert b"is not a good token" in told[4]
    assert not any(found_in(body, (secret,)) for body in told), "the secret was told"


def pages_follow_each_other(folder: Path) -> None:
    """Whatever ends between two pages, no item stands on both, and none that was there is left out."""
    run = Run(folder / "run", readmes=1000)
    with run.open() as ledger:
        ledger.commit([run.record(finished(number)) for number in range(300, 600)])

    def end_more(numbers: range) -> None:
        with run.open() as ledger:
            ledger.commit([run.record(finished(number)) for number in numbers])

    with asking(folder, cache=folder / "cache") as asker:
        each_stands_once(asker, "run", end_more)


def each_stands_once(asker: Asker, name: str, end_more: Callable[[range], None]) -> None:
    """Page through a run of which items 300 to 599 have ended, while others do."""
    shown, after, first = list[int](), "", 300
    while True:
        page = asker.get(f"/runs/{name}/items?after={after}").data
        shown += [row["index"] for row in page["rows"]]
        after = page["next"]
        if not after:
            break
        first -= 60
        end_more(range(first, first + 60))  # they come before the page that is shown
    assert len(shown) == len(set(shown)), "an item stands on two pages"
    assert set(range(300, 600)) <= set(shown)


def the_last_page_costs_what_the_first_does(folder: Path) -> None:
    """By the steps that SQLite takes, also where a filter leaves one item in ten."""
    run = Run(folder / "run", readmes=MANY)
    with run.open() as ledger:
        outcomes = ("succeeded" if number % 10 else "failed" for number in range(MANY))
        ledger.commit([run.record(finished(number, outcome)) for number, outcome in enumerate(outcomes)])
    pages, view = Items(folder / "cache", Clock()), run.view
    try:
        for wanted in (Filter(), Filter(outcome="failed"), Filter(job="readmes")):
            costs, after = list[int](), ""
            while True:
                with counted() as steps:
                    page = pages.page(view, wanted, after)
                costs.append(len(steps))
                after = page.next
                if not after:
                    break
            assert len(costs) == (MANY // 10 if wanted.outcome else MANY) // PAGE
            assert 0 < max(costs) <= 2 * costs[0], "a later page costs more"
    finally:
        pages.close()


def another_name_reads_nothing(folder: Path) -> None:
    """A name that was pointed at loopback is refused, with the key too."""
    Run(folder / "run").epoch()
    with asking(folder, cache=folder / "cache") as asker:
        answer = asker.send("GET", "/api/runs", {**asker.key, "Host": f"evil.example:{asker.port}"})
        assert answer.status == 421, "another name was answered"


def secret_not_remembered(patch: pytest.MonkeyPatch) -> None:
    """A token is held, and nothing is told to look for it."""
    patch.setattr(secrets, "remember", lambda *_, **__: None)


def pages_by_number(patch: pytest.MonkeyPatch) -> None:
    """A page begins after so many rows, not after a key: OFFSET."""

    def page(_: Items, view: RunData, wanted: Filter, after: str) -> ItemsPage:
        first, names = int(after or 0), [job[0] for job in view.identity().jobs]
        chosen: dict[str, Any] = {"job": wanted.job, "outcome": wanted.outcome, "code": wanted.code}
        found = view.page((-1, -1), first + PAGE + 1, **chosen)[first:]
        rows = [items._row(each, names) for each in found[:PAGE]]
        return ItemsPage(rows=rows, next=str(first + PAGE) if len(found) > PAGE else "", indexed=None, count=None)

    patch.setattr(Items, "page", page)


def any_host(patch: pytest.MonkeyPatch) -> None:
    """`Host` is not looked at."""

    class Every(tuple[str, ...]):
        def __contains__(self, _: object) -> bool:
            return True

    patch.setattr(Guard, "hosts", Every())


Scenario: TypeAlias = Callable[[Path], None]
Plant: TypeAlias = Callable[[pytest.MonkeyPatch], None]

BUGS: tuple[tuple[Plant, Scenario, str], ...] = (
    (secret_not_remembered, lambda folder: no_secret_reaches_the_page(folder, PLANTED), "the secret was told"),
    (pages_by_number, pages_follow_each_other, "an item stands on two pages"),
    (pages_by_number, the_last_page_costs_what_the_first_does, "a later page costs more"),
    (any_host, another_name_reads_nothing, "another name was answered"),
)


def test_no_secret_in_a_message_reaches_the_page(tmp_path: Path) -> None:
    """What a platform repeats of a token is in no answer, no index and no file (failures.md row 63)."""
    no_secret_reaches_the_page(tmp_path, KNOWN)


@pytest.mark.parametrize(
    "scenario", [pages_follow_each_other, the_last_page_costs_what_the_first_does, another_name_reads_nothing]
)
def test_without_the_bugs_each_scenario_passes(tmp_path: Path, scenario: Scenario) -> None:
    """Each promise holds by itself."""
    scenario(tmp_path)


@pytest.mark.parametrize(("plant", "scenario", "seen"), BUGS)
def test_each_bug_is_seen(tmp_path: Path, plant: Plant, scenario: Scenario, seen: str) -> None:
    """Each scenario fails with its bug, and says why."""
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        with pytest.raises(AssertionError, match=seen):
            scenario(tmp_path)
