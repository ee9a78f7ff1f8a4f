"""A shared budget whose windows end, by the words of `/rate_limit`, when they can't by the clock of `Date`."""

import pytest

from bulk.govern.budgets.shared_bucket import SharedBucket, Wish

LIMIT, WINDOW_S, WORK = 40, 60, 200
NOW = 1_000_000.0


@pytest.mark.parametrize("fast_s", [3_600.0, 90.0, -7_200.0, -100_000.0])
def test_what_is_left_is_lent_and_no_more(fast_s: float) -> None:
    """`Date` is of another clock, fast or slow by that much: workers go on, by what `/rate_limit` says is left. They
    waited for ever. Where no end can be, no window is exceeded
    (failures.md row 98).
    """
    sent, at, used, end = 0, 0.0, 0, NOW + WINDOW_S
    shared: SharedBucket | None = None
    held: dict[int, int] = {}
    while sent < WORK:
        at += 1.0
        assert at < 20 * WINDOW_S, f"{sent} were sent"
        if NOW + at >= end:
            used, end = 0, NOW + at + WINDOW_S
        now = NOW + at + fast_s
        if shared is None:
            shared = SharedBucket.first_told(LIMIT, LIMIT - used, int(end), now, lambda _: 0)
            continue
        shared.told(LIMIT, LIMIT - used, int(end), shared.bucket.mark, now, now, lambda _: 0)
        shared = SharedBucket.of_data(shared.data())
        lease = shared.lease(1, Wish(8, WORK, 8, held=held), now, now, at)
        used, sent, held = used + lease.tokens, sent + lease.tokens, {}
        assert used <= LIMIT, at
    assert at < 8 * WINDOW_S


def test_an_end_that_can_be_takes_the_place_of_one_that_can_not() -> None:
    """The first word was of a window that had just ended. What was sent since then is of the window that is named."""
    shared = SharedBucket.first_told(LIMIT, LIMIT, int(NOW) - 1, NOW, lambda _: 0)
    assert shared is not None
    lent = shared.lease(1, Wish(8, WORK, 8), NOW, NOW, 0.0).tokens
    assert lent > 0
    shared.lease(1, Wish(0, WORK, 8), NOW + 1, NOW + 1, 1.0)
    end = int(NOW) + WINDOW_S
    shared.told(LIMIT, LIMIT - lent, end, shared.bucket.mark, NOW + 1, NOW + 1, lambda _: 0)
    assert (shared.bucket.reset_at, shared.bucket.is_assumed, shared.bucket.free) == (end, False, LIMIT - lent)


def test_a_word_that_never_changes_is_asked_less_often_after_refusals() -> None:
    """No end can be, and as much is left as ever, though the platform refuses: in an hour few windows are tried."""
    shared = SharedBucket.first_told(LIMIT, LIMIT, int(NOW) - 1, NOW, lambda _: 0)
    assert shared is not None
    tried: set[int] = set()
    exhausted = 0
    for second in range(1, 3_600):
        now = NOW + second
        shared.told(LIMIT, LIMIT, int(NOW) - 1, shared.bucket.mark, now, now, lambda _: 0)
        lease = shared.lease(1, Wish(8, WORK, 8, exhausted=exhausted), now, now, float(second))
        exhausted = lease.window if lease.tokens else 0
        tried |= {lease.window} if lease.tokens else set()
    assert 3 <= len(tried) <= 14, tried
