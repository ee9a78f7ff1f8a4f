"""The governor of the engine against budgets of which something wrong is said: `python -m tests.hostile.budgets` prints
every pair of what headers and `/rate_limit` are like, in virtual time.

A budget is known where headers or `/rate_limit` are right. There everything must be used and nothing be refused, but
for a look or two of a run that finds out whom to believe; everywhere else a run must not stall.
"""

import itertools
import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from email.utils import formatdate
from typing import Any

import anyio

from bulk.errors import BulkError
from bulk.govern.governor import Governor
from bulk.govern.rate_limit_poller import RateLimitPoller
from bulk.govern.user_limits import Draining, UserLimits
from bulk.model import Effect, ErrorCode, Failure, FailureKind, Reply, Request
from bulk.platform.auth.secrets import Secret
from bulk.platform.classification import Verdict, classify
from tests.hostile.http.limits import Answers, Headers, Limits
from tests.virtual_time import START, VirtualClock, run_alone

HEADERS = (Headers.RIGHT, Headers.NAMELESS, Headers.ABSENT, Headers.LATE, Headers.WRONG)
ANSWERS = (
    Answers.RIGHT, Answers.LATE_A_LITTLE, Answers.LATE, Answers.FROZEN, Answers.NOT_FOUND, Answers.BROKEN,
    Answers.FORBIDDEN, Answers.MISSING, Answers.NONSENSE, Answers.SAME, Answers.IDLE, Answers.SPENT, Answers.BUSY,
    Answers.SMALL, Answers.HANGS, Answers.RESETS, Answers.HANGS_LATER, Answers.RESETS_LATER,
)  # fmt: skip
ALONE = (
    Answers.NOT_FOUND, Answers.BROKEN, Answers.FROZEN, Answers.MISSING, Answers.SAME, Answers.HANGS, Answers.RESETS,
    Answers.HANGS_LATER,
)  # fmt: skip
"""What `/rate_limit` is like where headers alone tell the time."""
MORE_HEADERS = (Headers.ZERO, Headers.FAR, Headers.PAST, Headers.SOON)

LAST_DATE = 253_402_300_799
"""The last moment that a `Date` can name: 9999-12-31T23:59:59Z (UTC epoch seconds)."""
READ = Request(method="GET", path="/repos/a/b/readme", effect=Effect.READ)
ASK = Request(method="GET", path="/rate_limit", effect=Effect.READ, accept=frozenset((200, 404)))
TIMEOUT_S = 60.0
"""After this time without an answer a request is given up (seconds)."""
LIMITED = {"message": "API rate limit exceeded for user ID 1."}


class Source:
    """A credential that never changes."""

    name = "default"
    ends_at: float | None = None
    renews_after_s: float | None = None
    renewal_problem: str = ""
    is_gone: bool = False

    def read(self) -> Secret:
        """The token."""
        return Secret("token-one")

    async def renew(self) -> bool:
        """There is no other one."""
        return False


@dataclass(frozen=True, slots=True)
class Cell:
    """One pair, and the platform beside it.

    Attributes:
        windows: how long it is run (count). skew_s: how wrong this machine's clock is (seconds).
        latency_s: of a request; it is charged half-way (seconds).
        date_s: how far `Date` is ahead of the clock of the windows (seconds).
        nodes_s: the same of each node behind the address, which answer in turn; none: there is one.
        is_random: which node answers is chance. kept_s: how long something on the way keeps `/rate_limit` (seconds).
    """

    headers: Headers
    answers: Answers
    limit: int = 100
    window_s: int = 10
    windows: int = 20
    is_grid: bool = False
    is_even: bool = True
    skew_s: float = 0.0
    latency_s: float = 0.02
    has_date: bool = True
    date_s: float = 0.0
    nodes_s: tuple[float, ...] = ()
    is_random: bool = False
    kept_s: float = 0.0

    @property
    def is_knowable(self) -> bool:
        """Whether one witness is right."""
        return self.headers in (Headers.RIGHT, Headers.NAMELESS) or self.answers is Answers.RIGHT


@dataclass(frozen=True, slots=True)
class Used:
    """What came of a cell.

    Attributes:
        share: of what all windows held, how much was used. refused: requests beyond the budget (count).
        longest_s: the longest time without a served request (seconds). asked: questions for limits (count).
    """

    cell: Cell
    share: float
    refused: int
    longest_s: float
    asked: int
    spent: tuple[tuple[float, int, int], ...]

    @property
    def is_stalled(self) -> bool:
        """Whether nothing was served for longer than three windows, or than a pause and a window where nothing can be
        known."""
        return self.longest_s > (3 * self.cell.window_s if self.cell.is_knowable else 60.0 + 2 * self.cell.window_s)


class Bench:
    """The governor, its services and workers against one cell."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.clock = VirtualClock()
        self.clock.skew_s = cell.skew_s
        self.limits = Limits(cell.limit, cell.window_s, cell.headers, cell.answers, is_grid=cell.is_grid)
        self.served: list[float] = []
        self.dice = random.Random(0)
        self.kept: tuple[Reply, float] | None = None
        self.asked = self.answered = 0
        self.work = 10 * cell.limit * cell.windows
        self.stops: list[BulkError] = []
        user_limits = UserLimits(16, lambda limit: 0, cell.is_even, 300.0)
        self.governor = Governor(user_limits, self.clock, lambda *_: self.work, self._stop)
        self.account = self.governor.open_account(Source(), ["core"])
        self.queue = self.governor.queue("default", "core")

    def now(self) -> float:
        """The platform's time."""
        return START + self.clock.monotonic()

    def _stop(self, why: BulkError) -> None:
        self.stops.append(why)
        self.work = 0

    def _reply(self, status: int, headers: dict[str, str], body: Any) -> Reply:
        if self.cell.has_date:
            self.answered += 1
            nodes_s = self.cell.nodes_s or (self.cell.date_s,)
            place = self.dice.randrange(len(nodes_s)) if self.cell.is_random else self.answered % len(nodes_s)
            moment = int(self.now() + nodes_s[place])
            headers = {**headers, "date": formatdate(max(0, min(moment, LAST_DATE)), usegmt=True)}
        return Reply(status=status, headers={name.lower(): value for name, value in headers.items()}, body=body)

    async def _request(self) -> tuple[Reply, Verdict]:
        await anyio.sleep(self.cell.latency_s / 2)
        is_served = self.limits.charge(self.now())
        headers = self.limits.headers(self.now())
        reply = self._reply(200, headers, {"a": 1}) if is_served else self._reply(403, headers, LIMITED)
        await anyio.sleep(self.cell.latency_s / 2)
        return reply, classify(READ, reply, "service")

    async def _ask(self, _: Secret) -> tuple[Reply, Verdict] | Failure:
        self.asked += 1
        await anyio.sleep(self.cell.latency_s / 2)
        if self.limits.is_lost():
            code = ErrorCode.TIMEOUT if self.limits.hangs else ErrorCode.CONNECTION
            await anyio.sleep(TIMEOUT_S if code is ErrorCode.TIMEOUT else 0.0)
            return Failure(kind=FailureKind.LOST, code=code, message="no answer")
        if self.kept is not None and self.clock.monotonic() < self.kept[1] + self.cell.kept_s:
            return self.kept[0], classify(ASK, self.kept[0], "service")
        body = self.limits.body(self.now())
        reply = self._reply(body, {}, {"message": "No."}) if isinstance(body, int) else self._reply(200, {}, body)
        self.kept = reply, self.clock.monotonic()
        await anyio.sleep(self.cell.latency_s / 2)
        return reply, classify(ASK, reply, "service")

    async def _worker(self) -> None:
        while self.work > 0:
            try:
                permit = self.governor.permit_nowait(self.queue) or await self.governor.permit(self.queue)
            except Draining:
                return
            reply, verdict = await self._request()
            self.governor.answered(permit, reply, verdict)
            if reply.status == 200:
                self.work -= 1
                self.served.append(self.clock.monotonic())

    async def run(self) -> Used:
        """Until that number of windows is over."""
        cell = self.cell
        async with anyio.create_task_group() as group:
            group.start_soon(RateLimitPoller(self.governor, self.account, self._ask).run)
            group.start_soon(self.governor.attend, self.queue)
            for _ in range(16):
                group.start_soon(self._worker)
            while not self.served and self.clock.monotonic() < TIMEOUT_S:
                await anyio.sleep(0.1)
            began = self.limits.spent()[0][0] - START if self.served else 0.0
            end = began + cell.windows * cell.window_s
            await anyio.sleep(end - self.clock.monotonic() - 0.001)
            group.cancel_scope.cancel()
        moments = [began, *self.served, end]
        spent = self.limits.spent()
        return Used(
            cell,
            sum(served for _, served, _ in spent) / (cell.limit * cell.windows),
            sum(refused for _, _, refused in spent),
            max(after - before for before, after in itertools.pairwise(moments)),
            self.asked,
            tuple(spent),
        )


def use(cell: Cell) -> Used:
    """Run one cell."""

    async def main() -> Used:
        return await Bench(cell).run()

    return run_alone(main)


def cells(headers: Iterable[Headers] = HEADERS, answers: Iterable[Answers] = ANSWERS, **more: Any) -> list[Cell]:
    """Every pair."""
    return [Cell(each, answer, **more) for each in headers for answer in answers]


def told(used: Used) -> str:
    """One line of the matrix."""
    cell = used.cell
    state = "STALL" if used.is_stalled else "goes on"
    known = "knowable" if cell.is_knowable else ""
    return (
        f"{cell.headers:<8} {cell.answers:<18} {used.share:7.1%} used {used.refused:5} refused  "
        f"longest {used.longest_s:5.1f} s  {used.asked:5} asked  {state:<8}{known}"
    )


def main() -> int:
    """Print the matrix; 1 where a property fails."""
    wrong = 0
    for is_grid in (False, True):
        for is_even in (True, False):
            begin = "on a grid" if is_grid else "with the first request"
            sys.stdout.write(f"\nwindows of 10 s begin {begin}, pace {'even' if is_even else 'burst'}\n")
            for cell in cells((*HEADERS, *MORE_HEADERS), is_grid=is_grid, is_even=is_even):
                used = use(cell)
                if cell.headers in HEADERS:
                    # whatever is known of a small one alone is of another, longer window
                    may_stall = cell.answers is Answers.SMALL and not cell.is_knowable
                    wrong += (used.is_stalled and not may_stall) or (cell.is_knowable and used.share < 0.99)
                sys.stdout.write(told(used) + "\n")
    for skew_s in (-30.0, 0.0, 30.0):
        sys.stdout.write(f"\nno Date comes, and the clock of this machine is {skew_s:+.0f} s wrong\n")
        for is_even in (True, False):
            pairs = itertools.chain(
                cells((*HEADERS, *MORE_HEADERS), (Answers.RIGHT,)), cells((Headers.RIGHT, Headers.NAMELESS), ALONE)
            )
            for cell in pairs:
                used = use(replace(cell, skew_s=skew_s, has_date=False, is_even=is_even))
                least = 0.99 if cell.answers is Answers.RIGHT else 0.95  # the first window is waited for too long
                wrong += used.is_stalled or used.share < least
                sys.stdout.write(told(used) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
