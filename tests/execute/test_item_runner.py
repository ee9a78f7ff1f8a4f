"""One item's life where it is not simple: doubts that stay, conflicts, things in progress, names that can't be seen.

The engine and the sandbox are the real ones (`tests/simulation`); a proxy says what the sandbox would not.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from bulk.ledger.view import LedgerView
from tests.simulation import invariants
from tests.simulation.schedules import put, snapshot
from tests.simulation.wire import probes
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, DROP_BEFORE, FINE, TRIP_S, Fate, answer
from tests.simulation.wire.memory import Memory
from tests.simulation.world import World, now, simulate, world

JSON = "application/json"
CONFLICT = answer(409, b'{"message": "a does not match 0123"}', JSON)
BUSY = answer(422, b'{"message": "Another change is in progress"}', JSON)


def writes_meet(*fates: Fate, then: Fate = FINE) -> Callable[[Exchange], Fate]:
    """The first writes meet these fates, the later ones `then`; reads go well."""
    left: Iterator[Fate] = iter(fates)
    return lambda exchange: next(left, then) if exchange.is_write else FINE


def play(
    folder: Path,
    operation: str,
    items: list[dict[str, Any]],
    fate_of: Callable[[Exchange], Fate],
    check: Callable[[World, list[dict[str, Any]], int], None],
    is_stale: bool = False,
    **limits: Any,
) -> None:
    """Run one job in a world, and check its lines and exit code. `is_stale`: fates may show what was there before."""

    async def main() -> None:
        async with world(folder, fate_of=fate_of) as made:
            invariants.watch(made)
            made.network.memory = Memory() if is_stale else None
            job = {"job": {"operation": operation, "items": items}}
            manifest = made.write("run", job, {"settle": "5s", "request_timeout": "5s", **limits})
            report = await made.run(manifest)
            check(made, made.lines(manifest), report.exit_code)
            invariants.nothing_leaked(made, made.runs[-1])
            assert not made.violations, made.violations

    with probes.installed():
        simulate(main)


def sends(made: World) -> int:
    """Writes that left (count)."""
    return sum(exchange.is_write for exchange in made.network.exchanges)


def test_what_nothing_can_tell_is_unknown(folder: Path) -> None:
    """Without proven uniqueness and without a trace a write is not repeated: `unknown`, exit 6, the intent stays."""

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        assert (lines[0]["outcome"], lines[0]["error"]["code"], code) == ("unknown", "unknown_outcome", 6)
        assert sends(made) == 1
        assert now() >= 5.0

    play(folder, "probe.blind", [{"name": "a"}], writes_meet(DROP_AFTER), check)


def test_an_unknown_item_is_settled_before_a_retry_sends_it_again(folder: Path) -> None:
    """`bulk retry` of an unknown item reads back first: what has appeared meanwhile is the outcome, nothing is sent."""

    async def main() -> None:
        async with world(folder) as made:
            made.network.fate_of = lambda each: (
                DROP_AFTER if each.is_write else answer(404, b'{"message":"Not Found"}', JSON)
            )
            manifest = made.write(
                "run", {"job": {"operation": "probe.create", "items": [{"name": "a"}]}}, {"settle": 1}
            )
            # not found for a while, and then sent eight times into the dark
            assert (await made.run(manifest)).exit_code == 6
            before = sends(made)
            assert next(LedgerView(made.run_dir(manifest)).finished())["outcome"] == "unknown"
            made.network.fate_of = lambda each: FINE
            assert (await made.retry(manifest)).exit_code == 0
            assert sends(made) == before
            assert made.lines(manifest)[0]["outcome"] == "succeeded"
            assert len(made.effects()) == 1

    with probes.installed():
        simulate(main)


def test_set_semantics_are_repeated_without_a_read(folder: Path) -> None:
    """What sets something is sent again at once when nothing can tell: a repeat changes nothing."""

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        assert (lines[0]["outcome"], code) == ("succeeded", 0)
        assert sends(made) == 3
        assert now() < 5.0

    play(folder, "probe.set", [{"name": "a"}], writes_meet(DROP_BEFORE, DROP_BEFORE), check)


def test_no_proven_uniqueness_waits_for_the_settle_time(folder: Path) -> None:
    """What might be made twice is sent again only after the settle time and two readings that found nothing."""

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        first, second = (each for each in made.network.exchanges if each.is_write)
        readings = [each for each in made.network.exchanges if first.at < each.at < second.at and not each.is_write]
        assert second.at - first.at >= 5.0
        assert len(readings) >= 2
        assert (lines[0]["outcome"], code) == ("succeeded", 0)

    play(folder, "probe.create", [{"name": "a"}], writes_meet(DROP_BEFORE), check)


def test_an_operation_that_writes_while_it_reads_back_is_not_believed(folder: Path) -> None:
    """Settling only reads: an operation that wants to write then gets no permit to, and the outcome is `unknown`."""

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        assert code == 6
        assert "tried to write while reading back" in lines[0]["error"]["message"]
        assert not [each for each in made.network.exchanges if each.method == "DELETE"]

    play(folder, "probe.meddle", [{"name": "a"}], writes_meet(DROP_AFTER), check)


def test_a_read_back_that_is_refused_tells_nothing(folder: Path) -> None:
    """The file may not be read: what happened to the lost write stays `unknown`, and the line says why."""

    def fate_of(exchange: Exchange) -> Fate:
        if exchange.is_write:
            return DROP_AFTER
        is_read_back = "probe-a" in exchange.path
        return answer(403, b'{"message": "Resource not accessible by this token"}', JSON) if is_read_back else FINE

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        assert (lines[0]["outcome"], code) == ("unknown", 6)
        assert "not accessible" in lines[0]["error"]["message"]
        assert sends(made) == 1

    play(folder, "probe.write", [{"name": "a"}], fate_of, check)


def test_a_name_that_was_free_and_is_taken_is_ours(folder: Path) -> None:
    """operations.md, `applied_inferred`: the organization can't be seen; it was free before the lost request, the
    repeat is refused as taken: applied, and the note says that it was inferred."""

    def fate_of(exchange: Exchange) -> Fate:
        return answer(404, b'{"message": "Not Found"}', JSON) if "rulesets" in exchange.path else lost(exchange)

    lost = writes_meet(DROP_AFTER)

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        assert (lines[0]["outcome"], code) == ("succeeded", 0)
        assert "inferred" in lines[0]["result"]["note"]
        assert len(made.effects()) == 1
        assert now() >= 5.0

    play(folder, "organization.create", [{"login": "acme-web", "admin": "octoadmin"}], fate_of, check)


def test_a_taken_name_without_doubt_is_a_conflict(folder: Path) -> None:
    """The same refusal without a lost request before it: somebody else has the name."""

    def fate_of(exchange: Exchange) -> Fate:
        return answer(404, b'{"message": "Not Found"}', JSON) if "rulesets" in exchange.path else FINE

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        assert (lines[0]["outcome"], lines[0]["error"]["code"], code) == ("failed", "conflict", 1)
        assert sends(made) == 1

    play(folder, "organization.create", [{"login": "acme-ops", "admin": "octoadmin"}], fate_of, check)


@pytest.mark.parametrize(("conflicts", "outcome"), [(1, "succeeded"), (5, "succeeded"), (1_000, "failed")])
def test_conflicts_are_looked_into_so_many_times(folder: Path, conflicts: int, outcome: str) -> None:
    """failures.md row 22: somebody else writes the same repository: look again and send again, at most eight rounds,
    then `conflict`."""

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        assert lines[0]["outcome"] == outcome
        assert sends(made) == min(conflicts + 1, 16)
        if outcome == "failed":
            assert lines[0]["error"]["code"] == "conflict"
        assert now() < 60.0

    fates = writes_meet(*[CONFLICT] * conflicts)
    play(folder, "contents.put", [put("repo-00000", "a", "a")], fates, check)


def test_what_came_of_each_try_is_told(folder: Path) -> None:
    """A platform whose answers and reads contradict each other, try after try: the message says what was seen."""

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        assert (lines[0]["outcome"], code) == ("unknown", 6)
        assert lines[0]["error"]["message"] == (
            "tried 8 times, and reading back never showed it: no answer came (2 times), the answer was 502 (once), "
            "the platform refused it as a conflict, 409 (once), the answer 200 did not show it (4 times)"
        )

    fine, bad = answer(200, b'{"status": "ok"}', JSON), answer(502)
    fates = writes_meet(DROP_BEFORE, bad, DROP_BEFORE, CONFLICT, CONFLICT, then=fine)
    play(folder, "contents.put", [put("repo-00000", "a", "one")], fates, check)


def test_a_conflict_after_a_loss_is_settled_first(folder: Path) -> None:
    """failures.md row 22: the answer was lost, the repeats meet conflicts: what was applied is found, not repeated."""

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        assert (lines[0]["outcome"], code) == ("succeeded", 0)
        assert len(made.effects()) == 1

    fates = writes_meet(DROP_BEFORE, CONFLICT, CONFLICT, DROP_AFTER)
    play(folder, "contents.put", [put("repo-00000", "a", "a")], fates, check)


@pytest.mark.parametrize(("times", "outcome"), [(4, "succeeded"), (10_000, "failed")])
def test_what_is_in_progress_is_waited_for(folder: Path, times: int, outcome: str) -> None:
    """failures.md row 23: a 422 that says "in progress" is tried again with pauses, for ten minutes at most."""

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        assert lines[0]["outcome"] == outcome
        if outcome == "failed":
            assert lines[0]["error"]["code"] == "validation_failed"
            assert 600.0 <= now() < 620.0
            assert sends(made) < 300

    fates = writes_meet(*[BUSY] * times)
    play(folder, "snapshot.create", [snapshot("repo-00000", "build")], fates, check)


def test_a_write_that_can_not_be_connected_is_tried_until_it_is(folder: Path) -> None:
    """failures.md row 2: no connection for a write: nothing was sent, so nothing is settled; one intent, one send."""

    async def main() -> None:
        async with world(folder) as made:
            invariants.watch(made)

            def connect() -> float:
                if 0.012 < now() < 8.0:
                    raise ConnectionRefusedError(111, "Connection refused")
                return TRIP_S

            made.network.connect = connect
            items = [snapshot("repo-00000", f"build-{number}") for number in range(6)]
            manifest = made.write("run", {"job": {"operation": "snapshot.create", "items": items}})
            assert (await made.run(manifest)).exit_code == 0
            assert any("not connected" in line for line in made.network.trace)
            assert sends(made) == len(made.effects()) == 6
            assert not made.violations

    simulate(main)


def test_a_run_that_stops_while_it_settles_leaves_the_doubt_to_the_next(folder: Path) -> None:
    """A stop ends the waiting: no outcome is made up; the resume settles from the intent and sends nothing twice."""

    async def main() -> None:
        async with world(folder) as made:
            made.network.fate_of = writes_meet(DROP_AFTER)
            hidden = answer(404, b"{}", JSON)
            first = made.network.fate_of
            made.network.fate_of = lambda each: hidden if "probe-a" in each.path and not each.is_write else first(each)
            job = {"job": {"operation": "probe.create", "items": [{"name": "a"}]}}
            manifest = made.write("run", job, {"settle": 60, "max_duration": 5})
            assert (await made.run(manifest)).exit_code == 3
            assert not made.lines(manifest)
            assert now() < 15.0
            invariants.nothing_leaked(made, made.runs[-1])
            made.network.fate_of = lambda each: FINE
            assert (await made.run(manifest)).exit_code == 0
            assert made.lines(manifest)[0]["outcome"] == "succeeded"
            assert sends(made) == 1

    with probes.installed():
        simulate(main)


def test_what_follows_a_repeated_write_waits_for_its_echo(folder: Path) -> None:
    """failures.md row 7: a file is put, the first send comes late, the repeat is done, the file is deleted next: the
    delete waits, so that what comes late can't create the file anew. Other files of the repository don't wait."""

    async def main() -> None:
        async with world(folder) as made:
            made.network.fate_of = writes_meet(Fate(kind="late", request_s=12.0))
            delete = {"owner": "fleet", "repo": "REPO-00000", "path": "a", "message": "Delete"}
            jobs: dict[str, dict[str, Any]] = {
                "puts": {
                    "operation": "contents.put",
                    "items": [put("repo-00000", "a", "a"), put("repo-00000", "b", "b")],
                },
                "deletes": {"operation": "contents.delete", "items": [delete], "allow_overwrites": True},
            }
            manifest = made.write("run", jobs, {"settle": "15s", "request_timeout": "5s"})
            assert (await made.run(manifest)).exit_code == 0
            await anyio.sleep(60.0)
            effects = [effect.split()[2] for effect in made.effects()]
            assert effects == ["a", "b", "a"]
            other = next(each for each in made.network.exchanges if each.is_write and each.path.endswith("/b"))
            last = next(each for each in made.network.exchanges if each.method == "DELETE")
            assert other.at < 10.0
            assert last.at >= 20.0

    simulate(main)


def test_a_content_file_that_changes_ends_its_item(folder: Path) -> None:
    """failures.md row 59: the file is not what was checked any more: `invalid_item`, nothing is sent for it."""

    async def main() -> None:
        async with world(folder, latency_ms=100.0) as made:
            file = folder / "owners"
            file.write_text("* @acme")
            items = []
            for number in range(2):
                item = put("repo-00000", f"f{number}", "")
                del item["content"]
                items.append({**item, "content_file": "owners"})
            manifest = made.write("run", {"job": {"operation": "contents.put", "items": items}})

            async def change() -> None:
                await anyio.sleep(0.2)
                file.write_text("* @others, and more")

            async with anyio.create_task_group() as group:
                group.start_soon(change)
                assert (await made.run(manifest)).exit_code == 1
            first, second = made.lines(manifest)
            assert (first["outcome"], second["outcome"], second["error"]["code"]) == (
                "succeeded",
                "failed",
                "invalid_item",
            )
            assert len(made.effects()) == 1

    simulate(main)
