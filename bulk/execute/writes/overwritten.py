"""A write that an earlier process has sent and that `bulk retry --overwrite` writes over, whatever is there now."""

from dataclasses import dataclass
from typing import Any

from bulk.execute.writes.lost_write import LostWrite, lost_write_from
from bulk.ledger.records import Intent
from bulk.model import UNSEEN, Effect
from bulk.operation import AnyOperation, Item
from bulk.undo import Undoable


@dataclass(frozen=True, slots=True)
class Overwritten:
    """A write that is written over. It may have been done, all of it or a part."""

    sent: Intent

    def before_both(self, operation: AnyOperation, item: Item, later: Any) -> Any:
        """Return what was there before this write and before a later one of the item, whose before-image is `later`."""
        first = self.sent.before
        if type(first) is not type(later) or later is UNSEEN or self.sent.effect is not Effect.SET:
            return later  # `first` was not looked at, or it is of an older version
        return operation.before_both(item, first, later) if isinstance(operation, Undoable) else later

    def lost(self, since: float) -> LostWrite:
        """Return this write as one whose end was not seen; `since`: see LostWrite."""
        return lost_write_from(self.sent, since)
