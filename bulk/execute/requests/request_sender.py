"""One request until it is decided: permit, send, judge, tell the governor, and for reads again after a failure.

Retries are entered only after a first failure (tenacity stands off the path of a request that goes well). A failure
counts against the item as far as the platform served others meanwhile, or after very many; a platform in trouble
fails no item. A wrong answer that stays is the last word after two minutes. Source: operations.md (S: at most 6),
failures.md rows 9, 10, 13, 19, 24, 25, 78.
"""

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from urllib.parse import urljoin

import anyio
from tenacity import AsyncRetrying, retry_if_result

from bulk.clock import Clock
from bulk.execute.requests.absences import Absences
from bulk.execute.requests.context import ItemTally, RequestContext, Tried, is_decided, result_of
from bulk.execute.requests.own_limits import OwnLimits
from bulk.execute.requests.patience import Patience
from bulk.execute.requests.redirects import (
    LED_TO_ANOTHER,
    REDIRECTS,
    Moves,
    judged_elsewhere,
    led_astray,
    move_of,
    proof_of_download,
    same_elsewhere,
)
from bulk.execute.requests.retry_budget import Served
from bulk.execute.requests.wait_reasons import WaitReason, WaitReasons
from bulk.govern.concurrency.send_rate import SendRate
from bulk.govern.governor import Governor
from bulk.govern.permits.accounts import Permit
from bulk.govern.poll_intervals import PollIntervals
from bulk.govern.reactions import may_be_too_fast
from bulk.govern.user_limits import Draining
from bulk.model import BodyFile, Effect, ErrorCode, Failure, FailureKind, Media, Outcome, Reply, Request
from bulk.platform.cache.cache_entry import BY_DATE, BY_ETAG, CacheEntry
from bulk.platform.cache.validators import ValidatorStore
from bulk.platform.classification import Verdict, VerdictKind, classify
from bulk.platform.wire import Wire
from bulk.urls import within_base

_ACCEPTED, _READ = VerdictKind.ACCEPTED, Effect.READ


class RequestSender:
    """Sends requests for all workers; `downloads`: downloads under way from elsewhere, without a permit (count).

    Args:
        stores: the store of validators and bodies of each credential that has one.
        dice: the random numbers for jitter.
        draining: is set when the run is stopping: nothing is waited for any more.
    """

    def __init__(
        self,
        transport: Wire,
        governor: Governor,
        stores: Mapping[str, ValidatorStore],
        clock: Clock,
        dice: random.Random,
        draining: anyio.Event,
    ) -> None:
        self._transport, self._governor, self._stores = transport, governor, stores
        self._vendor, self._base_url = transport.platform.vendor, transport.platform.base_url
        self._clock, self._dice = clock, dice
        governor.concurrency.cap(transport.most_in_flight)
        self.polls = PollIntervals()
        self._moves, self._own_limits, self.absences = Moves(), OwnLimits(), Absences(dice)
        self._reads, self._writes = SendRate(), SendRate()
        self._read_turn, self._write_turn = anyio.Lock(), anyio.Lock()
        self.wait_reasons = WaitReasons()
        self._draining = draining
        self.requests = self.retries = self.settled = self.downloads = 0

    async def once(self, request: Request, context: RequestContext) -> Tried:
        """Send `request` once, with the context's permit or one that is waited for; raises what `Governor.permit` and
        `Pool.permit_of` raise."""
        governor, queue, tally = self._governor, context.queue, context.tally
        permit = context.take_permit() or await self._permit(context)
        rate = self._reads if request.effect is _READ else self._writes
        if rate.is_bound:
            permit = await self._in_turn(rate, context, permit)
        if self._own_limits.is_any:
            given_up = self._own_limits.given_up(request, self._clock.monotonic())
            if given_up is not None:
                governor.return_unused(permit)
                return Tried(*given_up)
            permit = await self._behind_others(request, context, permit)
        # a stored answer belongs to the token that got it: after a renewal no stored answer is used, unless it is known
        # whose the token is (failures.md row 37)
        store = key = stored = None
        if self._stores and not request.is_fresh and request.method == "GET":
            account = queue.account
            store = self._stores.get(account.name) if permit.generation == 1 or account.identity else None
            key = store.key_of(request, account.identity) if store is not None else None
            stored = None if key is None or store is None or tally.is_anew else store.usable(request, key, permit.token)
        if not tally.requests:
            tally.started_at, tally.started = self._clock.now(), self._clock.monotonic()
        tally.requests += 1
        tally.sends += 1
        self.requests += 1
        may_leave = partial(governor.may_leave, permit)
        try:
            answer = await self._transport.send(request, permit.token, stored, may_leave, tally)
        except BaseException:
            # cancelled: the request may have left, so its permit is not given back
            governor.failed(permit, Failure(kind=FailureKind.LOST, code=ErrorCode.CONNECTION, message="cancelled"))
            raise
        if isinstance(answer, Failure):
            return await self._unanswered(request, context, permit, answer)
        status = answer.status
        tally.http_status, tally.request_id = status, answer.request_id
        tally.body_bytes += len(answer.raw)
        tally.paid += status != 304
        if store is None and status != 304:
            return Tried(answer, self._judged(request, permit, answer, answer))
        tried = self._compared(request, context, permit, answer, store, key, stored)
        # a 304 that was not asked for: once more without conditions (failures.md row 13)
        return tried if tried is not None else await self.once(replace(request, is_fresh=True), context)

    def _compared(
        self,
        request: Request,
        context: RequestContext,
        permit: Permit,
        answer: Reply,
        store: ValidatorStore | None,
        key: bytes | None,
        stored: CacheEntry | None,
    ) -> Tried | None:
        """Judge an answer, or the stored one that it confirms; keep a new one. None: a 304 that was not asked for."""
        tally, reply, is_unchanged = context.tally, answer, answer.status == 304
        if stored is not None and store is not None:
            if stored.way != BY_ETAG:
                store.told(request, stored, answer.headers, is_unchanged=is_unchanged)
                tally.is_by_date = tally.is_by_date or (is_unchanged and stored.way == BY_DATE)
            if is_unchanged:
                tally.body_bytes += len(stored.body)
                # only the item's first answer may be its result: the operation has to look at later ones
                reply = store.reply_from(stored, answer, tally.result_of if tally.requests == 1 else "")
        verdict = self._judged(request, permit, answer, reply)
        if is_unchanged:
            is_lost = reply is answer and not request.is_fresh and request.effect is _READ
            return None if is_lost else Tried(reply, verdict)
        is_whole = verdict.kind is _ACCEPTED and answer.status == 200 and type(answer.body) is not BodyFile
        if store is not None and key is not None and is_whole:
            tally.kept_as = key if store.keep(request, answer, key, permit.token) else None
        return Tried(answer, verdict)

    def _judged(self, request: Request, permit: Permit, answer: Reply, reply: Reply) -> Verdict:
        """Return the verdict on `reply`, which is `answer` or what it confirms; tell governor and transport."""
        verdict = classify(request, reply, self._vendor)
        if verdict.retry_after_s is not None or self._own_limits.is_any:
            good, in_flight = self._governor.good_answers, self._governor.concurrency.in_flight
            verdict = self._own_limits.judged(request, verdict, reply, good, in_flight, self._clock.monotonic())
        rate = self._reads if request.effect is _READ else self._writes
        rate.answers += 1
        if verdict.kind is _ACCEPTED and reply.status < 400:  # as nearly always
            self._governor.answered(permit, answer, verdict)
            return verdict
        told = self.absences.told(request, verdict, reply) if reply.status in self.absences.telling else verdict
        if told.kind is not _ACCEPTED and (is_sure := may_be_too_fast(told, reply)) is not None:
            rate.refused(permit.granted, self._clock.monotonic(), is_sure=is_sure)
        self._governor.answered(permit, answer, told)
        if verdict.kind is VerdictKind.BAD_RESPONSE:
            self._transport.distrust()
        return verdict

    async def _in_turn(self, rate: SendRate, context: RequestContext, permit: Permit) -> Permit:
        """Return a permit when a request may leave at the rate that is let through."""
        turn, clock = self._read_turn if rate is self._reads else self._write_turn, self._clock
        if not turn.locked() and rate.wait_s(clock.monotonic()) <= 0.0:
            rate.take(clock.monotonic())
            return permit
        self.step_aside(context.tally)
        self._governor.return_unused(permit)
        async with turn:
            while rate.is_bound and (wait_s := rate.wait_s(clock.monotonic())) > 0.0:
                await self.pause(wait_s, WaitReason.RATE)
            rate.take(clock.monotonic())
        return await self._permit(context)

    async def _behind_others(self, request: Request, context: RequestContext, permit: Permit) -> Permit:
        """Return a permit once others have gone first, or as soon as this request need not wait alone any more."""
        governor, queue = self._governor, context.queue
        may_change = context.pool is not None and not context.is_bound  # another member may go on at once
        while True:
            now = self._clock.monotonic()
            paused_until = 0.0 if may_change else max(queue.account.paused_until, governor.quiet_until)
            wait_s = self._own_limits.until(request, paused_until) - now
            if wait_s <= 0.0:
                return permit
            self.step_aside(context.tally)
            governor.return_unused(permit)
            await self.pause(wait_s, WaitReason.BUSY)
            permit = await self._permit(context)

    async def _permit(self, context: RequestContext) -> Permit:
        self.step_aside(context.tally)
        if context.queue.errors:
            context.leave_member()
        return self._governor.permit_nowait(context.queue, context.is_settling) or await self._waited_for(context)

    async def _waited_for(self, context: RequestContext) -> Permit:
        if context.pool is not None and not context.is_bound:
            return await context.pool.permit_of(context.queue, context.tally.requests)
        return await self._governor.permit(context.queue, is_settling=context.is_settling)

    async def _unanswered(self, request: Request, context: RequestContext, permit: Permit, failure: Failure) -> Tried:
        governor, tally = self._governor, context.tally
        if failure.kind is FailureKind.NOT_SENT and not governor.may_leave(permit):
            # a 401 or a pause came while the request waited for a connection
            governor.return_unused(permit)
            tally.requests -= 1
            tally.sends -= 1
            return await self.once(request, context)
        # the limit of open files may have been met all the same (failures.md row 51)
        governor.concurrency.cap(self._transport.most_in_flight)
        governor.failed(permit, failure)
        tally.paid += failure.kind is FailureKind.LOST
        return Tried(failure=failure)

    def note_result(self, outcome: Outcome, reply: Reply, context: RequestContext) -> Outcome:
        """Return how an item ended after `reply`; if that was kept and was its only answer, tell the store of the
        outcome."""
        tally = context.tally
        store, key = self._stores.get(context.queue.account.name), tally.kept_as
        if store is None or key is None or tally.requests != 1:
            return outcome
        return store.note_result(key, tally.result_of, reply, outcome)

    @property
    def served(self) -> Served:
        """Good answers of the platform to any item so far, and failures (counts)."""
        return self._governor.good_answers, self._governor.failures

    def step_aside(self, tally: ItemTally) -> None:
        """Note that the item is about to wait for something other than an answer: others may have the room in memory
        that it would need.
        """
        if tally.holds_body:
            self._transport.step_aside(tally)

    def return_unused(self, context: RequestContext) -> None:
        """Give back the permit that the worker brought along, if no request has taken it."""
        if (permit := context.take_permit()) is not None:
            self._governor.return_unused(permit)

    async def read(self, request: Request, context: RequestContext) -> Reply | Outcome:
        """Send a read until it is decided: return a Reply with an accepted status, or how the item failed."""
        if request.pause_s:
            self.step_aside(context.tally)
            self.return_unused(context)
            await self.pause(request.pause_s, WaitReason.LOOK)
        if request.is_poll:
            self.step_aside(context.tally)
            return await self._poll(request, context)
        context.tally.sends = 0
        tried = await self.once(request, context)
        reply, verdict = tried.reply, tried.verdict
        if reply is not None and verdict is not None and verdict.kind is _ACCEPTED and not reply.is_truncated:
            return reply  # as nearly always
        return await self._decided(request, context, tried)

    async def _poll(self, request: Request, context: RequestContext) -> Reply | Outcome:
        """Send a read when it is this credential's turn to poll this list."""
        self.return_unused(context)  # the wait may be long
        poll = self.polls.of(context.queue.account.name, request.path)
        with poll.counted():
            async with poll.turn:
                await self.pause(poll.wait_s(self._clock.monotonic()))
                context.tally.sends = 0
                answer = await self._decided(request, context, await self.once(request, context))
                if isinstance(answer, Reply):
                    poll.answered(answer.headers, self._clock.monotonic())
                return answer

    async def _decided(self, request: Request, context: RequestContext, first: Tried) -> Reply | Outcome:
        """Return how a read ends whose first send came to `first`."""
        tried = await self._followed(request, context, first)
        if is_decided(tried):
            return result_of(tried)
        move, now = move_of(request.path, tried.verdict), self._clock.monotonic()
        if move is None or context.is_settling:
            return result_of(await self._read_again(request, context, tried))
        if not self._moves.is_known(move, now):
            tried = await self._read_again(request, context, tried)
            if move_of(request.path, tried.verdict) == move:
                self._moves.note(move, self._clock.monotonic())
        return result_of(tried)

    async def _followed(self, request: Request, context: RequestContext, tried: Tried) -> Tried:
        """Return what came of one send, after following redirects within the platform: at most `REDIRECTS` of them."""
        asked = request
        for _ in range(REDIRECTS):
            if tried.kind is not VerdictKind.REDIRECTED:
                return tried
            current = f"{request.path}?{request.query}" if request.query else request.path
            location = tried.verdict.location if tried.verdict is not None else None
            if location and request.media is Media.RAW and tried.reply is not None and tried.reply.status == 302:
                return await self._downloaded(urljoin(self._base_url + request.path, location), request, context.tally)
            target = within_base(location, self._base_url, current) if location else None
            if target is None:
                return Tried(tried.reply, led_astray("redirected away from the platform; not followed"))
            same = same_elsewhere(asked, target)
            if same is None:
                return Tried(tried.reply, LED_TO_ANOTHER)
            path, query = same
            proof = request.proof.elsewhere() if request.proof is not None else None
            request = replace(request, path=path, query=query, proof=proof)
            tried = await self.once(request, context)
            if tried.reply is not None and tried.verdict is not None:
                tried = Tried(tried.reply, judged_elsewhere(request, tried.reply, tried.verdict))
        is_still = tried.kind is VerdictKind.REDIRECTED
        return Tried(tried.reply, led_astray("redirected too often")) if is_still else tried

    async def _downloaded(self, url: str, request: Request, tally: ItemTally) -> Tried:
        """Return what came of a download. Its URL carries its own right, so no token goes there, and no bucket pays.

        The URL is good once: whatever goes wrong there, the file is asked for again (operations.md).
        """
        tally.requests += 1
        self.requests += 1
        takes_file = request.takes_file
        self.downloads += 1
        try:
            answer = await self._transport.download(url, request.max_bytes, takes_file=takes_file, holder=tally)
        finally:
            self.downloads -= 1
        if isinstance(answer, Failure):
            if answer.kind is FailureKind.NOT_SENT and answer.code is ErrorCode.BAD_RESPONSE:
                return Tried(reply=Reply(status=302, headers={}), verdict=led_astray(answer.message))
            # the platform was asked and has answered: such a try counts, even if nothing was sent to that URL
            return Tried(failure=replace(answer, kind=FailureKind.LOST))
        tally.http_status = answer.status
        tally.body_bytes += len(answer.raw)
        proof = proof_of_download(request, url)
        verdict = classify(replace(request, proof=proof), answer, self._vendor)
        if verdict.kind is not _ACCEPTED:
            why = f"what the platform led to for a download answered {answer.status}, and not with the file"
            return Tried(failure=Failure(kind=FailureKind.LOST, code=ErrorCode.BAD_RESPONSE, message=why))
        return Tried(reply=answer, verdict=verdict)

    async def _read_again(self, request: Request, context: RequestContext, first: Tried) -> Tried:
        patience, absences = Patience(self._governor, first, self._clock.monotonic()), self.absences

        async def again() -> Tried:
            self.retries += 1
            context.tally.retries += 1
            asked = replace(request, is_fresh=True) if patience.is_to_be_fresh else request
            tried = await self._followed(asked, context, await self.once(asked, context))
            patience.note(tried, self._clock.monotonic())
            return tried

        async def learn() -> None:
            await absences.learn(partial(self.ask, context), lambda: self.served[0], self._clock.monotonic)

        async def pause(seconds: float) -> None:
            wait = partial(self.pause, why=WaitReason.READ, error=patience.error)
            await (absences.wait(seconds, learn, wait) if patience.is_bare else wait(seconds))

        await pause(patience.pause_s(self._dice))
        retrying = AsyncRetrying(
            sleep=pause,
            wait=lambda _: patience.pause_s(self._dice),
            stop=lambda _: patience.is_over or (patience.is_bare and absences.is_enough(patience.unexplained)),
            retry=retry_if_result(lambda tried: not is_decided(tried)),
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else first,
        )
        tried: Tried = await retrying(again)
        return absences.believed(request, tried)

    async def ask(self, context: RequestContext, question: Request) -> Tried:
        """Ask a question of the engine's own, as `Absences.asked`; raises what `once` raises."""

        async def ready() -> None:
            context.permit = context.permit or await self._permit(context)

        return await self.absences.asked(ready, partial(self.once, question, context), self._clock.monotonic)

    async def pause(self, seconds: float, why: WaitReason | None = None, error: str = "") -> None:
        """Wait before another try.

        Args:
            why: what the status says of the pause; None where something else reports it.
            error: what went wrong before, for people; empty where nothing did.

        Raises:
            Draining: the run is ending, so there will be no other try.
        """
        with self.wait_reasons.told(why, seconds, self._clock.monotonic(), error), anyio.move_on_after(seconds):
            await self._draining.wait()
        if self._draining.is_set():
            raise Draining
