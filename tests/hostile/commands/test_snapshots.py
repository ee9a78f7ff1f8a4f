"""What is called unchanged, because the same was sent before, is what the platform has."""

import pytest

from tests.hostile.commands.snapshots import TOGETHER, fitting, try_ways

FEW = (
    "late: 5.0 s, answer lost",
    "gateway: 201 accepted, always",
    "gateway: 202 ok, always",
    "status: 502 again and again",
    "lost: before, never answered",
    "truncated: write, not applied, half a body",
)


@pytest.mark.parametrize("killed_s", [0.0, 0.05, 0.11])
@pytest.mark.parametrize("again", ["first", "second"])
def test_no_snapshot_is_unchanged_that_the_platform_does_not_have(again: str, killed_s: float) -> None:
    """Another snapshot is sent, with a wrong answer or killed, between two of the same content."""
    ways = [way for way in fitting() if way.name in FEW]
    assert len(ways) == len(FEW)
    assert [(tried.way.name, tried.broken()) for tried in try_ways(ways, again, killed_s) if tried.broken()] == []


@pytest.mark.soak
@pytest.mark.parametrize("begin", range(0, len(fitting()), TOGETHER))
def test_no_way_makes_a_snapshot_unchanged(begin: int) -> None:
    """The same in all ways."""
    ways = fitting()[begin : begin + TOGETHER]
    assert [(tried.way.name, tried.broken()) for tried in try_ways(ways, "first") if tried.broken()] == []
