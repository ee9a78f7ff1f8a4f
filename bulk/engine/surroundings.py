"""What a run takes from outside and gives back: clock, disk, wire, who listens; and how it ended."""

import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import aiohttp

from bulk.bundle.secret_fields import SecretPlaces
from bulk.clock import Clock
from bulk.engine.agreement.approval import Approve
from bulk.errors import BulkError
from bulk.execute.preview import Planned
from bulk.execute.unsent_items import OnMade
from bulk.finished import Finished
from bulk.govern.peers import Peers
from bulk.manifest.manifest import Job
from bulk.model import Outcome
from bulk.platform.wire import Wire
from bulk.schedule.board import Board
from bulk.status import RunStatus
from bulk.storage.disk_threads import Disk, thread_disk


class Listener(Protocol):
    """Hears of items once their outcome is durable; the library's `map` is one."""

    async def durable(self, finished: Sequence[Finished]) -> None:
        """Note that these have ended, for good."""


@dataclass(slots=True)
class Surroundings:
    """What a run takes from outside, so that a simulation can hand in its own.

    Attributes:
        dice: jitter; seeded in a simulation.
        disk: runs blocking ledger work.
        connector: of aiohttp; None makes a TCP one. wire: what requests leave by; None: HTTP.
        tick_s: how often the display is told (seconds); 0.0: as ever.
        cache: folder of stored validators and bodies; None: none are kept.
        handles_signals: SIGINT and SIGTERM stop the run (only in the main thread).
        is_steered: there is a control socket in the run directory.
        environ: where the secrets of items are, for `env:`. secrets: all places of them; None: by `environ`, and by the
            manifest's folder.
        listener: hears of items once their outcome is durable.
        approve: is asked before a run begins; None: it just begins.
        peers, board: where other workers share the budgets, or the run.
        accepted_waves: waves that go on although they are over a budget. judge: hears how each item ended; returns why
            the run has to stop. on_made: hears of a job whose items were made, and does the same.
        began_at: when the first wave began (monotonic); None: there are none. opens_at: nothing is sent before
            (monotonic). before: where the wave before has ended, whose counts go on.
        is_preview: items are only looked at. planned: what an approved plan has seen; what is otherwise now stays.
    """

    clock: Clock = field(default_factory=Clock)
    dice: random.Random = field(default_factory=random.Random)
    disk: Disk = thread_disk
    connector: aiohttp.BaseConnector | None = None
    wire: Wire | None = None
    tick_s: float = 0.0
    cache: Path | None = None
    handles_signals: bool = False
    is_steered: bool = False
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    secrets: SecretPlaces | None = None
    listener: Listener | None = None
    approve: Approve | None = None
    peers: Peers | None = None
    board: Board | None = None
    is_preview: bool = False
    accepted_waves: frozenset[int] = frozenset()
    began_at: float | None = None
    opens_at: float = 0.0
    before: RunStatus | None = None
    judge: Callable[[Job, Outcome], BulkError | None] | None = None
    on_made: OnMade | None = None
    planned: Planned | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended, this time: exit code and, where it was stopped, why."""

    exit_code: int
    why: str
