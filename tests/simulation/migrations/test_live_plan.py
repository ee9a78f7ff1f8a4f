"""Random migrations are looked at, somebody else changes things, and the plan is run: what has moved stays as it is."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bulk.engine.agreement import plan_file, planned_run
from bulk.engine.migrations.live_plan import Look, look_at
from bulk.engine.surroundings import Surroundings
from bulk.execute.preview import RECORD_BYTES, VERDICTS
from bulk.manifest.reading import Overrides
from tests.simulation.migrations.platform_state import SEED_DATA, Key, Platform
from tests.simulation.migrations.work import RENAMED, Migration
from tests.simulation.stage import Stage

SEEDS, SOAK_SEEDS, TOGETHER = 60, 5_000, 20
WRITTEN = ("create", "change")
SEEN = (*WRITTEN, "equal", "conflict")


@dataclass(slots=True)
class Planning:
    """A seed on its stage."""

    seed: int
    folder: Path
    dice: random.Random = field(init=False)
    stage: Stage = field(init=False)
    migration: Migration = field(init=False)

    def __post_init__(self) -> None:
        self.dice = random.Random(f"plan {self.seed}")
        self.stage = Stage(self.folder, seed=self.seed, seed_data=SEED_DATA)
        self.migration = Migration.of(self.dice, is_each_once=True)

    def play(self) -> dict[str, int]:
        """Look, let somebody else change things, run the plan; how many items ended how."""
        try:
            made, platform = self.stage.world, Platform(self.stage.world)
            self.stage.call(lambda: platform.begin(self.dice))
            manifest = made.write("move", self.migration.jobs)
            before = self.stage.call(platform.look)
            look = self.stage.do(lambda: self._look(manifest))
            assert (self.stage.call(platform.look), made.effects()) == (before, []), "the plan changed something"
            assert not any(exchange.is_write for exchange in made.network.exchanges), "the plan sent a write"
            things = sorted(thing for thing in self._things() if self._is_seen(thing))
            moved = {thing for thing in things if self.dice.random() < 0.3}
            self.stage.call(lambda: platform.change_all(moved))
            changed = self.stage.call(platform.look)
            self._run(manifest, look)
            after = self.stage.call(platform.look)
            lost = [key for key, value in changed.items() if before.get(key) != value and after.get(key) != value]
            lost += [key for key in before if key not in changed and key in after]
            assert not lost, f"somebody else's changes are gone: {lost}"
            outside = [
                key
                for key in {*changed, *after}
                if changed.get(key) != after.get(key) and not any(key[: len(each)] == each for each in self._things())
            ]
            assert not outside, f"not of the plan: {outside}"
            really = {key for key in {*before, *changed} if before.get(key) != changed.get(key)}
            return self._judge(
                manifest, look, {thing for thing in moved if any(key[: len(thing)] == thing for key in really)}
            )
        finally:
            self.stage.close()

    def _is_seen(self, thing: Key) -> bool:
        """Whether the plan can see it under its name, and only one of it; else items are done as without a plan."""
        is_there = thing[:2] == ("file", "tools") or (thing[0] == "assignment" and thing[2] == "103")
        is_elsewhere = is_there and ("login", "103") in self._things()
        return not is_elsewhere and not self.migration.may_be_doubled(thing)

    def _things(self) -> set[Key]:
        return {thing for things in self.migration.things.values() for thing in things}

    async def _look(self, manifest: Path) -> Look:
        made = self.stage.world
        connector = made.network.connector()
        around = Surroundings(clock=made.clock, dice=random.Random(self.seed), disk=made.disk, connector=connector)
        try:
            return await look_at(
                manifest,
                overrides=Overrides(),
                environ=made.environ,
                display=made.display(),
                most_shown=0,
                surroundings=around,
            )
        finally:
            await connector.close()

    def _run(self, manifest: Path, look: Look) -> None:
        path, clock = self.folder / "F.plan", self.stage.world.clock
        plan_file.write_plan(look.plan, path)
        agreed = plan_file.approve(path, "somebody", look.plan.made_at)
        run_dir = self.stage.world.run_dir(manifest)
        approve = planned_run.approval_of(agreed, path, run_dir, clock)
        self.stage.start(lambda: self.stage.world.run(manifest, approve=approve))
        self.stage.wait_end()
        assert self.stage.error is None, self.stage.error
        self.stage.pass_time(120.0)

    def _judge(self, manifest: Path, look: Look, moved: set[Key]) -> dict[str, int]:
        """What was not touched is done, what was touched is stale: unless nothing is left to write."""
        records = plan_file.planned_of(look.plan).records
        numbers = {job.name: number for number, job in enumerate(look.plan.jobs)}
        ended: dict[str, int] = {}
        for line in self.stage.world.lines(manifest):
            things, code = self.migration.things[line["job"], line["index"]], (line["error"] or {}).get("code")
            verdict = VERDICTS[records[numbers[line["job"]]][line["index"] * RECORD_BYTES]]
            how = code or line["outcome"]
            ended[how] = ended.get(how, 0) + 1
            about = f"{line['job']} {line['item']}: {verdict}, then {how}, {line['error']}"
            assert code != "bad_response", about
            if code == "dependency_failed" or verdict not in SEEN or self._is_elsewhere(line["item"]):
                continue
            if any(map(moved.__contains__, things)):
                assert how in ("stale", "unchanged", "conflict", "succeeded"), about
                assert how != "succeeded" or not _is_all_of_it(things), about
            elif verdict in WRITTEN and not _meets(things, moved):
                # a configuration that is so is not news to us, and that a file stands above one only its write shows
                odd = {"configuration": "unchanged", "file": "validation_failed"}.get(things[0][0])
                stands_above = {"stale"} if self._stand_above(things) else set()  # of what the run itself has made
                assert how in {"succeeded", odd, *stands_above}, about
        return ended

    def _stand_above(self, things: tuple[Key, ...]) -> bool:
        """Whether another item of the run makes a directory of what these items take for a file."""
        others = {other for other in self._things() if other[0] == "file"}
        return any(
            thing[0] == "file" and other[1] == thing[1] and other[2].startswith(f"{thing[2]}/")
            for thing in things
            for other in others
        )

    def _is_elsewhere(self, item: dict[str, Any]) -> bool:
        """Whether it is in an organization that only a rename of the run gives this name."""
        named = [item.get("owner", ""), item.get("org", ""), *item.get("organization_slugs", ())]
        return RENAMED in map(str.lower, named)


def _is_all_of_it(things: tuple[Key, ...]) -> bool:
    """Whether an item changes all of a thing that somebody else can change; else they may go together."""
    return things[0][0] in ("file", "assignment")


def _meets(things: tuple[Key, ...], moved: set[Key]) -> bool:
    """Whether what was changed beside a thing is in its way: a file where a directory was; another webhook."""
    for thing in things:
        for other in moved:
            if thing[0] == "file" == other[0] and thing[1] == other[1]:
                return True
            if thing[0] == "hook" == other[0]:
                return True
    return False


@pytest.mark.parametrize("first", range(0, SEEDS, TOGETHER))
def test_what_has_moved_stays(folder: Path, first: int, figure: Callable[[str], None]) -> None:
    """The plan writes nothing; its run writes what was seen, and nothing of what somebody else has changed since."""
    ended: dict[str, int] = {}
    for seed in range(first, first + TOGETHER):
        for how, count in _played(seed, folder / str(seed)).items():
            ended[how] = ended.get(how, 0) + count
    assert min(ended.get(how, 0) for how in ("stale", "succeeded", "unchanged")) > 0
    figure(f"{TOGETHER} seeds: {', '.join(f'{count} {how}' for how, count in sorted(ended.items()))}")


def test_a_configuration_that_was_changed_since_is_not_deleted(folder: Path) -> None:
    """All of it was seen, so that whatever somebody changes makes its deletion stale."""
    assert _played(5_193, folder)["stale"] > 0


def _played(seed: int, folder: Path) -> dict[str, Any]:
    try:
        return Planning(seed, folder).play()
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("first", range(1_000, 1_000 + SOAK_SEEDS, 200))
def test_what_has_moved_stays_for_long(folder: Path, first: int) -> None:
    """The same for 5,000 seeds."""
    for seed in range(first, first + 200):
        _played(seed, folder / str(seed))
