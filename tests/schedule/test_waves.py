"""How a job is cut into waves: each item is in one, in order, and what has ended says which is next."""

from hypothesis import given
from hypothesis import strategies as st

from bulk.quantities import Share
from bulk.schedule.waves import NEVER, Waves

SIZES = st.lists(
    st.builds(Share, count=st.integers(1, 50)) | st.builds(Share, fraction=st.floats(0.001, 1.0)), max_size=5
)


@given(sizes=SIZES, items=st.integers(1, 300), opened=st.integers(1, 7))
def test_each_item_is_in_one_wave(sizes: list[Share], items: int, opened: int) -> None:
    """Waves follow each other to the last item; nothing of a wave that is not open is offered."""
    waves = Waves(tuple(sizes), opened)
    at = seen = 0
    while (wave := waves.at(items, at)) is not None:
        seen += 1
        assert (wave.number, wave.start, wave.end > at) == (seen, at, True)
        assert waves.offered_until(items, at) == (wave.end if seen <= opened else wave.start)
        for inside in (wave.start, wave.end - 1):
            assert waves.at(items, inside) == wave
        at = wave.end
    assert (at, seen <= len(sizes) + 1) == (items, True)
    assert waves.offered_until(items, items) == NEVER


def test_shares_are_of_the_job() -> None:
    """One item, a percent, a tenth, the rest."""
    sizes = (Share(count=1), Share(fraction=0.01), Share(fraction=0.1))
    assert Waves(sizes).ends(100_000) == [1, 1_001, 11_001, 100_000]
    assert Waves(()).ends(7) == [7]
