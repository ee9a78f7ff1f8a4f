"""How a moment is written."""

from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from bulk.clock import iso_utc


@given(
    st.floats(-1e9, 4e9)
    | st.builds(lambda second, part: second + part / 1e4, st.integers(0, 2**32), st.integers(0, 9_999))
)
@example(0.0)
@example(-0.0001)
@example(1_790_000_000.9999999)
@example(1_790_000_000.9995)
@example(1_790_000_000.0005)
def test_a_moment_is_written_as_datetime_writes_it(at: float) -> None:
    """Milliseconds are cut, not rounded, on both sides of a second and of 1970."""
    said = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    assert iso_utc(at) == said.removesuffix("+00:00") + "Z"
