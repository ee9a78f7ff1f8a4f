"""What the requests of one item, or of items that share theirs, have in common."""

from typing import Final

from bulk.execute.item_tally import ItemTally
from bulk.govern.accounts import Permit, PermitQueue


class RequestContext:
    """Attributes:
    queue: the permit queue that all of the requests stand in.
    permit: the one that the worker brought along, until the first request takes it.
    tally: what is counted about the item.
    """

    __slots__ = ("permit", "queue", "tally")

    def __init__(self, queue: PermitQueue, permit: Permit | None, tally: ItemTally) -> None:
        self.queue: Final = queue
        self.permit = permit
        self.tally: Final = tally

    def take_permit(self) -> Permit | None:
        """The permit, the first time."""
        permit, self.permit = self.permit, None
        return permit
