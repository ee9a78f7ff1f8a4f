"""One seed: random work in random weather, stopped and resumed at random, and everything that must hold of it.

A seed that fails is replayed, with its whole trace, by

    python -m tests.simulation.storm SEED [ITEMS]
"""

import contextlib
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import anyio

from bulk.errors import CredentialRefused, RunStopped
from bulk.report.fold import Report
from bulk.sandbox.settings import RateLimit
from tests.simulation import invariants
from tests.simulation.schedules import Schedule, random_schedule
from tests.simulation.wire.memory import Memory
from tests.simulation.wire.troubles import Troubles
from tests.simulation.wire.weather import Weather
from tests.simulation.world import HOURS, SteppedLoop, World, now, simulate, world

MOST_RESUMES = 400
LONG_WINDOWS = 30
"""Windows of every other seed are this many times as long: with limits it takes about an hour."""
MOST_S = 10 * HOURS
"""A seed that is not at its end by then hangs (virtual seconds)."""


@dataclass(frozen=True, slots=True)
class Passed:
    """What a seed came to.

    Attributes:
        trace: a line for everything that happened on the wire.
        seconds: virtual time that passed. requests: exchanges (count). runs: first one and resumes (count).
    """

    trace: tuple[str, ...]
    seconds: float
    requests: int
    runs: int


def pass_seed(seed: int, folder: Path, items: int = 60) -> Passed:
    """Play `seed`; raises AssertionError where an invariant is broken, with the seed in its notes."""

    async def main() -> Passed:
        dice = random.Random(f"storm {seed}")
        troubles, schedule = Troubles.of(seed), random_schedule(seed, items)
        weather = Weather(seed, share=dice.choice((0.0, 0.1, 0.2, 0.3)), outages=troubles.outages)
        limits = None
        if dice.random() < 0.7:
            times = LONG_WINDOWS if seed % 2 else 1
            limits = {
                "core": RateLimit(dice.randrange(30, 120), times * dice.randrange(5, 40)),
                "dependency_snapshots": RateLimit(dice.randrange(5, 30), times * dice.randrange(5, 40)),
            }
        async with world(
            folder,
            fate_of=weather,
            limits=limits,
            seed=seed,
            tokens=troubles.extra_tokens,
            platform_skew_s=troubles.platform_skew_s,
        ) as made:
            invariants.watch(made)
            more = {**schedule.limits, "pace": dice.choice(("even", "burst"))}
            manifest = made.write("storm", schedule.jobs, more, **troubles.credentials(folder))
            stops = dice.randrange(4)
            if stops + len(troubles.refusals) > 1:
                # a second kill forgets what the first one left under way: that within the settle time is not promised
                made.network.given_up_s = 0.005
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(troubles.befall, made)
                    for _ in range(stops):
                        await _run_and_stop(made, manifest, dice)
                    report = await _run_to_the_end(made, manifest)
                    group.cancel_scope.cancel()
                _judge(made, manifest, schedule, report, troubles)
            except BaseException:
                made.network.note("the end")
                (folder / "trace.txt").write_text("\n".join(made.network.trace))
                raise
            return Passed(tuple(made.network.trace), now(), len(made.network.exchanges), len(made.runs))

    try:
        return simulate(main, at_most_s=MOST_S, tick_s=30.0)
    except BaseException as error:
        error.add_note(f"replay: python -m tests.simulation.storm {seed} {items}")
        raise


async def _run_to_the_end(made: World, manifest: Path) -> Report:
    """Run until nothing is left; what a disk or a token stopped is resumed."""
    for _ in range(MOST_RESUMES):
        made.network.memory = Memory()  # whoever resumes a run takes longer than a copy of the platform lags
        try:
            report = await made.run(manifest)
        except RunStopped:
            continue
        if report.exit_code not in (RunStopped.exit_code, CredentialRefused.exit_code):
            return report
    raise AssertionError(f"not at the end after {MOST_RESUMES} resumes")


def _judge(made: World, manifest: Path, schedule: Schedule, report: Report, troubles: Troubles) -> None:
    """Everything that must hold at the end."""
    invariants.every_item_ended_once_and_right(made, manifest, schedule.expected)
    is_unknown = any(line["outcome"] == "unknown" for line in made.lines(manifest))
    assert report.exit_code == (6 if is_unknown else 0 if _all_well(schedule.expected.values()) else 1)
    invariants.every_effect_is_there_once(made, schedule.expected)
    invariants.files_hold(made, schedule.files)
    invariants.lanes_never_overlap(made)
    # in an outage nobody can say what is left, and after five vain questions the engine goes on
    others = len(troubles.takes) + len(troubles.outages)
    invariants.budgets_were_kept(made, others, troubles.outages)
    for token in troubles.tokens:
        invariants.nothing_after_the_first_401(made, token)
    invariants.nothing_leaked(made, made.runs[-1])
    assert not made.violations, made.violations[:5]


async def _run_and_stop(made: World, manifest: Path, dice: random.Random) -> None:
    """Run, and cancel after a random number of the loop's turns: what was under way is lost, as if killed."""
    loop, made.network.memory = running_loop(), Memory()
    last = loop.turns + dice.randrange(20, 600)
    with anyio.CancelScope() as scope:

        def look(turn: int) -> None:
            if turn >= last:
                loop.at_turn = None
                scope.cancel()

        loop.at_turn = look
        with contextlib.suppress(RunStopped):
            await made.run(manifest)
    loop.at_turn = None


def running_loop() -> SteppedLoop:
    """The running loop."""
    import asyncio

    loop = asyncio.get_running_loop()
    assert isinstance(loop, SteppedLoop)
    return loop


def _all_well(expected: object) -> bool:
    return all(each.outcome in ("succeeded", "unchanged") for each in expected)  # type: ignore[attr-defined]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        try:
            done = pass_seed(int(sys.argv[1]), place, *map(int, sys.argv[2:3]))
        except BaseException:
            sys.stdout.write((place / "trace.txt").read_text() + "\n" if (place / "trace.txt").exists() else "")
            raise
        sys.stdout.write("\n".join(done.trace) + f"\n{done.requests} requests, {done.seconds:.0f} virtual seconds\n")
