"""Reacts to an answer, for the requests after it: pauses the credential, empties a bucket, freezes a token.

A limit that names a time, or a bucket that is empty, is the word of a budget and no sign that the platform has too
much to do: the number that may be in flight stays. `Retry-After` is obeyed as it stands, and longer if it names next to
nothing in vain. After a limit without a time, `/rate_limit` is asked first: an empty bucket waits for its reset,
otherwise nothing of the credential leaves for a growing time. After a limit that no empty bucket explains, one request
goes first, and then ever more (`permits/ramp.py`). A refusal without a reason holds up no other request, unless several
in a row make it look like a limit.
Source: open-points.md (secondary limits); failures.md rows 16-19.
"""

from dataclasses import replace

from bulk.clock import iso_utc
from bulk.errors import CredentialRefused
from bulk.govern.concurrency.adaptive_limit import AdaptiveLimit
from bulk.govern.permits.accounts import Account, Permit
from bulk.govern.permits.ramp import Ramp
from bulk.govern.server_clock import ServerClock
from bulk.model import Reply
from bulk.platform import phrases
from bulk.platform.classification import Verdict, VerdictKind, retry_after_s
from bulk.platform.moments import MOST_WAIT_S

SUFFERING = frozenset((VerdictKind.BUSY, VerdictKind.SERVER_ERROR))
"""Signs that fewer requests at once would be better."""

UNTIMED = frozenset((VerdictKind.LIMITED_SECONDARY, VerdictKind.UNEXPLAINED))
"""Verdicts that are such signs only if they name no time and the bucket is not empty."""

PROVING = frozenset((VerdictKind.ACCEPTED, VerdictKind.REFUSED, VerdictKind.LIMITED_PRIMARY))
"""Answers that are given only to a token that the platform takes; an error page may be any proxy's."""

FAILURES = frozenset((VerdictKind.BUSY, VerdictKind.SERVER_ERROR, VerdictKind.BAD_RESPONSE))
"""Answers that serve nobody, and have nothing to do with limits or with the credential."""

AT_ONCE_S = 1.0
"""A time that a limit names is as good as none if it is shorter than this (seconds)."""
VAIN_FIRST_S, VAIN_MOST_S = 0.1, 60.0
"""Least pause after a limit that names such a time and came again when that was over, and the longest (seconds). The
pause doubles each time in a row."""

OFF_AGAIN_S = 5.0
"""Where limits are off, refusals have `/rate_limit` asked no sooner again than after this time (seconds)."""

BUSY_WHY = "platform busy (Retry-After)"


def timed(verdict: Verdict, reply: Reply, time: ServerClock, now: float) -> Verdict:
    """Return the verdict on `reply` with the wait until the moment that `Retry-After` names, where no `Date` came with
    it: by what is known of the platform's time (now: monotonic). One that is over by that, or out of reach, says
    nothing."""
    if verdict.retry_after_s is not None or "retry-after" not in reply.headers or time.is_refuted:
        return verdict
    wait_s = retry_after_s(reply.headers, time.middle(now))
    return replace(verdict, retry_after_s=wait_s) if wait_s and wait_s < MOST_WAIT_S else verdict


def may_be_too_fast(verdict: Verdict, reply: Reply) -> bool | None:
    """Return whether a front end refuses what comes too fast with such an answer; False: or for another reason; None:
    it does not."""
    if verdict.kind is VerdictKind.THROTTLED:
        return True
    is_unavailable = verdict.kind is VerdictKind.SERVER_ERROR and reply.status == 503
    if (is_unavailable and "retry-after" not in reply.headers) or verdict.kind is VerdictKind.UNEXPLAINED:
        return False
    return None


def follow(
    permit: Permit, verdict: Verdict, now: float, concurrency: AdaptiveLimit, unexplained_s: float
) -> float | None:
    """Draw the consequences of a verdict.

    Args:
        now: monotonic. unexplained_s: the first pause after an unexplained refusal (seconds).

    Returns:
        Until when the whole platform is to be left alone (monotonic); None: it did not ask for that.
    """
    queue, account = permit.queue, permit.queue.account
    wait_s = verdict.retry_after_s
    is_budget = wait_s is not None or (queue.bucket is not None and queue.bucket.available == 0)
    if verdict.kind in SUFFERING or (verdict.kind in UNTIMED and not is_budget):
        concurrency.suffered(now)
    match verdict.kind:
        case VerdictKind.UNAUTHORIZED:
            if permit.generation == account.generation:
                account.freeze(now, verdict.message)
        case VerdictKind.LOCKED_OUT:
            account.lock_out(now)
        case VerdictKind.LIMITED_PRIMARY:
            if wait_s is not None:
                _obey(permit, wait_s, now)
            _limited(permit, now, unexplained_s)
        case VerdictKind.LIMITED_SECONDARY | VerdictKind.UNEXPLAINED | VerdictKind.ASTRAY | VerdictKind.THROTTLED:
            if verdict.kind is VerdictKind.LIMITED_SECONDARY and (queue.bucket is None or queue.bucket.available > 0):
                _begin_small(permit, now)
            _heed(permit, verdict, now, unexplained_s)
        case VerdictKind.BUSY if wait_s is not None:
            return now + wait_s
        case _:
            pass
    return None


def _obey(permit: Permit, wait_s: float, now: float) -> None:
    """Wait for the time that the platform named.

    A time that is over at once, because it is zero or lies in the past by some clock, would be obeyed as fast as
    answers come. So the pause grows each time that it was in vain.
    """
    account, least_s = permit.queue.account, 0.0
    if wait_s < AT_ONCE_S and permit.granted >= account.paused_until:  # the request left after the last pause
        least_s = min(VAIN_MOST_S, VAIN_FIRST_S * 2.0 ** min(20, account.vain)) if account.vain else 0.0
        account.vain += 1
    account.pause_all(now + max(wait_s, least_s), f"limit of {account.name} (Retry-After)")


def _heed(permit: Permit, verdict: Verdict, now: float, unexplained_s: float) -> None:
    """Heed a limit that is no bucket's, or a refusal that may be one: only an empty bucket could explain that."""
    account = permit.queue.account
    if verdict.retry_after_s is not None:
        _obey(permit, verdict.retry_after_s, now)
        return
    if verdict.kind is VerdictKind.LIMITED_SECONDARY:
        account.back_off(now, unexplained_s)
    elif verdict.kind is VerdictKind.THROTTLED and account.wordless.is_over:
        account.back_off(now, unexplained_s)  # nothing is served at all, and for longer than a rate would explain
    elif permit.queue.bucket is None or permit.queue.bucket.available > 0:
        account.wordless.is_astray = verdict.kind is VerdictKind.ASTRAY
        _wait_together(permit, now)
    if not account.is_unlimited or now >= account.polled + OFF_AGAIN_S:
        account.ask_soon()


def _wait_together(permit: Permit, now: float) -> None:
    """Keep all of a credential back for a while if one after the other is refused without a reason."""
    account, wordless = permit.queue.account, permit.queue.account.wordless
    was_vain = wordless.is_vain
    pause_s = wordless.pause_s(is_newer=permit.granted >= account.paused_until)
    if pause_s:
        account.pause(now + pause_s, f"refusals of {account.name} without a reason")
        _begin_small(permit, now)
    elif wordless.is_vain and not was_vain:
        account.ramp = None


def _begin_small(permit: Permit, now: float) -> None:
    """Let one request go first when the pause after a limit is over that no budget explains, and more if it may."""
    account = permit.queue.account
    if account.ramp is None:
        account.ramp = Ramp(now)
    else:
        account.ramp.refused(permit.granted, now)


def climb(account: Account, now: float) -> None:
    """Note a good answer after such a limit."""
    ramp = account.ramp
    account.wordless.served()
    if ramp is not None:
        ramp.answered(account.in_flight, now)
        if ramp.is_over:
            account.ramp = None


def _limited(permit: Permit, now: float, unexplained_s: float) -> None:
    """Note that nothing is left in the window that the request left in."""
    queue, account = permit.queue, permit.queue.account
    bucket = queue.bucket
    if bucket is None:
        account.back_off(now, unexplained_s)
        return
    if permit.window == bucket.window:
        if queue.tokens is not None:
            queue.tokens.exhausted(permit.window)
        if not permit.is_probe:  # `probes.saw` tells the bucket what a probe met
            bucket.exhaust()
        queue.refused_at, queue.refused_window = now, bucket.window
    account.ask_soon()


def refused(account: Account) -> CredentialRefused:
    """Return the error for a credential that the platform does not take, or whose token has ended."""
    problem = account.source.renewal_problem
    if account.is_minted:
        problem = problem or f"the platform does not take tokens of {account.name!r} (401)"
        return CredentialRefused(account.name, problem, is_gone=account.source.is_gone)
    expiry = account.token_expiry
    if expiry.has_no_next and expiry.ends_at is not None:
        return CredentialRefused(
            account.name,
            f"the source of the credential {account.name!r} gave a token that has ended, at {iso_utc(expiry.ends_at)}"
            f"{f' ({problem})' if problem else ''}: nothing is sent with it, and everything that uses it has stopped. "
            "Have its source give a token that lasts, then resume the run.",
        )
    return CredentialRefused(
        account.name,
        f"the platform refused the credential {account.name!r} ({why_refused(account)}): everything that uses it has "
        f"stopped. Put a valid token where it is read from{f' ({problem})' if problem else ''}, then resume the run.",
    )


def why_refused(account: Account) -> str:
    """Return the status with which a token was refused, and the reason where it is another one than that."""
    said = account.refused_why
    return f"403: {said}" if phrases.is_suspended(said) else "401"
