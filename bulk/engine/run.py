"""One run of a checked manifest: puts the stages together, starts them, stops them, and says how it ended.

    outer group:   recorder (the last outcome always finds its reader), status, signals, time limit
      services:    watcher of each credential, attendant of each permit queue
        workers:   fixed ones for each bucket, and one that records the items of skipped jobs

A stop is a value: nothing new is offered, what is in flight ends, then everything is recorded. Cancelling is the
hammer, for the second signal and for what does not end in time. Source: design.md §5; interface.md §4 (exit codes).
"""

import logging
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

import anyio

from bulk import exit_codes
from bulk.bundle.checked import Checked
from bulk.engine.snapshot import Snapshot
from bulk.engine.surroundings import Ended, Surroundings
from bulk.engine.time_limit import TimeLimit
from bulk.engine.tuning import quiet_collector
from bulk.engine.warnings import FailureWarnings
from bulk.errors import BulkError, CredentialRefused, Interrupted, RunStopped
from bulk.execute.combined_run import CombinedRun
from bulk.execute.hand_over import HandOver
from bulk.execute.item_run import Shared
from bulk.execute.item_runner import ItemRunner
from bulk.execute.job_streams import JobStreams
from bulk.execute.recorder import CommitHooks, Recorder
from bulk.execute.requests.request_sender import RequestSender
from bulk.execute.resume_state import ResumeState
from bulk.execute.unsent_items import UnsentItems
from bulk.execute.workers import Workers
from bulk.execute.writes.settle import Settler
from bulk.govern.governor import Governor
from bulk.govern.policy import Policy
from bulk.govern.rate_limit_poller import RateLimitPoller
from bulk.ledger.protocol import RunLedger
from bulk.ledger.records import Action, Minute, Record, StoredTally
from bulk.manifest.manifest import Job, Limits
from bulk.model import Effect, ErrorCode, Failure, Outcome, OutcomeKind, Reply, Request
from bulk.platform.auth.credentials import Credential
from bulk.platform.auth.secrets import Secret
from bulk.platform.bodies.body_reader import BodyReader
from bulk.platform.cache.validators import ValidatorStore
from bulk.platform.classification import Verdict, classify
from bulk.platform.transport import Transport
from bulk.report.tally import Tally
from bulk.report.timeline import Timeline
from bulk.schedule.remaining import work_left
from bulk.schedule.scheduler import Scheduler
from bulk.status import Display, RunStatus

__all__ = ["ASK_LIMITS", "Ended", "Run", "Surroundings"]

log = logging.getLogger("bulk.engine.run")

STATUS_S = 0.25
STORE_STATUS_S = 1.0
"""How often the display is told, and how often the ledger (seconds)."""
DRAIN_EXTRA_S = 5.0
"""After a stop, requests in flight may take their own time-out and this much longer (seconds)."""

ASK_LIMITS = Request(method="GET", path="/rate_limit", effect=Effect.READ, accept=frozenset((200, 404)), is_fresh=True)


class Run:
    """One execution, or one resume, of a manifest. `execute` is called once.

    Attributes:
        limits: as they are in force.
        last_status: where it stood when that was told last. last_minute: its figures, for plots.
        actions: what people did and is not in the ledger yet.
    """

    def __init__(
        self,
        checked: Checked,
        ledger: RunLedger,
        resume_state: ResumeState,
        credentials: Mapping[str, Credential],
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
        self._is_complete = False
        self._resume_state, self._progress = resume_state, resume_state.progress
        self._streams = JobStreams(checked, workspace)
        self.scheduler = Scheduler(
            manifest.jobs, self._progress, self._streams.offered, self._streams.index, limits.concurrency
        )
        for number, check in enumerate(checked.jobs):
            if check.copies:
                self._progress[number].set_copies(self._streams.copies[number].bits(number, check.items))
        policy = Policy(limits.concurrency, limits.reserve.of, limits.pace == "even", limits.unreachable_s)
        self.governor = Governor(policy, self._clock, partial(work_left, self.scheduler), self.stop)
        self._body_reader = BodyReader(workspace, self._clock, surroundings.disk)
        self._worker_scope = anyio.CancelScope()
        self._draining = anyio.Event()
        self._time_limit = TimeLimit(self._clock, limits.max_duration_s)
        self._snapshot: Snapshot | None = None
        self._recorder: Recorder | None = None
        self.actions: list[Action] = []
        told: set[tuple[ErrorCode, str]] = set()
        self._failure_warnings = [FailureWarnings(told=told) for _ in manifest.jobs]
        now = self._clock.now()
        self._timeline = Timeline(ledger.began_at, *ledger.view().timeline(newest=True))
        self.last_minute: Minute | None = None
        self.last_status = RunStatus(name=manifest.name, state="stopped", at=now, started_at=now)

    def stop(self, reason: BulkError) -> None:
        """Offer nothing new, let what is in flight end. The first reason counts."""
        if self._stopped_by is not None:
            return
        self._stopped_by = reason
        log.info("stopping: %s", reason)
        self.scheduler.stop()
        self.governor.drain()
        self._draining.set()

    def stop_now(self, reason: BulkError) -> None:
        """As `stop`, and what is in flight is given up: the next run settles it."""
        self.stop(reason)
        self._worker_scope.cancel()

    def pause(self) -> None:
        """Offer and send nothing until `go_on`; what is in flight ends, and what was lost is settled."""
        self.scheduler.pause()
        self.governor.pause()

    def go_on(self) -> None:
        """The pause is over."""
        self.governor.go_on()
        self.scheduler.go_on()

    def change_limits(self, limits: Limits) -> None:
        """These are in force from now on.

        Raises:
            ValueError: the reserve would leave nothing of a bucket, and nothing changed.
        """
        if limits.reserve != self.limits.reserve:
            self.governor.set_reserve(limits.reserve.of)
        if limits.concurrency != self.limits.concurrency:
            self.governor.set_concurrency(limits.concurrency)
        self.limits = limits
        self._time_limit.set(limits.max_duration_s)

    def note_action(self, action: Action) -> None:
        """Have the ledger remember what a person did."""
        (self.actions if self._recorder is None else self._recorder.actions).append(action)

    @property
    def state(self) -> str:
        """`running`, `pausing`, `paused`, `draining`."""
        if self._stopped_by is not None:
            return "draining"
        if not self.scheduler.is_paused:
            return "running"
        return "pausing" if self._snapshot is not None and self._snapshot.is_sending else "paused"

    async def _drain_when_stopped(self) -> None:
        """Nothing more is offered: who waits for a permit waits for nothing."""
        await self.scheduler.stopped.wait()
        self.governor.drain()

    def _on_refused(self, refusal: CredentialRefused) -> None:
        if self._refused is None:
            self._refused = refusal
            if len(self.governor.accounts) > 1:  # else that is the end of the run, which says why
                self._display.note(str(refusal))

    def _on_ended(self, job: Job, outcome: Outcome) -> None:
        warning = self._failure_warnings[job.number].note(outcome, job.name, job.credential)
        if warning is not None:
            log.warning(warning)
        limit = self.limits.failures
        if limit is None or outcome.kind is not OutcomeKind.FAILED or self._stopped_by is not None:
            return
        failed = sum(progress.ended.get(OutcomeKind.FAILED, 0) for progress in self._progress) + 1
        finished = sum(sum(progress.ended.values()) for progress in self._progress) + 1
        if limit.fraction is not None and finished < 100:
            return
        if failed > limit.of(finished):
            self.stop(RunStopped(f"{failed:,} of {finished:,} items failed, more than limits.failures allows"))

    async def execute(self) -> Ended:
        """Run to the end, or until something stops it.

        Raises:
            CredentialMissing: a credential's source has none; nothing was sent.
            BulkError: the ledger can't be written any more.
        """
        limits = self.limits
        needed: dict[str, set[str]] = {}
        for job in self._manifest.jobs:
            needed.setdefault(job.credential, set()).add(job.operation.category)
        for name, categories in needed.items():
            self.governor.open_account(self._credentials[name], sorted(categories))
        for job, progress in zip(self._manifest.jobs, self._progress, strict=True):
            if not progress.is_known:
                self.governor.queue(job.credential, job.operation.category).awaits_items = True
        self._body_reader.clear()
        stores = self._open_stores()
        try:
            async with Transport(
                self._manifest.platform,
                concurrency=limits.concurrency,
                request_timeout_s=limits.request_timeout_s,
                clock=self._clock,
                connector=self._around.connector,
                body_reader=self._body_reader,
            ) as transport:
                await self._with(transport, stores)
        finally:
            with anyio.CancelScope(shield=True):
                for store in stores.values():
                    await self._around.disk(store.close)  # what it still has to write may take a while
            self._streams.close()
            self._body_reader.clear()
        return self._ended()

    def _open_stores(self) -> dict[str, ValidatorStore]:
        cache, platform = self._around.cache, self._manifest.platform
        if cache is None:
            return {}
        return {name: ValidatorStore(cache, platform, one.token) for name, one in self.governor.accounts.items()}

    async def _with(self, transport: Transport, stores: Mapping[str, ValidatorStore]) -> None:
        clock, around = self._clock, self._around
        sender = RequestSender(transport, self.governor, stores, clock, around.dice, self._draining)
        settler = Settler(sender, clock, self.limits.settle_s)
        recorder = self._recorder = self._make_recorder(stores)
        recorder.actions += self.actions
        hand_over = HandOver(self.scheduler, recorder, self._body_reader, clock, self._on_ended)
        workers = self._workers(sender, settler, recorder, hand_over)
        unsent_items = UnsentItems(
            self._checked, self._ledger, self.scheduler, self._streams, hand_over, around.disk, self.stop
        )
        snapshot = self._snapshot = Snapshot(
            self._manifest.name, self.scheduler, self.governor, sender, settler, clock, self._failure_warnings
        )
        async with anyio.create_task_group() as outer:
            if self._around.handles_signals:
                await outer.start(self._watch_signals)
            outer.start_soon(self._tell, snapshot, recorder)
            if self.limits.max_duration_s is not None or around.is_steered:
                outer.start_soon(self._time_limit.run, self.stop)
            outer.start_soon(self._limit_drain)
            async with anyio.create_task_group() as writing:
                writing.start_soon(_to_the_end, recorder)
                try:
                    await self._work(workers, unsent_items, transport)
                finally:
                    recorder.close()
            outer.cancel_scope.cancel()
        self._recorder, self.actions = None, recorder.actions
        # what ended in memory and could not be written has not ended: a resume settles it
        self._is_complete = self.scheduler.is_complete and recorder.failure is None
        state = "complete" if self._is_complete else "stopped"
        self.last_status = snapshot.status(state, str(self._stopped_by or self._refused or ""))
        self.last_minute = self._timeline.note(self.last_status, self.governor.concurrency.latencies, is_last=True)
        self._display.update(self.last_status)
        if recorder.failure is not None and self._stopped_by is None:
            raise recorder.failure

    def _make_recorder(self, stores: Mapping[str, ValidatorStore]) -> Recorder:
        def flush() -> None:
            for store in stores.values():
                store.flush_some()

        hooks = CommitHooks(self._add_to_tally, flush, self._durable, self._body_reader.end)
        return Recorder(
            self._ledger, self._clock, self._around.disk, hooks, self.stop, lambda: self.scheduler.in_flight
        )

    def _workers(self, sender: RequestSender, settler: Settler, recorder: Recorder, hand_over: HandOver) -> Workers:
        around, found = self._around, self._resume_state
        shared = Shared(
            sender,
            settler,
            recorder,
            found.late_writes,
            found.recent_creations,
            found.recent_writes,
            self._clock,
            around.dice,
            around.is_preview,
            around.planned,
        )
        item_runner = ItemRunner(shared, self._manifest.path.parent, found, around.environ, self._began_at)
        return Workers(
            self.scheduler,
            self.governor,
            item_runner,
            CombinedRun(item_runner),
            hand_over,
            self._on_refused,
            self.stop,
        )

    def _began_at(self) -> float:
        """Return when the run was first begun, by the platform's clock (UTC epoch seconds): the same in all its
        processes."""
        offset = self.governor.time.middle(self._clock.monotonic()) - self._clock.now()
        return self._ledger.planned_from(self._ledger.began_at + offset)

    async def _work(self, workers: Workers, unsent_items: UnsentItems, transport: Transport) -> None:
        async with anyio.create_task_group() as services:
            services.start_soon(self.governor.loop_load.run)
            services.start_soon(self._drain_when_stopped)
            for account in self.governor.accounts.values():
                watch = RateLimitPoller(self.governor, account, lambda token: self._ask(transport, token))
                services.start_soon(watch.run)
                for permit_queue in account.queues.values():
                    services.start_soon(self.governor.attend, permit_queue)
            with quiet_collector(), self._worker_scope:
                async with anyio.create_task_group() as group:
                    self.scheduler.is_passing_by = any(check.superseded for check in self._checked.jobs)
                    self.scheduler.begin()
                    group.start_soon(unsent_items.run)
                    for queue in self.scheduler.queues.values():
                        permit_queue = self.governor.queue(queue.credential, queue.category)
                        for _ in range(self.limits.concurrency):
                            group.start_soon(workers.work, queue, permit_queue)
            services.cancel_scope.cancel()

    async def _ask(self, transport: Transport, token: Secret) -> tuple[Reply, Verdict] | Failure:
        """`GET /rate_limit`: free, outside of all permits."""
        answer = await transport.send(ASK_LIMITS, token, None)
        if isinstance(answer, Failure):
            return answer
        return answer, classify(ASK_LIMITS, answer, self._manifest.platform.vendor)

    async def _durable(self, records: Sequence[Record]) -> None:
        if self._listener is not None:
            await self._listener.durable([record.finished.decoded() for record in records])

    def _add_to_tally(self, records: Sequence[Record]) -> Mapping[int, StoredTally]:
        return self._tally.add(record.finished for record in records) if self._tally is not None else {}

    async def _tell(self, snapshot: Snapshot, recorder: Recorder) -> None:
        stored = -STORE_STATUS_S
        while True:
            status = self.last_status = snapshot.status(self.state, str(self._stopped_by or ""))
            self._display.update(status)
            now = self._clock.monotonic()
            if now - stored >= STORE_STATUS_S:
                recorder.note_status(status, self._timeline.note(status, self.governor.concurrency.latencies))
                stored = now
            await self._clock.sleep(STATUS_S)

    async def _limit_drain(self) -> None:
        """What is in flight ends within its own time-out; what does not is cancelled and settled by the next run."""
        await self._draining.wait()
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
                    now = self._clock.now()
                    self.note_action(Action(at=now, who=name, verb="stop", args={}, result="draining"))
                    self._stopped_by = None
                    self.stop(Interrupted(name, 128 + number))
                    self._display.note("interrupted: requests in flight are finishing; once more stops at once")

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
    """Whatever ends the workers, the outcomes they handed over are written: the recorder ends when it is closed."""
    with anyio.CancelScope(shield=True):
        await recorder.run()
