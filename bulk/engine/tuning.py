"""Tunes the garbage collector while requests run: it skips the objects from before, and looks at new ones seldom.

Requests make hardly any cycles, so that looking often finds nothing and costs a tenth of the time. The old settings are
back when the last run of this process has ended. Source: performance.md.
"""

import contextlib
import gc
import sys
from collections.abc import Iterator

THRESHOLDS = (50_000, 50, 50)
"""New containers before a look at the youngest generation, and looks before one at each older generation (counts)."""
MOST_GROWTH, MOST_MORE = 1.25, 200_000
"""Memory may grow by this factor plus this many blocks until all frozen objects are looked at: see `_set_aside`."""

_under_way = 0
_before = (0, 0, 0)
_looked_at = 0


@contextlib.contextmanager
def quiet_collector() -> Iterator[None]:
    """Look for garbage less often for the time of a run; several may overlap."""
    global _under_way, _before  # noqa: PLW0603 - there is one collector in a process
    if _under_way == 0:
        _before = gc.get_threshold()
        _set_aside()
        if _before[0]:  # 0: automatic collection is switched off
            gc.set_threshold(*THRESHOLDS)
    _under_way += 1
    try:
        yield
    finally:
        _under_way -= 1
        if _under_way == 0:
            gc.set_threshold(*_before)
            gc.unfreeze()


def _set_aside() -> None:
    """Freeze the objects that exist. Once memory has grown enough, collect the frozen ones first: Python would never
    look at what earlier runs have left, and a process that makes one run after the other would grow without end.
    """
    global _looked_at  # noqa: PLW0603 - there is one collector in a process
    gc.freeze()
    there = sys.getallocatedblocks()  # to count the frozen objects would take longer than many a run
    if not _looked_at:
        _looked_at = there
    elif gc.isenabled() and there > MOST_GROWTH * _looked_at + MOST_MORE:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        _looked_at = sys.getallocatedblocks()
