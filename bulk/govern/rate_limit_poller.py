"""Keeps the buckets of one credential true by asking `GET /rate_limit`, and renews a refused credential once.

The question is free. It is asked at the start, after each reset until the new window shows, after an unexplained
refusal, when a bucket ran out with nothing in flight (then the number is exact), and otherwise once in a tenth of a
window, at least every 30 s. It is one witness of several: where no answer comes, nothing waits for it, and requests
find out whether the platform can be reached. The source of a token is asked for the next one before the token ends
(`token_expiry.py`).
Source: operations.md, GET rate_limit; failures.md rows 16-19, 34, 35.
"""

import logging
import math
from collections.abc import Awaitable, Callable

import anyio

from bulk.errors import RunStopped
from bulk.govern.budgets import probes
from bulk.govern.first_contact import fault_of
from bulk.govern.governor import Governor
from bulk.govern.permits import unusable
from bulk.govern.permits.accounts import Account, PermitQueue, Trust
from bulk.govern.reactions import timed, why_refused
from bulk.govern.unknown_payers import Told
from bulk.model import Effect, ErrorCode, Failure, FailureKind, Reply, Request
from bulk.platform.auth.secrets import Secret
from bulk.platform.classification import Limits, Verdict, VerdictKind, date_from_headers, limits_from_body

log = logging.getLogger("bulk.govern")

MOST_BYTES = 1024 * 1024
"""Longest answer about limits (bytes); one of 3 kB names all categories that there are."""
ASK_LIMITS = Request(
    method="GET",
    path="/rate_limit",
    effect=Effect.READ,
    accept=frozenset((200, 404)),
    is_fresh=True,
    max_bytes=MOST_BYTES,
)
ASK_SHARE, ASK_MOST_S = 0.1, 30.0
ASK_OFF_S = 300.0
"""Where limits are off, the time between two questions whether they still are (seconds)."""
RESET_FIRST_S, RESET_SHARE, RESET_MOST_S = 0.015, 0.15, 5.0
"""Pauses between questions at a reset: a share of the time asked so far, so that little is lost and few are sent."""
DOUBT_AGAIN_S = 0.5
"""Where a bucket is empty only by a witness's word, how soon `/rate_limit` is asked again (seconds); then later."""
EMPTY_AGAIN_S, EMPTY_SHARE = 1.0, 0.5
"""Where nothing is left, how soon to ask again whether the window has another end (seconds); then later, by that share
of the time since it was emptied."""
GUESS_AGAIN_S, GUESS_SHARE = 0.1, 0.02
"""The same where platform time is not known: the end of a window is to show it."""
HOPELESS_AGAIN_S = 0.3
"""Pause before `/rate_limit` is asked again after it named a limit that leaves nothing to send (seconds)."""
GIVE_UP_AFTER = 5
"""After this many useless answers of `/rate_limit` in a row (5xx, garbage) the run goes on as if limits were off."""
PATIENCE_S = 10.0
"""After this time without an answer a question is given up (seconds)."""
FAULTS = 2
"""First answers that must show that no platform is there (count): a gateway may give a single such answer."""
COPY_S = 1.5
"""Answers with one `Date` that lie further apart are one answer, kept on the way (seconds)."""
OTHERS_ASK_S = 0.5
"""A worker leaves the question to another worker for this long (seconds)."""

NO_ANSWER = Failure(
    kind=FailureKind.LOST, code=ErrorCode.TIMEOUT, message=f"GET /rate_limit was not answered within {PATIENCE_S:g} s"
)

Ask = Callable[[Secret], Awaitable[tuple[Reply, Verdict] | Failure]]
IsThere = Callable[[Secret], Awaitable[bool]]
"""Finds out whether the platform answers another question."""


class RateLimitPoller:
    """Asks `/rate_limit` for one account, when something depends on the answer; `run` is its task."""

    def __init__(self, governor: Governor, account: Account, ask: Ask, is_there: IsThere | None = None) -> None:
        self._governor, self._account, self._ask, self._is_there = governor, account, ask, is_there
        self._clock = governor.clock
        self._useless = self._faults = 0
        self._leaves_it_until, self._has_obeyed = 0.0, False
        self._newest: tuple[tuple[float | None, object], float] = (None, None), 0.0

    async def run(self) -> None:
        """Watch until cancelled or until the credential is refused for good."""
        account = self._account
        while account.trust is not Trust.REFUSED:
            account.wake_event = anyio.Event()
            now = self._clock.monotonic()
            if account.is_idle and account.is_minted:
                await account.wake_event.wait()
                continue
            if account.trust is Trust.FROZEN:
                if not account.may_renew or not await account.renew(self._clock):
                    self._refuse()
                continue
            renewal = self._renewal_due(now)
            if renewal <= now:
                await self._renew_early()
                continue
            due = max(self._due(now), self._leaves_it_until, account.quiet_until, self._governor.quiet_until)
            if due > now:
                with anyio.move_on_after(min(due, renewal) - now):
                    await account.wake_event.wait()
                continue
            await self.ask_once()
            await self._compare()

    async def _compare(self) -> None:
        """Find out about accounts of which nobody says who pays for them, after each question that one of them asks."""
        unknown, clock = self._governor.unknown_payers.get(self._account.name), self._clock
        if unknown is not None and unknown.speaks(self._account):
            unknown.note_empty()
        elif unknown is not None and unknown.compares(self._account):
            await unknown.compare(self._told, clock.monotonic, clock.sleep)

    async def _told(self, token: Secret) -> Told:
        answer = await self._ask(token)
        return told_in(
            NO_ANSWER if isinstance(answer, Failure) else answer[0], self._governor.time.middle(self._clock.monotonic())
        )

    def _refuse(self) -> None:
        account, governor = self._account, self._governor
        governor.refuse(account)
        if any(account.name in members for members in governor.pools.values()):
            log.warning(
                "a pool goes on without its member %r, whose token %s; %s",
                account.name,
                "has ended" if account.token_expiry.has_no_next else f"the platform refused ({why_refused(account)})",
                account.source.renewal_problem or "there is no other one",
            )

    def _renewal_due(self, now: float) -> float:
        time = self._governor.time
        return self._account.token_expiry.due(now, self._clock.now(), time.high if time.is_known else None)

    async def _renew_early(self) -> None:
        """Ask the source for the next token while this one is good; refuse the account if none came that lasts."""
        account = self._account
        is_renewed = await account.renew(self._clock)
        now = self._clock.monotonic()
        if not is_renewed:
            account.token_expiry.tried(now, self._clock.now())
            account.token_expiry.ends_at = account.source.ends_at
        if self._governor.has_ended(account, now):
            account.token_expiry.has_no_next = True
            self._refuse()
        for queue in account.queues.values():
            queue.wake()

    def _due(self, now: float) -> float:
        """Return when to ask next (monotonic)."""
        account = self._account
        if words := max((queue.hopeless for queue in account.queues.values() if queue.bucket is None), default=0):
            # one word that nothing can be sent is not enough
            return account.polled + (HOPELESS_AGAIN_S if words < unusable.HOPELESS_WORDS else ASK_MOST_S)
        if not account.is_known or account.must_ask:
            return 0.0 if not self._useless else account.polled + min(5.0, 0.2 * 2.0 ** min(5, self._useless))
        if account.is_unlimited:
            return account.polled + ASK_OFF_S
        return min(
            (self._gate_due(queue, now) for queue in account.queues.values()),
            default=now + ASK_MOST_S,
        )

    def _gate_due(self, queue: PermitQueue, now: float) -> float:
        bucket, polled, time = queue.bucket, self._account.polled, self._governor.time
        if bucket is None:  # where the budget is shared, its row may have been lost, and nothing leaves without one
            is_held_up = queue.tokens is not None and self._governor.is_wanted(queue)
            return polled + (RESET_MOST_S if is_held_up else ASK_MOST_S)
        reset = math.inf if time.is_refuted else bucket.reset_at - time.high
        regular = polled + min(ASK_MOST_S, bucket.window_s * ASK_SHARE)
        if self._account.is_minted:  # there may be very many such accounts, and the answers to items say what is left
            regular = max(polled, queue.heard_at) + ASK_MOST_S
        if now < reset:
            queue.reset_asked_since = None
            if bucket.available > 0:
                return max(polled + RESET_FIRST_S, min(reset, regular))
            if not self._governor.is_wanted(queue):
                return polled + ASK_MOST_S
            if bucket.in_flight == 0 and queue.confirmed_window != bucket.window:
                return polled + RESET_FIRST_S
            empty_s = time.middle(now) - (bucket.emptied_at or bucket.opened_at)
            if probes.is_doubtful(bucket):
                pause_s = min(RESET_MOST_S, max(DOUBT_AGAIN_S, empty_s * RESET_SHARE))
            elif time.is_guess:
                pause_s = min(ASK_MOST_S, max(GUESS_AGAIN_S, empty_s * GUESS_SHARE))
            else:  # the end that the witness names may be wrong as well
                pause_s = min(ASK_MOST_S, max(EMPTY_AGAIN_S, empty_s * EMPTY_SHARE))
            return min(reset, polled + pause_s, time.over_next(bucket.reset_at, polled))
        if bucket.available <= 0 and not self._governor.is_wanted(queue):
            return polled + ASK_MOST_S
        if queue.reset_asked_since is None:
            queue.reset_asked_since = now
        asked_s = now - queue.reset_asked_since
        return polled + min(RESET_MOST_S, max(RESET_FIRST_S, asked_s * RESET_SHARE))

    async def ask_once(self) -> None:
        """Ask `/rate_limit` and take in the answer; of workers that share the account, one asks."""
        account, governor = self._account, self._governor
        peers = governor.peers
        shared = await peers.marks(account.name) if peers is not None else None
        if peers is not None and shared is None and account.is_known and not account.must_ask:
            account.polled = self._clock.monotonic()
            self._leaves_it_until = account.polled + OTHERS_ASK_S
            return
        marks = {
            name: (queue.bucket.mark, queue.bucket.in_flight) for name, queue in account.queues.items() if queue.bucket
        }
        sent, wishes = self._clock.monotonic(), account.wishes
        answer = await self._answer()
        if answer is None:
            return
        now = account.polled = self._clock.monotonic()
        account.was_asked = True
        for name, queue in account.queues.items():
            queue.heard_at = now
            bucket = queue.bucket
            if bucket is not None and name in marks and bucket.available <= 0:
                mark, in_flight = marks[name]
                if in_flight == 0 and bucket.overlap(mark) == 0:
                    queue.confirmed_window = bucket.window
        if isinstance(answer, Failure):
            self._unanswered(answer)
            return
        reply, verdict = answer
        if not governor.answers and await self._is_doubtful(reply):
            self._useless += 1
            return
        self._heard(reply, verdict, marks, sent, wishes)
        if peers is None or verdict.kind is not VerdictKind.ACCEPTED:
            return
        told, time = _told_by(reply) if reply.status == 200 else {}, governor.time
        if told:  # also where another worker asks for all: it may not have told anything yet
            await peers.told(account.name, told, shared or {}, time.middle(now), time.latest(now))
        for name, queue in account.queues.items():
            if queue.tokens is not None:
                queue.tokens.look(is_unlimited=name not in told)

    async def _answer(self) -> tuple[Reply, Verdict] | Failure | None:
        """Ask, and return what came within `PATIENCE_S`; None: the token was refused meanwhile, and the question with
        it is given up, so that a renewal does not wait for its answer."""
        account, answer = self._account, None

        async def watch() -> None:
            while account.trust is not Trust.FROZEN:
                account.wake_event = anyio.Event()
                await account.wake_event.wait()
            scope.cancel()

        async with anyio.create_task_group() as group:
            scope = group.cancel_scope
            scope.deadline = anyio.current_time() + PATIENCE_S
            group.start_soon(watch)
            answer = await self._ask(account.token)
            scope.cancel()
        return answer or (None if account.trust is Trust.FROZEN else NO_ANSWER)

    def _unanswered(self, failure: Failure) -> None:
        """Note that a question got no answer. Only one that never left says that the platform is out of reach; where
        workers share a budget, so does any, because only an answer opens the next window."""
        account, governor = self._account, self._governor
        self._useless += 1
        account.is_mute = failure.kind is FailureKind.LOST
        if account.is_mute:
            self._give_up_in_time()
        is_needed = any(queue.tokens is not None and queue.bucket is not None for queue in account.queues.values())
        if is_needed or failure.kind is FailureKind.NOT_SENT or failure.is_answer:
            governor.unanswered(failure)
        governor.wake()

    def _give_up_in_time(self) -> None:
        """Go on as if limits were off after `GIVE_UP_AFTER` questions in vain, unless workers share a budget that is
        known."""
        account = self._account
        if self._useless >= GIVE_UP_AFTER:
            account.is_known, account.must_ask = True, False
            unusable.forget_unconfirmed(account)
            for queue in account.queues.values():
                if queue.tokens is not None and queue.bucket is None:
                    queue.tokens.look(is_unlimited=True)

    async def _is_doubtful(self, reply: Reply) -> bool:
        """Return whether a first answer must be seen again; stop the run after `FAULTS` answers of no platform, unless
        it answers another question."""
        fault = fault_of(reply)
        if not fault:
            return reply.is_truncated and self._useless < GIVE_UP_AFTER
        self._faults += 1
        if self._faults < FAULTS:
            return True
        if self._is_there is not None and await self._is_there(self._account.token):
            return False
        self._governor.stop(RunStopped(fault))
        return True

    def _heard(
        self, reply: Reply, verdict: Verdict, marks: dict[str, tuple[int, int]], sent: float, wishes: int
    ) -> None:
        """Take in an answer that came just now to the question that was sent at `sent` (monotonic)."""
        account, governor, now = self._account, self._governor, self._account.polled
        account.is_mute = False
        is_copy = self._is_copy(reply, now)
        governor.heard(reply, sent, now, is_copy=is_copy)
        if verdict.kind is VerdictKind.ACCEPTED:  # also where it says that limits are off
            account.wordless.limits_told()
        match verdict.kind:
            case VerdictKind.ACCEPTED if reply.status == 200:
                account.prove(sent)
                self._take({} if is_copy else _told_by(reply), marks, sent, now)
                account.must_ask = account.wishes != wishes
            case VerdictKind.ACCEPTED | VerdictKind.REFUSED | VerdictKind.ASTRAY if reply.status == 404:
                self._useless, account.must_ask = 0, False
                account.is_known = account.is_unlimited = True
                unusable.forget_unconfirmed(account)
            case VerdictKind.UNAUTHORIZED:
                account.freeze(now)
            case _:
                self._useless += 1
                wait_s = timed(verdict, reply, governor.time, now).retry_after_s
                if wait_s is not None and self._has_obeyed:  # the question alone was told to wait: requests go to see
                    self._leaves_it_until, account.is_known, account.must_ask = now + wait_s, True, False
                elif wait_s is not None:
                    self._has_obeyed = True
                    account.pause_all(now + wait_s, f"limit of {account.name} (Retry-After)")
                elif verdict.kind is VerdictKind.LOCKED_OUT:
                    account.lock_out(now)
                self._give_up_in_time()
        for queue in account.queues.values():
            queue.wake()

    def _is_copy(self, reply: Reply, now: float) -> bool:
        """Return whether an answer is an earlier one once more, as something on the way has kept it: it has the same
        `Date`, although more than a second has passed."""
        (date, body), heard_at = self._newest
        newest = date_from_headers(reply.headers), reply.body
        if newest != (date, body):
            self._newest = newest, now
        return newest == (date, body) and date is not None and now > heard_at + COPY_S

    def _take(self, told: dict[str, Limits], marks: dict[str, tuple[int, int]], sent: float, now: float) -> None:
        account, governor = self._account, self._governor
        self._useless = 0
        was_asked = account.must_ask and account.is_known
        account.is_known, account.is_unlimited = True, False
        is_explained, unknown = False, governor.unknown_payers.get(account.name)
        unusable.forget_unconfirmed(account, told)
        for name, queue in account.queues.items():
            if name not in told or (unknown is not None and not unknown.speaks(account)):
                continue
            mark, _ = marks.get(name, (0, 0))
            overlap = queue.bucket.overlap(mark) if queue.bucket else 0
            if queue.bucket is not None and queue.refused_window == queue.bucket.window and sent < queue.refused_at:
                continue  # an answer to a question from before the refusal does not explain the refusal
            governor.observe(queue, told[name], overlap, now, sent, is_asked=True)
            bucket = queue.bucket
            if bucket is None:
                continue
            is_explained = is_explained or bucket.available <= 0
            queue.refused_window = 0
        if was_asked and is_explained:
            account.reopen(now)


def take_told(governor: Governor, account: Account, told: Told, sent: float) -> None:
    """Take in what an account, of which nothing is known yet, was told of its limits when it was asked at `sent`
    (monotonic)."""
    for name, queue in account.queues.items():
        if name in told.limits:
            governor.observe(queue, told.limits[name], 0, governor.clock.monotonic(), sent, is_asked=True)


def told_in(answer: Reply | Failure, now: float) -> Told:
    """Return what an answer tells; `now`: platform time, if it does not say when it was made (UTC epoch seconds)."""
    if isinstance(answer, Failure) or answer.status != 200:
        return Told(now, {})
    date = date_from_headers(answer.headers)
    return Told(now if date is None else date, _told_by(answer))


def _told_by(reply: Reply) -> dict[str, Limits]:
    return limits_from_body(reply.body, date_from_headers(reply.headers))
