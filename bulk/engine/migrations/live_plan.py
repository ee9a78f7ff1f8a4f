"""The live plan: a run of its own, which sends nothing but reads, looks at every item that writes.

The ordinary engine does it, so that limits, retries and stored answers count; only the work on an item ends before the
first write (`bulk/execute/preview.py`). Items that are made from results can't be looked at: they count as pending.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import orjson

from bulk.bundle.checked import refuse_standard_input
from bulk.engine.agreement.plan_file import JobSeen, PlanFile, packed, sealed
from bulk.engine.execution import check_items, execute
from bulk.engine.identity import files_digest, identity_of
from bulk.engine.migrations.changed_things import Followers
from bulk.engine.origin import Origin
from bulk.engine.status.unfinished import refuse_unfinished
from bulk.engine.surroundings import Surroundings
from bulk.execute.preview import (
    CHANGE,
    CONFLICT,
    CREATE,
    EQUAL,
    FAILED,
    PENDING,
    RECORD_BYTES,
    VERDICTS,
    verdict_of_error,
)
from bulk.ledger.view import LedgerView
from bulk.manifest.manifest import Job, Manifest
from bulk.manifest.reading import Overrides, read_manifest
from bulk.model import OutcomeKind
from bulk.report.fold import Report
from bulk.report.tally import label
from bulk.status import Display
from bulk.storage.disk_threads import beside
from bulk.storage.scratch import scratch_folder

NO_DIGEST = bytes(16).hex()
"""The digest of an item of which nothing was seen."""
LOOK = "look"
"""Folder of the run that looks at the items."""

BEHIND = "an earlier item of the manifest changes it first: it needs a plan of its own, when that item is done"


@dataclass(frozen=True, slots=True)
class Look:
    """The result of a look at the items of a manifest.

    Attributes:
        plan: the plan to be written to a file.
        requests: requests that were sent (count). free: those of them that were answered with 304 (count).
        shown: the first items that are not equal, in a few words.
    """

    plan: PlanFile
    requests: int
    free: int
    shown: tuple[str, ...]


async def look_at(
    path: Path,
    *,
    overrides: Overrides,
    environ: Mapping[str, str],
    display: Display,
    most_shown: int,
    surroundings: Surroundings,
) -> Look:
    """Look at every item of a manifest.

    Args:
        most_shown: at most this many items are shown (count).

    Raises:
        BulkError: the manifest can't be used, or not all of its items can be looked at now.
    """
    around = replace(surroundings, is_preview=True)
    manifest = read_manifest(path, overrides, environ)
    refuse_standard_input(manifest, "looked at beforehand")
    with scratch_folder("look") as place:
        checked = await check_items(manifest, place, display, around.clock, None)
        found = await look_in(manifest, place, environ, display, around)
        view = None if found is None else found[0]
        seen, shown = await beside(around.disk, lambda: _folded(manifest, view, most_shown))
        identity, files = identity_of(checked), await beside(around.disk, lambda: files_digest(place))
    plan = PlanFile(
        origin=Origin.of(manifest, overrides, around.cache).without_secrets(),
        name=identity.name,
        base_url=identity.base_url,
        vendor=identity.vendor,
        manifest_digest=identity.manifest_digest,
        items_digest=identity.items_digest,
        files_digest=files,
        made_at=around.clock.now(),
        jobs=tuple(
            seen.get(job.name) or JobSeen(name=job.name, operation=job.operation.name, items=0, records=None, counts={})
            for job in manifest.jobs
        ),
    )
    requests, free = (0, 0) if found is None else (found[1].requests, found[1].not_modified)
    return Look(sealed(plan), requests, free, shown)


async def look_in(
    manifest: Manifest, place: Path, environ: Mapping[str, str], display: Display, around: Surroundings
) -> tuple[LedgerView, Report] | None:
    """Look at the items that write and are known; return the ledger and report of that run. None: no such items.

    Raises:
        BulkError: not all of these items can be looked at now.
    """
    wanted = _to_look_at(manifest)
    if not wanted.jobs:
        return None
    report = await execute(wanted, Origin.of(wanted), place / LOOK, display, environ, around)
    refuse_unfinished(report, "not every item could be looked at")
    return LedgerView(place / LOOK), report


def _to_look_at(manifest: Manifest) -> Manifest:
    """Return the manifest with only the jobs that write and whose items are known, in their order and without needs.

    Overwrites are allowed, because a job that needs another one may write over what that one leaves.
    """
    jobs = [job for job in manifest.jobs if not job.operation.is_read and job.derivation is None]
    bare = [
        replace(job, number=number, needs=(), by_key=(), save=None, allow_overwrites=True)
        for number, job in enumerate(jobs)
    ]
    limits = replace(manifest.limits, failures=None, confirm="auto", waves=(), gate="auto", errors={})
    return replace(manifest, jobs=tuple(bare), limits=limits)


def _folded(manifest: Manifest, view: LedgerView | None, most: int) -> tuple[dict[str, JobSeen], tuple[str, ...]]:
    wanted = [job for job in manifest.jobs if not job.operation.is_read and job.derivation is None and view is not None]
    counts = {job.number: Counter[str]() for job in wanted}
    records = {job.number: bytearray() for job in wanted}
    shown: list[tuple[Job, int, str, dict[str, object], str]] = []
    with Followers() as followers:
        for job in wanted:
            assert view is not None, "or nothing is wanted"
            for row in map(orjson.loads, view.lines(job=job.name)):
                verdict, digest, why, item = verdict_of(row)
                counts[job.number][verdict] += 1
                records[job.number] += packed(verdict, digest)
                followers.add(job, row, writes=verdict in (CREATE, CHANGE))
                if verdict != EQUAL and len(shown) < most:
                    shown.append((job, row["index"], verdict, item, why))
        behind = followers.found()
    for number, index in behind:
        # the item will find what the earlier one leaves, and a change by another user could not be told from that
        place = index * RECORD_BYTES
        counts[number][VERDICTS[records[number][place]]] -= 1
        counts[number][CONFLICT] += 1
        records[number][place : place + RECORD_BYTES] = packed(CONFLICT, NO_DIGEST)
    told = (
        _shown(job, CONFLICT, item, BEHIND) if (job.number, index) in behind else _shown(job, verdict, item, why)
        for job, index, verdict, item, why in shown
    )
    return {job.name: _seen(job, counts[job.number], bytes(records[job.number])) for job in wanted}, tuple(told)


def _seen(job: Job, counts: Mapping[str, int], records: bytes) -> JobSeen:
    return JobSeen(
        name=job.name,
        operation=job.operation.name,
        items=sum(counts.values()),
        records=msgspec.json.decode(msgspec.json.encode(records)),
        counts={verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]},
    )


def verdict_of(row: dict[str, object]) -> tuple[str, str, str, dict[str, object]]:
    """Return the verdict, the digest, the reason and the item of a line of results."""
    result, item, error = row["result"], row["item"], row["error"]
    assert isinstance(item, dict), "every line has an item"
    if row["outcome"] == OutcomeKind.SUCCEEDED and isinstance(result, dict):
        return str(result["verdict"]), str(result["before"]), str(result["why"]), item
    why, code = (str(error["message"]), str(error["code"])) if isinstance(error, dict) else ("", None)
    is_superseded = row["outcome"] == OutcomeKind.SKIPPED
    return EQUAL if is_superseded else verdict_of_error(code), NO_DIGEST, why, item


def _shown(job: Job, verdict: str, item: dict[str, object], why: str) -> str:
    mark = {"create": "+", "change": "~", CONFLICT: "!", PENDING: "?", FAILED: "!"}.get(verdict, "·")
    why = f"the look failed: {why}" if verdict == FAILED else why
    return f"{mark} {job.name} {label(item)}" + (f": {why}" if why else "")
