"""How long a window is taken to be."""

import pytest

from bulk.forecast import window_length


@pytest.mark.parametrize(
    ("category", "limit", "left", "until_reset_s", "expected"),
    [
        ("core", 5_000, 5_000, 3_599.4, 3_600.0),
        ("core", 300, 300, 9.2, 10.0),
        ("core", 300, 300, 7.0, 7.0),
        ("core", 5_000, 4_999, 12.0, 3_600.0),
        ("core", 300, 150, 7.3, 8.0),
        ("dependency_snapshots", 100, 99, 58.2, 60.0),
        ("dependency_snapshots", 100, 0, 31.0, 60.0),
        ("core", 300, 1, 61.0, 3_600.0),
        ("core", 300, 1, 100_000.0, 100_000.0),
        ("core", 300, 1, -5.0, 1.0),
    ],
)
def test_a_window_is_as_long_as_is_known(category, limit, left, until_reset_s, expected):
    """An untouched one shows its length; else it is the shortest usual one that holds what is left of it, and an hour
    where the documentation and the limit say so: T16's snapshots, 99 of 100 left, are not 4 hours but minutes."""
    assert window_length(category, limit, left, until_reset_s) == expected
