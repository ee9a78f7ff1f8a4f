"""Checks whether the platform is still as a run has left it: `bulk verify RUN --live`.

Every item that wrote is looked at again as in a live plan (`live_plan.py`), with nothing but reads. An item that would
write now has moved. A thing that a later item of the same run has written over is not a difference.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import orjson

from bulk.bundle.checked import derived_path, index_name, refuse_edited, source_path
from bulk.bundle.index import INDEX, SCHEMA, opened
from bulk.capabilities import ChangesThings, LooksBack, LooksTwice
from bulk.engine.execution import check_items
from bulk.engine.identity import identity_of
from bulk.engine.migrations.changed_things import Thing, things_of, without_expect
from bulk.engine.migrations.live_plan import LOOK, NO_DIGEST, look_in, verdict_of
from bulk.engine.origin import manifest_of
from bulk.engine.surroundings import Surroundings
from bulk.errors import RunDirectoryError
from bulk.execute.preview import BLIND, CHANGE, EQUAL, NOT_SEEN
from bulk.ledger.digests.verification import Verification
from bulk.ledger.view import LedgerView
from bulk.manifest.manifest import Job, Manifest
from bulk.manifest.reading import Overrides
from bulk.model import OutcomeKind
from bulk.operation import Item, Steps
from bulk.report.tally import label
from bulk.status import Counting, Display, Working, silently
from bulk.storage.disk_threads import beside
from bulk.storage.scratch import scratch_folder

T = TypeVar("T")
WROTE: Final = frozenset((OutcomeKind.SUCCEEDED,))

MOST_REASONS: Final = 3
"""At most this many reasons why items can't be looked at are told (count)."""

_ELSEWHERE: Final = "elsewhere"
"""The verdict on an item whose organization the run has renamed later."""

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
    """The result of a look at what a run has left.

    Attributes:
        equal, unseen: items that are as the run left them, and those that can't be looked at (counts).
        rewritten: items over which a later item of the run has written (count).
        requests: requests that were sent (count). moved: items whose things another user has changed since.
        reasons: why items could not be looked at, such as a credential that may not: the first few, each once.
    """

    equal: int
    unseen: int
    rewritten: int
    requests: int
    moved: tuple[Moved, ...]
    reasons: tuple[str, ...] = ()


class Verified(Verification, frozen=True, kw_only=True):
    """The result of the verification of a run directory, and of a look at what the run has left.

    Attributes:
        live: the result of the look at the platform.
    """

    live: Live


async def look_back(
    run_dir: Path,
    *,
    overrides: Overrides,
    environ: Mapping[str, str],
    display: Display,
    surroundings: Surroundings,
    working: Working = silently,
) -> Live:
    """Look again at every item of a run that wrote.

    Raises:
        BulkError: the run can't be read, its items have changed, or not all of them can be looked at now.
    """
    around = replace(surroundings, is_preview=True)
    view = LedgerView(run_dir)
    manifest = manifest_of(view, overrides, environ)
    manifest = replace(manifest, jobs=tuple(_from_here(job, run_dir) for job in manifest.jobs))
    with scratch_folder("look") as place:
        with working(f"reading {run_dir}") as tell:
            checked = await check_items(manifest, place, Counting(tell), around.clock, None)
            if identity_of(checked).items_digest != view.identity().items_digest:
                refuse_edited(checked, run_dir)  # names the file, where it is the list that was edited
                raise RunDirectoryError("the items are not those of the run any more; put its items files back")
            known = await beside(around.disk, lambda: tuple(_known(job, view, run_dir, place) for job in manifest.jobs))
            wanted = await beside(around.disk, lambda: _only_begun(replace(manifest, jobs=known), view))
            wanted = replace(wanted, jobs=tuple(map(_looking_back, wanted.jobs)))
        found = await look_in(wanted, place, environ, display, around)
        if found is None:
            return Live(equal=0, unseen=0, rewritten=0, requests=0, moved=())
        seen, report = found
        with working(f"comparing {run_dir} with the platform"):
            await beside(around.disk, lambda: _refuse_other_files(manifest, run_dir, place / LOOK))
            live, rests = await beside(around.disk, lambda: _compared(manifest, view, seen, report.requests))
        if not rests:
            return live
        again = place / "rests"
        again.mkdir()
        found = await look_in(_only_rests(wanted, rests), again, environ, display, around)
        assert found is not None, "rests are of items that write"
        seen, report = found
        return await beside(around.disk, lambda: _with_rests(live, rests, seen, report.requests))


def _refuse_other_files(manifest: Manifest, run_dir: Path, look: Path) -> None:
    """Refuse to compare if a file that an item names, as the look in `look` has read it, is not the one that was sent.

    Raises:
        RunDirectoryError: a file is not the one that was sent.
    """
    names = [run_dir / name for name in sorted(set(map(index_name, manifest.jobs))) if (run_dir / name).exists()]
    with ExitStack() as stack:
        indexes = [stack.enter_context(closing(opened(path, SCHEMA))) for path in names]
        looked = stack.enter_context(closing(opened(look / INDEX, SCHEMA)))
        for name, digest in looked.execute("SELECT name, digest FROM files"):
            query = "SELECT digest FROM files WHERE name = ?"
            known = [row[0] for index in indexes for row in index.execute(query, (name,))]
            if known and digest not in known:
                raise RunDirectoryError(f"the file {name} is not what the run has sent any more; put it back")


def _from_here(job: Job, run_dir: Path) -> Job:
    """Return a job whose items from standard input are read from the copy in the run directory."""
    return replace(job, items_path=source_path(job, run_dir)) if job.items_path is not None else job


def _known(job: Job, view: LedgerView, run_dir: Path, place: Path) -> Job:
    """Return a job whose items, if they were made from results, are the ones that were made in the run and wrote."""
    made = derived_path(job, run_dir)
    if job.derivation is None or job.operation.is_read or not made.is_file():
        return job
    path = place / f"{job.name}.jsonl"
    with made.open("rb") as lines, path.open("wb") as out:
        for _, line in _paired(_written(view, job), enumerate(lines)):
            out.write(msgspec.json.encode(msgspec.json.decode(line, type=_Made).item) + b"\n")
    return replace(job, derivation=None, items=None, items_path=path, defaults={})


def _only_begun(wanted: Manifest, view: LedgerView) -> Manifest:
    """Return the manifest without jobs that wrote nothing, and up to the last item that any of them wrote."""
    jobs, most = [], 0
    for job in wanted.jobs:
        last = max((row["index"] for row in _written(view, job)), default=-1)
        if last >= 0:
            jobs.append(job)
            most = max(most, last + 1)
    return replace(wanted, jobs=tuple(jobs), limit=most)


def _looking_back(job: Job) -> Job:
    """Return a job for items that were done: what they made is there now, and what they expected before is not."""
    operation = job.operation
    base: Any = type(operation)
    steps: Callable[[Any], Steps] | None = operation.steps_to_look_back if isinstance(operation, LooksBack) else None

    class Back(base, LooksTwice[Any]):  # type: ignore[misc]
        name = operation.name

        def steps(self, item: Any) -> Steps:
            item = without_expect(item)
            return operation.steps(item) if steps is None else steps(item)

    Back.resource = operation.resource
    return replace(job, operation=Back())


class _Made(msgspec.Struct):
    """A line of the items that were made from results."""

    item: msgspec.Raw


def _written(view: LedgerView, job: Job) -> Iterator[Any]:
    return map(orjson.loads, view.lines(kinds=WROTE, job=job.name))


@dataclass(frozen=True, slots=True)
class _Rest:
    """The part of a moved item that no later item of the run has changed too, which is looked at alone."""

    job: Job
    item: Item
    moved: Moved


def _compared(manifest: Manifest, view: LedgerView, seen: LedgerView, requests: int) -> tuple[Live, list[_Rest]]:
    counts, renamed = {EQUAL: 0, BLIND: 0, _ELSEWHERE: 0}, _renamed(manifest, view)
    moved: list[tuple[Job, Any, Moved]] = []
    reasons = dict[str, None]()
    for job in manifest.jobs:
        if job.operation.is_read:
            continue
        looks = map(orjson.loads, seen.lines(job=job.name))
        # if the items were made from results, only those that wrote were looked at
        pairs = (
            zip(_written(view, job), looks, strict=False)
            if job.derivation is not None
            else _paired(_written(view, job), ((look["index"], look) for look in looks))
        )
        for row, look in pairs:
            verdict, why = _verdict(look)
            if verdict in (EQUAL, BLIND):
                counts[verdict] += 1
                if why and verdict == BLIND and len(reasons) < MOST_REASONS:
                    reasons[why] = None
                continue
            turn = job.number, row["index"]
            if turn >= renamed.get(_organization(row["item"]), turn):
                found = Moved(job=job.name, index=row["index"], label=label(row["item"]), verdict=verdict, why=why)
                moved.append((job, row, found))
            else:
                counts[_ELSEWHERE] += 1
    things = [things_of(job, row) for job, row, _ in moved]
    last = _last(manifest, view, frozenset[Thing]().union(*things))
    kept, rests = list[Moved](), list[_Rest]()
    for (job, row, each), own in zip(moved, things, strict=True):
        left = {thing for thing in own if last[thing] <= (job.number, row["index"])}
        item = _narrowed(job, row, left) if left and left != own else None
        if item is not None:
            rests.append(_Rest(job, item, each))
        elif left or not own:
            kept.append(each)
    live = Live(
        equal=counts[EQUAL],
        unseen=counts[BLIND],
        rewritten=counts[_ELSEWHERE] + len(moved) - len(kept) - len(rests),
        requests=requests,
        moved=tuple(kept),
        reasons=tuple(reasons),
    )
    return live, rests


def _verdict(look: dict[str, Any]) -> tuple[str, str]:
    """Return what an item would do now, and why; or BLIND, and why it can't be looked at."""
    verdict, digest, why, _ = verdict_of(look)
    if verdict == CHANGE and digest == NO_DIGEST:
        return BLIND, ""  # the item writes, whatever the platform holds
    error, result = look["error"], look["result"]
    is_seen = error["code"] not in NOT_SEEN if error is not None else result["is_seen"]
    return (verdict if is_seen else BLIND), why


def _narrowed(job: Job, row: Mapping[str, Any], left: Collection[Thing]) -> Item | None:
    """Return an item that does only what an item, by its line of results, did to the things `left`; None: none can."""
    operation = job.operation
    if not isinstance(operation, ChangesThings):
        return None
    found: Item | None = operation.narrowed(
        without_expect(msgspec.convert(row["item"], operation.Item)), {thing for _, thing in left}
    )
    return found


def _only_rests(wanted: Manifest, rests: Sequence[_Rest]) -> Manifest:
    """Return the manifest for a look at the rests alone."""
    jobs = []
    for job in wanted.jobs:
        items = tuple(msgspec.to_builtins(rest.item) for rest in rests if rest.job.number == job.number)
        if items:
            jobs.append(replace(job, items=items, items_path=None, derivation=None, defaults={}))
    return replace(wanted, jobs=tuple(jobs), limit=None)


def _with_rests(live: Live, rests: Sequence[_Rest], seen: LedgerView, requests: int) -> Live:
    """Return the result with that of the rests added. The rests were looked at in their order."""
    moved, unseen = list(live.moved), 0
    looks = [look for job in dict.fromkeys(rest.job.name for rest in rests) for look in seen.lines(job=job)]
    for rest, look in zip(rests, map(orjson.loads, looks), strict=True):
        verdict, why = _verdict(look)
        unseen += verdict == BLIND
        if verdict not in (EQUAL, BLIND):
            moved.append(msgspec.structs.replace(rest.moved, verdict=verdict, why=why))
    return msgspec.structs.replace(
        live,
        unseen=live.unseen + unseen,
        rewritten=live.rewritten + len(rests) - unseen - (len(moved) - len(live.moved)),
        requests=live.requests + requests,
        moved=tuple(moved),
    )


def _paired(rows: Iterator[Any], looks: Iterator[tuple[int, T]]) -> Iterator[tuple[Any, T]]:
    """Yield each row with what is there for the same index; both come in the order of the items."""
    for row in rows:
        for index, look in looks:
            if index == row["index"]:
                yield row, look
                break


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
    """Return the organization that an item is about, by the name that it has after the item, in lower case."""
    return str(item.get("owner") or item.get("login") or item.get("org") or "").casefold()


def _renamed(manifest: Manifest, view: LedgerView) -> dict[str, Turn]:
    """Return when the run has renamed each organization, by the name that it had before, in lower case."""
    found: dict[str, Turn] = {}
    for job in manifest.jobs:
        if {"org", "login"} <= set(job.operation.Item.__struct_fields__):
            for row in _written(view, job):
                found[str(row["item"]["org"]).casefold()] = job.number, row["index"]
    return found
