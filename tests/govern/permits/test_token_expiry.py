"""How long a token is used."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.govern.permits.token_expiry import AGAIN_S, EARLY_S, MARGIN_S, TokenExpiry

WALL = 1_800_000_000.0


def token_expiry(**more: float | None) -> TokenExpiry:
    """Of a token that was read at monotonic time 100, on a machine whose wall clock is right."""
    return TokenExpiry(100.0, WALL - 100.0, **more)  # type: ignore[arg-type]


def test_a_source_that_never_changes_is_never_asked() -> None:
    """failures.md row 35: `env:` can't be renewed, whatever the clock does."""
    assert token_expiry().due(1e6, WALL + 1e9, 0.0) == math.inf


def test_age_decides_where_the_end_is_not_known() -> None:
    """failures.md row 35: without an end the source is asked at an age, and again after a pause."""
    one = token_expiry(renews_after_s=3_300.0)
    assert one.due(200.0, WALL + 100.0, None) == 3_400.0
    one.tried(3_400.0, WALL + 3_300.0)
    assert one.due(3_401.0, WALL + 3_301.0, None) == 3_400.0 + AGAIN_S
    assert not one.is_over(1e6, WALL + 1e6 - 100.0, 0.0)


@pytest.mark.parametrize(("life_s", "early_s"), [(3_600.0, EARLY_S), (600.0, 60.0), (0.0, 0.0)])
def test_the_next_token_is_asked_for_before_the_end(life_s: float, early_s: float) -> None:
    """failures.md row 35: five minutes before, or a tenth of a short life, by the platform's time."""
    one = token_expiry(renews_after_s=3_300.0, ends_at=WALL + 86_400.0 + life_s)
    offset = WALL + 86_400.0 - 100.0
    assert one.due(100.0, WALL, offset) == 100.0 + life_s - early_s
    assert one.is_over(100.0 + life_s - MARGIN_S, WALL + life_s - MARGIN_S, offset)


@given(jump_s=st.floats(61.0, 1e6), is_back=st.booleans())
def test_a_jump_of_the_wall_clock_has_the_source_asked(jump_s: float, is_back: bool) -> None:
    """failures.md rows 33, 35: a machine that may have slept asks again before it sends; once is enough for a jump."""
    one = token_expiry(renews_after_s=3_300.0, ends_at=WALL + 3_600.0)
    wall = WALL + (-jump_s if is_back else jump_s)
    assert one.due(100.0, wall, WALL - 100.0) <= 100.0
    assert one.is_over(100.0, wall, WALL - 100.0)
    one.tried(100.0, wall)
    assert not one.is_over(101.0, wall + 1.0, WALL - 100.0)
