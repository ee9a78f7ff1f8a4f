"""The garbage collector around runs: as before afterwards, and what runs leave behind does not pile up."""

import gc
import subprocess
import sys

import pytest

from bulk.engine.tuning import THRESHOLDS, quiet_collector

RUNS, EACH = 30, 20_000
MANY_RUNS = f"""
import gc
from bulk.engine.tuning import quiet_collector
before = len(gc.get_objects())
for _ in range({RUNS}):
    with quiet_collector():
        kept = [[] for _ in range({EACH})]
        for each in kept:
            each.append(each)
    del kept, each
print(len(gc.get_objects()) - before)
"""


def test_it_is_as_before_when_the_last_run_has_ended() -> None:
    """Two runs that overlap: nothing is looked at again and little is looked at until both are over."""
    before = gc.get_threshold()
    with quiet_collector():
        with quiet_collector():
            assert gc.get_threshold() == THRESHOLDS
        assert (gc.get_threshold(), gc.get_freeze_count() > 0) == (THRESHOLDS, True)
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


@pytest.mark.parametrize("is_on", [True, False])
def test_one_run_after_the_other_does_not_grow_without_end(is_on: bool) -> None:
    """Each run leaves 20,000 circles, of 600,000 less than 200,000 are there at the end; who has switched the
    collector off has all of them."""
    program = MANY_RUNS if is_on else "import gc; gc.disable()" + MANY_RUNS
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert (int(ended.stdout) < 200_000) is is_on, ended.stdout
