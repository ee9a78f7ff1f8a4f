"""A worker whose store or platform is out of reach tries again soon, and less often the longer that lasts."""

from bulk.cluster.left_alone import AGAIN_S, SOON_S, LeftAlone


def waited_s(left_alone: LeftAlone, first_s: float) -> float:
    """How long run 1 is left alone when it is left at 100."""
    left_alone.leave(1, first_s, 100.0)
    return next(second / 2 for second in range(1_000) if not left_alone.has(1, 100.0 + second / 2))


def test_who_was_out_of_reach_is_tried_soon_and_then_less_often() -> None:
    """Twice as long each time, up to `AGAIN_S`; once it went well, as at first. Other runs are not left alone."""
    left_alone = LeftAlone()
    assert not left_alone.has(1, 0.0)
    assert [waited_s(left_alone, SOON_S) for _ in range(7)] == [1.0, 2.0, 4.0, 8.0, 16.0, AGAIN_S, AGAIN_S]
    assert not left_alone.has(2, 100.0)
    left_alone.went(1)
    assert not left_alone.has(1, 100.0)
    assert waited_s(left_alone, SOON_S) == SOON_S
    assert waited_s(LeftAlone(), AGAIN_S) == AGAIN_S
