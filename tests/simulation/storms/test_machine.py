"""The whole engine as a state machine (`machine.py`): whatever is done to it in any order, every promise holds after
each step, and every item has its one outcome at the end.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.simulation import planted
from tests.simulation.machine import Machine

CHEAP = settings(
    max_examples=20,
    stateful_step_count=15,
    derandomize=True,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
LONG = settings(
    CHEAP, max_examples=3_000, stateful_step_count=40, derandomize=False, phases=(Phase.generate, Phase.shrink)
)


def test_the_promises_hold_after_every_step() -> None:
    """Runs, faults, kills, resumes, retries, second processes, ended tokens and rivals, in 20 random orders."""
    run_state_machine_as_test(Machine, settings=CHEAP)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_the_promises_hold_after_every_step_for_long() -> None:
    """The same in 3,000 longer orders, other ones each time; what breaks is made as short as possible."""
    run_state_machine_as_test(Machine, settings=LONG)


ORDERS = 60
"""Until a planted bug must have been seen (count)."""
SEEN_AT_ONCE = (
    planted.intent_written_late,
    planted.lane_not_folded,
    planted.budget_given_back_when_lost,
    planted.told_before_durable,
)
SEEN_SOON = (planted.no_read_back, planted.blind_repeat, planted.hidden_re_send)
"""The others need what no rule does: a lying proxy, a redirect, a changed epoch, a delete after a late write."""


def _see(bug: Any, most: int) -> None:
    with bug(), pytest.raises(AssertionError):
        run_state_machine_as_test(Machine, settings=settings(CHEAP, max_examples=most))


@pytest.mark.interpreted
@pytest.mark.parametrize("bug", SEEN_AT_ONCE, ids=lambda each: each.__name__)
def test_the_machine_sees_the_bug(bug: Any) -> None:
    """With a planted bug switched on, one of 60 orders breaks a promise; the first 20 are those of above."""
    _see(bug, ORDERS)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("bug", SEEN_SOON, ids=lambda each: each.__name__)
def test_the_machine_sees_the_bug_soon(bug: Any) -> None:
    """With a planted bug switched on, one of 100 orders breaks a promise."""
    _see(bug, 100)
