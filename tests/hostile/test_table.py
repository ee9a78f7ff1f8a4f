"""The table of operations and ways to be wrong: a few ways of each family here, all of them under `make soak`."""

import random
from collections import Counter
from dataclasses import replace
from importlib.metadata import entry_points
from itertools import islice

import pytest

from tests.hostile.foreign import foreign_answer
from tests.hostile.http.limits import Limits
from tests.hostile.http.messages import Ask
from tests.hostile.http.turn import Turn
from tests.hostile.judging import MOST_LOOKS, ROWS, Cell, exit_code, why_not
from tests.hostile.rows import Row
from tests.hostile.store.normal import Normal
from tests.hostile.store.state import State
from tests.hostile.table import random_kills, try_way
from tests.hostile.virtual import run_jobs
from tests.hostile.ways import FEW, WAYS, named, pairs
from tests.hostile.wrong import Way
from tests.virtual_time import START

MISSING = 40
MISSING_MOST_S = 40.0
"""Each that waited alone would take 13 s and more, and there are eight at a time (virtual seconds)."""
RETRIED = (
    "lost: after, close",
    "gateway: 200 ok",
    "late: 5.0 s, answer lost",
    "for a while: all is done and answered 403 with a reason",
    "for a while: nothing is done, and all is answered 200",
    "half wrong: every second answer is a 404",
    "front end: its own page for each thing",
    "denied: 404 after, then 404",
)
FEW_PAIRS = 20
"""Pairs of ways that are tried here, each with a quarter of the operations (count)."""
ENOUGH = 12
"""Up to this many operations are not halved for one way (count)."""


def _row(name: str) -> Row:
    return next(row for row in ROWS if row.name == name)


def test_every_operation_has_a_row():
    """No operation that ships is left out of the table."""
    assert {row.operation for row in ROWS} == {each.name for each in entry_points(group="bulk.operations")}


def test_every_way_befalls_something():
    """No way is left out for every operation, and none has the name of another."""
    assert len({way.name for way in WAYS}) == len(WAYS)
    assert all(any(not why_not(row, way) for row in ROWS) for way in WAYS)


def test_the_judge_sees_lies():
    """A success without its effect, a failure with it, two effects and a lost item are each found out."""
    row, line = _row("webhook.create"), {"index": 0, "result": {}, "error": {"code": "conflict"}}
    cell = Cell.of(row, Way("plain", "status"), 0)
    for outcome, is_broken in (("succeeded", True), ("unchanged", True), ("failed", False), ("unknown", False)):
        cell.classify([{**line, "outcome": outcome}], START)
        assert bool(cell.broken) is is_broken, outcome
    hook = {"config": {"url": "https://hooks.example.test/new/"}}
    turn = Turn(
        Ask("POST", "/orgs/acme/hooks"),
        cell.guest.platform.state,
        cell.guest.platform.effects,
        START,
        START,
        Normal(),
        {},
    )
    turn.change("hook created", ("hook", 501, 1), hook)
    for outcome, is_broken in (("succeeded", False), ("failed", True), ("skipped", True), ("unknown", False)):
        cell.classify([{**line, "outcome": outcome}], START)
        assert bool(cell.broken) is is_broken, outcome
    turn.change("hook created", ("hook", 501, 2), hook)
    cell.classify([{**line, "outcome": "unknown"}], START)
    assert cell.broken == ["done 2 times: hook created"]
    cell.classify([], START)
    assert "1 items, 0 outcomes" in cell.broken
    assert [exit_code(ended) for ended in (["succeeded"], ["failed", "unchanged"], ["failed", "unknown"])] == [0, 1, 6]


def test_foreign_answers_are_another_items(tmp_path):
    """What stands for an answer that belongs to another item is a success, and not what the item itself is answered."""
    cells = [Cell.of(row, named("plain"), number) for number, row in enumerate(ROWS) if row.names_itself]
    run_jobs(tmp_path, {cell.name: cell.job() for cell in cells}, {cell.name: cell.guest for cell in cells})
    seen = 0
    for cell in cells:
        fresh = Cell.of(cell.row, cell.way, 0).guest.platform
        for at, ask in cell.guest.heard:
            right = fresh.answer(ask, at)
            if right.status < 300 and right.body and ask.path != "/rate_limit":
                foreign = foreign_answer(fresh, ask, at)
                assert foreign.status < 300, (cell.row.name, ask.method, ask.path, foreign)
                assert foreign.body != right.body, (cell.row.name, ask.path)
                seen += 1
    assert seen > len(cells)


def _few_rows(name: str) -> list[Row]:
    """Every other operation that the way can befall, one half of them for one way and the other half for the next; all
    where nothing goes wrong, and where they are few."""
    befallen = [row for row in ROWS if not why_not(row, named(name))]
    return befallen if name == "plain" or len(befallen) < ENOUGH else befallen[FEW.index(name) % 2 :: 2]


@pytest.mark.parametrize("name", FEW)
def test_no_wrong_answer_makes_the_engine_lie(name: str) -> None:
    """Success means that the effect is there, failure that it is not; none is doubled, every run ends as it says."""
    tried = try_way(named(name), _few_rows(name))
    assert tried.cells
    assert list(tried.wrong()) == []


def test_few_ways_befall_every_operation_often() -> None:
    """Each operation goes wrong in many of the ways that are tried here; those that write in most."""
    met = Counter(row.name for name in FEW for row in _few_rows(name))
    assert min(met[row.name] for row in ROWS) >= 8
    assert min(met[row.name] for row in ROWS if row.writes) >= 14


def test_connections_that_are_one_answer_behind_are_used_once() -> None:
    """Few items find that out as well as many: after a few such answers each request has a connection of its own."""
    webhooks = [row for row in ROWS if row.name.startswith("webhook.")]
    tried = try_way(named("desync: each connection is one answer behind from its answer 2 on"), webhooks)
    assert len(tried.cells) == len(webhooks)
    assert list(tried.wrong()) == []


def _with_more_files(state: State, at: float) -> None:
    for number in range(MISSING):
        state.set(("file", 601, "trunk", f"there-{number}"), b"there", at)


def test_what_is_missing_behind_a_front_end_takes_no_long_waits(tmp_path) -> None:
    """Once the run knows how this platform answers, an item that is not there takes two requests and no wait."""
    way = named("front end: its own page for what is not there")
    row = next(row for row in ROWS if row.name == "contents.get")
    paths = [f"{name}-{number}" for number in range(MISSING) for name in ("missing", "there")]
    cell = Cell.of(
        replace(row, items=[{**row.items[0], "path": path} for path in paths], prepare=_with_more_files), way, 0
    )
    told = run_jobs(tmp_path, {cell.name: cell.job()}, {cell.name: cell.guest})
    ended = [(line["outcome"], (line["error"] or {}).get("code")) for line in told.lines[cell.name]]
    assert ended == [("failed", "not_found"), ("succeeded", None)] * MISSING
    assert told.took_s < MISSING_MOST_S
    assert sum(ask.path != "/rate_limit" for _, ask in cell.guest.heard) < 3.5 * MISSING


def _without_webhooks(state: State, at: float) -> None:
    for key, _ in [*state.under(("hook",), at)]:
        state.set(key, None, at)


def test_an_empty_list_of_a_gateway_that_answers_everything_is_no_empty_place() -> None:
    """No webhook was there before either, so that the list alone contradicts nothing: it was sent three times."""
    way = named("for a while: all is done and answered an empty list")
    tried = try_way(way, [replace(_row("webhook.create"), prepare=_without_webhooks)])
    assert (list(tried.wrong()), tried.outcomes()) == ([], Counter(unknown=1))


def _some_pairs(seed: int, count: int) -> list[str]:
    return [way.name for way in islice(pairs(random.Random(seed)), count)]


@pytest.mark.parametrize("name", _some_pairs(1, FEW_PAIRS))
def test_two_wrong_answers_make_the_engine_lie_no_more_than_one(name: str) -> None:
    """The same where an item meets two ways to be wrong, or both befall several requests."""
    rows = [row for row in ROWS if not why_not(row, named(name))]
    assert list(try_way(named(name), rows[len(name) % 4 :: 4]).wrong()) == []


@pytest.mark.parametrize("name", RETRIED)
def test_a_retry_brings_everything_to_a_good_end_once(name: str) -> None:
    """Whatever went wrong, once nothing does any more a retry does what was not done, and nothing twice."""
    rows = [row for row in ROWS if not why_not(row, named(name))]
    tried = try_way(named(name), rows[RETRIED.index(name) % 2 :: 2], is_retried=True)
    assert list(tried.wrong()) == []
    assert set(tried.outcomes()) <= {"succeeded", "unchanged"}


@pytest.mark.parametrize("name", RETRIED)
def test_a_killed_process_does_not_forget_what_went_wrong(name: str) -> None:
    """The same where the process that met the wrong answers was killed, once or more, and begun again."""
    rows = [row for row in ROWS if not why_not(row, named(name))]
    some = rows[1 - RETRIED.index(name) % 2 :: 2]
    tried = try_way(named(name), some, is_retried=True, kills=random_kills(named(name), 1))
    assert list(tried.wrong()) == []
    assert set(tried.outcomes()) <= {"succeeded", "unchanged"}


def test_who_begins_in_mid_window_soon_knows_which_witness_errs() -> None:
    """What was spent of it was another process's: at most three requests are refused in that window."""
    way = named("limits: headers right, /rate_limit frozen")
    tried = try_way(way, [row for row in ROWS if row.name.endswith(" wait")], kills=[0.9])
    assert list(tried.wrong()) == []
    budgets = [cell.guest.platform.limits for cell in tried.cells]
    refused = [sum(each for _, _, each in budget.spent()) for budget in budgets if isinstance(budget, Limits)]
    assert 0 < max(refused) <= MOST_LOOKS


def test_a_list_that_never_ends_does_not_show_that_a_refused_deletion_was_not_done() -> None:
    """The webhook was seen before; behind the refusal nothing can be looked for, so that nobody knows."""
    tried = try_way(named("links: always one more + denied: 400 after, then 404"), [_row("webhook.delete")])
    assert (list(tried.wrong()), tried.outcomes()) == ([], Counter(unknown=1))


def test_a_refused_repeat_behind_which_nothing_can_be_understood_may_have_been_done() -> None:
    """The repeat is refused because the file is not as it is read, for longer than the settle time: it was done."""
    way = named("stale: 20.0 s, 502 after + lists: an entry twice on a page, always")
    rows = sorted((row for row in ROWS if not why_not(row, way)), key=lambda row: row.operation != "contents.put")
    tried = try_way(way, rows[:ENOUGH])  # the others keep the engine from looking often enough to see it done
    assert list(tried.wrong()) == []


@pytest.mark.parametrize("status", [409, 412, 423])
def test_only_a_refusal_that_says_so_shows_that_a_name_was_taken_by_the_lost_request(status: int) -> None:
    """The organization is not there, nor was it made: a conflict of a gateway's own is not about its name."""
    tried = try_way(named(f"lost: before, close + lied: {status}, before"), [_row("organization.create")])
    assert (list(tried.wrong()), tried.outcomes()) == ([], Counter(unknown=1))


@pytest.mark.soak
@pytest.mark.parametrize("name", _some_pairs(2, 300))
def test_no_two_wrong_answers_make_the_engine_lie(name: str) -> None:
    """The same with every operation, in many pairs."""
    assert list(try_way(named(name)).wrong()) == []


@pytest.mark.soak
@pytest.mark.parametrize("name", [way.name for way in WAYS])
def test_no_retry_does_anything_twice(name: str) -> None:
    """The same after every way, also where an item can't end well."""
    assert list(try_way(named(name), is_retried=True).wrong()) == []


@pytest.mark.soak
@pytest.mark.parametrize("name", [way.name for way in WAYS])
def test_no_kill_makes_the_engine_lie(name: str) -> None:
    """The same where the process is killed, once or more, and begun again."""
    assert list(try_way(named(name), kills=random_kills(named(name), 1)).wrong()) == []


@pytest.mark.soak
@pytest.mark.parametrize("name", [way.name for way in WAYS])
def test_no_wrong_answer_of_any_kind_makes_the_engine_lie(name: str) -> None:
    """The same in all ways."""
    assert list(try_way(named(name)).wrong()) == []


@pytest.mark.soak
def test_a_refusal_without_end_ends(tmp_path) -> None:
    """An item that is always refused with 429, and not told how long, is given up within a day, and has no effect."""
    cell = Cell.of(_row("contents.put create"), Way("endless", "status", None, has_effect=False, status=429), 0)
    told = run_jobs(tmp_path, {cell.name: cell.job()}, {cell.name: cell.guest}, at_most_s=86_400.0)
    cell.classify(told.lines[cell.name], START + 90_000.0)
    assert (cell.outcomes, cell.broken, told.trouble) == (["failed"], [], "")
