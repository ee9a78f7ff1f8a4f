"""The garbage collector while requests run: what is there at the start is not looked at again, and the rest seldom.

Hardly anything that a request makes is a cycle, so that looking often finds nothing and costs a tenth of the time. As
before when the last run of this process has ended. Source: performance.md.
"""

import contextlib
import gc
from collections.abc import Iterator

THRESHOLDS = (50_000, 50, 50)
"""New containers before a look at the youngest, and looks before one at the older ones (count)."""

_under_way = 0
_before = (0, 0, 0)


@contextlib.contextmanager
def quiet_collector() -> Iterator[None]:
    """For the time of a run; several may overlap."""
    global _under_way, _before  # noqa: PLW0603 - there is one collector in a process
    if _under_way == 0:
        _before = gc.get_threshold()
        gc.freeze()
        if _before[0]:  # 0: somebody has switched it off
            gc.set_threshold(*THRESHOLDS)
    _under_way += 1
    try:
        yield
    finally:
        _under_way -= 1
        if _under_way == 0:
            gc.set_threshold(*_before)
            gc.unfreeze()
