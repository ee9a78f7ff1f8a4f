"""Whose budget the headers of an answer speak of."""

from typing import Any

import pytest

from bulk.govern.budgets.buckets import Bucket
from bulk.govern.permits import charges, told_time, unusable
from bulk.govern.permits.accounts import Account, Permit, PermitQueue, Trust
from bulk.govern.server_clock import ServerClock
from bulk.model import Reply
from bulk.platform.auth.secrets import Secret
from bulk.platform.classification import Limits, Verdict, VerdictKind

NOW = 1_000.0
RESET = 1_800_000_900
OWN = {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "4000", "x-ratelimit-reset": str(RESET)}
ANONYMOUS = {**OWN, "x-ratelimit-limit": "60", "x-ratelimit-remaining": "56", "x-ratelimit-resource": "core"}
SILENT = {
    VerdictKind.UNAUTHORIZED: 401, VerdictKind.LOCKED_OUT: 403, VerdictKind.LIMITED_SECONDARY: 429,
    VerdictKind.UNEXPLAINED: 403, VerdictKind.THROTTLED: 429, VerdictKind.BUSY: 503, VerdictKind.SERVER_ERROR: 502,
    VerdictKind.BAD_RESPONSE: 200, VerdictKind.ASTRAY: 404,
}  # fmt: skip
HEARD = {
    VerdictKind.ACCEPTED: 200, VerdictKind.REDIRECTED: 302, VerdictKind.REFUSED: 404, VerdictKind.LIMITED_PRIMARY: 403,
}  # fmt: skip


def permit(*, has_bucket: bool = True, generation: int = 1) -> Permit:
    """Of a permit queue with 4,500 of 5,000 left."""
    source: Any = None
    account = Account("default", source, Secret("t"), trust=Trust.PROVEN)
    bucket = Bucket(5_000, 4_500, float(RESET), 3_600.0, opened_at=RESET - 3_600.0) if has_bucket else None
    queue = account.queues["core"] = PermitQueue(account, "core", bucket)
    return Permit(queue, account.token, 1, 0, generation, NOW)


def said(kind: VerdictKind, status: int, headers: dict[str, str], one: Permit | None = None) -> int | None:
    """The limit that is heard."""
    found = charges.limits_of(one or permit(), Reply(status=status, headers=headers), Verdict(kind))
    return None if found is None else found.limit


@pytest.mark.parametrize("kind", SILENT)
@pytest.mark.parametrize("headers", [OWN, ANONYMOUS])
def test_these_answers_never_speak_of_a_budget(kind: VerdictKind, headers: dict[str, str]) -> None:
    """T19: the headers of a 401, of a lock-out and of an error page never reach a bucket, whatever they say, nor make
    one."""
    assert said(kind, SILENT[kind], headers) is None
    assert said(kind, SILENT[kind], headers, permit(has_bucket=False)) is None


def test_every_verdict_is_decided() -> None:
    """A new kind of verdict has to be looked at here."""
    assert {*SILENT, *HEARD} == set(VerdictKind)


@pytest.mark.parametrize("kind", HEARD)
def test_these_answers_speak_of_their_own_budget(kind: VerdictKind) -> None:
    """What was served names its budget; a refusal does where its limit is the one that is known."""
    assert said(kind, HEARD[kind], OWN) == 5_000
    is_served = HEARD[kind] < 400
    assert said(kind, HEARD[kind], ANONYMOUS) == (60 if is_served else None)
    assert said(kind, HEARD[kind], {**OWN, "x-ratelimit-resource": "search"}) is None
    assert said(kind, HEARD[kind], OWN, permit(generation=0)) is None


def test_a_nameless_limit_is_doubted_where_rate_limit_names_one() -> None:
    """Headers without a category and with another limit may be another category's: a redirect leads to it."""
    one = permit()
    nameless = {name: value for name, value in ANONYMOUS.items() if name != "x-ratelimit-resource"}
    assert said(VerdictKind.ACCEPTED, 200, nameless, one) == 60
    assert one.queue.bucket is not None
    one.queue.bucket.observe(5_000, 4_400, float(RESET), 0, RESET - 100.0, is_asked=True)
    assert said(VerdictKind.ACCEPTED, 200, nameless, one) is None


def test_what_was_sent_before_anything_was_known_counts() -> None:
    """The first word may be 6 s late: what left in the last 6 to 12 s is taken for not counted in it."""
    one = permit(has_bucket=False).queue
    for second in range(20):
        one.note_unbudgeted(float(second))
    time = ServerClock(RESET - 1_000.0, RESET - 1_000.0, is_known=True)
    charges.take_limits(one, Limits("core", 100, 100, 0, RESET), 0, 20.0, 20.0, time, lambda _: 0)
    assert one.bucket is not None
    assert (one.bucket.own, one.bucket.free) == (8, 92)
    assert one.unbudgeted(60.0) == 0


@pytest.mark.parametrize("reset", [0, RESET - 100_000, RESET + 90_000])
def test_an_end_that_can_not_be_is_none(reset: int) -> None:
    """An end a day ago or hours ahead only says how much is left; a look soon finds out more."""
    one = permit(has_bucket=False).queue
    time = ServerClock(RESET - 1_000.0, RESET - 1_000.0, is_known=True)
    charges.take_limits(one, Limits("core", 100, 40, None, reset), 0, 20.0, 20.0, time, lambda _: 0)
    assert one.bucket is not None
    assert (one.bucket.free, one.bucket.is_assumed) == (40, True)
    assert one.bucket.reset_at == pytest.approx(RESET - 1_000.0 + 20.0 + 1.0)


def test_a_limit_of_nothing_needs_several_words() -> None:
    """T12: three in a row before anything is known; one that leaves something begins anew."""
    one = permit(has_bucket=False).queue
    time = ServerClock(RESET - 1_000.0, RESET - 1_000.0, is_known=True)

    def hear(limit: int, at: float) -> bool:
        charges.take_limits(one, Limits("core", limit, limit, 0, RESET), 0, at, at, time, lambda _: 10, is_asked=True)
        return unusable.is_hopeless(one, at)

    assert [hear(10, 1.0), hear(0, 2.0), hear(10, 3.0)] == [False, False, True]
    assert one.bucket is None
    assert [hear(11, 4.0), hear(10, 5.0), hear(10, 6.0), hear(10, 7.0), hear(10, 16.0)] == [False] * 4 + [True]


def test_one_window_that_is_over_early_does_not_tell_the_time() -> None:
    """failures.md row 34: a platform that was started anew has forgotten a window: `Date` counts on. Where the next one
    is over early as well, `Date` is of another clock."""
    one, time = permit(), ServerClock.from_local(RESET - 3_600.0, 0.0)
    bucket = one.queue.bucket
    assert bucket is not None
    time.observe(RESET - 3_600.0, 0.0, 0.0)
    told = []
    for end, now in ((RESET, 1_800), (RESET + 1_800, 5_400), (RESET + 5_400, 7_200), (RESET + 9_000, 10_800)):
        told_time.by_turn(bucket, float(end), float(now), time)
        told.append(time.is_of_windows)
    assert told == [False, False, False, True], "the second one was in time"
    assert time.earliest(10_800.0) == RESET + 9_000
