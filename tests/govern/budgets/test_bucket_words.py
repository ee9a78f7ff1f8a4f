"""What a bucket makes of each word of the platform, number by number."""

import pytest

from bulk.govern.budgets.buckets import Bucket

RESET, WINDOW_S = 5_000.0, 3_600.0
NOW = RESET - 1_000.0


def bucket(**fields: float) -> Bucket:
    """100 requests an hour, 50 of them left."""
    given = {"limit": 100, "free": 50, "reset_at": RESET, "window_s": WINDOW_S, **fields}
    return Bucket(**given)  # type: ignore[arg-type]  # counts are ints


def test_a_new_bucket() -> None:
    """Nothing was sent, nobody else was seen."""
    new = bucket()
    assert (new.window, new.sent, new.given_back, new.in_flight, new.burst, new.spell) == (1, 0, 0, 0, 0, 0)
    assert (new.spell_at, new.mark, new.available, new.has_rival, new.is_exhausted) == (0.0, 0, 50, False, False)


def test_every_request_is_counted_once() -> None:
    """Sent, in flight, given back; the mark is what the platform certainly knows of."""
    one = bucket()
    for _ in range(3):
        one.reserve_one()
    assert (one.free, one.sent, one.in_flight, one.mark, one.overlap(0), one.overlap(2)) == (47, 3, 3, 0, 3, 1)
    one.in_flight -= 2
    assert one.mark == 2
    one.give_back()
    assert (one.free, one.given_back, one.sent) == (48, 1, 3)
    assert (one.paid, one.own) == (2, 2)


def test_no_more_comes_back_than_there_can_be() -> None:
    """A full bucket stays full; one below it gets exactly one."""
    full, nearly = bucket(free=100), bucket(free=98)
    full.give_back()
    nearly.give_back()
    assert (full.free, nearly.free) == (100, 99)


@pytest.mark.parametrize(
    ("free", "burst", "is_contested"),
    [(0, 0, False), (0, 9, False), (1, 0, False), (1, 1, True), (9, 9, True), (10, 9, False)],
)
def test_what_somebody_else_could_take_at_once(free: int, burst: int, is_contested: bool) -> None:
    """Contested: something is left, and no more than was taken at once before."""
    assert bucket(free=free, burst=burst).is_contested is is_contested


@pytest.mark.parametrize(
    ("window_s", "reset_at", "is_new"),
    [
        (3_600.0, RESET + 1.0, False), (3_600.0, RESET + 1.1, True), (3_600.0, RESET - 1.0, False),
        (3_600.0, RESET - 1.1, False), (3.1, RESET + 1.0, False), (3.0, RESET + 0.5, True),
        (3.0, RESET - 0.5, False), (3.0, RESET, False), (3.5, RESET + 0.9, False),
    ],
)  # fmt: skip
def test_a_second_more_or_less_is_the_same_window(window_s: float, reset_at: float, is_new: bool) -> None:
    """failures.md row 31: a second of jitter where windows are longer than three; a new window is told from an old, and
    raises what is left, which nothing else does."""
    one = bucket(window_s=window_s)
    assert one.observe(200, 120, reset_at, 0, NOW) is is_new
    assert one.window == (2 if is_new else 1)
    assert one.limit == (200 if is_new else 100)
    assert one.free == (120 if is_new else 50)


@pytest.mark.parametrize(("reset_at", "window_s"), [(RESET + 60.0, 1_060.0), (NOW + 1_001.5, 1_001.5)])
def test_a_new_window_begins_with_what_is_proven(reset_at: float, window_s: float) -> None:
    """Its length is as far as it was seen; half of a burst is remembered, once."""
    one = bucket(burst=9, spell=5)
    assert one.observe(100, 90, reset_at, 7, NOW) is True
    assert (one.free, one.reset_at, one.window_s) == (83, reset_at, window_s)
    assert (one.burst, one.spell, one.is_exhausted) == (4, 0, False)


def test_a_rival_of_the_window_before_keeps_its_burst() -> None:
    """Who took something in the last window may do so in this one."""
    one = bucket(burst=9, has_rival=True)
    assert one.observe(100, 100, RESET + 60.0, 0, NOW) is True
    assert (one.burst, one.has_rival) == (9, False)


def test_a_window_is_at_least_a_second() -> None:
    """A reset in the past or now is not a length."""
    one = bucket()
    assert one.observe(100, 100, RESET + 60.0, 0, RESET + 61.0) is True
    assert one.window_s == 1.0


@pytest.mark.parametrize(("remaining", "overlap"), [(60, 0), (60, 5), (60, 20), (150, 0), (51, 100)])
@pytest.mark.parametrize("is_asked", [True, False])
def test_more_than_was_known_is_not_believed(remaining: int, overlap: int, is_asked: bool) -> None:
    """Within a window no word raises what is left, wherever it comes from: it may be late."""
    one = bucket()
    assert one.observe(100, remaining, RESET, overlap, NOW, is_asked=is_asked) is False
    assert (one.free, one.has_rival) == (50, False)


@pytest.mark.parametrize(("remaining", "overlap", "free"), [(49, 0, 49), (40, 4, 36), (3, 9, 0), (-5, 0, 0)])
def test_less_than_was_known_is_somebody_else(remaining: int, overlap: int, free: int) -> None:
    """failures.md row 32: then the lowest word counts, and what the newest may not have counted is taken off."""
    one = bucket()
    assert one.observe(100, remaining, RESET, overlap, NOW) is False
    assert (one.free, one.has_rival) == (free, True)
    assert one.spell == 50 - max(0, remaining)
    assert one.observe(100, 45, RESET, 2, NOW) is False
    assert one.free == min(43, max(0, remaining))


def test_what_was_taken_with_short_pauses_is_one_burst() -> None:
    """Pauses up to a hundredth of the window are within a burst; the largest is kept, up to a tenth of the limit."""
    one = bucket(limit=1_000, free=500)
    for now, remaining, spell, burst in (
        (NOW, 490, 10, 10), (NOW + 36.0, 480, 20, 20), (NOW + 72.1, 475, 5, 20), (NOW + 73.0, 300, 180, 100),
    ):  # fmt: skip
        one.observe(1_000, remaining, RESET, 0, now)
        assert (one.spell, one.spell_at, one.burst) == (spell, now, burst)
