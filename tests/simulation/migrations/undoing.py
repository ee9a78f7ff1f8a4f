"""One seed: a random migration is run, stopped or killed at random, and taken back; somebody else changes things too.

What then stands is what stood before, but for what `bulk undo` has listed, and for what somebody else has changed
since, which stays as they left it. A seed that fails is replayed by

    python -m tests.simulation.migrations.undoing SEED
"""

import random
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bulk.engine.migrations.undo import write_undo
from bulk.engine.surroundings import Surroundings
from bulk.errors import Interrupted, RunStopped
from bulk.exit_codes import COMPLETE
from bulk.manifest.reading import Overrides
from tests.simulation.migrations.platform_state import SEED_DATA, Key, Platform, PlatformState, url_of
from tests.simulation.migrations.work import NUMBERS, RENAMED, Migration
from tests.simulation.schedules import SETTLE_S, TIMEOUT_S
from tests.simulation.stage import Stage
from tests.simulation.wire.weather import Weather
from tests.simulation.world import World

QUIET_S: Final = 120.0
"""By then what was sent has arrived, and what is done in the background is done (virtual seconds)."""
MOST_TIMES: Final = 12


@dataclass(slots=True)
class Passed:
    """What a seed came to (counts).

    Attributes:
        items: of the migration. written: the undo manifest's items. listed: what it can't take back, or only in part.
        kills: of the run and of the undo. refused: items of the undo that found somebody else's change.
        left: things that are not as before at the end.
    """

    items: int = 0
    written: int = 0
    listed: int = 0
    kills: int = 0
    refused: int = 0
    left: int = 0


@dataclass(slots=True)
class Undoing:
    """A seed on its stage.

    Attributes:
        given: what is run; None: a random migration, in random weather, with kills and with other people's changes.
    """

    seed: int
    folder: Path
    given: Migration | None = None
    dice: random.Random = field(init=False)
    stage: Stage = field(init=False)
    migration: Migration = field(init=False)
    passed: Passed = field(default_factory=Passed)
    theirs: set[Key] = field(default_factory=set)
    is_late: bool = False

    def __post_init__(self) -> None:
        self.dice = random.Random(f"undo {self.seed}")
        weather = Weather(self.seed, share=self.dice.choice((0.0, 0.0, 0.1, 0.2)) if self.given is None else 0.0)
        self.stage = Stage(self.folder, fate_of=weather, seed=self.seed, seed_data=SEED_DATA)
        self.migration = Migration.of(self.dice) if self.given is None else self.given
        self.passed.items = len(self.migration.things)

    def play(self) -> Passed:
        """Run, take back, compare."""
        try:
            made, platform = self.stage.world, Platform(self.stage.world)
            self.stage.call(lambda: platform.begin(self.dice))
            before = self.stage.call(platform.look)
            limits = {"request_timeout": f"{TIMEOUT_S:g}s", "settle": f"{SETTLE_S:g}s", "concurrency": 6}
            manifest = made.write("move", self.migration.jobs, limits)
            self._run(manifest, is_whole=self.dice.random() < 0.4)
            left = self.stage.call(platform.look)
            is_early = self.dice.random() < 0.5
            if is_early:
                self.stage.call(lambda: self._befall(platform))
            undo = self._write_undo(made.run_dir(manifest))
            if not is_early:
                self.stage.call(lambda: self._befall(platform))
            changed = self.stage.call(platform.look)
            if undo is not None and undo.exists():
                self._run(undo, is_whole=True)
                self._retry(undo)
            after = self.stage.call(platform.look)
            self._judge(before, left, changed, after, undo)
            return self.passed
        finally:
            self.stage.close()

    def _run(self, manifest: Path, *, is_whole: bool) -> None:
        """Run a manifest; kill it now and then, and not the last time. `is_whole`: until nothing is left."""
        for time in range(1, MOST_TIMES + 1):
            self.stage.start(lambda: self.stage.world.run(manifest))
            if self._happens(0.6) and time < MOST_TIMES:
                self.stage.pass_turns(self.dice.randrange(10, 300))
            else:
                self.stage.wait_end()
            if self.stage.is_running:
                self._end(self.stage.world.run_dir(manifest))
            error = self.stage.error
            assert error is None or isinstance(error, RunStopped | Interrupted), error
            is_over = self.stage.report is not None and self.stage.report.exit_code in COMPLETE
            if is_over or (not is_whole and self.dice.random() < 0.6):
                break
        else:
            raise AssertionError(f"not at its end after {MOST_TIMES} times: {self.stage.error}")
        self.stage.pass_time(QUIET_S)

    def _retry(self, undo: Path) -> None:
        """What a lagging copy of the platform made look like somebody else's change is taken back by a second try."""
        if all(line["outcome"] in ("succeeded", "unchanged") for line in self.stage.world.lines(undo)):
            return
        self.stage.start(lambda: self.stage.world.retry(undo))
        self.stage.wait_end()
        self.stage.pass_time(QUIET_S)

    def _end(self, run_dir: Path) -> None:
        """Kill it, or stop it as Ctrl-C does. What the first kill had sent may arrive late."""
        if self.dice.random() < 0.3:
            self.stage.signal()
            return
        self.stage.kill(run_dir, 0.005 if self.is_late else self.dice.choice((0.005, 5.0)))
        self.is_late = True
        self.passed.kills += 1

    def _write_undo(self, run_dir: Path) -> Path | None:
        """`bulk undo`, again where it could not read all bytes; None: the run was killed before there was anything."""
        out = self.folder / "undo.yaml"
        if not (run_dir / "ledger.db").exists():
            return None
        for _ in range(MOST_TIMES):
            try:
                self.passed.written = self.stage.do(lambda: self._undone(run_dir, out))
            except RunStopped:
                continue
            return out
        raise AssertionError("the bytes could not be read")

    async def _undone(self, run_dir: Path, out: Path) -> int:
        return await written_undo(self.stage.world, run_dir, out, random.Random(self.seed))

    def _befall(self, platform: Platform) -> None:
        """Somebody else changes some of what the migration has changed."""
        things = sorted({thing for things in self.migration.things.values() for thing in things})
        for thing in things:
            # what is only there or not may be again as an item before the last had left it: nobody can tell
            is_told = thing[0] != "assignment" or self.migration.is_touched_once(thing)
            if is_told and not self.migration.may_be_doubled(thing) and self._happens(0.15):
                platform.change(thing)
                self.theirs.add(thing)

    def _happens(self, share: float) -> bool:
        return self.given is None and self.dice.random() < share

    # -- the promise

    def _judge(
        self,
        before: PlatformState,
        left: PlatformState,
        changed: PlatformState,
        after: PlatformState,
        undo: Path | None,
    ) -> None:
        lost = set(self._listed(undo)) if undo is not None else set()
        self.passed.listed = len(lost)
        failed = self._failed(undo, lost) if undo is not None else set()
        wrong = []
        for key in sorted({*before, *left, *changed, *after}):
            b, r, t, a = (each.get(key) for each in (before, left, changed, after))
            self.passed.left += a != b
            if _is_of(key, lost):
                continue
            if any(_meet(key, thing) for thing in lost if thing == ("login", "103")):
                continue  # under which name it is to be found nobody knows
            if t != r:
                # what is gone may be gone as an item before the last had left it: nobody can tell
                if a != t and (t is not None or self._is_changed_once(key)):
                    wrong.append(f"{key}: somebody else's {t!r} became {a!r}")
            elif a != b and not (_is_of(key, failed) and (a == t or not self._is_changed_once(key))):
                wrong.append(f"{key}: {b!r} became {r!r}, and by the undo {a!r}")
        assert not wrong, "\n".join(wrong)

    def _is_changed_once(self, key: Key) -> bool:
        """Else it may be taken back by some of its items, and not by others."""
        return sum(_is_of(key, things) for things in self.migration.things.values()) == 1

    def _listed(self, undo: Path) -> Iterable[Key]:
        """What `undo.txt` names as lost."""
        path = undo.with_suffix(".txt")
        text = path.read_text() if path.exists() else ""
        for line in text.partition("What comes back in part")[0].splitlines():
            found = re.match(r"  (\S+) #(\d+) ", line)
            if found is not None:
                yield from self.migration.things[found[1], int(found[2])]

    def _failed(self, undo: Path, lost: set[Key]) -> set[Key]:
        """Things that the undo has not touched, because somebody else had: nothing else may fail."""
        if not undo.exists():
            return set()
        things: set[Key] = set()
        for line in self.stage.world.lines(undo):
            if line["outcome"] in ("succeeded", "unchanged"):
                continue
            own = set(_things_of(line["item"]))
            things |= own
            is_theirs = any(_meet(thing, other) for thing in own for other in self.theirs | lost)
            assert is_theirs, f"{line['job']} {line['item']}: {line['error']}"
            self.passed.refused += 1
        return things


async def written_undo(made: World, run_dir: Path, out: Path, dice: random.Random) -> int:
    """Write what takes a run back to `out`, as `bulk undo` does; return how many items it has."""
    connector = made.network.connector()
    around = Surroundings(clock=made.clock, dice=dice, disk=made.disk, connector=connector)
    try:
        found = await write_undo(
            run_dir,
            out,
            overrides=Overrides(),
            display=made.display(),
            environ=made.environ,
            surroundings=around,
        )
    finally:
        await connector.close()
    return found.items


def _is_of(key: Key, things: Iterable[Key]) -> bool:
    return any(key[: len(thing)] == thing for thing in things)


def _meet(thing: Key, other: Key) -> bool:
    """Whether a change of one is in the way of the other: a file may stand where a directory was, and what belongs to
    an organization that bears another name is not found."""
    if other == ("login", "103") != thing:
        return thing[:2] == ("file", "tools") or (thing[0] == "assignment" and thing[2] == "103")
    if thing[0] == "file" == other[0]:
        one, two = f"{thing[2]}/", f"{other[2]}/"
        return thing[1] == other[1] and (one.startswith(two) or two.startswith(one))
    return thing == other[: len(thing)] or other == thing[: len(other)]


def _things_of(item: Mapping[str, Any]) -> Iterable[Key]:
    """What an item of an undo manifest changes."""
    match item:
        case {"repo": repo, "path": path}:
            yield "file", repo.lower(), path
        case {"hook_id": number}:
            url = (item.get("expect") or {}).get("config", {}).get("url")
            yield "hook", "101", (url or url_of(number)).partition("?")[0]
        case {"config": {"url": url}}:
            yield "hook", "101", url.partition("?")[0]
        case {"enterprise-team": team}:
            for org in item.get("organization_slugs", [item.get("org")]):
                yield "assignment", team, "103" if org == RENAMED else NUMBERS[org]
        case {"configuration_id": number}:
            yield "configuration", str(number)
        case {"enterprise": _}:
            yield ("security",)
        case {"login": _}:
            yield "login", "103"


def pass_seed(seed: int, folder: Path) -> Passed:
    """Play `seed`; raises AssertionError where the promise is broken, with the seed in its notes."""
    try:
        return Undoing(seed, folder).play()
    except BaseException as error:
        error.add_note(f"replay: python -m tests.simulation.migrations.undoing {seed}")
        raise


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        shown = pass_seed(int(sys.argv[1]), Path(temporary))
        sys.stdout.write(f"{shown}\n")
