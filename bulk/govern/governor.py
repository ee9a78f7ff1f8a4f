"""The governor gives permits: the one place that decides when a request may leave, and why it may not.

A caller asks for a permit, and later tells what came of the request; neither awaits between reading and changing state.
The fast path is synchronous. A worker that must wait stands in a permit queue, and the queue's attendant hands out
permits as buckets, pacing, pauses and concurrency allow. `rate_limit_poller.py` asks `GET /rate_limit` and so keeps
buckets true.
Source: design.md §4; open-points.md (limits); failures.md rows 16-19, 25, 31, 32.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from bulk.clock import Clock
from bulk.errors import BulkError, RunStopped
from bulk.govern import first_contact
from bulk.govern.budgets import shared_bucket
from bulk.govern.concurrency.adaptive_limit import AdaptiveLimit
from bulk.govern.concurrency.loop_load import EVERY, LoopLoad
from bulk.govern.leased_tokens import LeasedTokens
from bulk.govern.obstacles import Obstacles
from bulk.govern.peers import Peers
from bulk.govern.permits import charges, pacing, unusable
from bulk.govern.permits.accounts import NO_TOKEN, Account, CredentialSource, Permit, PermitQueue, Trust, Waiter
from bulk.govern.permits.token_expiry import TokenExpiry
from bulk.govern.reachability import PAGE, SILENT_AFTER, Reachability
from bulk.govern.reactions import BUSY_WHY, FAILURES, PROVING, climb, follow, refused, timed
from bulk.govern.server_clock import ServerClock
from bulk.govern.turns import Turns
from bulk.govern.unknown_payers import UnknownPayer
from bulk.govern.user_limits import Draining, UserLimits
from bulk.model import Failure, FailureKind, Reply
from bulk.platform.bodies.body_values import A_PAGE
from bulk.platform.classification import Limits, Verdict, VerdictKind, date_from_headers

# Python 3.11 looks a member of an enumeration up through a descriptor, forty times slower than a name
_ACCEPTED, _REFUSED = VerdictKind.ACCEPTED, VerdictKind.REFUSED
_PROVEN, _UNPROVEN = Trust.PROVEN, Trust.UNPROVEN
_USABLE = (_PROVEN, _UNPROVEN)


class Governor:
    """Gives the permits with which requests leave.

    Args:
        work_left: requests still to be sent for (credential, category) (count); decides about pacing.
        stop: called once with the reason when the run can't go on (platform out of reach, bad certificate).
        peers: the other workers that spend the same budgets; None: there are none that could be asked.
    """

    def __init__(
        self,
        user_limits: UserLimits,
        clock: Clock,
        work_left: Callable[[str, str], int],
        stop: Callable[[BulkError], None],
        peers: Peers | None = None,
    ) -> None:
        self.user_limits, self.clock, self.peers = user_limits, clock, peers
        self.accounts: dict[str, Account] = {}
        self.pools: dict[str, tuple[str, ...]] = {}
        self.unknown_payers: dict[str, UnknownPayer] = {}
        self.concurrency = AdaptiveLimit(user_limits.concurrency)
        self.time = ServerClock.from_local(clock.now(), clock.monotonic())
        self.answers = 0
        self.loop_load = LoopLoad(self.concurrency, clock)
        self.good_answers = self.failures = self._pages = 0
        self._first_page_at = 0.0
        self._work_left, self.stop = work_left, stop
        self.reachability = Reachability(user_limits.unreachable_s)
        self._is_draining = self._may_begin = False
        deadline = self._deadline = peers.deadline if peers is not None else None
        self._obstacles = Obstacles(clock, self.time, self.concurrency, self.reachability, self._is_cleared, deadline)
        self._turns = Turns(clock, self.concurrency, self._obstacles, self._grant, self.refresh_pace)
        self._queues = self._turns.queues

    def open_account(self, source: CredentialSource, categories: Iterable[str]) -> Account:
        """Make the permit queues of one credential and read its token, which may raise CredentialMissing."""
        token, now = source.read(), self.clock.monotonic()
        token_expiry = TokenExpiry(now, self.clock.now() - now, source.renews_after_s, source.ends_at)
        return self._opened(Account(source.name, source, token, token_expiry), categories)

    def open_minted(self, source: CredentialSource, categories: Iterable[str]) -> Account:
        """Make the permit queues of a credential that has no token yet: its tokens are minted when they are needed."""
        account = Account(source.name, source, NO_TOKEN, generation=0, is_minted=True)
        account.trust, account.trust_before_freeze = Trust.FROZEN, Trust.PROVEN
        return self._opened(account, categories)

    def _opened(self, account: Account, categories: Iterable[str]) -> Account:
        peers = self.peers
        for category in categories:
            queue = account.queues[category] = PermitQueue(account, category)
            if peers is not None:
                account.changed = peers.changed
                queue.tokens = LeasedTokens(queue, self.time, self.concurrency, self._wishes(queue), peers, self.clock)
        self.accounts[account.name] = account
        self._queues.extend(account.queues.values())
        return account

    def _wishes(self, queue: PermitQueue) -> Callable[[], tuple[int, bool]]:
        return lambda: (self._work_left(queue.account.name, queue.category), self.user_limits.is_even)

    def queue(self, credential: str, category: str) -> PermitQueue:
        """Return the permit queue of (credential, category); for a pool, the queue of its first member."""
        name = self.pools[credential][0] if credential in self.pools else credential
        return self.accounts[name].queues[category]

    def is_wanted(self, queue: PermitQueue) -> bool:
        """Return whether a worker waits for a permit at `queue`, or for that of any member of a pool that it is in."""
        name, category, accounts = queue.account.name, queue.category, self.accounts
        mates = (accounts[mate] for members in self.pools.values() if name in members for mate in members)
        return queue.waiting > 0 or any(category in mate.queues and mate.queues[category].waiting for mate in mates)

    def permit_nowait(self, queue: PermitQueue, is_settling: bool = False) -> Permit | None:
        """Return a permit if there is one at once; None means that the caller must `await permit(queue)`."""
        if queue.waiters or queue.is_paced or queue.settlers:
            return None
        return self._grant(queue, self.clock.monotonic(), is_settling)

    async def permit(self, queue: PermitQueue, *, is_new: bool = False, is_settling: bool = False) -> Permit:
        """Wait for a permit; `is_new`: it is for an item that no worker has begun yet; `is_settling`: see `Permit`.

        Raises:
            CredentialRefused: the platform does not take the credential, and it can't be renewed.
            Draining: the run is ending.
        """
        permit = self.permit_nowait(queue, is_settling)
        if permit is not None:
            return permit
        self._refuse_if_over(queue)
        waiter, line = Waiter(), queue.settlers if is_settling else queue.newcomers if is_new else queue.waiters
        line.append(waiter)
        queue.wake()
        try:
            await waiter.event.wait()
        except BaseException:
            if waiter.permit is not None:
                queue.given -= 1
                self.return_unused(waiter.permit)
            elif waiter in line:
                line.remove(waiter)
            raise
        if waiter.error is not None:
            raise waiter.error
        assert waiter.permit is not None, "a waiter is woken with a permit or an error"
        queue.given -= 1
        return waiter.permit

    def may_leave(self, permit: Permit) -> bool:
        """Return whether a permit is still good at the moment of sending.

        A 401 or a pause may have come since the permit was given.
        """
        queue, obstacles, now = permit.queue, self._obstacles, self.clock.monotonic()
        account, deadline = queue.account, self._deadline
        if deadline is not None and deadline.has_passed(self.clock):
            return False
        if obstacles.is_paused and not permit.is_settling:
            return False
        if queue.tokens is not None and now > permit.granted + shared_bucket.HOLD_S:
            return False
        if permit.generation != account.generation or account.trust not in _USABLE:
            return False
        return now >= account.paused_until and now >= obstacles.paused_until

    def has_ended(self, account: Account, now: float) -> bool:
        """Return whether no request may be sent with the account's token until its source has been asked again."""
        return self._obstacles.has_ended(account, now)

    def _refuse_if_over(self, queue: PermitQueue) -> None:
        if self._is_draining:
            raise Draining
        if queue.account.trust is Trust.REFUSED:
            raise refused(queue.account)

    def _grant(self, queue: PermitQueue, now: float, is_settling: bool) -> Permit | None:
        queue.obstacle = self._obstacles.of(queue, now, is_settling)
        if queue.obstacle:
            return None
        account, bucket = queue.account, queue.bucket
        if bucket is not None and bucket.burst and queue.is_stale(now):
            queue.wake()
            return None
        permit = charges.charge(queue, account.token, account.generation, now, self.time)
        permit.is_settling = is_settling
        queue.used += 1
        queue.granted += 1
        queue.in_flight += 1
        if queue.granted == pacing.UNPACED_FIRST:
            self.refresh_pace(queue, now)
        account.in_flight += 1
        self.concurrency.in_flight += 1
        return permit

    async def attend(self, queue: PermitQueue) -> None:
        """Hand out permits to the workers that wait at `queue`, for ever; there is one such task for each queue."""
        await self._turns.attend(queue)

    def refresh_pace(self, queue: PermitQueue, now: float) -> None:
        """Decide whether and how fast `queue` is paced, from the requests that are left and those still to be sent."""
        # a guess does not tell how long they have to last
        is_even = self.user_limits.is_even and not self.time.is_guess
        latest = self.time.latest_before(0.0 if queue.bucket is None else queue.bucket.reset_at, now)
        queue.rate = pacing.rate_of(queue, self._work_left, latest) if is_even else None
        queue.is_paced = queue.rate is not None

    def return_unused(self, permit: Permit) -> None:
        """Give back a permit with which no request was made."""
        now = self.clock.monotonic()
        self._release(permit, now)
        charges.give_back(permit)
        charges.saw(permit, None, now, self.time)
        self._turns.pump(permit.queue, now)

    def failed(self, permit: Permit, failure: Failure) -> None:
        """Note that a request got no answer. Its budget comes back only if the request was provably never sent."""
        now = self.clock.monotonic()
        self._release(permit, now)
        if failure.kind is FailureKind.NOT_SENT:
            charges.give_back(permit)
        charges.saw(permit, None, now, self.time)
        self.failures += failure.kind is not FailureKind.NOT_SENT
        permit.queue.note_error(failure.message)
        if not failure.is_answer:
            self.concurrency.suffered(now)
        self.unanswered(failure)
        self._turns.pump(permit.queue, now)

    def unanswered(self, failure: Failure) -> None:
        """Note that a request (also one for `/rate_limit`) got no answer, and stop the run if it can't go on."""
        if reason := self.reachability.failed(self.clock.monotonic(), failure, is_first_contact=not self.answers):
            self.stop(RunStopped(reason))
        self.wake()

    def answered(self, permit: Permit, reply: Reply, verdict: Verdict) -> None:
        """Note that a request was answered, and let the answer change budgets, concurrency, pauses and trust."""
        now = self.clock.monotonic()
        queue = permit.queue
        account, granted = queue.account, permit.granted
        self._release(permit, now)
        if reply.status == 304:
            charges.give_back(permit)
        elif permit.window:
            charges.date(permit, reply)
        self.heard(reply, granted, now)
        trip_s = now - granted
        queue.trip_s += pacing.TRIP_MEMORY * (trip_s - queue.trip_s)
        kind = verdict.kind
        is_doubted = account.trust is not _PROVEN or account.lockouts > 0
        if is_doubted and permit.generation == account.generation and kind in PROVING:
            account.prove(granted)
        seen = charges.SEEN.get(kind) if permit.is_probe else None
        if seen is False:  # before its headers are taken in, so that they can't pass for a window that it has opened
            charges.saw(permit, seen, now, self.time)
        limits = charges.limits_of(permit, reply, verdict)
        if limits is not None:
            self.observe(queue, limits, queue.bucket.overlap(permit.mark) if queue.bucket else 0, now, granted)
        if permit.is_probe and seen is not False:
            charges.saw(permit, seen, now, self.time, has_headers=limits is not None)
        if kind is _ACCEPTED or kind is _REFUSED:
            account.backoffs = account.vain = account.wordless.in_row = 0
            if account.ramp is not None:
                climb(account, now)
            queue.errors = 0
            self.good_answers += not reply.is_truncated
            self.failures += reply.is_truncated
            self.concurrency.answered(trip_s, is_found=kind is _ACCEPTED)
        else:
            self.failures += kind in FAILURES
            queue.note_error(verdict.message)
            if reply.body is A_PAGE:
                self._note_page(now)
            said = timed(verdict, reply, self.time, now)
            paused_until = follow(permit, said, now, self.concurrency, self.user_limits.unexplained_s)
            if paused_until is not None:
                self._obstacles.pause_until(paused_until, BUSY_WHY)
                if self.peers is not None:  # peers learn of it as a pause of each account
                    account.pause_all(paused_until, BUSY_WHY)
        self._turns.pump(queue, now)

    def _note_page(self, now: float) -> None:
        """Note that an item was answered with a web page.

        Several pages in a row count as no answers of the platform, unless `/rate_limit` is answered.
        """
        if self.good_answers:
            self.unanswered(PAGE)
            if self.reachability.unanswered == SILENT_AFTER:
                for account in self.accounts.values():
                    account.ask_soon()
            return
        self._pages += 1
        if self._pages == 1:
            self._first_page_at = now
        if self._pages >= first_contact.PAGES and now >= self._first_page_at + first_contact.PAGES_S:
            self.stop(RunStopped(first_contact.NOTHING_BUT_PAGES))

    @property
    def served(self) -> tuple[int, int]:
        """The numbers of good answers and of failures so far, over all accounts (counts)."""
        return self.good_answers, self.failures

    def heard(self, reply: Reply, sent: float, received: float, *, is_copy: bool = False) -> None:
        """Note any answer at all: the platform is in reach, and its clock was seen, unless it `is_copy` of an earlier
        answer."""
        self.answers += 1
        if not self.answers % EVERY:
            self.loop_load.measure()
        if self.reachability.unanswered and reply.body is not A_PAGE and self.reachability.answered():
            self.wake()
        date = date_from_headers(reply.headers)
        if date is not None and not is_copy:
            self.time.observe(date, sent, received)

    def observe(
        self, queue: PermitQueue, limits: Limits, overlap: int, now: float, sent: float, *, is_asked: bool = False
    ) -> None:
        """Take what the platform says about a bucket, from a header or (`is_asked`) from `/rate_limit`."""
        queue.heard_at = now
        is_first, reserve = queue.bucket is None, self.user_limits.reserve
        if charges.take_limits(queue, limits, overlap, now, sent, self.time, reserve, is_asked=is_asked) or is_first:
            self.refresh_pace(queue, now)
            queue.wake()
        if queue.hopeless and unusable.is_hopeless(queue, now):
            work = unusable.work_of(queue, now, self.accounts, self.pools, self._work_left)
            reason = unusable.reason_to_stop(self._queues, queue, work, self.user_limits.reserve)
            if reason is not None:
                self.stop(reason)

    def _is_cleared(self) -> bool:
        """Return whether the run may begin to send (`unusable.may_begin`), and wake all queues when it first may."""
        if not self._may_begin and unusable.may_begin(self.accounts, self.pools, self._work_left):
            self._may_begin = True
            self.wake()
        return self._may_begin

    def _release(self, permit: Permit, now: float) -> None:
        self.concurrency.in_flight -= 1
        permit.queue.account.in_flight -= 1
        permit.queue.in_flight -= 1
        if permit.window:
            charges.release(permit, now, self.time)
        elif not permit.queue.trip_s:
            permit.queue.wake()  # the others at it waited for what this one met

    def refuse(self, account: Account) -> None:
        """Tell every worker that waits for the credential that the credential can't be used any more."""
        account.trust = Trust.REFUSED
        for queue in account.queues.values():
            queue.turn_away(lambda: refused(account))

    def pause(self) -> None:
        """Let only `GET /rate_limit` and requests that look for lost writes leave, whatever permits were given."""
        self._obstacles.is_paused = True

    def go_on(self) -> None:
        """End the pause."""
        self._obstacles.is_paused = False
        self.wake()

    def set_concurrency(self, most: int) -> None:
        """Let at most `most` requests be in flight from now on (count)."""
        self.concurrency.set_most(most)
        self.wake()

    def set_reserve(self, reserve: Callable[[int], int]) -> None:
        """Leave a reserve of every window to others, also of those that are open; ValueError: nothing would be left."""
        unusable.set_reserve(self._queues, reserve)
        self.user_limits = replace(self.user_limits, reserve=reserve)
        for queue in self._queues:
            self.refresh_pace(queue, self.clock.monotonic())
        self.wake()

    def wake(self) -> None:
        """Wake the attendants of all permit queues, so that they look again."""
        for queue in self._queues:
            queue.wake()

    def drain(self) -> None:
        """Give permits only to workers that need not wait; turn away the others."""
        self._is_draining = True
        for queue in self._queues:
            queue.turn_away(Draining)

    @property
    def quiet_until(self) -> float:
        """The time before which nothing at all is sent (monotonic)."""
        return self._obstacles.paused_until
