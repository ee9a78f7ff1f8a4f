"""Items of a lane that share their requests: fewer requests, and the same outcome for each as by itself.

The engine and the sandbox are the real ones (`tests/simulation`); the sandbox's journal says what was changed.
"""

import random
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from bulk.capabilities import Combinable
from bulk.execute.requests.patience import LIMITED_TRIES
from bulk.ledger.view import LedgerView
from bulk.manifest.manifest import Entry
from bulk.operation import Item
from bulk.schedule.lanes import Lane
from tests.schedule.test_scheduler import ListIndex
from tests.simulation import invariants
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, DROP_BEFORE, FINE, Fate, answer, late
from tests.simulation.world import World, simulate, world

ITEMS = 230
LOGINS = [f"org-{number:03d}" for number in range(ITEMS)]
TEAM = {"enterprise": "acme", "enterprise-team": "ent:security"}
LIMIT = answer(429, b'{"message": "Slow down"}', "application/json", Retry_After="1")
REFUSED = answer(422, b'{"message": "Invalid request"}', "application/json")


def seed(count: int) -> str:
    """`count` organizations."""
    made = (f"  - {{login: {login}, owners: [octoadmin]}}\n" for login in LOGINS[:count])
    return "organizations:\n" + "".join(made)


def job(verb: str, logins: Sequence[str], **more: Any) -> dict[str, Any]:
    """One item for each organization."""
    return {"operation": f"team-organization.{verb}", "items": [{**TEAM, "org": org} for org in logins], **more}


def changes(made: World) -> Counter[tuple[str, str]]:
    """(what was done, organization) and how often, by the journal."""
    found: Counter[tuple[str, str]] = Counter()
    for effect in made.effects():
        verb, _, names = effect.removeprefix("team ent:security ").partition(
            " to " if "assigned to" in effect else " from "
        )
        found.update((verb, name) for name in names.split(", "))
    return found


def outcomes(made: World, manifest: Path) -> Counter[tuple[str, str]]:
    """(job, outcome) and how many."""
    return Counter((line["job"], line["outcome"]) for line in made.lines(manifest))


def writes(made: World) -> list[str]:
    """Method and last part of the path of what was sent to change something."""
    return [f"{each.method} {each.path.rpartition('/')[2]}" for each in made.network.exchanges if each.is_write]


def test_changes_of_a_team_share_their_calls(folder: Path, figure) -> None:
    """Assignments one behind the other become array calls of 100, removals too; run again, nothing is written."""

    async def main() -> None:
        async with world(folder, seed_data=seed(ITEMS)) as made:
            invariants.watch(made)
            jobs = {"give": job("assign", LOGINS), "take": job("unassign", LOGINS[:50], needs=["give"])}
            manifest = made.write("run", jobs)
            assert (await made.run(manifest)).exit_code == 0
            invariants.nothing_leaked(made, made.runs[-1])
            assert writes(made) == ["POST add"] * 3 + ["POST remove"]
            assert outcomes(made, manifest) == {("give", "succeeded"): ITEMS, ("take", "succeeded"): 50}
            alone = 2 * (ITEMS + 50)
            figure(f"{ITEMS} assignments, 50 removals: {len(made.network.exchanges)} requests, one by one {alone}")
            expected = Counter({("assigned", login): 1 for login in LOGINS})
            expected.update({("removed", login): 1 for login in LOGINS[:50]})
            assert changes(made) == expected
            first = made.lines(manifest)[0]
            assert (first["result"]["login"], first["attempts"], first["http_status"]) == (LOGINS[0], 1, 200)
            again = made.write("again", {"give": job("assign", LOGINS[50:])})
            before = len(writes(made))
            assert (await made.run(again)).exit_code == 0
            assert outcomes(made, again) == {("give", "unchanged"): ITEMS - 50}
            assert len(writes(made)) == before
            assert not made.violations

    simulate(main)


def test_one_bad_name_fails_alone(folder: Path) -> None:
    """What the array call passes over is tried by itself, and fails by itself; twice the same is done once."""

    async def main() -> None:
        async with world(folder, seed_data=seed(20)) as made:
            logins = [*LOGINS[:10], "no-such-org", *LOGINS[10:20], LOGINS[0].upper()]
            manifest = made.write("run", {"give": job("assign", logins)})
            assert (await made.run(manifest)).exit_code == 1
            lines = made.lines(manifest)
            assert outcomes(made, manifest) == {
                ("give", "succeeded"): 20,
                ("give", "failed"): 1,
                ("give", "unchanged"): 1,
            }
            assert (lines[10]["error"]["code"], lines[21]["outcome"]) == ("not_found", "unchanged")
            assert writes(made) == ["POST add", "PUT no-such-org"]

    simulate(main)


@pytest.mark.parametrize("fate", [REFUSED, answer(404, b'{"message":"No"}', "application/json")])
def test_a_refused_call_is_tried_one_by_one(folder: Path, fate: Fate) -> None:
    """A 422 or 404 to the array call says nothing about any one of them: each is sent by itself."""

    async def main() -> None:
        async with world(
            folder, seed_data=seed(12), fate_of=lambda each: fate if each.path.endswith("/add") else FINE
        ) as made:
            invariants.watch(made)
            manifest = made.write("run", {"give": job("assign", LOGINS[:12])})
            assert (await made.run(manifest)).exit_code == 0
            assert writes(made) == ["POST add", *(f"PUT {login}" for login in LOGINS[:12])]
            assert outcomes(made, manifest) == {("give", "succeeded"): 12}
            invariants.nothing_leaked(made, made.runs[-1])
            assert not made.violations

    simulate(main)


@pytest.mark.parametrize("fate", [DROP_BEFORE, DROP_AFTER, answer(502), answer(502, is_passed_on=True)])
@pytest.mark.parametrize("verb", ["assign", "unassign"])
def test_a_lost_call_is_settled_for_each(folder: Path, fate: Fate, verb: str) -> None:
    """The answer to an array call is lost: each item reads back for itself, and each change is made once."""

    async def main() -> None:
        async with world(folder, seed_data=seed(12)) as made:
            given = LOGINS[:12]
            if verb == "unassign":
                assert (await made.run(made.write("before", {"give": job("assign", given)}))).exit_code == 0
            made.network.fate_of = lambda each: fate if each.path.endswith(("/add", "/remove")) else FINE
            invariants.watch(made)
            manifest = made.write("run", {"change": job(verb, given)}, {"settle": "5s"})
            assert (await made.run(manifest)).exit_code == 0
            assert outcomes(made, manifest) == {("change", "succeeded"): 12}
            is_applied = fate is DROP_AFTER or fate.is_passed_on
            assert all(("lost" in str(line["result"])) == is_applied for line in made.lines(manifest))
            assert set(changes(made).values()) == {1}
            assert len(changes(made)) == (12 if verb == "assign" else 24)
            invariants.nothing_leaked(made, made.runs[-1])
            assert not made.violations

    simulate(main)


@pytest.mark.parametrize("verb", ["add", "remove"])
def test_several_names_each_are_joined_up_to_a_hundred(folder: Path, verb: str) -> None:
    """`.add` and `.remove`: items with 30 names each go three together; each says what was done for it."""

    async def main() -> None:
        async with world(folder, seed_data=seed(174)) as made:
            if verb == "remove":
                assert (await made.run(made.write("before", {"give": job("assign", LOGINS[:174])}))).exit_code == 0
            made.network.exchanges.clear()
            parts = [[*LOGINS[start : start + 29], LOGINS[0]] for start in range(0, 174, 29)]
            items = [{**TEAM, "organization_slugs": part} for part in parts]
            manifest = made.write("run", {"change": {"operation": f"team-organization.{verb}", "items": items}})
            assert (await made.run(manifest)).exit_code == 0
            assert writes(made) == [f"POST {verb}"] * 2
            done, not_needed = ("added", "present") if verb == "add" else ("removed", "absent")
            for place, (line, part) in enumerate(zip(made.lines(manifest), parts, strict=True)):
                own = part[:-1]
                assert line["outcome"] == "succeeded"
                assert line["result"] == {done: own, not_needed: [LOGINS[0]] if place else []}

    simulate(main)


def test_limits_of_one_call_do_not_count_for_the_next(folder: Path) -> None:
    """Each of an item's two calls runs into a limit almost as often as one may, and no answer is a refusal."""
    fates = iter(([LIMIT] * (LIMITED_TRIES - 1) + [FINE]) * 2)

    async def main() -> None:
        async with world(folder, seed_data=seed(150)) as made:
            made.network.fate_of = lambda exchange: next(fates) if exchange.is_write else FINE
            item = {**TEAM, "organization_slugs": LOGINS[:150]}
            manifest = made.write("run", {"change": {"operation": "team-organization.add", "items": [item]}})
            assert (await made.run(manifest)).exit_code == 0
            assert made.lines(manifest)[0]["result"]["added"] == LOGINS[:150]

    simulate(main)


@pytest.mark.parametrize("verb", ["add", "remove"])
def test_an_item_that_is_refused_in_part_says_what_was_done(folder: Path, verb: str) -> None:
    """The second call of an item with 150 names is refused: the result names the first hundred; a retry does the rest.

    What takes it back, in both cases, are the names that were not so before.
    """
    names, done, undone = LOGINS[:150], *(("added", "missing") if verb == "add" else ("removed", "left"))

    async def main() -> None:
        async with world(folder, seed_data=seed(150)) as made:
            if verb == "remove":
                assert (await made.run(made.write("before", {"give": job("assign", names)}))).exit_code == 0
            fates = iter([FINE])

            def meet(exchange: Exchange) -> Fate:
                refusal = answer(403, b'{"message": "The plan allows no more"}', "application/json")
                return next(fates, refusal) if exchange.is_write else FINE

            made.network.fate_of = meet
            item = {**TEAM, "organization_slugs": names}
            jobs = {"change": {"operation": f"team-organization.{verb}", "items": [item]}}
            manifest = made.write("run", jobs, {"settle": "5s"})
            assert (await made.run(manifest)).exit_code == 1
            (line,) = made.lines(manifest)
            assert (line["outcome"], line["error"]["code"]) == ("failed", "forbidden")
            assert (line["result"][done], line["result"][undone]) == (names[:100], names[100:])
            made.network.fate_of = lambda _: FINE
            assert (await made.retry(manifest)).exit_code == 0
            assert made.lines(manifest)[0]["result"][done] == names[100:]
            before = names if verb == "remove" else []
            assert LedgerView(made.run_dir(manifest)).befores(0, 0, 1) == {0: before}
            assert not made.violations

    simulate(main)


def test_a_retry_of_what_was_done_in_part_knows_what_was_there_before(folder: Path) -> None:
    """An organization that is made later is added by the retry; what takes it all back are both names."""

    async def main() -> None:
        async with world(folder, seed_data=seed(1)) as made:
            item = {**TEAM, "organization_slugs": [LOGINS[0], "later"]}
            manifest = made.write("run", {"change": {"operation": "team-organization.add", "items": [item]}})
            assert (await made.run(manifest)).exit_code == 1
            assert made.lines(manifest)[0]["result"] == {"added": [LOGINS[0]], "present": [], "missing": ["later"]}
            create = {"operation": "organization.create", "items": [{"login": "later", "admin": "octoadmin"}]}
            assert (await made.run(made.write("make", {"make": create}))).exit_code == 0
            assert (await made.retry(manifest)).exit_code == 0
            assert LedgerView(made.run_dir(manifest)).befores(0, 0, 1) == {0: []}
            assert {key: times for key, times in changes(made).items() if key[1]} == {
                ("assigned", LOGINS[0]): 1,
                ("assigned", "later"): 1,
            }

    simulate(main)


@pytest.mark.parametrize("verb", ["assign", "unassign"])
def test_a_refusal_of_a_call_that_was_done_is_no_end(folder: Path, verb: str) -> None:
    """A call is done and answered 403: each item succeeded, its note names the refusal, and it can be taken back."""

    async def main() -> None:
        async with world(folder, seed_data=seed(12)) as made:
            given = LOGINS[:12]
            if verb == "unassign":
                assert (await made.run(made.write("before", {"give": job("assign", given)}))).exit_code == 0
            refusal = answer(403, b'{"message": "Not for you"}', "application/json", is_passed_on=True)
            made.network.fate_of = lambda each: refusal if each.path.endswith(("/add", "/remove")) else FINE
            manifest = made.write("run", {"change": job(verb, given)})
            assert (await made.run(manifest)).exit_code == 0
            assert outcomes(made, manifest) == {("change", "succeeded"): 12}
            assert all("status 403" in line["result"]["note"] for line in made.lines(manifest))
            assert set(LedgerView(made.run_dir(manifest)).befores(0, 0, 12)) == set(range(12))
            assert set(changes(made).values()) == {1}
            assert not made.violations

    simulate(main)


def test_a_cancelled_call_is_settled_by_the_next_run(folder: Path) -> None:
    """failures.md row 75: cancelled while an array call is under way: nothing leaks; the resume reads back for each."""

    async def main() -> None:
        async with world(folder, seed_data=seed(60)) as made:
            scope = anyio.CancelScope()

            def cancel(exchange: Exchange) -> Fate:
                if exchange.path.endswith("/add"):
                    scope.cancel()
                return FINE

            made.network.fate_of = cancel
            manifest = made.write("run", {"give": job("assign", LOGINS[:60])})
            with scope:
                await made.run(manifest)
            assert scope.cancelled_caught
            invariants.nothing_leaked(made, made.runs[-1])
            await anyio.sleep(10.0)
            made.network.fate_of = lambda _: FINE
            assert (await made.run(manifest)).exit_code == 0
            assert outcomes(made, manifest) == {("give", "succeeded"): 60}
            assert changes(made) == {("assigned", login): 1 for login in LOGINS[:60]}

    simulate(main)


@pytest.mark.parametrize("storm", [0, *(pytest.param(number, marks=pytest.mark.soak) for number in range(1, 60))])
def test_bad_weather_changes_nothing_twice(folder: Path, storm: int) -> None:
    """Array calls that are cut, refused, answered 502, limited or come late: each change is made once, in its order."""

    async def main() -> None:
        async with world(folder, seed_data=seed(24)) as made:
            dice, misfortunes = random.Random(storm), Counter[str]()

            def fate_of(exchange: Exchange) -> Fate:
                path = exchange.path.partition("?")[0]
                if misfortunes[path] > 2 or dice.random() < 0.4:
                    return FINE
                misfortunes[path] += 1
                fates = [DROP_BEFORE, DROP_AFTER, answer(502), answer(502, is_passed_on=True), late(dice.uniform(5, 8))]
                return dice.choice([*fates, REFUSED] if exchange.is_write and "POST" in exchange.method else fates)

            made.network.fate_of = fate_of
            invariants.watch(made)
            jobs = {"give": job("assign", LOGINS[:24]), "take": job("unassign", LOGINS[:12], needs=["give"])}
            manifest = made.write("run", jobs, {"settle": "15s", "request_timeout": "5s"})
            assert (await made.run(manifest)).exit_code == 0
            await anyio.sleep(60.0)
            assert outcomes(made, manifest) == {("give", "succeeded"): 24, ("take", "succeeded"): 12}
            assert set(changes(made).values()) == {1}
            assert len(changes(made)) == 36
            invariants.nothing_leaked(made, made.runs[-1])
            assert not made.violations

    simulate(main, at_most_s=24 * 3_600.0)


class Sized(Item, frozen=True, kw_only=True):
    """What it takes of a combined request."""

    size: int = 1


class Combined(Combinable[Sized]):
    """Up to ten together."""

    name = "thing.join"
    Item = Sized
    is_read = False
    most_combined = 10

    def size_combined(self, item: Sized) -> int:
        return item.size


def test_what_goes_together() -> None:
    """Items of one job, as long as they fit; those that came back go one by one, and so do those that are too large."""
    sizes = [(0, 4), (0, 6), (0, 1), (1, 1), (1, 12), (1, 3), (1, 3)]
    lane = Lane(0, "lane", len(sizes), ListIndex([]))
    lane.ahead = deque(Entry(number, index, Sized(size=size)) for index, (number, size) in enumerate(sizes))
    lane.index.entries = lambda *_, **__: []  # type: ignore[method-assign]

    def take() -> list[int]:
        head = lane.head(lambda _: False)
        assert head is not None
        behind = lane.take(lambda _: False, Combined())
        return [head.index, *(entry.index for entry in behind)]

    assert take() == [0, 1]
    lane.give_back([Entry(0, 0, Sized(size=4)), Entry(0, 1, Sized(size=6))])
    assert [take() for _ in range(6)] == [[0], [1], [2], [3], [4], [5, 6]]
