"""Looks at the platform that change nothing: a live plan, and `bulk verify --live`, each in one way to be wrong.

What a look says of an item is what it says where nothing is wrong, or that nothing could be seen.
"""

import base64
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from bulk.engine import commands
from bulk.engine.migrations.live_check import Live, look_back
from bulk.engine.migrations.live_plan import Look, look_at
from bulk.errors import BulkError
from bulk.execute.preview import CHANGE, CREATE, EQUAL, FAILED, PENDING, RECORD_BYTES, VERDICTS
from tests.hostile.judging import ROWS, Cell, why_not
from tests.hostile.rows import Row
from tests.hostile.virtual import (
    AFTERWARDS_S,
    AT_MOST_S,
    ended,
    in_virtual_time,
    service_of,
    wall,
    write_manifest,
)
from tests.hostile.wrong import Way

COMPARED = {CREATE, CHANGE, EQUAL}
"""Where a plan has seen something else than there is, its run finds that out, and writes nothing."""
ALIKE = {
    "desync: every answer is the one before",
    "desync: each second request gets the answer before it",
    "empty: every read []",
}
"""Where both looks are untrue alike, and right in form: the 404 of what is new, or gone, is taken for the next read's
too, as no request id shows that it is another one's; and a list is empty from first to last."""
WRITING = tuple(row for row in ROWS if row.writes)


def befalls_reads(way: Way) -> bool:
    """Whether a look could notice anything of a way."""
    alone = way.parts or (way,)
    return any(each.on != "write" or each.habits or each.lag_s or each.limits for each in alone)


def can_be_told(way: Way) -> bool:
    """Whether a look could tell what is there: not where a front end has its own page in the place of each thing and of
    what is not there, and not where every second answer is an untrue 404, which two looks in a row meet alike."""
    return "its own page for each thing" not in way.name and not way.name.startswith("half wrong:")


def _is_nameless(row: Row, way: Way) -> bool:
    """Whether a look reads a list in which nothing says whose it is, and every list is another one's."""
    parts = way.parts or (way,)
    return row.operation == "organization-configuration.attach" and any(part.kind == "foreign" for part in parts)


@dataclass(slots=True)
class Looked:
    """What was said of all operations in a way.

    Attributes:
        seen: by the names of rows, a verdict for each item. trouble: why there is none.
        equal, unseen: of a verification (counts); what moved is in `seen`.
        effects: what the look has changed (count).
    """

    kind: str
    way: Way
    cells: Sequence[Cell]
    seen: Mapping[str, list[str]] = field(default_factory=dict)
    trouble: str = ""
    equal: int = 0
    unseen: int = 0
    requests: int = 0
    effects: int = 0
    took_s: float = 0.0

    def wrong(self, plain: "Looked") -> Iterator[str]:
        """All that does not hold; `plain`: the same look where nothing was wrong."""
        again = f'python -m tests.hostile {self.kind} "{self.way.name}"'
        if self.effects:
            yield f"{self.effects} effects of a look | {again}"
        if self.trouble.startswith("no end"):
            yield f"{self.trouble} | {again}"
        if self.trouble:
            return
        parts = {part.name for part in self.way.parts or (self.way,)}
        is_compared = "absent: 404 message to a read" in parts  # one 404 is believed, of a file or a webhook
        is_alike = not parts.isdisjoint(ALIKE)
        for cell in self.cells:
            found, right = self.seen.get(cell.row.name, []), plain.seen.get(cell.row.name, [])
            told = [
                each
                for each, wanted in zip(found, right, strict=False)
                if each not in (wanted, FAILED)
                and not (is_compared and {each, wanted} <= COMPARED)
                and not (is_alike and each == PENDING)
            ]
            is_plan, count, should = self.kind == "plan", len(found), len(right)
            if told or (count != should if is_plan else count > should and not is_alike):
                yield f"{cell.row.name} | {told or found}, not {right} | {again}"
        if self.equal > plain.equal:
            yield f"{self.equal} as left, and only {plain.equal} are | {again}"


def look(kind: str, way: Way, rows: Sequence[Row] = WRITING) -> Looked:
    """Look at what a manifest would do, or at what it has done, and others since."""
    is_meddled = kind == "verify-meddled"
    cells = [
        Cell.of(row, way, number)
        for number, row in enumerate(rows)
        if not why_not(row, way) and not _is_nameless(row, way) and (row.meddles or not is_meddled)
    ]
    looked = Looked(kind, way, cells)
    if cells:
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            in_virtual_time(partial(_play, looked, Path(folder)))
    return looked


async def _play(looked: Looked, folder: Path) -> None:
    guests = {cell.name: cell.guest for cell in looked.cells}
    manifest, environ = write_manifest(folder, {cell.name: cell.job() for cell in looked.cells})
    run_dir = folder / "run"
    if looked.kind != "plan":
        for guest in guests.values():
            guest.recover()
        run = partial(commands.run_manifest, manifest, run_dir=run_dir)
        await ended(run, service_of(guests), environ, AT_MOST_S)
        await anyio.sleep(AFTERWARDS_S)
        for cell in looked.cells if looked.kind == "verify-meddled" else ():
            cell.row.meddle(cell.guest.platform, wall())
        await anyio.sleep(AFTERWARDS_S)
    for guest in guests.values():
        guest.begin(looked.way)
    before, began = _effects(looked), wall()
    command: Any = partial(look_back, run_dir) if looked.kind != "plan" else partial(look_at, manifest, most_shown=0)
    try:
        # where the end of a window is always said to be an hour away, few requests take hours
        found, looked.trouble = await ended(command, service_of(guests), environ, 6 * AT_MOST_S)
    except BulkError as error:
        found, looked.trouble = None, str(error)
    looked.took_s, looked.effects = wall() - began, _effects(looked) - before
    names = {cell.name: cell.row.name for cell in looked.cells}
    if isinstance(found, Look):
        looked.seen = {names[job.name]: _verdicts(job.records) for job in found.plan.jobs}
    elif isinstance(found, Live):
        moved = Counter(names[each.job] for each in found.moved)
        looked.seen = {name: ["moved"] * moved[name] for name in moved}
        looked.equal, looked.unseen, looked.requests = found.equal, found.unseen, found.requests


def _verdicts(records: str | None) -> list[str]:
    """A verdict for each item; its digest is compared when the plan is run, and one of something else is refused."""
    return [VERDICTS[place] for place in base64.b64decode(records or "")[::RECORD_BYTES]]


def _effects(looked: Looked) -> int:
    return sum(len(cell.guest.platform.effects.ours()) for cell in looked.cells)
