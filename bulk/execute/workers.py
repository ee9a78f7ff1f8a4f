"""The loop of a worker: wait for work, then for a permit, then take an item and bring it to its outcome.

Each bucket has fixed workers, so that a drained bucket occupies only its own. The permit comes before the item, so that
an item is taken in the order of priorities at the moment in which it can be sent. Source: design.md §5.
"""

import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import anyio.lowlevel

from bulk.errors import BulkError, CredentialRefused, RunDirectoryError, RunStopped
from bulk.execute.combined_run import CombinedRun
from bulk.execute.hand_over import HandOver
from bulk.execute.item_runner import ItemRunner
from bulk.execute.requests.context import ItemTally, RequestContext
from bulk.govern.governor import Governor
from bulk.govern.permits.accounts import Account, PermitQueue
from bulk.govern.pools import MemberStuck, Pool
from bulk.govern.user_limits import Draining
from bulk.manifest.manifest import Entry, Job
from bulk.model import ErrorCode, Outcome, failed
from bulk.operation import AnyOperation, owner_of
from bulk.platform.auth.installations import InstallationSource
from bulk.schedule.queues import Queue, Work
from bulk.schedule.scheduler import Scheduler

log = logging.getLogger("bulk.execute")

_NOT_COVERED = (ErrorCode.NOT_FOUND, ErrorCode.FORBIDDEN)
"""How a request for a repository ends that an App's installation was not given."""

T = TypeVar("T")
Run = Callable[[RequestContext], Coroutine[Any, Any, T]]


class Workers:
    """Everything that a worker needs; `work` is one worker's task.

    Args:
        on_refused: called when a credential was refused.
        stop: called when the items can't be read any more.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        governor: Governor,
        item_runner: ItemRunner,
        combined_run: CombinedRun,
        hand_over: HandOver,
        on_refused: Callable[[CredentialRefused], None],
        stop: Callable[[BulkError], None],
    ) -> None:
        self._scheduler, self._governor, self._item_runner = scheduler, governor, item_runner
        self._combined_run, self._hand_over = combined_run, hand_over
        self._on_refused, self._stop = on_refused, stop

    async def work(self, queue: Queue, permit_queue: PermitQueue, pool: Pool | None = None) -> None:
        """Work until nothing is left, the run ends, or the credential (of a `pool`, each member) is refused."""
        scheduler, governor, hand_over = self._scheduler, self._governor, self._hand_over
        recorder = hand_over.recorder
        try:
            while scheduler.has_work(queue) or await scheduler.wait_work(queue):
                if recorder.is_full:
                    await recorder.wait_room()
                permit = governor.permit_nowait(permit_queue) if pool is None else None
                permit = permit or await (pool.permit() if pool else governor.permit(permit_queue, is_new=True))
                work = scheduler.take(queue)
                if work is None:
                    governor.return_unused(permit)
                    await anyio.lowlevel.checkpoint()
                    continue
                job = scheduler.jobs[work.entry.job]
                operation, is_saved = job.operation, job.save is not None
                is_read = operation.is_read
                result_of = operation.name if operation.result_is_reply and not is_saved else ""
                tally = ItemTally(is_saved, work.lane is None and not is_read, result_of)
                context = RequestContext(permit.queue, permit, tally, pool)
                if work.behind:
                    await self._work_combined(job, work, context)
                    continue
                try:
                    outcome = await self._run(operation, work.entry, context)
                except CredentialRefused as refusal:
                    if not refusal.is_gone or (tally.requests and not is_read):
                        hand_over.abandoned(work, tally)
                        self._go_on_without(refusal, pool)
                        continue
                    outcome = failed(ErrorCode.FORBIDDEN, str(refusal))
                except BaseException:
                    hand_over.abandoned(work, tally)
                    raise
                hand_over.end(job, work, outcome, tally)
                del outcome  # a worker that waits for work must not keep the last result in memory
        except CredentialRefused as refusal:
            if refusal.is_gone:
                queue.refusal = queue.refusal or str(refusal)
                await self.fail(queue)
                return
            scheduler.close(queue)
            self._on_refused(refusal)
        except Draining:
            return
        except (RunStopped, RunDirectoryError) as flaw:
            self._stop(flaw)

    def _run(self, operation: AnyOperation, entry: Entry, context: RequestContext) -> Coroutine[Any, Any, Outcome]:
        if context.pool is not None:
            runner = self._item_runner
            return self._run_in_pool(
                lambda each: runner.run(operation, entry, each),
                context,
                context.pool,
                lambda: runner.is_to_be_settled(entry),
            )
        run = self._run_as_app if context.queue.account.is_minted else self._item_runner.run
        return run(operation, entry, context)

    async def _run_as_app(self, operation: AnyOperation, entry: Entry, context: RequestContext) -> Outcome:
        account = context.queue.account
        return await _explained(await self._item_runner.run(operation, entry, context), entry, account)

    async def _run_in_pool(
        self, run: Run[T], context: RequestContext, pool: Pool, is_to_be_settled: Callable[[], bool]
    ) -> T:
        """Return what `run` returns, which begins anew with another member where its own can't go on.

        Args:
            is_to_be_settled: whether that other member settles first what was sent with the one before.
        """
        while True:
            try:
                return await run(context)
            except MemberStuck:
                pass
            except CredentialRefused as refusal:
                if context.is_bound and not is_to_be_settled():
                    raise
                log.debug("an item begins anew with another member of its pool: %s", refusal)
            context.tally.begin_anew()
            permit = await pool.permit()
            context = RequestContext(permit.queue, permit, context.tally, pool)

    def _go_on_without(self, refusal: CredentialRefused, pool: Pool | None) -> None:
        """Let the other members of a pool go on; raise the refusal where there is no pool."""
        if pool is None:
            raise refusal
        self._on_refused(refusal)

    async def fail(self, queue: Queue) -> None:
        """Fail all items of a queue out of which nothing can be sent, with the queue's `refusal`."""
        scheduler, hand_over = self._scheduler, self._hand_over
        while scheduler.has_work(queue) or await scheduler.wait_work(queue):
            await hand_over.recorder.wait_room()
            work = scheduler.take(queue)
            if work is None:
                await anyio.lowlevel.checkpoint()
                continue
            job, tally = scheduler.jobs[work.entry.job], ItemTally()
            outcome = failed(ErrorCode.FORBIDDEN, queue.refusal)
            if work.behind:
                hand_over.end_combined(job, work, [outcome for _ in work.entries], tally)
            else:
                hand_over.end(job, work, outcome, tally)

    async def _work_combined(self, job: Job, work: Work, context: RequestContext) -> None:
        """Bring items that share their requests to their outcomes; the scheduler keeps those that have none."""
        pool = context.pool

        def run(each: RequestContext) -> Coroutine[Any, Any, list[Outcome | None]]:
            return self._combined_run.run(job.operation, work.entries, each)

        try:
            outcomes = await (run(context) if pool is None else self._run_in_pool(run, context, pool, lambda: False))
        except CredentialRefused as refusal:
            self._hand_over.abandoned(work, context.tally)
            self._go_on_without(refusal, pool)
            return
        except BaseException:
            self._hand_over.abandoned(work, context.tally)
            raise
        self._hand_over.end_combined(job, work, outcomes, context.tally)


async def _explained(outcome: Outcome, entry: Entry, account: Account) -> Outcome:
    """Return the outcome of an item that was sent as an App; `forbidden`, with the reason, where the App's installation
    is for selected repositories, and the item's is none of them.

    A private repository that is not selected answers 404, as if it were not there. A public one may be read all the
    same, so that no item can be refused before it was tried. Each repository is asked for once, in the App's own name.
    """
    is_refused = outcome.is_missing or (outcome.error is not None and outcome.error.code in _NOT_COVERED)
    source = account.source
    if not is_refused or not isinstance(source, InstallationSource):
        return outcome
    owner, repo, _ = owner_of(entry.item)
    if not repo or await source.covers(owner, repo):
        return outcome
    why = f"the App is installed in {owner} for selected repositories, and {repo} is none of them"
    return failed(ErrorCode.FORBIDDEN, f"{why} (credential {account.name!r})", http_status=outcome.http_status)
