"""Which members of a pool one payer may pay for, by what each of them is told of its limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.govern.budgets.buckets import LATE_S
from bulk.govern.unknown_payers import ROUNDS, Told, parted
from bulk.platform.classification import Limits

NOW, END = 1_000.0, 4_600


def told(limit: int, left: int, end: int = END, at: float = NOW) -> Told:
    """One answer."""
    return Told(at, {"core": Limits("core", limit, left, limit - left, end)})


def always(limit: int, left: int, end: int = END) -> list[Told]:
    """The same answer in each round."""
    return [told(limit, left, end)] * ROUNDS


@pytest.mark.parametrize("is_quiet", [True, False])
def test_other_limits_and_other_ends_are_other_payers(is_quiet: bool) -> None:
    """What holds of the first does not hold of the others; the fourth is told what the first is told."""
    said = {"a": always(100, 50), "b": always(200, 50), "c": always(100, 50, END - 60), "d": always(100, 50, END + 1)}
    assert parted(said, is_quiet=is_quiet) == [["a", "d"], ["b"], ["c"]]


def test_what_is_left_counts_where_nothing_is_sent() -> None:
    """While requests are under way, a witness may only be late."""
    for said in ({"a": always(100, 0), "b": always(100, 90)}, {"a": always(100, 90), "b": always(100, 0)}):
        assert parted(said, is_quiet=True) == [["a"], ["b"]]
        assert parted(said, is_quiet=False) == [["a", "b"]]


def test_who_is_told_nothing_stays_with_the_others() -> None:
    """In doubt, one payer pays for all."""
    assert parted({"a": always(100, 0), "b": [Told(NOW, {})] * ROUNDS}, is_quiet=True) == [["a", "b"]]


@given(
    limit=st.integers(10, 5_000),
    paces=st.tuples(st.floats(0.0, 900.0), st.floats(0.0, 900.0)),
    lates=st.tuples(st.floats(0.0, LATE_S), st.floats(0.0, LATE_S)),
    begins=st.floats(-10.0, 3_700.0),
    trip_s=st.floats(0.0, 1.0),
)
def test_one_payer_is_never_taken_for_two(
    limit: int, paces: tuple[float, float], lates: tuple[float, float], begins: float, trip_s: float
) -> None:
    """Whatever is sent meanwhile, at a turn of the window as well, and where one member asks a copy that is late."""

    def seen(at: float, made: float) -> Told:
        start = int(begins)
        if made < start:
            start, pace = start - 3_600, paces[0]
        else:
            pace = paces[1]
        used = min(limit, int(pace * (made - start)))
        return told(limit, limit - used, start + 3_600, at)

    moments = [NOW + place * trip_s for place in range(2 * ROUNDS)]
    said = {name: [seen(at, at - lates[n]) for at in moments[n::2]] for n, name in enumerate("ab")}
    assert parted(said, is_quiet=False) == [["a", "b"]]
