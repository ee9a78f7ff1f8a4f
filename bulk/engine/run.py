"""One run of a checked manifest: puts the stages together, starts and stops them, and says how the run ended.

    outer group:   recorder (the last outcome always finds its reader), status, signals, time limit
      services:    those of `engine_room.py`
        workers:   fixed ones for each bucket, and one that records the items of skipped jobs

A stop is a value: no new items are offered, requests in flight end, then everything is recorded. Cancelling is the
last resort, for the second signal and for requests that do not end in time. Source: design.md §5; interface.md §4.
"""

import logging
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

import anyio
from anyio.abc import TaskGroup

from bulk import exit_codes
from bulk.bundle.checked import Checked
from bulk.bundle.secret_fields import SecretPlaces
from bulk.engine.agreement.gates import wait_for_gate
from bulk.engine.credentials.app_routes import AppRoutes, open_plain
from bulk.engine.engine_room import EngineRoom
from bulk.engine.hours import follow_hours
from bulk.engine.run_scheduler import scheduler_of
from bulk.engine.status.snapshot import Snapshot
from bulk.engine.status.warnings import FailureWarnings
from bulk.engine.stops import ApiDoubt, TimeLimit, exceeded
from bulk.engine.surroundings import Ended, Surroundings
from bulk.engine.tuning import quiet_collector
from bulk.errors import BulkError, CredentialRefused, Interrupted, RunStopped
from bulk.execute.combined_run import CombinedRun
from bulk.execute.hand_over import HandOver
from bulk.execute.item_runner import FileContents, ItemRunner
from bulk.execute.job_streams import JobStreams
from bulk.execute.recorder import CommitHooks, Recorder
from bulk.execute.resume_state import Joined, ResumeState
from bulk.execute.shared import Shared
from bulk.execute.unsent_items import UnsentItems
from bulk.execute.worker_crew import start_workers
from bulk.execute.workers import Workers
from bulk.ledger.protocol import RunLedger
from bulk.ledger.records import Action, Minute, Record, StoredTally
from bulk.manifest.manifest import Job, Limits
from bulk.model import ErrorCode, Outcome
from bulk.platform.auth.manifest_credentials import AnyCredential
from bulk.platform.cache.sent_writes import SentWrites
from bulk.report.tally import Tally
from bulk.report.timeline import Timeline
from bulk.schedule.remaining import work_left
from bulk.schedule.routed_scheduler import RoutedScheduler
from bulk.status import Display, RunStatus

log = logging.getLogger("bulk.engine.run")

MOST_REFUSALS = 10
"""At most this many refused credentials are named in the reason why a run ended (count)."""
STATUS_S = 0.25
STORE_STATUS_S = 1.0
"""Time between two updates of the display, and between two statuses in the ledger (seconds)."""
CLOCKS_APART_S = 7 * 86_400.0
"""Where the platform's clock and this machine's differ by this much (seconds), one of them is too wrong to be used."""
DRAIN_EXTRA_S = 5.0
"""After a stop, requests in flight may take their own time-out and this much longer (seconds)."""


class Run:
    """One execution, or one resume, of a manifest. `execute` is called once.

    Attributes:
        limits: the limits that are in force now.
        last_status: the status that was last told. last_minute: the figures of the run's last minute, for plots.
        actions: actions of people that are not in the ledger yet.
        begun: an event that is set as soon as items may `join`.
    """

    def __init__(
        self,
        checked: Checked,
        ledger: RunLedger,
        resume_state: ResumeState,
        credentials: Mapping[str, AnyCredential],
        display: Display,
        surroundings: Surroundings,
        tally: Tally | None = None,
    ) -> None:
        manifest, limits = checked.manifest, checked.manifest.limits
        self._manifest, self.limits, workspace = manifest, limits, ledger.run_dir
        self._checked, self._ledger, self._display, self._around = checked, ledger, display, surroundings
        self._credentials, self._listener, self._tally = credentials, surroundings.listener, tally
        self._clock = surroundings.clock
        self._stopped_by: BulkError | None = None
        self._refused: CredentialRefused | None = None
        self._refusals: list[str] = []
        self._is_complete = False
        self._resume_state, self._progress = resume_state, resume_state.progress
        self._streams = JobStreams(checked, workspace)
        self.scheduler = scheduler_of(checked, resume_state, self._streams, credentials, surroundings.board)
        room = self._room = EngineRoom(
            manifest.platform, limits, surroundings, workspace, partial(work_left, self.scheduler), self.stop
        )
        self.governor = room.governor
        self._worker_scope = anyio.CancelScope()
        self._time_limit = TimeLimit(self._clock, limits.max_duration_s, surroundings.began_at)
        self._snapshot: Snapshot | None = None
        self._recorder: Recorder | None = None
        self.actions: list[Action] = []
        told: set[tuple[ErrorCode, str]] = set()
        self._failure_warnings = [FailureWarnings(told=told) for _ in manifest.jobs]
        self._api_doubt = ApiDoubt(room, self.scheduler, self._failure_warnings, self._progress, self.stop)
        now = self._clock.now()
        self._timeline = Timeline(ledger.began_at, *ledger.view().timeline(newest=True))
        self.last_minute: Minute | None = None
        self.begun = anyio.Event()
        self._item_runner: ItemRunner | None = None
        begun = RunStatus(name=manifest.name, state="stopped", at=now, started_at=now)
        self.last_status = begun.after(surroundings.before)

    def stop(self, reason: BulkError) -> None:
        """Offer no new items, and let requests in flight end. The first reason counts."""
        if self._stopped_by is not None:
            return
        self._stopped_by = reason
        log.info("stopping: %s", reason)
        self.scheduler.stop()
        self.governor.drain()
        self._room.draining.set()

    def stop_now(self, reason: BulkError) -> None:
        """Stop as `stop` does, and give up the requests in flight; the next run settles them."""
        self.stop(reason)
        self._worker_scope.cancel()

    def join(self, joined: Joined) -> None:
        """Work on these items too. `begun` must be set."""
        assert self._item_runner is not None, "it has begun"
        for job, indexes in joined.items.items():
            self._progress[job].take_on(indexes)
            if isinstance(self.scheduler, RoutedScheduler):
                self.scheduler.take_on(job, indexes)
        self._item_runner.doubt(joined.open_intents)
        self.scheduler.join(joined.parts)

    def expect_no_more(self) -> None:
        """Expect no more items to join: the run ends when the items that it has are done."""
        self.scheduler.board.expects_more = False
        self.scheduler.begin()

    @property
    def left(self) -> int:
        """Items that the run still has to do (count)."""
        return sum(progress.left for progress in self._progress)

    @property
    def is_cut(self) -> bool:
        """Whether requests in flight were given up; they may still arrive at the platform."""
        return self._worker_scope.cancel_called

    def pause(self) -> None:
        """Offer and send nothing until `go_on`. Requests in flight end, and lost writes are settled."""
        self.scheduler.pause()
        self.governor.pause()

    def go_on(self) -> None:
        """End the pause."""
        self.governor.go_on()
        self.scheduler.go_on()

    def change_limits(self, limits: Limits) -> None:
        """Put these limits in force from now on.

        Raises:
            ValueError: the reserve would leave nothing of a bucket; the limits stay as they were.
        """
        if limits.reserve != self.limits.reserve:
            self.governor.set_reserve(limits.reserve.of)
        if limits.concurrency != self.limits.concurrency:
            self.governor.set_concurrency(limits.concurrency)
        self.limits = limits
        self._time_limit.set(limits.max_duration_s)

    def note_action(self, action: Action) -> None:
        """Keep the action of a person, to be written to the ledger."""
        (self.actions if self._recorder is None else self._recorder.actions).append(action)

    @property
    def state(self) -> str:
        """The state of the run: `running`, `pausing`, `paused` or `draining`."""
        if self._stopped_by is not None:
            return "draining"
        if not self.scheduler.is_paused:
            return "running"
        return "pausing" if self._snapshot is not None and self._snapshot.is_sending else "paused"

    @property
    def has_run_dry(self) -> bool:
        """Whether all items that may be offered now have ended, and other items are left."""
        return not self._is_complete and self._stopped_by is None and self._refused is None

    async def _drain_when_stopped(self) -> None:
        """Drain the governor once nothing more is offered: a wait for a permit would be in vain."""
        await self.scheduler.stopped.wait()
        self.governor.drain()

    def _on_refused(self, refusal: CredentialRefused) -> None:
        if str(refusal) not in self._refusals:
            self._refusals.append(str(refusal))
            self._refused = CredentialRefused(refusal.credential, "; ".join(self._refusals[:MOST_REFUSALS]))
            if len(self.governor.accounts) > 1:  # with one account the run ends, and its reason says the same
                self._display.note(str(refusal))

    def _on_failed(self, job: Job, outcome: Outcome, is_after_success: bool) -> None:
        warning = self._failure_warnings[job.number].note(outcome, job.name, job.credential, is_after_success)
        if warning is not None:
            log.warning(warning)
        if self._stopped_by is None:
            self._api_doubt.note()
            judge = self._around.judge
            limit = None if self.scheduler.board.is_shared else self.limits.failures
            reason = (judge and judge(job, outcome)) or exceeded(limit, outcome, self._progress)
            if reason is not None:
                self.stop(reason)

    async def execute(self) -> Ended:
        """Run to the end, or until something stops it.

        Raises:
            CredentialMissing: the source of a credential has no token; nothing was sent.
            BulkError: the ledger can't be written any more.
        """
        await open_plain(self._manifest.jobs, self._progress, self._credentials, self.governor)
        try:
            async with self._room.opened():
                await self._work_and_tell()
        finally:
            self._streams.close()
        return self._ended()

    async def _work_and_tell(self) -> None:
        around, room = self._around, self._room
        routes = AppRoutes(self._checked, self._credentials, self.governor, self.scheduler, self._streams, around.disk)
        async with anyio.create_task_group() as outer:
            if around.handles_signals:
                await outer.start(self._watch_signals)
            if self.limits.max_duration_s is not None or around.is_steered:
                outer.start_soon(self._time_limit.run, self.stop)
            if await room.know(self._credentials, routes):
                await self._send_and_record(outer)
            outer.cancel_scope.cancel()

    async def _send_and_record(self, outer: TaskGroup) -> None:
        clock, around, room = self._clock, self._around, self._room
        recorder = self._recorder = self._make_recorder()
        recorder.actions += self.actions
        hand_over = HandOver(self.scheduler, recorder, self._room.body_reader, clock, self._on_failed)
        workers = self._workers(recorder, hand_over)
        unsent_items = UnsentItems(
            self._ledger, self.scheduler, self._streams, hand_over, around.disk, self.stop, around.on_made
        )
        snapshot = self._snapshot = Snapshot(
            self._manifest.name, self.scheduler, self.governor, room.sender, room.settler, clock, self._failure_warnings
        )
        outer.start_soon(self._tell, snapshot, recorder)
        outer.start_soon(self._limit_drain)
        async with anyio.create_task_group() as writing:
            writing.start_soon(_to_the_end, recorder)
            try:
                await self._work(workers, unsent_items)
            finally:
                recorder.close()
        self._recorder, self.actions = None, recorder.actions
        # an item whose outcome could not be written has not ended: a resume settles it
        self._is_complete = self.scheduler.is_complete and recorder.failure is None
        state, why = ("complete", "") if self._is_complete else ("stopped", self._stopped_by)  # nothing is left to stop
        self.last_status = snapshot.status(state, str(why or self._refused or "")).after(around.before)
        self.last_minute = self._timeline.note(self.last_status, self.governor.concurrency.latencies, is_last=True)
        self._display.update(self.last_status)
        if recorder.failure is not None and self._stopped_by is None:
            raise recorder.failure

    def _make_recorder(self) -> Recorder:
        def flush() -> None:
            for store in set(self._room.stores.values()):
                store.flush_some()

        hooks = CommitHooks(self._add_to_tally, flush, self._durable, self._room.body_reader.end)
        return Recorder(
            self._ledger, self._clock, self._around.disk, hooks, self.stop, lambda: self.scheduler.in_flight
        )

    def _workers(self, recorder: Recorder, hand_over: HandOver) -> Workers:
        around, found = self._around, self._resume_state
        shared = Shared(
            self._room.sender,
            self._room.settler,
            recorder,
            found.late_writes,
            found.recent_creations,
            found.recent_writes,
            self._clock,
            around.dice,
            around.is_preview,
            around.planned,
        )
        sent = None if around.cache is None else SentWrites(around.cache, self._manifest.platform.base_url)
        base_dir = self._manifest.path.parent
        contents = FileContents(base_dir, around.disk)
        secrets = around.secrets or SecretPlaces(base_dir, around.environ)
        item_runner = self._item_runner = ItemRunner(shared, contents, found, secrets, self._began_at, sent)
        return Workers(
            self.scheduler,
            self.governor,
            item_runner,
            CombinedRun(item_runner),
            hand_over,
            self._on_refused,
            self.stop,
        )

    def _began_at(self) -> float | None:
        """Return when the run first began, by the platform's clock (UTC epoch seconds), the same in all its processes.
        None: the platform's clock and this machine's differ so much that one of them must be wrong."""
        offset = self.governor.time.middle(self._clock.monotonic()) - self._clock.now()
        return self._ledger.planned_from(self._ledger.began_at + offset if abs(offset) < CLOCKS_APART_S else None)

    async def _work(self, workers: Workers, unsent_items: UnsentItems) -> None:
        async with anyio.create_task_group() as services:
            services.start_soon(self._drain_when_stopped)
            self._room.serve(services, self.scheduler)
            services.start_soon(self._api_doubt.run)
            services.start_soon(follow_hours, self, self._clock)
            reasons, left = self._room.sender.wait_reasons, sum(job.left for job in self._progress)
            await wait_for_gate(self._around.opens_at, left, self._clock, reasons, self._room.draining)
            with quiet_collector(), self._worker_scope:
                async with anyio.create_task_group() as group:
                    has_superseded = any(check.superseded for check in self._checked.jobs)
                    self.scheduler.is_passing_by = has_superseded and not self.scheduler.board.is_shared
                    self.scheduler.begin()
                    self.begun.set()
                    group.start_soon(unsent_items.run)
                    start_workers(group, workers, self.scheduler, self.governor, self.limits.concurrency)
            services.cancel_scope.cancel()

    async def _durable(self, records: Sequence[Record]) -> None:
        if self._listener is not None:
            await self._listener.durable([record.finished.decoded() for record in records])

    def _add_to_tally(self, records: Sequence[Record]) -> Mapping[int, StoredTally]:
        return self._tally.add(record.finished for record in records) if self._tally is not None else {}

    async def _tell(self, snapshot: Snapshot, recorder: Recorder) -> None:
        stored = -STORE_STATUS_S
        while True:
            told = snapshot.status(self.state, str(self._stopped_by or ""))
            status = self.last_status = told.after(self._around.before)
            self._display.update(status)
            now = self._clock.monotonic()
            if now - stored >= STORE_STATUS_S:
                recorder.note_status(status, self._timeline.note(status, self.governor.concurrency.latencies))
                stored = now
            await self._clock.sleep(self._around.tick_s or STATUS_S)

    async def _limit_drain(self) -> None:
        """Let requests in flight end within their time-out; cancel the others, which the next run settles."""
        await self._room.draining.wait()
        await self._clock.sleep(self.limits.request_timeout_s + DRAIN_EXTRA_S)
        self._worker_scope.cancel()

    async def _watch_signals(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as received:
            task_status.started()
            async for number in received:
                if number == signal.SIGHUP:
                    log.info("SIGHUP: the run goes on")
                elif isinstance(self._stopped_by, Interrupted):
                    self._worker_scope.cancel()
                else:
                    name = signal.Signals(number).name
                    self.note_action(Action(at=self._clock.now(), who=name, verb="stop", args={}, result="draining"))
                    self._stopped_by = None
                    self.stop(Interrupted(name, 128 + number))
                    self._display.note("interrupted: requests in flight are finishing; a second signal stops at once")

    def _ended(self) -> Ended:
        reason = self._refused or self._stopped_by or RunStopped("work is left that could not be reached in this run")
        ended: Counter[str] = Counter()
        for progress in self._progress:
            ended.update(progress.ended)
        superseded = sum(progress.superseded for progress in self._progress)
        is_complete = self._is_complete and self._refused is None
        code = exit_codes.of_run(ended, superseded, is_complete=is_complete, stopped_with=reason.exit_code)
        return Ended(code, "" if is_complete else str(reason))


async def _to_the_end(recorder: Recorder) -> None:
    """Have the recorder write all outcomes that were handed over until `close`, whatever ends the workers."""
    with anyio.CancelScope(shield=True):
        await recorder.run()
