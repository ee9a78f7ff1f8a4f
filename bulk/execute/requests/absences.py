"""What a 404 without the platform's message says: nothing, unless this platform shows that it answers so.

The platform gives a message with each refusal. A 404 without one is a front end's: it has lost the way to the platform,
or keeps a path to itself, or puts a page of its own in the place of every 404. Only the last of these means that
something is not there. So a repository that certainly is not there is asked for, once a second while items wait to
know, and where no item was served meanwhile, whose the token is. Where the platform's own 404 ever comes, those without
a message prove nothing. Where three probes in a row bring none, they count as the platform's own: after two that say
the same, if others were served between the probes; else after all tries of an item.
Source: failures.md row 2.
"""

import random
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio

from bulk.execute.requests.context import Tried
from bulk.govern.first_contact import ASK_USER, is_platform
from bulk.model import ErrorCode, Failure, FailureKind, Reply, Request
from bulk.platform.classification import Verdict, VerdictKind
from bulk.proof import Proof

PROBES = 3
"""How many probes in a row have to bring a 404 without a message (count)."""
PROBE_EVERY_S = 1.0
PATIENCE_S, SILENT_S = 10.0, 60.0
"""How long a question of our own waits for its answer once it may leave; where none comes, none is asked for so long
(seconds): something holds such questions back, and each would hold up an item."""
TRIES = 2
"""How many 404s without a message an item needs where this platform answers so (count)."""

_ACCEPTED, _REFUSED = Verdict(VerdictKind.ACCEPTED), Verdict(VerdictKind.REFUSED)
_PROBE_ACCEPTS = frozenset((404,))
_WHOSE = replace(
    ASK_USER,
    accept=frozenset((200,)),
    proof=Proof(lambda reply: "" if is_platform(reply) else "it names nobody"),
)
_NO_ANSWER = Tried(failure=Failure(kind=FailureKind.LOST, code=ErrorCode.TIMEOUT, message="no answer to a probe"))


class Absences:
    """What this run has seen of 404s.

    Args:
        dice: the random numbers for names that nobody has.

    Attributes:
        has_own: a 404 of the platform itself has come. telling: statuses of answers that `told` is asked about.
    """

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self.has_own = self._is_there = False
        self.telling = frozenset((401, 404))
        self._alike = self._amid_good = self._good = 0
        self._next_at = self._silent_until = 0.0
        self._asking = anyio.Lock()

    @property
    def are_bare(self) -> bool:
        """Whether this platform's front end answers so for what is not there, while others are served."""
        return self._amid_good >= PROBES - 1 and not self.has_own

    def probe(self) -> Request:
        """Return a request for what certainly is not there: a file of a repository that nobody has."""
        name = f"{self._dice.getrandbits(128):032x}"
        return Request(method="GET", path=f"/repos/{name}/{name}/readme", accept=_PROBE_ACCEPTS, is_fresh=True)

    def is_enough(self, tries: int) -> bool:
        """Return whether this many 404s without a message (count) are the last word of a read."""
        return tries >= TRIES and self.are_bare

    def told(self, request: Request, verdict: Verdict, reply: Reply) -> Verdict:
        """Return what budgets, pauses and the credential are told of a 401 or 404; note a 404 of the platform itself.

        Where a question of our own is not for this credential, items may go on with it all the same. Nor is there a
        limit, or an outage, where others are served.
        """
        if reply.status != 404:
            return _of_no_use(verdict) if request is _WHOSE or request.accept is _PROBE_ACCEPTS else verdict
        if isinstance(reply.body, dict) and reply.body.get("message"):
            self.has_own, self.telling = True, frozenset((401,))
        if self.has_own or verdict.kind is not VerdictKind.ASTRAY:
            return verdict
        return _REFUSED if self.are_bare else _of_no_use(verdict) if self._is_there else verdict

    async def asked(
        self, ready: Callable[[], Awaitable[None]], once: Callable[[], Awaitable[Tried]], clock: Callable[[], float]
    ) -> Tried:
        """Return what comes of a question of our own, which `once` sends as soon as `ready` has waited until it may
        leave. `clock`: monotonic."""
        if clock() < self._silent_until:
            return _NO_ANSWER
        await ready()
        with anyio.move_on_after(PATIENCE_S):
            return await once()
        self._silent_until = clock() + SILENT_S
        return _NO_ANSWER

    async def learn(
        self, ask: Callable[[Request], Awaitable[Tried]], good: Callable[[], int], clock: Callable[[], float]
    ) -> None:
        """Ask for something that is not there, unless it is known how that is answered, or was asked just now.

        Args:
            ask: asks a question once. good: good answers to anything so far (count). clock: monotonic.
        """
        if self.has_own or self.are_bare or clock() < max(self._next_at, self._silent_until) or self._asking.locked():
            return
        async with self._asking:
            self._next_at = clock() + PROBE_EVERY_S
            tried = await ask(self.probe())
            if not tried.is_bare:
                self._alike = self._amid_good = 0
                self._is_there = False
                return
            if good() <= self._good:
                await ask(_WHOSE)
            self._is_there = good() > self._good
            self._amid_good += bool(self._alike) and self._is_there
            self._alike, self._good = self._alike + 1, good()

    async def wait(
        self, seconds: float, learn: Callable[[], Awaitable[None]], pause: Callable[[float], Awaitable[None]]
    ) -> None:
        """Wait before a read is sent again that was answered without a message, and no longer than until it is known
        that this platform answers so. `learn` calls `learn`; `pause` waits that long (seconds)."""
        while seconds > 0.0:
            await learn()
            if self.are_bare:
                return
            part_s = seconds if self.has_own else min(seconds, PROBE_EVERY_S)
            await pause(part_s)
            seconds -= part_s

    def believed(self, request: Request, tried: Tried) -> Tried:
        """Return how a read ends after all its tries: with its 404 where the operation wants that and it counts."""
        counts = tried.is_bare and 404 in request.accept and self._alike >= PROBES and not self.has_own
        return Tried(tried.reply, _ACCEPTED) if counts else tried


def _of_no_use(verdict: Verdict) -> Verdict:
    return replace(verdict, kind=VerdictKind.BAD_RESPONSE)
