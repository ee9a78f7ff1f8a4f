"""The approval of a run that needs one: nothing is sent before it, and a refused run leaves nothing behind."""

from collections.abc import Callable
from typing import TypeAlias

from bulk.bundle.checked import Checked
from bulk.errors import GateClosed
from bulk.ledger.directory import Claim

Approve: TypeAlias = Callable[[Checked], None]
"""Called with the checked manifest; raises GateClosed to refuse the run. The call may wait for a person."""


def require_approval(approve: Approve | None, checked: Checked, claim: Claim) -> None:
    """Ask whether a run may begin. A run that goes on is not asked for: it was approved before.

    Raises:
        GateClosed: the run may not begin. The files of the check are removed, and the run directory if it is new.
    """
    if approve is None or claim.has_ledger:
        return
    try:
        approve(checked)
    except GateClosed:
        claim.undo()
        raise
