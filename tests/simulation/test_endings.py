"""Things that would go on for ever, bugs, mass failures, hot lanes, jumping clocks: every run ends, and ends right."""

from pathlib import Path
from typing import Any
from unittest import mock

import anyio
import pytest

from bulk.execute.hand_over import HandOver
from bulk.ledger.ledger import Ledger
from bulk.ledger.view import LedgerView
from bulk.sandbox.areas.organizations import organizations
from bulk.sandbox.settings import RateLimit
from tests.simulation import invariants
from tests.simulation.schedules import put, readmes
from tests.simulation.storm import running_loop
from tests.simulation.wire import probes
from tests.simulation.wire.fates import DROP_AFTER, FINE, answer
from tests.simulation.world import HOURS, now, simulate, world


def test_what_is_accepted_and_never_done_ends_as_unknown(folder: Path) -> None:
    """failures.md row 14: a rename that stays under way is followed with growing pauses to a deadline, then `unknown`
    with exit 6; a retry once the platform has done it settles it."""

    async def main() -> None:
        async with world(folder) as made:
            item = {"org": "acme-labs", "login": "acme-research", "wait": True}
            with mock.patch.object(organizations, "RENAME_S", 2_000.0):
                manifest = made.write("run", {"renames": {"operation": "organization.rename", "items": [item]}})
                assert (await made.run(manifest)).exit_code == 6
                assert made.lines(manifest)[0]["outcome"] == "unknown"
                asked = [each.at for each in made.network.exchanges if "acme-research" in each.path]
                assert 600.0 < now() < 700.0
                assert len(asked) < 40
                await anyio.sleep(2_000.0)
            assert (await made.retry(manifest)).exit_code == 0
            assert made.lines(manifest)[0]["outcome"] == "succeeded"
            assert len(made.effects()) == 1

    simulate(main, tick_s=10.0)


def test_a_run_ends_with_its_last_item(folder: Path) -> None:
    """Who records the items of skipped jobs is told that nothing more will be offered, and need not look for it."""

    async def main() -> None:
        async with world(folder) as made:
            manifest = made.write("run", {"reads": {"operation": "readme.get", "items": readmes(3)}})
            assert (await made.run(manifest)).exit_code == 0
            assert now() < 10.0

    simulate(main)


@pytest.mark.parametrize("bug", ["RuntimeError", "KeyError", "AssertionError"])
@pytest.mark.parametrize(
    ("operation", "when", "outcome"),
    [
        ("probe.read", "before", "failed"),
        ("probe.read", "after", "failed"),
        ("probe.write", "before", "failed"),
        ("probe.write", "after", "succeeded"),
        ("probe.write", "settling", "unknown"),
    ],
)
def test_a_bug_of_an_operation_ends_its_item_only(
    folder: Path, bug: str, operation: str, when: str, outcome: str
) -> None:
    """failures.md row 76: whatever an operation raises, its item has an outcome that is not wrong, all others are done,
    and the run ends."""

    async def main() -> None:
        async with world(folder) as made:
            items = [{"name": "a", "bug": bug, "when": when}, {"name": "b"}, {"name": "c"}]
            if when == "settling":
                made.network.fate_of = lambda each: DROP_AFTER if each.path.endswith("probe-a") else FINE
            manifest = made.write("run", {"probes": {"operation": operation, "items": items}}, {"settle": "1s"})
            report = await made.run(manifest)
            first, *others = made.lines(manifest)
            assert first["outcome"] == outcome
            assert {line["outcome"] for line in others} == {"succeeded"}
            assert report.exit_code == {"failed": 1, "succeeded": 0, "unknown": 6}[outcome]
            invariants.nothing_leaked(made, made.runs[-1])
            assert now() < 60.0

    with probes.installed():
        simulate(main)


@pytest.mark.interpreted
@pytest.mark.parametrize("place", ["worker", "ledger"])
def test_a_bug_of_the_engine_ends_the_run_loud(folder: Path, place: str) -> None:
    """failures.md row 76: an exception in a worker, or in the recorder's commit, ends the run with that exception, not
    in silence; what was durable stays, and a resume completes everything exactly once."""

    async def main() -> None:
        async with world(folder) as made:
            jobs = {
                "reads": {"operation": "readme.get", "items": readmes(40)},
                "puts": {"operation": "contents.put", "items": [put(f"repo-{n:05d}", "a", "a") for n in range(20)]},
            }
            manifest = made.write("run", jobs)
            calls, kind = 0, (HandOver, "record_of") if place == "worker" else (Ledger, "commit")
            real = getattr(*kind)

            def broken(*args: Any, **more: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls == 8:
                    raise ZeroDivisionError("a bug")
                return real(*args, **more)

            with mock.patch.object(kind[0], kind[1], broken), pytest.raises(BaseExceptionGroup) as raised:
                await made.run(manifest)
            assert raised.group_contains(ZeroDivisionError)
            assert now() < 10.0
            assert not made.network.client_wires
            view = LedgerView(made.run_dir(manifest))
            assert sum(sum(kinds.values()) for kinds in view.counts().values()) == len(list(view.finished()))
            assert (await made.run(manifest)).exit_code == 0
            assert len(made.lines(manifest)) == 60
            assert len(made.effects()) == len(set(made.effects())) == 20

    simulate(main)


def test_one_hot_lane_does_not_hold_up_the_others(folder: Path) -> None:
    """failures.md row 77: one repository has 90% of the writes: the others are done in the time that they would take
    without it."""

    async def main() -> None:
        took: list[float] = []
        others = [put(f"repo-{number % 20 + 1:05d}", f"other-{number}", "a") for number in range(28)]
        for with_hot in (False, True):
            async with world(folder / str(with_hot), latency_ms=20.0) as made:
                hot = [put("repo-00000", f"hot-{number}", "a") for number in range(200)] if with_hot else []
                items = [*hot[:100], *others, *hot[100:]]
                began = now()
                manifest = made.write(
                    "run", {"puts": {"operation": "contents.put", "items": items}}, {"concurrency": 8}
                )
                assert (await made.run(manifest)).exit_code == 0
                assert len(made.effects()) == len(items)
                last = max(each.ended_at or 0.0 for each in made.network.exchanges if "other-" in each.path)
                took.append(last - began)
                invariants.lanes_never_overlap(made)
        free = took[0] * 8 / 7  # one of eight slots belongs to the hot lane
        assert took[1] <= free / 0.95

    simulate(main)


@pytest.mark.parametrize("kind", ["read", "write before", "write after", "create"])
def test_a_poisoned_item_is_given_up(folder: Path, kind: str) -> None:
    """failures.md row 78: an item whose request never goes well ends after so many tries, while the others go on."""

    async def main() -> None:
        async with world(folder, limits={"core": RateLimit(100, 5)}) as made:
            bad = answer(502, is_passed_on=kind == "write after")
            made.network.fate_of = lambda each: (
                bad if "poison" in each.path and (kind == "read" or each.is_write) else FINE
            )
            jobs: dict[str, Any] = {"reads": {"operation": "readme.get", "items": readmes(400)}}
            if kind == "read":
                item = {"owner": "fleet", "repo": "repo-00000", "path": "poison"}
                jobs["bad"] = {"operation": "contents.get", "items": [item]}
            elif kind == "create":
                jobs["bad"] = {"operation": "probe.create", "items": [{"name": "poison"}]}
            else:
                jobs["bad"] = {"operation": "contents.put", "items": [put("repo-00000", "poison", "a")]}
            manifest = made.write("run", jobs, {"settle": "2s"})
            report = await made.run(manifest)
            (line,) = (line for line in made.lines(manifest) if line["job"] == "bad")
            wanted = {
                "read": ("failed", 1),
                "write before": ("unknown", 6),
                "write after": ("succeeded", 0),
                "create": ("unknown", 6),
            }
            assert (line["outcome"], report.exit_code) == wanted[kind]
            tries = sum("poison" in each.path and (kind == "read" or each.is_write) for each in made.network.exchanges)
            assert tries == {"read": 6, "write before": 8, "write after": 1, "create": 8}[kind]
            assert now() < 120.0

    with probes.installed():
        simulate(main)


@pytest.mark.parametrize("limit", ["3", "5%"])
def test_mass_failure_stops_the_run(folder: Path, limit: str) -> None:
    """failures.md row 79: more failures than `limits.failures`: nothing new is offered, exit 3, a resume goes on."""

    async def main() -> None:
        async with world(folder) as made:
            missing = [{"owner": "fleet", "repo": f"missing-{number}"} for number in range(1_000)]
            manifest = made.write("run", {"reads": {"operation": "readme.get", "items": missing}}, {"failures": limit})
            report = await made.run(manifest)
            assert report.exit_code == 3
            ended = len(made.lines(manifest))
            assert (3 if limit == "3" else 99) < ended < 300
            invariants.nothing_leaked(made, made.runs[-1])

    simulate(main)


@pytest.mark.parametrize("jump_s", [86_400.0, -86_400.0])
@pytest.mark.parametrize("whose", ["clock", "platform_clock"])
def test_a_wall_clock_that_is_wrong_or_jumps_changes_nothing(folder: Path, whose: str, jump_s: float) -> None:
    """failures.md rows 33, 34: a day off from the start, and a jump in the middle of the run: budgets are kept, windows
    are used, nothing waits for a day."""

    async def main() -> None:
        async with world(folder, limits={"core": RateLimit(100, 10)}) as made:
            clock = getattr(made, whose)
            clock.skew_s = jump_s if whose == "clock" else 0.0

            async def jump() -> None:
                await anyio.sleep(12.3)
                clock.skew_s += jump_s if whose == "clock" else 0.7

            manifest = made.write("run", {"reads": {"operation": "readme.get", "items": readmes(380)}})
            async with anyio.create_task_group() as group:
                group.start_soon(jump)
                assert (await made.run(manifest)).exit_code == 0
            assert now() < 46.0
            assert not [entry for entry in made.journal() if entry.status == 403]

    simulate(main)


def test_a_suspended_machine_goes_on(folder: Path) -> None:
    """failures.md row 33: two hours pass at once while requests are under way: they are given up, asked again, and
    everything is done exactly once."""

    async def main() -> None:
        async with world(folder, limits={"core": RateLimit(100, 10)}, latency_ms=50.0) as made:
            invariants.watch(made)

            async def suspend() -> None:
                await anyio.sleep(5.0)
                running_loop().now += 2 * HOURS

            jobs = {
                "reads": {"operation": "readme.get", "items": readmes(300)},
                "puts": {"operation": "contents.put", "items": [put(f"repo-{n:05d}", "a", "a") for n in range(40)]},
            }
            manifest = made.write("run", jobs)
            async with anyio.create_task_group() as group:
                group.start_soon(suspend)
                assert (await made.run(manifest)).exit_code == 0
            assert now() < 2 * HOURS + 60.0
            assert len(made.effects()) == len(set(made.effects())) == 40
            assert not made.violations, made.violations
            invariants.nothing_leaked(made, made.runs[-1])

    simulate(main, at_most_s=3 * HOURS)


def test_what_needs_a_failed_job_is_skipped(folder: Path) -> None:
    """A job whose need did not succeed is not tried: its items are `skipped` with `dependency_failed` and 0 attempts;
    what needs it in turn likewise; a job that takes any outcome runs."""

    async def main() -> None:
        async with world(folder) as made:
            bad = [{"owner": "fleet", "repo": "missing"}]
            jobs = {
                "first": {"operation": "readme.get", "items": bad},
                "second": {"operation": "readme.get", "items": readmes(3), "needs": ["first"]},
                "third": {
                    "operation": "contents.put",
                    "items": [put("repo-00000", "a", "a")],
                    "needs": ["second"],
                },
                "any": {
                    "operation": "readme.get",
                    "items": readmes(2),
                    "needs": ["first"],
                    "needs_policy": "any-outcome",
                },
            }
            manifest = made.write("run", jobs)
            assert (await made.run(manifest)).exit_code == 1
            by_job: dict[str, set[str]] = {}
            for line in made.lines(manifest):
                by_job.setdefault(line["job"], set()).add(line["outcome"])
                if line["outcome"] == "skipped":
                    assert (line["attempts"], line["error"]["code"]) == (0, "dependency_failed")
            wanted = {"first": {"failed"}, "second": {"skipped"}, "third": {"skipped"}, "any": {"succeeded"}}
            assert by_job == wanted
            assert not made.effects()

    simulate(main)


def test_items_that_are_edited_while_they_are_read_stop_the_run(folder: Path) -> None:
    """failures.md row 55: an items file that changes under a run ends it with exit 5; what was done stays done."""

    async def main() -> None:
        async with world(folder, latency_ms=50.0) as made:
            items = [put("repo-00000", f"f{number}", "a") for number in range(20)]
            manifest = made.write("run", {"puts": {"operation": "contents.put", "items": items}})

            async def edit() -> None:
                await anyio.sleep(0.4)
                path = folder / "run-puts.items.jsonl"
                path.write_text(path.read_text().replace("f19", "f99"))

            async with anyio.create_task_group() as group:
                group.start_soon(edit)
                report = await made.run(manifest)
            assert report.exit_code == 5
            done = made.lines(manifest)
            assert 1 < len(done) < 20
            assert {line["outcome"] for line in done} == {"succeeded"}
            assert len(made.effects()) == len(done)

    simulate(main)


def test_the_time_limit_stops_and_a_resume_goes_on(folder: Path) -> None:
    """`limits.max_duration`: exit 3, nothing lost; each resume goes on where it stopped."""

    async def main() -> None:
        async with world(folder, limits={"core": RateLimit(50, 10)}) as made:
            manifest = made.write(
                "run", {"reads": {"operation": "readme.get", "items": readmes(170)}}, {"max_duration": 11}
            )
            codes = [(await made.run(manifest)).exit_code for _ in range(4)]
            assert codes[-1] == 0
            assert codes[0] == 3
            assert len(made.lines(manifest)) == 170
            answered = [entry for entry in made.journal() if entry.status == 200 and "readme" in entry.path]
            assert len(answered) == 170

    simulate(main)
