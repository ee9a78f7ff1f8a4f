"""failures.md row 75: a run is cancelled at every turn of the event loop, one after the other, and resumed each time.

Every turn is an await of something. What was cancelled must leave no permit, no lane and no connection, its ledger must
be one that can be read, and the resume must bring every item to its end, with every effect exactly once.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import anyio
import pytest

from bulk.errors import Interrupted
from bulk.ledger.view import LedgerView
from tests.simulation import invariants
from tests.simulation.schedules import Expected, Schedule, put, snapshot
from tests.simulation.storm import running_loop
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, FINE, Fate, answer
from tests.simulation.world import World, simulate, world

Cancel: TypeAlias = Callable[[anyio.CancelScope, World], None]
FLEET = "repositories:\n  - {organization: fleet, count: 3000, readme_bytes: 60}\n"


def small(number: int) -> Schedule:
    """A few items of every kind, over things that no other number touches."""
    repo, login = f"repo-{number:05d}", f"made-{number}"
    schedule = Schedule()
    schedule.job("reads", "readme.get")
    schedule.job("puts", "contents.put")
    schedule.job("snapshots", "snapshot.create")
    schedule.job("orgs", "organization.create")
    for _ in range(2):
        schedule.expect("reads", {"owner": "fleet", "repo": repo}, Expected("succeeded"))
    for path in ("a", "b"):
        done = Expected("succeeded", effect=f"commit fleet/{repo} {path}")
        schedule.expect("puts", put(repo, path, path), done)
    effect = f"snapshot fleet/{repo} build detector"
    schedule.expect("snapshots", snapshot(repo, "build"), Expected("succeeded", effect=effect))
    effect = f"organization {login} created"
    schedule.expect("orgs", {"login": login, "admin": "octoadmin"}, Expected("succeeded", effect=effect))
    return schedule


class Rough:
    """Weather in which two of the four writes lose their first answer."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def __call__(self, exchange: Exchange) -> Fate:
        is_put, is_snapshot = exchange.path.endswith("/a"), exchange.path.endswith("snapshots")
        if exchange.path in self._seen or not exchange.is_write or not (is_put or is_snapshot):
            return FINE
        self._seen.add(exchange.path)
        return DROP_AFTER if is_put else answer(502)


async def cancel_at(made: World, manifest: Path, turns: int, cancel: Cancel) -> bool:
    """Run, and call `cancel` `turns` turns after it began; whether it was still going on then."""
    loop, runs = running_loop(), len(made.runs)
    last, was_reached = None, False
    with anyio.CancelScope() as scope:

        def look(turn: int) -> None:
            nonlocal last, was_reached
            if len(made.runs) > runs and last is None:
                last = turn + turns
            if last is not None and turn >= last:
                loop.at_turn, was_reached = None, True
                cancel(scope, made)

        loop.at_turn = look
        await made.run(manifest)
    loop.at_turn = None
    return was_reached


async def one(made: World, number: int, turns: int, cancel: Cancel) -> bool:
    """Cancel a run at one turn, look at what it left, resume it; whether it was still going on at that turn."""
    schedule = small(number)
    manifest = made.write(f"run-{number}", schedule.jobs, {"request_timeout": 5, "settle": 2, "concurrency": 4})
    effects, runs = len(made.effects()), len(made.runs)
    was_reached = await cancel_at(made, manifest, turns, cancel)
    if len(made.runs) > runs:
        assert made.runs[-1].governor.concurrency.in_flight == 0
        assert not made.network.client_wires
        view = LedgerView(made.run_dir(manifest))
        assert sum(sum(kinds.values()) for kinds in view.counts().values()) == len(list(view.finished()))
    report = await made.run(manifest)
    assert report.exit_code == 0
    invariants.every_item_ended_once_and_right(made, manifest, schedule.expected)
    made_effects = made.effects()[effects:]
    invariants.effects_are(made_effects, schedule.expected)
    invariants.nothing_leaked(made, made.runs[-1])
    assert not made.violations, made.violations
    return was_reached


def cancel_at_every(folder: Path, step: int, cancel: Cancel, fate_of: Rough | None = None) -> int:
    """Cancel at turns 0, `step`, 2 · `step`, … until a run ends before; how many runs were cancelled."""

    async def main() -> int:
        async with world(folder, fate_of=fate_of, seed_data=FLEET, latency_ms=2.0) as made:
            invariants.watch(made)
            number = 0
            while await one(made, number, number * step, cancel):
                number += 1
            return number

    return simulate(main)


def all_of_it(scope: anyio.CancelScope, made: World) -> None:
    """Whoever called the engine cancels it."""
    scope.cancel()


def second_signal(scope: anyio.CancelScope, made: World) -> None:
    """What the second signal does: nothing new, and what is under way is cancelled."""
    run = made.runs[-1]
    run.stop(Interrupted("SIGINT", 130))
    run._worker_scope.cancel()


def first_signal(scope: anyio.CancelScope, made: World) -> None:
    """What the first signal does: nothing new, what is under way ends."""
    made.runs[-1].stop(Interrupted("SIGINT", 130))


@pytest.mark.parametrize(("cancel", "step"), [(all_of_it, 5), (second_signal, 9), (first_signal, 13)])
def test_cancelled_at_many_turns(folder: Path, cancel: Cancel, step: int) -> None:
    """failures.md row 75: at every so-manyth turn (every one of them in the long run of tests)."""
    assert cancel_at_every(folder, step, cancel) > 5


@pytest.mark.soak
@pytest.mark.parametrize("is_rough", [False, True])
@pytest.mark.parametrize("cancel", [all_of_it, second_signal, first_signal])
def test_cancelled_at_every_turn(folder: Path, cancel: Cancel, is_rough: bool) -> None:
    """failures.md row 75: every turn, in good weather and with lost answers."""
    assert cancel_at_every(folder, 1, cancel, Rough() if is_rough else None) > 90
