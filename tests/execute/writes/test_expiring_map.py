"""What counts for a while: what is found, for how long, and what that takes."""

import gc
import time

import pytest

from bulk.execute.writes.recent_writes import ExpiringMap


def test_found_until_it_is_forgotten() -> None:
    """The newest counts, from when it was noted; what is over is forgotten in the order of time, nothing else."""
    recent: ExpiringMap[int] = ExpiringMap(10.0)
    for now, name in enumerate(("a", "b", "c")):
        recent.note(name, now, float(now))
    recent.note("a", 7, 5.0)
    recent.forget("c")
    recent.forget("unknown")
    assert [recent.find(name) for name in "abc"] == [(7, 15.0), (1, 11.0), None]
    recent.forget_old(10.9)
    assert len(recent) == 2
    recent.forget_old(11.0)
    assert [recent.find(name) for name in "ab"] == [(7, 15.0), None]
    recent.forget_old(99.0)
    assert len(recent) == 0


@pytest.mark.parametrize("lasts_s", [1_000.0, 50_000.0])
def test_what_it_takes_does_not_grow_with_what_is_known(lasts_s: float) -> None:
    """Where one is forgotten for each that is noted it takes about as long as where none is, however many there are."""
    recent: ExpiringMap[None] = ExpiringMap(lasts_s)
    took_s = []
    gc.disable()  # what else this process holds is not to be counted
    try:
        for start in (0, 50_000):
            began = time.process_time()
            for number in range(start, start + 50_000):
                recent.note(f"{number}", None, float(number))
                recent.forget_old(float(number))
            took_s.append(time.process_time() - began)
    finally:
        gc.enable()
    assert took_s[1] < 12 * took_s[0]
    assert len(recent) == lasts_s
