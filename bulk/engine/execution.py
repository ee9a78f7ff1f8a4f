"""From a manifest that was read to the report, in three parts that can each have a process of its own.

    prepare   check every item of a manifest in a directory
    perform   send, with a ledger and what the ledger says of earlier processes: `perform.py`
    report    fold the outcomes in the ledger into a report

`execute` does all three in one process that holds a run directory. `commands.py` chooses the manifest, and `run.py`
sends. The origin and the manifest, which a resume needs, are written before the check, so that a process that is
killed at any moment leaves a directory from which `bulk resume` goes on.
"""

import asyncio
import logging
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import anyio
import anyio.from_thread
import anyio.to_thread

from bulk.bundle.checked import Checked, load_checked, refuse_edited
from bulk.check.checking import check
from bulk.clock import Clock
from bulk.control.server import ControlServer
from bulk.engine.again import Again
from bulk.engine.agreement import planned_run
from bulk.engine.agreement.approval import require_approval
from bulk.engine.agreement.gates import WaveBudgets, decide, refuse_unknown_waves
from bulk.engine.identity import identity_before_check, identity_of
from bulk.engine.origin import MANIFEST, Origin
from bulk.engine.perform import perform_waves
from bulk.engine.run import Run
from bulk.engine.steering import Steering
from bulk.engine.surroundings import Surroundings
from bulk.errors import BulkError, RunDirectoryError
from bulk.execute.resume_state import ResumeState, begin
from bulk.exit_codes import STOPPED_EARLY, ExitCode
from bulk.ledger.companion_files import FreshParts, note_making, refuse_changed_parts
from bulk.ledger.database import LEDGER
from bulk.ledger.directory import ORIGIN, Claim, unusable
from bulk.ledger.ledger import Ledger
from bulk.ledger.opening import refuse_other_run
from bulk.ledger.records import RunIdentity
from bulk.ledger.view import LedgerView
from bulk.manifest.manifest import Manifest
from bulk.platform.auth.credentials import Credential
from bulk.platform.auth.manifest_credentials import AnyCredential, credentials_of
from bulk.redaction import redact
from bulk.report.exploration import explore
from bulk.report.fold import Report, fold, tally_of_a_running
from bulk.report.report_files import write_reports
from bulk.report.tally import Tally
from bulk.report.wave_gates import read_gates
from bulk.status import Display, JobStatus, RunStatus
from bulk.storage.disk_threads import beside
from bulk.storage.private_files import write_whole

log = logging.getLogger(__name__)

LEAVE_S = 5.0
"""How long a cancelled check may take to finish its last write (seconds); it may be waiting for standard input."""


async def execute(
    manifest: Manifest,
    origin: Origin,
    run_dir: Path,
    display: Display,
    environ: Mapping[str, str],
    around: Surroundings,
    *,
    stdin: BinaryIO | None = None,
    again: Again | None = None,
) -> Report:
    """Check a manifest, and run it in `run_dir`. `run_manifest` and `resume_run` explain the arguments.

    A check that finds a flaw removes the run directory again if it is new.
    """
    credentials = credentials_of(manifest, environ, around.clock)
    around.environ = environ
    with Claim.take(run_dir) as claim:
        if claim.has_ledger:  # for a new run, the check first says which items are wrong
            await _read_tokens(credentials, manifest)
        priorities = {job.name: job.priority for job in manifest.jobs}
        steering = Steering(manifest.name, manifest.limits, priorities, around.clock)
        server = ControlServer(run_dir, steering, around.clock)
        held = _Held(manifest, origin, claim, display, around, steering, server)

        async def body() -> Report:
            return await held.run(credentials, stdin, again)

        return await _served(server, body) if around.is_steered else await body()


async def _read_tokens(credentials: Mapping[str, AnyCredential], manifest: Manifest) -> None:
    """Read the tokens that the jobs use, except the tokens of Apps, which are made when they are needed.

    Raises:
        CredentialMissing: a source has no token.
    """
    for name in {job.credential: None for job in manifest.jobs}:
        credential = credentials[name]
        if isinstance(credential, Credential):
            await credential.opened()


async def _served(server: ControlServer, body: Callable[[], Awaitable[Report]]) -> Report:
    """Serve the control socket of the run until `body` returns, and return its report."""
    failure: Exception | None = None
    report: Report | None = None
    with server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve)
            try:
                report = await body()
            except Exception as error:  # noqa: BLE001 - raised below, outside of the task group of the server
                failure = error
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    assert report is not None, "it returns or raises"
    return report


@dataclass(frozen=True, slots=True)
class Prepared:
    """A manifest all of whose items can be sent, and the identity of its run."""

    checked: Checked
    identity: RunIdentity

    @property
    def writes(self) -> frozenset[str]:
        """Names of the jobs that write."""
        return frozenset(job.name for job in self.checked.manifest.jobs if not job.operation.is_read)


async def prepare(
    manifest: Manifest,
    workspace: Path,
    display: Display,
    clock: Clock,
    stdin: BinaryIO | None = None,
    *,
    parts: FreshParts | None = None,
    is_to_check: bool = False,
) -> Prepared:
    """Check a manifest, as `check_items` does, and return it with the identity of its run."""
    checked = await check_items(manifest, workspace, display, clock, stdin, parts=parts, is_to_check=is_to_check)
    return Prepared(checked, identity_of(checked))


def report(view: LedgerView, run_dir: Path, notes: Sequence[str] = (), *, is_of_run: bool = False) -> Report:
    """Fold the outcomes in a ledger, write the reports into the run directory, and return the report; blocks.

    Args:
        notes: notes of the check, which the reports contain.
        is_of_run: a run has just ended: where work is left, files that can't be written are a warning.

    Raises:
        RunDirectoryError: a file can't be written.
    """
    found = fold(view, notes=notes)
    try:
        write_reports(found, run_dir, explore(view, found))
    except RunDirectoryError as error:
        if not (is_of_run and found.exit_code in STOPPED_EARLY):
            raise
        log.warning("%s", error)  # that work is left, and how it goes on, is more than the files
    return found


@dataclass(frozen=True, slots=True)
class _Held:
    """A run directory that this process holds, and the manifest that is run in it."""

    manifest: Manifest
    origin: Origin
    claim: Claim
    display: Display
    around: Surroundings
    steering: Steering
    server: ControlServer

    async def run(
        self, credentials: Mapping[str, AnyCredential], stdin: BinaryIO | None, again: Again | None
    ) -> Report:
        claim, around = self.claim, self.around
        run_dir = claim.path
        is_to_check = await beside(around.disk, lambda: refuse_changed_parts(run_dir))
        with FreshParts(run_dir) as parts:
            prepared = await self._prepared(parts, stdin, credentials, is_to_check=is_to_check)
            require_approval(around.approve, prepared.checked, claim)
            around.planned = planned_run.planned_in(run_dir)
            read_gates(run_dir)  # a damaged file is refused before the ledger is written
            identity, writes, now = prepared.identity, prepared.writes, around.clock.now()
            ledger = await beside(
                around.disk, lambda: Ledger.open(run_dir, identity, now=now, claim=claim, writes=writes)
            )
            with ledger:
                try:
                    await beside(around.disk, lambda: _bind(ledger, self.origin, self.manifest, parts))
                    return await self._in(ledger, prepared, credentials, again or Again())
                finally:
                    self.server.close()  # before the next process can open the ledger and make its own socket

    async def _in(
        self, ledger: Ledger, prepared: Prepared, credentials: Mapping[str, AnyCredential], again: Again
    ) -> Report:
        checked = prepared.checked
        settle_s, clock, around = checked.manifest.limits.settle_s, self.around.clock, self.around
        if again.is_retry:
            again.reopen(ledger, [job.name for job in self.manifest.jobs], self.manifest.limit)

        async def found() -> tuple[ResumeState, Tally | None]:
            return await beside(
                around.disk,
                lambda: (
                    begin(checked, ledger, settle_s, clock.monotonic(), overwrites=again.overwrites),
                    tally_of_a_running(ledger.view(), clock.now()),
                ),
            )

        def attach(run: Run) -> None:
            is_first = self.steering.is_checking
            self.steering.attach(run)
            if is_first and (again.is_retry or again.by != "cli"):
                self.steering.note_start(again)

        await beside(around.disk, lambda: decide(ledger.run_dir, accepted=around.accepted_waves))
        budgets = WaveBudgets(self.manifest.jobs, self.manifest.limits, read_gates(ledger.run_dir), ledger.run_dir)
        await perform_waves(checked, ledger, found, budgets, credentials, self.display, around, attach)
        return await beside(around.disk, lambda: report(ledger.view(), ledger.run_dir, checked.notes, is_of_run=True))

    async def _prepared(
        self,
        parts: FreshParts,
        stdin: BinaryIO | None,
        credentials: Mapping[str, AnyCredential],
        *,
        is_to_check: bool,
    ) -> Prepared:
        """Return the checked manifest. If the check finds a flaw or a token is missing, remove a new run directory."""
        manifest, origin, claim, around = self.manifest, self.origin, self.claim, self.around
        run_dir = claim.path
        display = self.steering.follow(self.display)
        try:
            if not claim.has_ledger:
                await beside(around.disk, lambda: _name(run_dir, origin, manifest))
            prepared = await prepare(
                manifest, run_dir, display, around.clock, stdin, parts=parts, is_to_check=is_to_check
            )
            refuse_unknown_waves(around.accepted_waves, prepared.checked)
            await _read_tokens(credentials, manifest)
            return prepared
        except BulkError as flaw:
            if flaw.exit_code == ExitCode.UNUSABLE:
                claim.undo()
            raise


def _name(run_dir: Path, origin: Origin, manifest: Manifest) -> None:
    """Write the origin and the manifest into the run directory, unless they are there already."""
    wanted = {ORIGIN: origin.text(), MANIFEST: redact(manifest.text).encode()}
    try:
        for name, text in wanted.items():
            path = run_dir / name
            if path.is_symlink() or not path.is_file() or path.read_bytes() != text:
                note_making(run_dir, is_naming=True)
                write_whole(path, text)
    except OSError as error:
        raise unusable(run_dir, error) from error


def _bind(ledger: Ledger, origin: Origin, manifest: Manifest, parts: FreshParts) -> None:
    """Put the parts of the check in their places, write the origin and the manifest, and bind all of them to the
    ledger."""
    parts.settle()
    _name(ledger.run_dir, origin, manifest)
    ledger.bind_parts()


async def check_items(
    manifest: Manifest,
    workspace: Path,
    display: Display,
    clock: Clock,
    stdin: BinaryIO | None,
    *,
    parts: FreshParts | None = None,
    is_to_check: bool = False,
) -> Checked:
    """Return the check of an earlier process if nothing has changed since; otherwise read all items, in a thread.

    After a cancellation nothing writes in the workspace any more, unless the thread waits for standard input.

    Args:
        parts: where the parts of the check are made; None: in the workspace.
    """
    parts = parts or FreshParts(workspace)
    started_at, is_left, at_rest = clock.now(), threading.Event(), anyio.Event()
    loop = asyncio.get_running_loop()

    def tell(items: int) -> None:
        if is_left.is_set():
            raise _Left
        job = JobStatus(name="items", operation="check", items=None, outcomes={"checked": items})
        status = RunStatus(name=manifest.name, state="checking", at=clock.now(), started_at=started_at, jobs=(job,))
        loop.call_soon_threadsafe(display.update, status)  # a display belongs to the thread of the event loop

    def work() -> Checked:
        try:
            found = None if is_to_check else load_checked(manifest, workspace, parts.folder)
            if found is None:
                if (workspace / LEDGER).exists():
                    refuse_other_run(workspace / LEDGER, identity_before_check(manifest))
                items = stdin or (sys.stdin.buffer if sys.stdin else None)
                found = check(manifest, parts.folder, stdin=items, progress=tell)
                parts.is_whole = True
                if not is_to_check:  # otherwise `check.json` is not to be trusted
                    refuse_edited(found, workspace)
            return found
        finally:
            with suppress(RuntimeError):  # the event loop may have ended: nothing waits for the event then
                anyio.from_thread.run_sync(at_rest.set)

    try:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    except anyio.get_cancelled_exc_class():
        is_left.set()
        with anyio.move_on_after(LEAVE_S, shield=True):
            await at_rest.wait()
        raise


class _Left(Exception):
    """Ends a check whose result is not wanted any more."""
