"""The surroundings of a run: clock, disk, wire, listener and the like, which come from outside; and how it ended."""

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
from bulk.govern.peers import Peers
from bulk.ledger.records import Finished
from bulk.manifest.manifest import Job
from bulk.model import Outcome
from bulk.platform.wire import Wire
from bulk.schedule.job_progress import Board
from bulk.status import RunStatus
from bulk.storage.disk_threads import Disk, thread_disk


class Listener(Protocol):
    """Hears of items once their outcome is durable; the library's `map` is one."""

    async def durable(self, finished: Sequence[Finished]) -> None:
        """Take in items that have ended and whose outcomes are durable."""


@dataclass(slots=True)
class Surroundings:
    """What a run takes from outside, so that a simulation can hand in its own.

    Attributes:
        dice: random numbers for jitter; seeded in a simulation.
        disk: runs blocking ledger work.
        connector: a connector of aiohttp; None: a new one for TCP. wire: sends the requests; None: HTTP.
        tick_s: time between two updates of the display (seconds); 0.0: the usual time.
        cache: folder of stored validators and bodies; None: none are kept.
        handles_signals: SIGINT and SIGTERM stop the run (only in the main thread).
        is_steered: there is a control socket in the run directory.
        environ: environment variables that hold secrets of items, for `env:`. secrets: where all secrets of items are
            read; None: from `environ` and the folder of the manifest.
        listener: hears of items once their outcome is durable.
        approve: is asked before a run begins; None: the run begins without a question.
        peers, board: are given if other workers share the budgets, or the run.
        accepted_waves: waves that go on although they are over a budget (numbers).
        judge: is called with the outcome of each item, and returns the reason why the run has to stop, or None.
        on_made: is called with a job whose items were just made from results, and returns the same.
        began_at: when the first wave began (monotonic); None: there are no waves. opens_at: nothing is sent
            before this time (monotonic). before: the status at the end of the wave before, whose counts go on.
        is_preview: items are only looked at, not written.
        planned: what an approved plan has seen; an item for which something else is there now is not written.
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
    """How this execution of a run ended: the exit code and, where it was stopped, the reason."""

    exit_code: int
    why: str
