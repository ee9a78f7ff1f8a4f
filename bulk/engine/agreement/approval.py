"""A run begins with somebody's approval, where it needs one: nothing is sent before, and nothing is left without it."""

from collections.abc import Callable
from typing import TypeAlias

from bulk.bundle.checked import Checked
from bulk.errors import GateClosed
from bulk.ledger.directory import Claim

Approve: TypeAlias = Callable[[Checked], None]
"""Is shown what was checked; raises GateClosed to stop the run. It may wait for a person."""


def require_approval(approve: Approve | None, checked: Checked, claim: Claim) -> None:
    """Ask whether a run may begin; one that goes on was approved before.

    Raises:
        GateClosed: it may not. What the check had made is taken away, and the run directory if it is new.
    """
    if approve is None or claim.has_ledger:
        return
    try:
        approve(checked)
    except GateClosed:
        claim.undo()
        raise
