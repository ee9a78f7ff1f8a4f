"""A run begins with somebody's approval, where it needs one: nothing is sent before, and nothing is left without it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from bulk.bundle.checked import Checked
from bulk.errors import GateClosed
from bulk.ledger.database import LEDGER

Approve: TypeAlias = Callable[[Checked], None]
"""Is shown what was checked; raises GateClosed to stop the run. It may wait for a person."""


def require_approval(approve: Approve | None, checked: Checked, run_dir: Path) -> None:
    """Ask whether a run may begin; one that goes on was approved before.

    Raises:
        GateClosed: it may not. The run directory, which this process holds, is taken away: it held nothing but what the
            check had found.
    """
    if approve is None or (run_dir / LEDGER).exists():
        return
    try:
        approve(checked)
    except GateClosed:
        shutil.rmtree(run_dir, ignore_errors=True)
        raise
