"""Whether what a run has left on the platform is still as it left it: `bulk verify RUN --live`.

Every item that wrote is looked at again as a live plan does (`live_plan.py`), with nothing but reads. One that would
write now has moved. What a later item of the same run has written over is no difference.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import orjson

from bulk.bundle.checked import derived_path, source_path
from bulk.capabilities import LooksBack
from bulk.engine.execution import MANIFEST, check_items
from bulk.engine.identity import identity_of
from bulk.engine.migrations.changed_things import Thing, things_of
from bulk.engine.migrations.live_plan import NO_DIGEST, look_in, verdict_of
from bulk.engine.origin import Origin
from bulk.engine.surroundings import Surroundings
from bulk.errors import RunDirectoryError
from bulk.execute.preview import BLIND, CHANGE, EQUAL
from bulk.ledger.digests.verification import Verification
from bulk.ledger.view import LedgerView
from bulk.manifest.manifest import Job, Manifest
from bulk.manifest.reading import Overrides, read_manifest
from bulk.model import OutcomeKind
from bulk.operation import Steps
from bulk.report.tally import label
from bulk.status import Display, Silence
from bulk.storage.disk_threads import beside

T = TypeVar("T")
WROTE: Final = frozenset((OutcomeKind.SUCCEEDED,))

_ELSEWHERE: Final = "elsewhere"
"""Of an item whose organization the run has renamed later."""

Turn = tuple[int, int]
"""When an item has its turn: the number of its job, and its place there."""


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """An item that is not as the run left it.

    Attributes:
        label: the item in a few words. verdict: what the same item would do now; why: in words, or empty.
    """

    job: str
    index: int
    label: str
    verdict: str
    why: str


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """What was found.

    Attributes:
        equal, unseen: items that are as the run left them, and those that can't be looked at (counts).
        rewritten: items over which a later item of the run has written (count).
        requests: that were sent (count). moved: what somebody else has changed since.
    """

    equal: int
    unseen: int
    rewritten: int
    requests: int
    moved: tuple[Moved, ...]


class Verified(Verification, frozen=True, kw_only=True):
    """What was found of a run directory, and of what the run has left.

    Attributes:
        live: what is there now.
    """

    live: Live


async def look_back(
    run_dir: Path, *, overrides: Overrides, environ: Mapping[str, str], cache: Path | None, display: Display
) -> Live:
    """Look at every item that a run wrote.

    Raises:
        BulkError: the run can't be read, its items have changed, or not all of them can be looked at now.
    """
    around = Surroundings(handles_signals=True, is_preview=True, cache=cache)
    view = LedgerView(run_dir)
    origin = Origin.load(run_dir)
    manifest = read_manifest(Path(origin.manifest), origin.overrides(overrides), environ, text_at=run_dir / MANIFEST)
    manifest = replace(manifest, jobs=tuple(_from_here(job, run_dir) for job in manifest.jobs))
    with tempfile.TemporaryDirectory(prefix="bulk-look-") as folder:
        place = Path(folder)
        checked = await check_items(manifest, place, Silence(), around.clock, None)
        if identity_of(checked).items_digest != view.identity().items_digest:
            raise RunDirectoryError("the items are not those of the run any more; put its items files back")
        wanted = replace(
            manifest,
            jobs=await beside(around.disk, lambda: tuple(_known(job, view, run_dir, place) for job in manifest.jobs)),
        )
        wanted = replace(wanted, jobs=tuple(map(_looking_back, wanted.jobs)))
        found = await look_in(wanted, place, environ, display, around)
        if found is None:
            return Live(equal=0, unseen=0, rewritten=0, requests=0, moved=())
        seen, report = found
        return await beside(around.disk, lambda: _compared(manifest, view, seen, report.requests))


def _from_here(job: Job, run_dir: Path) -> Job:
    """Return a job whose items are read where the run has kept those of standard input."""
    return replace(job, items_path=source_path(job, run_dir)) if job.items_path is not None else job


def _known(job: Job, view: LedgerView, run_dir: Path, place: Path) -> Job:
    """Return a job whose items, where they were made from results, are those that the run has made and written."""
    made = derived_path(job, run_dir)
    if job.derivation is None or job.operation.is_read or not made.is_file():
        return job
    path = place / f"{job.name}.jsonl"
    with made.open("rb") as lines, path.open("wb") as out:
        for _, line in _paired(_written(view, job), enumerate(lines)):
            out.write(msgspec.json.encode(msgspec.json.decode(line, type=_Made).item) + b"\n")
    return replace(job, derivation=None, items=None, items_path=path, defaults={})


def _looking_back(job: Job) -> Job:
    """Return a job whose items were done: what they have made is there, and not what they expected before."""
    operation = job.operation
    base: Any = type(operation)
    steps: Callable[[Any], Steps] | None = operation.steps_to_look_back if isinstance(operation, LooksBack) else None

    class Back(base):  # type: ignore[misc]
        name = operation.name

        def steps(self, item: Any) -> Steps:
            if getattr(item, "expect", None) is not None:
                item = msgspec.structs.replace(item, expect=None)
            return operation.steps(item) if steps is None else steps(item)

    Back.resource = operation.resource
    return replace(job, operation=Back())


class _Made(msgspec.Struct):
    """A line of the items that were made from results."""

    item: msgspec.Raw


def _written(view: LedgerView, job: Job) -> Iterator[Any]:
    return map(orjson.loads, view.lines(kinds=WROTE, job=job.name))


def _compared(manifest: Manifest, view: LedgerView, seen: LedgerView, requests: int) -> Live:
    counts, renamed = {EQUAL: 0, BLIND: 0, _ELSEWHERE: 0}, _renamed(manifest, view)
    moved: list[tuple[frozenset[Thing], Turn, Moved]] = []
    for job in manifest.jobs:
        if job.operation.is_read:
            continue
        looks = map(orjson.loads, seen.lines(job=job.name))
        # of items that were made from results, only those that wrote were looked at
        pairs = (
            zip(_written(view, job), looks, strict=False)
            if job.derivation is not None
            else _paired(_written(view, job), ((look["index"], look) for look in looks))
        )
        for row, look in pairs:
            verdict, digest, why, _ = verdict_of(look)
            if verdict == CHANGE and digest == NO_DIGEST:
                verdict = BLIND  # it writes whatever stands there
            if verdict in (EQUAL, BLIND):
                counts[verdict] += 1
                continue
            turn = job.number, row["index"]
            if turn >= renamed.get(_organization(row["item"]), turn):
                moved.append((things_of(job, row), turn, _moved(job, row, verdict, why)))
            else:
                counts[_ELSEWHERE] += 1
    last = _last(manifest, view, frozenset[Thing]().union(*(things for things, *_ in moved)))
    kept = [each for things, turn, each in moved if not things or min(last[thing] for thing in things) <= turn]
    return Live(
        equal=counts[EQUAL],
        unseen=counts[BLIND],
        rewritten=counts[_ELSEWHERE] + len(moved) - len(kept),
        requests=requests,
        moved=tuple(kept),
    )


def _paired(rows: Iterator[Any], looks: Iterator[tuple[int, T]]) -> Iterator[tuple[Any, T]]:
    """Yield each row with what is there for the same index; both come in the order of the items."""
    for row in rows:
        for index, look in looks:
            if index == row["index"]:
                yield row, look
                break


def _moved(job: Job, row: Mapping[str, Any], verdict: str, why: str) -> Moved:
    return Moved(job=job.name, index=row["index"], label=label(row["item"]), verdict=verdict, why=why)


def _last(manifest: Manifest, view: LedgerView, wanted: frozenset[Thing]) -> dict[Thing, Turn]:
    """Return when the run wrote each of these things last."""
    found: dict[Thing, Turn] = {}
    for job in manifest.jobs if wanted else ():
        if job.operation.is_read:
            continue
        for row in _written(view, job):
            found.update((thing, (job.number, row["index"])) for thing in things_of(job, row) & wanted)
    return found


def _organization(item: Mapping[str, Any]) -> str:
    """Return the organization that an item is about, by the name that it has after it, in lower case."""
    return str(item.get("owner") or item.get("login") or item.get("org") or "").casefold()


def _renamed(manifest: Manifest, view: LedgerView) -> dict[str, Turn]:
    """Return when the run has renamed an organization, by the name that it had."""
    found: dict[str, Turn] = {}
    for job in manifest.jobs:
        if {"org", "login"} <= set(job.operation.Item.__struct_fields__):
            for row in _written(view, job):
                found[str(row["item"]["org"]).casefold()] = job.number, row["index"]
    return found
