"""Holds what a run sends with: connections, permits and stored answers. The work itself is in `run.py`.

Its services are the tasks beside the workers: the rate limit poller of each credential, the attendant of each permit
queue, and the task that leases the queue's tokens.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from bulk.engine.credentials.app_routes import AppRoutes
from bulk.engine.credentials.asked_limits import is_there
from bulk.engine.credentials.kept_answers import open_stores, recognise
from bulk.engine.surroundings import Surroundings
from bulk.errors import BulkError
from bulk.execute.requests.request_sender import RequestSender
from bulk.execute.writes.settle import Settler
from bulk.govern.governor import Governor
from bulk.govern.rate_limit_poller import ASK_LIMITS, RateLimitPoller
from bulk.govern.user_limits import UserLimits
from bulk.manifest.manifest import Limits, Platform
from bulk.model import Failure, Reply
from bulk.platform.auth.manifest_credentials import AnyCredential
from bulk.platform.auth.secrets import Secret
from bulk.platform.bodies.body_reader import BodyReader
from bulk.platform.cache.validators import ValidatorStore
from bulk.platform.classification import Verdict, classify
from bulk.platform.transport import Transport
from bulk.platform.wire import Wire
from bulk.schedule.scheduler import Scheduler


class EngineRoom:
    """What is needed to send requests, whichever item they are of.

    Args:
        workspace: folder for bodies that do not fit in memory.
        work_left: returns the number of requests still to be sent for (credential, category) (count).
        stop: is called when nothing can be sent any more.

    Attributes:
        draining: an event that is set as soon as nothing waits for anything any more.
        lacks_limits: `GET /rate_limit` was answered with 404: limits are off, or the platform has no API there.
        stores: stores of validators and bodies, by account name; empty if none are kept.
        transport, sender, settler: exist while the room is open.
    """

    transport: Wire
    sender: RequestSender
    settler: Settler

    def __init__(
        self,
        platform: Platform,
        limits: Limits,
        surroundings: Surroundings,
        workspace: Path,
        work_left: Callable[[str, str], int],
        stop: Callable[[BulkError], None],
    ) -> None:
        self._platform, self._limits, self._around = platform, limits, surroundings
        clock = surroundings.clock
        reserve = limits.reserve_at(clock.now())
        user_limits = UserLimits(limits.concurrency, reserve.of, limits.pace == "even", limits.unreachable_s)
        self.governor = Governor(user_limits, clock, work_left, stop, surroundings.peers)
        self.body_reader = BodyReader(workspace, clock, surroundings.disk)
        self.draining = anyio.Event()
        self.lacks_limits = False
        self.stores: dict[str, ValidatorStore] = {}

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Connect for the time of the block, and close the stores afterwards."""
        limits, around = self._limits, self._around
        self.body_reader.clear()
        try:
            async with around.wire or Transport(
                self._platform,
                concurrency=limits.concurrency,
                request_timeout_s=limits.request_timeout_s,
                clock=around.clock,
                connector=around.connector,
                body_reader=self.body_reader,
            ) as self.transport:
                self.sender = RequestSender(
                    self.transport, self.governor, self.stores, around.clock, around.dice, self.draining
                )
                self.settler = Settler(self.sender, around.clock, limits.settle_s)
                yield
        finally:
            with anyio.CancelScope(shield=True):
                for store in set(self.stores.values()):
                    await around.disk(store.close)  # what the store still has to write may take a while
            self.body_reader.clear()

    async def know(self, credentials: Mapping[str, AnyCredential], routes: AppRoutes) -> bool:
        """Find out whose tokens those of all accounts are, and open the stores of their kept answers.

        To be called while the room is open. The question where an App is installed may have to wait for hours. Return
        False if the run was stopped meanwhile.
        """
        cache, platform, governor = self._around.cache, self._platform, self.governor
        is_known = False
        async with anyio.create_task_group() as group:
            group.start_soon(self._give_up, group.cancel_scope)
            await routes.open(self.transport, self._around.clock)
            await recognise(platform, credentials, governor, self.transport, is_keeping=cache is not None)
            if cache is not None:
                self.stores |= open_stores(cache, platform, credentials, governor)
            is_known = True
            group.cancel_scope.cancel()
        return is_known

    async def _give_up(self, scope: anyio.CancelScope) -> None:
        await self.draining.wait()
        scope.cancel()

    def serve(self, services: TaskGroup, scheduler: Scheduler) -> None:
        """Start the services in the group `services`, where there is anything left to send: not in a run that was
        killed between its last outcome and its end."""
        if not scheduler.board.is_shared and all(job.is_known and not job.left for job in scheduler.progress):
            return
        services.start_soon(self.governor.loop_load.run)
        for account in self.governor.accounts.values():
            services.start_soon(
                RateLimitPoller(self.governor, account, self._ask, partial(is_there, self.transport)).run
            )
            for permit_queue in account.queues.values():
                services.start_soon(self.governor.attend, permit_queue)
                if permit_queue.tokens is not None:
                    services.start_soon(permit_queue.tokens.run)

    async def _ask(self, token: Secret) -> tuple[Reply, Verdict] | Failure:
        """Send `GET /rate_limit`, which is free, without a permit."""
        answer = await self.transport.send(ASK_LIMITS, token, None)
        if isinstance(answer, Failure):
            return answer
        self.lacks_limits = answer.status == 404
        if self.lacks_limits:
            self.governor.concurrency.begin_with_one()
        return answer, classify(ASK_LIMITS, answer, self._platform.vendor)
