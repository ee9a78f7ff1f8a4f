"""A manifest becomes a run in a store; the submitter may wait for its end, and export it into a run directory."""

import contextlib
import math
import shlex
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from bulk.bundle.checked import Checked
from bulk.check.request_savings import note_on_copies
from bulk.clock import Clock
from bulk.cluster.assignment import ends_of_waves, jobs_to_cut
from bulk.cluster.engine_tag import engine_tag
from bulk.cluster.packing import names_secrets, packed, refuse_what_stays_here
from bulk.cluster.stored_limits import as_submitted
from bulk.cluster.stored_state import status_of
from bulk.cluster.stored_waves import open_waves
from bulk.engine.agreement.approval import Approve
from bulk.engine.agreement.gates import refuse_higher
from bulk.engine.execution import Prepared, prepare, report
from bulk.engine.origin import Origin
from bulk.errors import BulkError, RunDirectoryError, RunStopped, UsageError
from bulk.ledger.directory import names_at
from bulk.ledger.view import LedgerView
from bulk.manifest.manifest import Manifest
from bulk.manifest.platform_section import base_url
from bulk.manifest.reading import Overrides, read_manifest
from bulk.report.record import Report
from bulk.report.timeline import merged
from bulk.report.wave_gates import closed_gate
from bulk.status import Display, RunStatus
from bulk.storage.scratch import scratch_folder
from bulk.store import bundles, runs, submissions
from bulk.store.connections import StoreConnection
from bulk.store.export import end_wait, export, is_export_of
from bulk.store.leases import GRACE_S
from bulk.store.schema import refuse_other
from bulk.store.shards import SHARD_ITEMS, cut

LOOK_S = 0.5
"""How often the state of a run is read while a command waits for its end (seconds)."""

NOBODY_S = 10.0
"""How long no worker has been at work on a run before the waiting command says so (seconds)."""

LAST_S = 5.0
"""How long workers may take to say their last of a run that is over, and how long one that is silent is still taken for
alive (seconds)."""

AWAY_S = 60.0
"""How long the store may be out of reach before a command stops waiting for a run (seconds)."""

SHARED_BY, LEAST_ITEMS = 32, 50
"""A run has about `SHARED_BY` shards at least, unless that gives a shard fewer than `LEAST_ITEMS` items (counts)."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """A run in a store; `is_new`: whether this submission has made it. notes: the notes of its check."""

    name: str
    is_new: bool
    notes: tuple[str, ...]


async def submit_manifest(
    path: Path,
    store: StoreConnection,
    *,
    overrides: Overrides,
    environ: Mapping[str, str],
    display: Display,
    approve: Approve | None = None,
    accepted: AbstractSet[int] = frozenset(),
    who: str = "",
    alone_as: str | None = None,
    is_awaited: bool = False,
    read: Manifest | None = None,
) -> Submitted:
    """Check a manifest on this machine, and submit it; the same manifest with the same items is the same run.

    Args:
        accepted: waves that go on though they are over a budget (numbers). who: the person who accepts them.
        alone_as: the name of the run, where the store has this run alone; None: a new name is made.
        is_awaited: see `submissions.Submission`.
        read: the manifest, where it has been read already: reading a large one takes seconds.

    Raises:
        BulkError: the manifest can't be used, or not on several machines, or the store can't be reached; nothing was
            submitted.
    """
    clock = Clock()
    await anyio.to_thread.run_sync(refuse_other, store)
    manifest = read if read is not None else read_manifest(path, overrides, environ)
    refuse_what_stays_here(manifest, "--store" if alone_as is None else "--workers")
    if alone_as is None:
        _refuse_unprotected(manifest.platform.base_url)
    with scratch_folder("submit") as workspace:
        prepared = await prepare(manifest, workspace, display, clock)
        refuse_higher(accepted, max(map(len, ends_of_waves(prepared.checked).values()), default=1))
        if approve is not None:
            approve(prepared.checked)
        origin = Origin.of(manifest, overrides)
        name, is_new = await anyio.to_thread.run_sync(
            _submit, store, prepared, origin, workspace, alone_as, clock, is_awaited
        )
        if accepted:
            await anyio.to_thread.run_sync(lambda: open_waves(store, runs.find(store, name), who, accepted=accepted))
    return Submitted(name, is_new, tuple(_notes(prepared.checked)))


def _refuse_unprotected(address: str) -> None:
    """Refuse a platform that no worker sends to, because the command line of a worker has no `allow_insecure_http`."""
    try:
        base_url(address, way_out=", or run it without --store")
    except ValueError as flaw:
        raise UsageError(f"--store: {address}: {flaw}") from None


def _notes(checked: Checked) -> Iterator[str]:
    """Yield the notes of the check, without those that hold within one process alone."""
    pairs = zip(checked.manifest.jobs, checked.jobs, strict=True)
    of_one_process = {note for job, found in pairs for note in note_on_copies(job, found)}
    yield from (note for note in checked.notes if note not in of_one_process)


def _submit(
    store: StoreConnection,
    prepared: Prepared,
    origin: Origin,
    workspace: Path,
    alone_as: str | None,
    clock: Clock,
    is_awaited: bool,
) -> tuple[str, bool]:
    checked = prepared.checked
    limits = checked.manifest.limits
    has_secrets = names_secrets(checked, workspace, "--store" if alone_as is None else "--workers")
    with packed(checked, origin, workspace, is_alone=alone_as is not None) as (folder, names):
        bundle = bundles.upload(store, folder, names)
    found = cut(jobs_to_cut(checked, workspace), shard_items_of(sum(job.items for job in checked.jobs)))
    submission = submissions.Submission(
        name=alone_as or "",
        identity=prepared.identity,
        bundle=bundle,
        engine=engine_tag(),
        limits=as_submitted(limits),
        grace_s=limits.request_timeout_s + GRACE_S,
        groups=found.groups,
        shards=found.shards,
        is_gated=limits.gate == "manual",
        names_secrets=has_secrets,
        is_awaited=is_awaited,
    )
    if alone_as is not None:
        return submissions.submit(store, submission)
    for name in names_at(checked.manifest.name, clock.now()):
        if not submissions.is_taken(store, name):
            with contextlib.suppress(submissions.NameTaken):  # another manifest has got it at this moment
                return submissions.submit(store, msgspec.structs.replace(submission, name=name))
    raise AssertionError("names never end")


def shard_items_of(items: int) -> int:
    """Return about how many items each shard of a run with `items` items has (counts): a small run is shared, too."""
    return max(LEAST_ITEMS, min(SHARD_ITEMS, items // SHARED_BY))


async def followed(
    name: str, store: StoreConnection, display: Display, *, nobody_s: float = NOBODY_S
) -> runs.StoredRun:
    """Show where a run stands until it has ended or is paused; return the run as it is then.

    Args:
        nobody_s: how long no worker has been at work on the run before a note says so, once (seconds).

    Raises:
        RunStopped, RunDirectoryError: the store has been out of reach for `AWAY_S`, or could not be used, as while a
            copy of it is brought back; that does not end the run.
    """
    clock = Clock()
    heard_at = worked_at = clock.monotonic()
    ended_at: float | None = None
    has_heard = False
    while True:
        try:
            run, status, is_told = await anyio.to_thread.run_sync(_looked, store, name, clock)
        except (RunStopped, RunDirectoryError) as away:
            is_worth_a_wait = has_heard or isinstance(away, RunStopped)
            if not is_worth_a_wait or clock.monotonic() - heard_at > AWAY_S:
                raise
            await clock.sleep(LOOK_S)
            continue
        heard_at, has_heard = clock.monotonic(), True
        display.update(status)
        if not run.is_live:
            ended_at = heard_at if ended_at is None else ended_at
            if is_told or heard_at - ended_at >= LAST_S:
                return run
        worked_at = heard_at if run.has_its_time else worked_at
        if heard_at - worked_at >= nobody_s:
            display.note(f"no worker is at work on it: {_worker_for(run, str(store.address))}")
            worked_at = math.inf
        await clock.sleep(LOOK_S)


def _looked(store: StoreConnection, name: str, clock: Clock) -> tuple[runs.StoredRun, RunStatus, bool]:
    """Return a run, its status, and whether all its workers have said their last of it."""
    run = runs.find(store, name)
    parts = runs.participants(store, run.id)
    is_told = all(each.exit_code is not None or run.at - each.seen_at > LAST_S for each in parts)
    return run, msgspec.structs.replace(status_of(run, parts, clock.now()), name=run.name), is_told


def _worker_for(run: runs.StoredRun, store: str) -> str:
    secrets = " --secrets DIR" if run.names_secrets else ""
    return f"bulk worker --store {shlex.quote(store)} --base-url {shlex.quote(run.identity.base_url)}{secrets}"


def next_command(run: runs.StoredRun, store: str) -> str:
    """Return the command that a person gives next for a run in the store of that address, ready for a shell.

    The command is empty where there is nothing to do.
    """
    name, address = shlex.quote(run.name), shlex.quote(store)
    if run.state == runs.COMPLETE:
        return f"bulk export {name} --store {address}"
    if run.state == runs.RUNNING:
        return "" if run.has_its_time else _worker_for(run, store)
    gate = closed_gate(run.why) if run.state in ("stopping", runs.STOPPED) else None
    if gate is not None and not gate.is_over:
        return f"bulk approve {name} --wave {gate.wave} --store {address}"
    accepting = "" if gate is None else f" --accept-wave {gate.wave}"
    return f"bulk resume {name} --store {address}{accepting}"


def taken_home(store: StoreConnection, run: runs.StoredRun, run_dir: Path, notes: tuple[str, ...] = ()) -> Report:
    """Export a run into an ordinary run directory, with its reports; blocks.

    Where a command that did so was killed, or could not write its reports, this one goes on from there.
    """
    is_complete = is_export_of(run, run_dir) or export(store, run, run_dir, merged).state == runs.COMPLETE
    made = report(LedgerView(run_dir), run_dir, notes)
    if is_complete:
        with contextlib.suppress(BulkError):  # the same command finds the directory, and begins nothing
            end_wait(store, run)
    return made


def submitted_json(submitted: Submitted) -> bytes:
    """Return what `bulk submit --json` prints."""
    return msgspec.json.encode({"run": submitted.name, "is_new": submitted.is_new})
