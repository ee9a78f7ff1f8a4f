"""A run, what others do after it, and its undo: each may meet a way to be wrong. The list of effects is the judge.

What stands where the run's effects were must be as before the run once `bulk undo` says so, and what others have made
of it since must stay.
"""

import math
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from bulk.engine import commands
from bulk.engine.again import Again
from bulk.engine.migrations.undo import UndoSummary, write_undo
from bulk.errors import BulkError
from bulk.operation import find
from bulk.undo import Undoable
from tests.hostile.commands.picture import Picture, differences, picture_of
from tests.hostile.judging import DONE, ROWS, Cell, doubled, exit_code, why_not
from tests.hostile.rows import Look, Row
from tests.hostile.store.effects import Effect
from tests.hostile.store.seeds import BEGAN, ORGANIZATIONS
from tests.hostile.virtual import (
    AFTERWARDS_S,
    AT_MOST_S,
    ended,
    in_virtual_time,
    lines_of,
    service_of,
    wall,
    write_manifest,
)
from tests.hostile.wrong import Guest, Way

PLAIN = Way("plain")
LIKE = {
    "contents.put": "contents.put replace",
    "contents.put new": "contents.delete sha",
    "contents.put create": "contents.delete sha",
    "contents.put replace": "contents.put replace",
    "contents.delete": "contents.put create",
    "contents.delete sha": "contents.put create",
    "organization.rename": "organization.rename wait",
    "organization.rename wait": "organization.rename wait",
    "team-organization.add": "team-organization.remove",
    "team-organization.remove": "team-organization.add",
    "team-organization.assign": "team-organization.unassign",
    "team-organization.assign together": "team-organization.unassign together",
    "team-organization.unassign": "team-organization.assign",
    "team-organization.unassign together": "team-organization.assign together",
    "organization-configuration.update": "organization-configuration.update",
    "enterprise-security.update": "enterprise-security.update",
    "enterprise-security.update wait": "enterprise-security.update",
    "enterprise-security.update link": "enterprise-security.update link",
    "webhook.create": "webhook.delete",
    "webhook.create plain": "webhook.delete",
    "webhook.create unchanged": "webhook.delete",
    "webhook.update": "webhook.update drop",
    "webhook.update drop": "webhook.update drop",
    "webhook.update-config": "webhook.update-config drop",
    "webhook.update-config drop": "webhook.update-config drop",
    "webhook.delete": "webhook.create unchanged",
}
"""The row whose traits the item has that takes a row's item back."""
NEVER = ("organization-configuration.delete",)
"""Rows that can be undone in part only: what was changed before is listed, and nothing takes them back."""
UNDOABLE = tuple(row for row in ROWS if isinstance(find(row.operation), Undoable) and row.name not in NEVER)
_JOB = re.compile(r"undo-(c\d+)(?:-.*)?")


@dataclass(frozen=True, slots=True)
class Scene:
    """What happens.

    Attributes:
        kind: what the command calls it.
        ran: the way in which the platform is wrong while the run runs; undone: while it is taken back.
        is_meddled: whether somebody else changes the same things in between.
        is_again: whether a retry of the undo's run follows, in which nothing is wrong any more.
    """

    kind: str = "undo"
    ran: Way = PLAIN
    undone: Way = PLAIN
    is_meddled: bool = False
    is_again: bool = False

    @property
    def again(self) -> str:
        """The command that tries it alone."""
        way = self.ran if self.kind == "undone" else self.undone
        return f'python -m tests.hostile {self.kind} "{way.name}"'

    @property
    def whole(self) -> Way:
        """The way of the run, with what is so for good."""
        return replace(
            self.ran,
            habits=self.ran.habits | self.undone.habits,
            has_equal_ids=self.ran.has_equal_ids or self.undone.has_equal_ids,
            limits=self.ran.limits or self.undone.limits,
        )

    def why_not(self, row: Row) -> str:
        """Why a row has no part in it; "" where it has."""
        if self.is_meddled and not row.meddles:
            return "nobody else's change of it could be told from ours"
        like = next(each for each in ROWS if each.name == LIKE[row.name])
        return why_not(row, self.ran) or why_not(like, self.undone)


@dataclass(slots=True)
class UndoCell:
    """One operation in one scene, tried.

    Attributes:
        undone_at: when its undo began (seconds since 1970). outcomes: of the items that take it back.
        broken: what does not hold, in words.
    """

    scene: Scene
    cell: Cell
    undone_at: float = math.inf
    outcomes: Sequence[str] = ()
    broken: list[str] = field(default_factory=list)

    @property
    def guest(self) -> Guest:
        """Its platform."""
        return self.cell.guest

    def meddle(self) -> None:
        """Somebody else changes the same thing."""
        self.cell.row.meddle(self.guest.platform, wall())

    def classify(self, ran: Sequence[Mapping[str, Any]], lines: Sequence[Mapping[str, Any]], at: float) -> None:
        """Compare what the undo said with what was done until `at` (seconds since 1970); `ran`: what the run said."""
        self.outcomes = [line["outcome"] for line in lines]
        self.broken += self._broken(lines, at)
        if self.scene == Scene() and any(line["outcome"] == "succeeded" for line in ran) and not lines:
            self.broken.append("nothing takes it back")

    def _broken(self, lines: Sequence[Mapping[str, Any]], at: float) -> Iterator[str]:
        for line in lines:
            ours = [effect for effect in self._undoing() if self._is_of(effect.key, line)]
            yield from doubled(ours)
            if line["outcome"] in DONE and (left := self._left(line, at)):
                yield f"{line['outcome']}, but not as before: {sorted(map(str, left))}"
            if line["outcome"] in ("failed", "skipped", "unchanged") and ours:
                is_told = line["outcome"] == "unchanged" and "note" in (line["result"] or {})
                if not is_told:
                    yield f"{line['outcome']}, but {ours[0].kind} was done: {line['error'] or line['result']}"
            undone = self.scene.undone
            # what a refused update did in part is left to a person, also by a retry
            is_mended = self.scene.is_again and not any(
                part.name.startswith("part:") for part in undone.parts or (undone,)
            )
            is_well = undone.kind == "plain" or undone.is_harmless or is_mended
            if is_well and line["outcome"] not in DONE and not self._of_others(self._begun()):
                yield f"{line['outcome']}, though nothing went wrong: {line['error']}"
        if not lines and (effects := self._undoing()):
            yield f"no item, but {effects[0].kind} was done"
        yield from self._overwritten(at)

    def _overwritten(self, at: float) -> Iterator[str]:
        """What others had made of it before the undo began stands."""
        theirs = self._of_others(self._begun(), self.undone_at)
        now, then = self._picture(at), self._picture(self.undone_at)
        for place in theirs & differences(now, then):
            yield f"overwritten, what somebody else had changed: {place}"

    def _left(self, line: Mapping[str, Any], at: float) -> set[tuple[Any, ...]]:
        """The places that are not as before the run, at the best moment since the undo began."""
        begun = self._begun()
        theirs = self._of_others(begun)
        moments = [at, *(each for each in self._moments() if self.undone_at < each < at), self.undone_at]
        befores = [*(each for each in self._moments() if each < begun), BEGAN + 1]
        found = [
            {place for place in differences(before, self._picture(moment)) - theirs if self._is_of(place, line)}
            for before in [self._picture(math.nextafter(begun, 0.0)), *map(self._picture, befores)]
            for moment in moments
        ]
        return min(found, key=len)

    def _is_of(self, key: tuple[Any, ...], line: Mapping[str, Any]) -> bool:
        """Whether a key or a place is that of the item of a line; a row's only item has them all."""
        if len(self.cell.row.items) == 1 or key[0] != "assigned":
            return True
        return bool(key[-1] == ORGANIZATIONS[self.guest.alias.inside(line["item"]["org"])])

    def _begun(self) -> float:
        """When the run changed something first."""
        ours = [effect.at for effect in self.guest.platform.effects.ours()]
        return min(ours, default=math.inf)

    def _undoing(self) -> list[Effect]:
        return [effect for effect in self.guest.platform.effects.ours() if effect.at > self.undone_at]

    def _moments(self) -> list[float]:
        return [effect.at for effect in self.guest.platform.effects.listed]

    def _of_others(self, since: float, until: float = math.inf) -> set[tuple[Any, ...]]:
        """The places that others have changed behind `since`."""
        found: set[tuple[Any, ...]] = set()
        for effect in self.guest.platform.effects.listed:
            if effect.by != "us" and since <= effect.at <= until:
                before, after = self._picture(math.nextafter(effect.at, 0.0)), self._picture(effect.at)
                found |= differences(before, after)
        return found

    def _picture(self, at: float) -> Picture:
        return picture_of(Look(self.guest.platform.state, at), self.guest.platform.normal)


@dataclass(slots=True)
class Played:
    """What became of all operations in a scene.

    Attributes:
        took_s: of the undo (virtual seconds). broken: what does not hold of the commands as a whole.
        listed: of how many items `bulk undo` says that they do not come back.
    """

    scene: Scene
    cells: list[UndoCell]
    took_s: float = 0.0
    listed: int = 0
    broken: list[str] = field(default_factory=list)

    def wrong(self) -> Iterator[str]:
        """All that does not hold, a line each, with the command that tries it alone."""
        again = self.scene.again
        for cell in self.cells:
            yield from (f'{cell.cell.row.name} | {what} | {again} "{cell.cell.row.name}"' for what in cell.broken)
        yield from (f"the commands | {what} | {again}" for what in self.broken)

    def held(self) -> int:
        """How many cells hold."""
        return sum(not cell.broken for cell in self.cells)

    def outcomes(self) -> Counter[str]:
        """How the items ended that take the run back."""
        return Counter(outcome for cell in self.cells for outcome in cell.outcomes)


def play(scene: Scene, rows: Sequence[Row] = UNDOABLE) -> Played:
    """Run, have others meddle, take back."""
    cells = [
        UndoCell(scene, Cell.of(row, scene.whole, number)) for number, row in enumerate(rows) if not scene.why_not(row)
    ]
    played = Played(scene, cells)
    if cells:
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            in_virtual_time(partial(_Stage(played, Path(folder)).play))
    return played


@dataclass(slots=True)
class _Stage:
    """Gives the commands."""

    played: Played
    folder: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def guests(self) -> dict[str, Guest]:
        return {cell.cell.name: cell.guest for cell in self.played.cells}

    async def play(self) -> None:
        scene, cells = self.played.scene, self.played.cells
        manifest, self.environ = write_manifest(self.folder, {cell.cell.name: cell.cell.job() for cell in cells})
        run_dir, out, undone = self.folder / "run", self.folder / "undo.yaml", self.folder / "undone"
        await self._do(partial(commands.run_manifest, manifest, run_dir=run_dir))
        ran = lines_of(run_dir / "results.jsonl")
        for cell in cells:
            if scene.is_meddled:
                cell.meddle()
        await anyio.sleep(1.0)
        for cell in cells:
            cell.undone_at = wall()
        began = wall()
        written = await self._written(run_dir, out)
        report = None
        if written is not None and written.manifest is not None:
            self._begin(scene.undone)
            report = await self._do(partial(commands.run_manifest, out, run_dir=undone))
            if scene.is_again:
                self._begin(None)
                report = await self._do(partial(commands.resume_run, undone, again=Again(is_retry=True)))
        self.played.took_s = wall() - began
        found: dict[str, list[dict[str, Any]]] = {}
        for job, lines in lines_of(undone / "results.jsonl").items():
            named = _JOB.fullmatch(job)
            assert named is not None, f"{job} is not named by the job that it takes back"
            found.setdefault(named[1], []).extend(lines)
        for cell in cells:
            cell.classify(ran.get(cell.cell.name, ()), found.get(cell.cell.name, ()), wall())
        if scene.ran == PLAIN and self.played.listed and scene.undone.times == 1:
            self.played.broken.append(f"{self.played.listed} listed as lost, for one wrong answer each")
        wanted = exit_code([outcome for cell in cells for outcome in cell.outcomes])
        if report is not None and report.exit_code != wanted:
            self.played.broken.append(f"exit code {report.exit_code}, not {wanted}")

    async def _written(self, run_dir: Path, out: Path) -> UndoSummary | None:
        """`bulk undo`; where it can't read all bytes, the same once more when nothing is wrong any more."""
        command = partial(write_undo, run_dir, out)
        found: UndoSummary | None
        self._begin(self.played.scene.undone)
        try:
            found = await self._do(command)
        except BulkError:
            self._begin(None)
            found = await self._do(command)
        self.played.listed = 0 if found is None else found.irreversible
        return found

    def _begin(self, way: Way | None) -> None:
        for guest in self.guests.values():
            guest.begin(way or PLAIN)

    async def _do(self, command: Any) -> Any:
        """Give a command, wait for its end, and for what may come after it."""
        found, trouble = await ended(command, service_of(self.guests), self.environ, AT_MOST_S)
        if trouble:
            self.played.broken.append(trouble)
        await anyio.sleep(AFTERWARDS_S)
        return found
