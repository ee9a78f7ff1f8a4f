"""What an answer, or none, means for the requests after it: pure decisions, second by second."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.govern.budgets.buckets import Bucket
from bulk.govern.concurrency.adaptive_limit import START, AdaptiveLimit
from bulk.govern.permits.accounts import Account, Permit, PermitQueue, Trust
from bulk.govern.permits.pacing import burst, rate
from bulk.govern.reachability import RETRY_MOST_S, Reachability
from bulk.govern.reactions import follow
from bulk.govern.server_clock import ServerClock
from bulk.model import ErrorCode, Failure, FailureKind
from bulk.platform.auth.secrets import Secret
from bulk.platform.classification import Verdict, VerdictKind

NOW, FIRST_S = 1_000.0, 60.0
EVERY = [kind for kind in VerdictKind if kind is not VerdictKind.ACCEPTED]


class Situation:
    """One credential with one permit queue, and a permit of it."""

    def __init__(self, *, has_bucket: bool = True, window: int = 1, generation: int = 1) -> None:
        source: Any = None
        self.account = Account("default", source, Secret("t"), trust=Trust.PROVEN)
        bucket = Bucket(100, 50, NOW + 600, 3_600.0) if has_bucket else None
        self.queue = PermitQueue(self.account, "core", bucket)
        self.permit = Permit(self.queue, self.account.token, window, 0, generation, NOW)
        self.concurrency = AdaptiveLimit(64)

    def after(self, kind: VerdictKind, wait_s: float | None = None, now: float = NOW) -> float | None:
        """Follow a verdict."""
        verdict = Verdict(kind, ErrorCode.RATE_LIMITED, "m", wait_s)
        return follow(self.permit, verdict, now, self.concurrency, FIRST_S)


OVERLOADED = {VerdictKind.BUSY, VerdictKind.SERVER_ERROR}
UNTIMED = {VerdictKind.LIMITED_SECONDARY, VerdictKind.UNEXPLAINED}


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("wait_s", [None, 7.0])
@pytest.mark.parametrize("bucket", ["none", "some left", "empty", "reserve left"])
def test_who_slows_down(kind: VerdictKind, wait_s: float | None, bucket: str) -> None:
    """failures.md row 25: errors of the platform, and refusals for now that name no time while the bucket has something
    left, are signs of suffering; what speaks of a budget is none, and nothing else."""
    situation = Situation(has_bucket=bucket != "none")
    if situation.queue.bucket is not None:
        situation.queue.bucket.free = 0 if bucket == "empty" else 50
        situation.queue.bucket.reserve = 50 if bucket == "reserve left" else 0
    is_sign = kind in OVERLOADED or (kind in UNTIMED and wait_s is None and bucket in ("none", "some left"))
    for _ in range(5):
        situation.after(kind, wait_s)
    assert situation.concurrency.allowed == (START // 2 if is_sign else START)


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("wait_s", [None, 7.0])
def test_who_pauses(kind: VerdictKind, wait_s: float | None) -> None:
    """failures.md row 19: Retry-After silences the credential, /rate_limit too; without it that is asked first, and a
    refusal that says nothing of a limit holds up nobody."""
    situation = Situation()
    everybody = situation.after(kind, wait_s)
    account = situation.account
    assert everybody == (NOW + 7.0 if kind is VerdictKind.BUSY and wait_s else None)
    if kind is VerdictKind.LOCKED_OUT:
        assert (account.lockouts, account.trust, account.must_ask) == (1, Trust.UNPROVEN, True)
        assert account.quiet_until == NOW + 900.0
        return
    wordless = VerdictKind.UNEXPLAINED, VerdictKind.ASTRAY, VerdictKind.THROTTLED
    is_limit = kind in (VerdictKind.LIMITED_PRIMARY, VerdictKind.LIMITED_SECONDARY, *wordless)
    assert account.quiet_until == (NOW + 7.0 if is_limit and wait_s else 0.0)
    is_struck = kind is VerdictKind.LIMITED_SECONDARY and wait_s is None
    paused_s = 7.0 if is_limit and wait_s else FIRST_S if is_struck else 0.0
    assert account.paused_until == (NOW + paused_s if paused_s else 0.0)
    assert account.backoffs == is_struck
    is_explained_later = kind in wordless and wait_s is None
    assert account.must_ask is (kind is VerdictKind.LIMITED_PRIMARY or is_struck or is_explained_later)
    if wait_s and is_limit:
        assert account.paused_why == "limit of default (Retry-After)"


@pytest.mark.parametrize("kind", [VerdictKind.LIMITED_PRIMARY, VerdictKind.LIMITED_SECONDARY])
def test_a_wait_of_nothing_that_is_in_vain_grows(kind: VerdictKind) -> None:
    """failures.md row 19: a `Retry-After` of nothing, or in the past, is obeyed once, and then not as fast as answers
    come; what names enough time is obeyed as it stands, and what left before the pause says nothing of it."""
    situation, now = Situation(), NOW
    waited = []
    for _ in range(12):
        situation.permit.granted, now = now, now + 0.05
        situation.after(kind, 0.0, now)
        waited.append(round(situation.account.paused_until - now, 3))
        situation.after(kind, 0.0, now + 0.01)  # was under way meanwhile
        now = max(now + 0.01, situation.account.paused_until)
    assert waited == [0.0, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60.0, 60.0]
    situation.permit.granted = now
    situation.after(kind, 90.0, now)
    assert situation.account.paused_until == now + 90.0


def test_an_empty_bucket_is_empty() -> None:
    """A primary limit empties the bucket of its own window, and nothing is known but when that was."""
    situation = Situation()
    situation.after(VerdictKind.LIMITED_PRIMARY)
    queue = situation.queue
    assert queue.bucket is not None
    assert (queue.bucket.available, queue.refused_at, queue.refused_window) == (0, NOW, 1)


def test_a_late_limit_of_an_old_window_empties_nothing() -> None:
    """What was refused in the window before says nothing of this one; the platform is asked all the same."""
    situation = Situation(window=0)
    situation.after(VerdictKind.LIMITED_PRIMARY)
    assert situation.queue.bucket is not None
    assert (situation.queue.bucket.available, situation.queue.refused_window) == (50, 0)
    assert situation.account.must_ask


def test_a_limit_where_none_was_known_is_waited_for() -> None:
    """A primary limit of a category without a bucket: pauses grow, as for a refusal without a reason."""
    situation = Situation(has_bucket=False)
    situation.after(VerdictKind.LIMITED_PRIMARY)
    assert (situation.account.paused_until, situation.account.backoffs) == (NOW + FIRST_S, 1)
    assert not situation.account.must_ask


@pytest.mark.parametrize(("generation", "trust"), [(1, Trust.FROZEN), (0, Trust.PROVEN)])
def test_a_401_freezes_its_own_token(generation: int, trust: Trust) -> None:
    """failures.md row 16: the credential freezes at once; a late 401 of the token before it does nothing."""
    situation = Situation(generation=generation)
    situation.after(VerdictKind.UNAUTHORIZED)
    assert situation.account.trust is trust


REFUSED = Failure(kind=FailureKind.NOT_SENT, code=ErrorCode.CONNECTION, message="can't connect to a:1")
LOST = replace(REFUSED, kind=FailureKind.LOST, message="the connection to a:1 was lost")
OVERDUE = replace(REFUSED, code=ErrorCode.TIMEOUT, message="no connection to a:1 within 60 s")
UNUSABLE = replace(LOST, is_answer=True)


def test_a_silent_platform() -> None:
    """failures.md rows 1, 2: silent after three in a row; asked after 0.1 s, then twice as long, at most 5 s."""
    reach, pauses = Reachability(limit_s=10.0), []
    for place in range(14):
        assert reach.is_silent is (place >= 3)
        assert reach.failed(NOW, REFUSED) == ""
        pauses.append(round(reach.retry_at - NOW, 6))
    assert pauses == [0.1, 0.1, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, *[5.0] * 6]
    assert (reach.since, reach.error, reach.unanswered) == (NOW, REFUSED.message, 14)
    assert reach.failed(NOW + 10.0, REFUSED) == ""
    assert reach.failed(NOW + 10.1, REFUSED) == "the platform has been out of reach for 10 s: can't connect to a:1"
    assert reach.answered() is True
    assert reach.answered() is False
    assert (reach.is_silent, reach.failed(NOW + 50.0, REFUSED), reach.since) == (False, "", NOW + 50.0)


@pytest.mark.parametrize(
    ("failure", "limit_s", "after_s", "said"),
    [
        (REFUSED, 300.0, 5.0, ""),
        (
            REFUSED,
            300.0,
            7.1,
            "can't connect to a:1: does the platform run, and is the port in platform.base_url right?",
        ),
        (REFUSED, 1.0, 1.1, "can't be reached"),
        (
            replace(REFUSED, message="a can't be resolved"),
            300.0,
            5.1,
            "resolved: is the name in platform",
        ),
        (LOST, 300.0, 5.1, "was lost: does platform.base_url have the right scheme (https or http) and port?"),
        (replace(REFUSED, message="right?"), 300.0, 5.1, "the platform can't be reached: right?"),
        (OVERDUE, 300.0, 299.0, ""),
        (OVERDUE, 300.0, 300.1, "out of reach for 300 s: no connection"),
    ],
)
def test_a_first_contact_that_fails_for_good(failure: Failure, limit_s: float, after_s: float, said: str) -> None:
    """Where nothing was ever answered, five seconds are enough, but for time-outs; the way out is said once."""
    reach = Reachability(limit_s)
    assert [reach.failed(NOW, failure, is_first_contact=True) for _ in range(3)] == ["", "", ""]
    reason = reach.failed(NOW + after_s, failure, is_first_contact=True)
    assert said in reason if said else reason == ""
    assert reason.count("?") <= 1


def test_a_certificate_that_is_refused_stops_at_once() -> None:
    """failures.md row 3: no repeat will help."""
    assert Reachability(9.0).failed(NOW, replace(REFUSED, is_certificate=True)) == REFUSED.message


def test_two_failures_are_no_silence_however_long() -> None:
    """Two requests without an answer, hours apart, don't stop a run."""
    reach = Reachability(limit_s=1.0)
    assert [reach.failed(NOW, REFUSED), reach.failed(NOW + 9_000.0, REFUSED, is_first_contact=True)] == ["", ""]


def test_what_cant_be_used_is_no_silence() -> None:
    """A platform whose answers can't be used is in reach: no run stops, or waits, because of that (row 28)."""
    reach = Reachability(limit_s=1.0)
    for second in range(20):
        assert reach.failed(NOW + second, UNUSABLE) == ""
        assert not reach.is_silent
    assert [reach.failed(NOW + 30.0, REFUSED), reach.failed(NOW + 40.0, REFUSED), reach.unanswered] == ["", "", 2]
    assert reach.failed(NOW + 50.0, UNUSABLE) == ""
    assert reach.unanswered == 0


@given(steps=st.lists(st.tuples(st.booleans(), st.floats(0.0, 9.0)), max_size=60))
def test_silence_is_what_was_not_answered(steps: list[tuple[bool, float]]) -> None:
    """Whatever the order: silent exactly when the last three or more were not answered, and never asked late."""
    reach, row, now = Reachability(limit_s=20.0), 0, NOW
    for is_answer, pause_s in steps:
        now += pause_s
        if is_answer:
            assert reach.answered() is (row > 0)
            row = 0
        else:
            row += 1
            reach.failed(now, REFUSED)
            assert 0.1 <= reach.retry_at - now + 1e-9 <= RETRY_MOST_S + 1e-6
        assert reach.is_silent is (row >= 3)


@pytest.mark.parametrize(
    ("available", "work", "left_s", "window_s", "expected"),
    [
        (10, 10, 5.0, 5.0, None), (10, 11, 5.0, 5.0, 10 / 4.95), (10, 11, 5.0, 1.0, 10 / 4.98),
        (10, 11, 5.0, 3_600.0, 10 / 4.0), (0, 1, 5.0, 5.0, None), (10, 11, 1.0, 3_600.0, None),
        (10, 11, 0.05, 5.0, None), (1, 2, 1.5, 3_600.0, 2.0),
    ],
)  # fmt: skip
def test_the_last_request_has_time_to_arrive(
    available: int, work: int, left_s: float, window_s: float, expected: float | None
) -> None:
    """What is left is spread up to a little before the reset: 1% of the window, 20 ms to a second."""
    found = rate(available, work, left_s, window_s)
    assert found == (None if expected is None else pytest.approx(expected))


def test_bursts_are_five_milliseconds_worth() -> None:
    """As many permits leave together as the rate allows in five milliseconds, and at least one."""
    assert [burst(per_second) for per_second in (0.1, 100.0, 600.0, 10_000.0)] == [1, 1, 3, 50]


def test_the_interval_of_platform_time() -> None:
    """failures.md rows 33, 34: the local clock's at first, then what each `Date` leaves of it."""
    time = ServerClock.from_local(5_000.0, 1_000.0)
    assert (time.low, time.high, time.is_known) == (3_998.0, 4_002.0, False)
    time.observe(9_000.0, 1_000.0, 1_000.5)
    assert (time.low, time.high, time.is_known) == (7_999.5, 8_001.0, True)
    time.observe(9_001.0, 1_001.2, 1_001.3)
    assert [time.low, time.high] == pytest.approx([7_999.7, 8_000.8])
    assert time.earliest(1_002.0) == pytest.approx(9_001.7)
    assert time.latest(1_002.0) == pytest.approx(9_002.8)
    assert time.middle(1_002.0) == pytest.approx(9_002.25)
    time.observe(9_002.0, 1_001.2, 1_001.3)
    assert [time.low, time.high] == pytest.approx([8_000.7, 8_000.8])
    time.observe(9_000.0, 1_010.0, 1_010.5)
    assert (time.low, time.high) == (7_989.5, 7_991.0)


def test_bounds_that_meet_are_kept() -> None:
    """An answer that leaves one point of the interval does not contradict it."""
    time = ServerClock(0.0, 0.0)
    time.observe(100.0, 0.0, 0.0)
    time.observe(101.0, 0.0, 0.0)
    assert (time.low, time.high) == (101.0, 101.0)
