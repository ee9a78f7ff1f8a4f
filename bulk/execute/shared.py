"""The collaborators and the memory that all items of a run share while they are worked on."""

import random
from dataclasses import dataclass, field

from bulk.clock import Clock
from bulk.execute.preview import Planned
from bulk.execute.recorder import Recorder
from bulk.execute.requests.request_sender import RequestSender
from bulk.execute.writes.late_writes import LateWrites
from bulk.execute.writes.overwritten import Overwritten
from bulk.execute.writes.recent_writes import RecentCreations, RecentWrites
from bulk.execute.writes.settle import Settler
from bulk.execute.writes.shown_once import ShownOnce


@dataclass(frozen=True, slots=True)
class Shared:
    """The parts of a run that all of its items share.

    Attributes:
        late_writes: writes that may still arrive. recent_creations, recent_writes: the newest ones of this run.
            overwritten: by job and index, writes of earlier processes that a retry writes over.
        dice: the random numbers for jitter. shown_once: marks in answers that no later answer can show.
        is_preview: whether items are only looked at. planned: the records of an approved plan, if there is one.
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
    overwritten: dict[tuple[int, int], Overwritten] = field(default_factory=dict)
