"""The permit that a worker brings along with an item."""

from bulk.govern.accounts import Permit


class PermitSlot:
    """The permit that came with the item, until its first request takes it."""

    __slots__ = ("permit",)

    def __init__(self, permit: Permit) -> None:
        self.permit: Permit | None = permit

    def take(self) -> Permit | None:
        """The permit, the first time."""
        permit, self.permit = self.permit, None
        return permit
