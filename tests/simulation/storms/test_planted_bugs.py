"""Each planted bug is seen by a scenario that passes without it: the harness can fail (issue 4, item 3)."""

import sqlite3
import time
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import anyio
import pytest

from bulk.errors import RunDirectoryError
from bulk.sandbox.settings import ExtraToken, RateLimit
from tests.simulation import invariants, planted
from tests.simulation.schedules import SETTLE_S, TIMEOUT_S, Expected, Schedule, put, readmes, snapshot
from tests.simulation.storm import pass_seed
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, FINE, Fate, answer, late
from tests.simulation.wire.memory import Memory
from tests.simulation.world import PREFIX, Entry, simulate, world
from tests.simulation.writes import URL

CORE = {"core": RateLimit(200, 600), "dependency_snapshots": RateLimit(50, 600)}
LIMITS = {"request_timeout": TIMEOUT_S, "settle": SETTLE_S, "concurrency": 8}


def many_writes(fate: Fate) -> Callable[[Exchange], Fate]:
    """That fate for the first send of two writes of five, and of the first organization that is made."""
    seen: set[tuple[str, str]] = set()

    def fate_of(exchange: Exchange) -> Fate:
        key = (exchange.method, exchange.path)
        if not exchange.is_write or key in seen:
            return FINE
        seen.add(key)
        return fate if len(seen) % 5 in (1, 3) or exchange.path.endswith("/organizations") else FINE

    return fate_of


def writes(count: int = 12) -> Schedule:
    """Writes of every kind, the names in mixed case."""
    schedule = Schedule()
    for name, operation in (
        ("puts", "contents.put"),
        ("snapshots", "snapshot.create"),
        ("orgs", "organization.create"),
    ):
        schedule.job(name, operation)
    for number in range(count):
        repo = f"repo-{number % 3:05d}"
        named = repo.upper() if number % 2 else repo
        done = Expected("succeeded", effect=f"commit fleet/{repo} f{number}")
        schedule.expect("puts", put(named, f"f{number}", "a"), done)
        done = Expected("succeeded", effect=f"snapshot fleet/{repo} build-{number} detector")
        schedule.expect("snapshots", snapshot(repo, f"build-{number}"), done)
        done = Expected("succeeded", effect=f"organization made-{number} created")
        schedule.expect("orgs", {"login": f"made-{number}", "admin": "octoadmin"}, done)
    return schedule


def rough_work(folder: Path) -> None:
    """Writes of every kind lose their answers after the effect; everything must hold."""

    async def main() -> None:
        async with world(folder, limits=CORE, fate_of=many_writes(DROP_AFTER)) as made:
            invariants.watch(made)
            schedule = writes()
            manifest = made.write("run", schedule.jobs, LIMITS)
            await made.run(manifest)
            invariants.every_item_ended_once_and_right(made, manifest, schedule.expected)
            invariants.every_effect_is_there_once(made, schedule.expected)
            invariants.lanes_never_overlap(made)
            invariants.budgets_are_accounted(made, made.runs[-1])
            assert not made.violations, made.violations[0]

    simulate(main)


def lost_creation(folder: Path) -> None:
    """The answer to the creation of a webhook is lost after the effect: there must be one, although two would fit."""

    async def main() -> None:
        async with world(folder, fate_of=many_writes(DROP_AFTER)) as made:
            item = {"org": "acme-eng", "config": {"url": URL}, "active": False}
            await made.run(made.write("run", {"hooks": {"operation": "webhook.create", "items": [item]}}, LIMITS))
            assert len(made.effects()) == 1, f"created twice: {made.effects()}"

    simulate(main)


def late_write(folder: Path) -> None:
    """A file is put, late, and once more, then deleted: what comes late must not create it anew."""

    async def main() -> None:
        fates = iter((late(TIMEOUT_S + 8.0),))
        async with world(folder, fate_of=lambda each: next(fates, FINE) if each.is_write else FINE) as made:
            delete = {"owner": "fleet", "repo": "repo-00000", "path": "a", "message": "Delete"}
            jobs: dict[str, Any] = {
                "puts": {"operation": "contents.put", "items": [put("repo-00000", "a", "a")]},
                "deletes": {"operation": "contents.delete", "items": [delete], "allow_overwrites": True},
            }
            await made.run(made.write("run", jobs, LIMITS))
            await anyio.sleep(60.0)
            assert len(made.effects()) == 2, f"created anew: {made.effects()}"

    simulate(main)


def between(folder: Path) -> None:
    """A write arrives when it has just been read that it is not there: it is found done when it is begun anew."""

    async def main() -> None:
        fates = iter((late(TIMEOUT_S + 0.05),))
        async with world(folder, fate_of=lambda each: next(fates, FINE) if each.is_write else FINE) as made:
            manifest = made.write(
                "run", {"puts": {"operation": "contents.put", "items": [put("repo-00000", "a", "a")]}}, LIMITS
            )
            await made.run(manifest)
            outcome = made.lines(manifest)[0]["outcome"]
            assert outcome == "succeeded", f"{outcome}, but it was this item's write"
            assert len(made.effects()) == 1

    simulate(main)


def stale_proxy(folder: Path) -> None:
    """A proxy says "not changed" to whoever asks with validators: a read-back must not."""

    async def main() -> None:
        path = f"{PREFIX}/repos/fleet/repo-00000/contents/README.md"

        def fate_of(exchange: Exchange) -> Fate:
            if exchange.path != path:
                return FINE
            if exchange.is_conditional:
                return answer(304, b"", "application/json")
            return DROP_AFTER if exchange.is_write else FINE

        async with world(folder, fate_of=fate_of) as made:
            made.cache = folder / "cache"
            read = {"owner": "fleet", "repo": "repo-00000", "path": "README.md", "media_type": "object"}
            await made.run(made.write("look", {"reads": {"operation": "contents.get", "items": [read]}}))
            item = put("repo-00000", "README.md", "new")
            manifest = made.write("run", {"puts": {"operation": "contents.put", "items": [item]}}, LIMITS)
            await made.run(manifest)
            sends = len([each for each in made.network.exchanges if each.is_write])
            assert sends == 1, f"sent {sends} times"

    simulate(main)


def taken_over(folder: Path) -> None:
    """Another process raises the epoch in the middle of the run: this one must stop, and write nothing more."""

    async def main() -> None:
        async with world(folder, latency_ms=20.0) as made:
            manifest = made.write("run", writes(20).jobs, LIMITS)

            async def take_over() -> None:
                await anyio.sleep(0.1)
                with sqlite3.connect(made.run_dir(manifest) / "ledger.db") as ledger:
                    ledger.execute("UPDATE meta SET epoch = epoch + 1")
                ledger.close()

            async with anyio.create_task_group() as group:
                group.start_soon(take_over)
                try:
                    await made.run(manifest)
                except RunDirectoryError:
                    return
            raise AssertionError("it went on")

    simulate(main)


def redirected(folder: Path) -> None:
    """A write is redirected to another repository."""

    async def main() -> None:
        async with world(folder) as made:
            elsewhere = answer(307, b"", Location=f"{PREFIX}/repos/fleet/repo-00001/contents/a")
            made.network.fate_of = lambda each: elsewhere if "repo-00000" in each.path and each.is_write else FINE
            items = [put("repo-00000", "a", "a")]
            await made.run(made.write("run", {"puts": {"operation": "contents.put", "items": items}}))
            assert not made.effects(), f"changed elsewhere: {made.effects()}"

    simulate(main)


def ended_token(folder: Path) -> None:
    """A token ends in the middle of the run."""

    async def main() -> None:
        async with world(folder, tokens=[ExtraToken("tok-ends", "octoadmin", 0.1)], latency_ms=20.0) as made:
            made.environ["BULK_TOKEN"] = "tok-ends"
            items = readmes(300)
            with anyio.move_on_after(1_000.0):
                await made.run(made.write("run", {"reads": {"operation": "readme.get", "items": items}}))
            invariants.nothing_after_the_first_401(made, "tok-ends")

    simulate(main, tick_s=30.0)


def lagging_copy(folder: Path) -> None:
    """A file is put and deleted at once, and a copy of the platform shows that it is not there yet."""

    async def main() -> None:
        stale = Fate(kind="stale", stale_s=SETTLE_S)
        async with world(folder, fate_of=lambda each: FINE if each.is_write else stale) as made:
            made.network.memory = Memory()
            delete = {"owner": "fleet", "repo": "repo-00000", "path": "a", "message": "Delete"}
            jobs: dict[str, Any] = {
                "puts": {"operation": "contents.put", "items": [put("repo-00000", "a", "a")]},
                "deletes": {"operation": "contents.delete", "items": [delete], "needs": ["puts"]},
            }
            manifest = made.write("run", jobs, LIMITS)
            await made.run(manifest)
            (outcome,) = (line["outcome"] for line in made.lines(manifest) if line["job"] == "deletes")
            assert outcome == "succeeded", f"{outcome}, and the file is there"

    simulate(main)


def hidden(folder: Path) -> None:
    """Pooled connections break while a write is under way: each request on the wire must have had its permit."""

    async def main() -> None:
        cut = Fate(kind="cut", answer_cut=0)
        async with world(folder, limits=CORE, fate_of=many_writes(cut)) as made:
            jobs = {"puts": {"operation": "contents.put", "items": [put("repo-00000", f"f{n}", "a") for n in range(9)]}}
            manifest = made.write("run", jobs, LIMITS)
            await made.run(manifest)
            invariants.budgets_are_accounted(made, made.runs[-1])

    simulate(main)


def paused_in_the_queue(folder: Path) -> None:
    """A run is paused while items that have begun wait for a window: nothing is sent in it; resumed, all ends."""

    async def main() -> None:
        async with world(folder, limits={"core": RateLimit(21, 60)}) as made:
            puts = {"operation": "contents.put", "items": [put(f"repo-{number:05d}", "a", "a") for number in range(30)]}
            manifest = made.write("run", {"puts": puts}, {**LIMITS, "pace": "burst"})
            async with anyio.create_task_group() as group:
                group.start_soon(made.run, manifest)
                await anyio.sleep(10.0)
                made.runs[-1].pause()
                await anyio.sleep(1.0)
                before = sum(is_of_item(entry) for entry in made.journal())
                await anyio.sleep(300.0)
                after = sum(is_of_item(entry) for entry in made.journal())
                made.runs[-1].go_on()
            assert after == before == 21, f"{after - before} were sent while it was paused"
            assert len(made.effects()) == 30

    simulate(main)


def is_of_item(entry: Entry) -> bool:
    """Whether it is not a look at the limits."""
    return not entry.path.endswith("/rate_limit")


SEEN_BY: dict[Any, tuple[Callable[[Path], None], str]] = {
    planted.intent_written_late: (rough_work, "left without an intent"),
    planted.no_read_back: (rough_work, "exists already"),
    planted.blind_repeat: (lost_creation, "created twice"),
    planted.hidden_re_send: (hidden, r"core: \d+ taken, \d+ left"),
    planted.no_settle_time: (late_write, "created anew"),
    planted.lane_not_folded: (rough_work, "overlap"),
    planted.conditional_read_back: (stale_proxy, "sent [2-9] times"),
    planted.budget_given_back_when_lost: (rough_work, r"\d+ taken, \d+ left"),
    planted.epoch_not_checked: (taken_over, "it went on"),
    planted.redirected_write_followed: (redirected, "changed elsewhere"),
    planted.token_used_after_its_end: (ended_token, "401 at"),
    planted.told_before_durable: (rough_work, r"\d+ outcomes were told, \d+ are in the ledger"),
    planted.doubt_forgotten: (between, "unchanged, but it was this item's write"),
    planted.stale_look_believed: (lagging_copy, "failed, and the file is there"),
    planted.paused_in_the_scheduler_only: (paused_in_the_queue, r"\d+ were sent while it was paused"),
}
"""By which scenario each bug is seen, and what that says."""
MOST_S = 5.0


def shown(said: str) -> str:
    """The first line of what an invariant says, not too long."""
    return said.partition("\n")[0][:90]


@pytest.mark.parametrize("scenario", sorted({by for by, _ in SEEN_BY.values()}, key=attrgetter("__name__")))
def test_the_scenario_passes_without_a_bug(folder: Path, scenario: Callable[[Path], None]) -> None:
    """What a bug is to be seen by holds as long as there is none."""
    scenario(folder)


@pytest.mark.interpreted
@pytest.mark.parametrize("bug", planted.EVERY, ids=lambda each: each.__name__)
def test_the_bug_is_seen(folder: Path, bug: Any, figure: Callable[[str], None]) -> None:
    """With the bug switched on, the same scenario fails within 5 s, and says which promise is broken."""
    scenario, says = SEEN_BY[bug]
    started = time.process_time()
    with bug(), pytest.raises(AssertionError, match=says) as seen:
        scenario(folder)
    took_s = time.process_time() - started
    figure(f"{bug.__name__} | {scenario.__name__}: {shown(str(seen.value))} | {took_s:.1f} s")
    assert took_s < MOST_S


IN_BAD_WEATHER = (
    planted.intent_written_late,
    planted.no_read_back,
    planted.blind_repeat,
    planted.hidden_re_send,
    planted.lane_not_folded,
    planted.budget_given_back_when_lost,
    planted.told_before_durable,
    planted.doubt_forgotten,
)
"""The others need what no storm has: a rival, a lying proxy, a redirect, a token that ends, a write that comes late, a
stale look."""
LONG_S = 60.0


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("bug", IN_BAD_WEATHER, ids=lambda each: each.__name__)
def test_random_weather_sees_the_bug(folder: Path, bug: Any, figure: Callable[[str], None]) -> None:
    """With the bug switched on, random work in random weather breaks an invariant within 60 s."""
    started, said, seed = time.process_time(), "", -1
    with bug():
        while not said:
            seed += 1
            try:
                pass_seed(seed, folder / str(seed))
            except AssertionError as wrong:
                said = shown(str(wrong))
            took_s = time.process_time() - started
            assert took_s < LONG_S, f"not seen by {seed + 1} seeds"
    figure(f"{bug.__name__} | storm, seed {seed}: {said} | {took_s:.1f} s")
