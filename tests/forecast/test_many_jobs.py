"""A forecast of thousands of jobs takes no more steps for each job than one of a few."""

import sys
from collections.abc import Sequence
from types import FrameType

import pytest

from bulk.forecast import Budget, Capacity, Work, forecast

CORE = ("default", "core")


def chain(jobs: int) -> list[Work]:
    """Jobs of which each needs the one before."""
    return [Work(f"j{at}", CORE, 10.0, 1.0, 0.1, needs=(f"j{at - 1}",) if at else ()) for at in range(jobs)]


def calls(work: Sequence[Work]) -> int:
    """How many functions are called until the end is known."""
    called = 0

    def count(_frame: FrameType, _event: str, _of: object) -> None:
        nonlocal called
        called += 1

    sys.setprofile(count)
    try:
        end_at = forecast(work, {CORE: Budget(5000, 5000, 3600)}, Capacity(64, 64, 64), 0.0).end_at
    finally:
        sys.setprofile(None)
    assert end_at is not None
    return called


@pytest.mark.interpreted
def test_a_chain_of_jobs_costs_what_its_jobs_do() -> None:
    """A job that waits for others is not looked at in each step: twice as many take twice as long."""
    assert calls(chain(200)) < 2.5 * calls(chain(100))
