"""What all items of a run share while they are worked on: who sends and records, and what earlier items have left."""

import random
from dataclasses import dataclass, field

from bulk.clock import Clock
from bulk.execute.preview import Planned
from bulk.execute.recorder import Recorder
from bulk.execute.requests.context import RequestContext
from bulk.execute.requests.request_sender import RequestSender
from bulk.execute.requests.wait_reasons import WaitReason
from bulk.execute.write_loop import WriteLoop
from bulk.execute.writes.late_writes import LateWrites, folded
from bulk.execute.writes.recent_writes import RecentCreations, RecentWrites
from bulk.execute.writes.settle import Settler
from bulk.execute.writes.shown_once import ShownOnce
from bulk.manifest.manifest import Entry
from bulk.model import Request
from bulk.operation import AnyOperation, Item


@dataclass(frozen=True, slots=True)
class Shared:
    """What all items of a run share.

    Attributes:
        late_writes: writes that may still arrive. recent_creations, recent_writes: what this run has just created and
            written.
        dice: the random numbers for jitter. shown_once: what answers have shown that none can show again.
        is_preview: whether items are only looked at. planned: what an approved plan has seen, if there is one.
    """

    sender: RequestSender
    settler: Settler
    recorder: Recorder
    late_writes: LateWrites
    recent_creations: RecentCreations
    recent_writes: RecentWrites
    clock: Clock
    dice: random.Random
    is_preview: bool = False
    planned: Planned | None = None
    shown_once: ShownOnce = field(default_factory=ShownOnce)

    def write_loop(self, context: RequestContext, *, is_in_doubt: bool = False) -> WriteLoop:
        """Return the loop that sends the writes of one item, or of items that share theirs."""
        return WriteLoop(self.sender, self.recorder, self.clock, self.dice, context, is_in_doubt=is_in_doubt)

    async def let_late_writes_pass(
        self, operation: AnyOperation, entry: Entry, item: Item, request: Request, context: RequestContext
    ) -> None:
        """Wait until no earlier send of another item can apply because of this write."""
        if not self.late_writes.all:
            return
        lanes = folded(operation.resource, operation.lanes(item))
        owner = entry.job, entry.index
        seconds = self.late_writes.wait_s(owner, lanes, request.path.casefold(), self.clock.monotonic())
        if seconds > 0.0:
            self.sender.return_unused(context)
            await self.sender.pause(seconds, WaitReason.MAY_ARRIVE)
