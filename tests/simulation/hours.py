"""Hours of budgets: twelve categories, work for all of them, and who else spends from them.

The platform's own windows are the judge (`Counted`): what each held when it ended, and who had it. Whatever is sent in
a category after the client has heard its first limited answer is counted, until that window is over.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from bulk.sandbox.areas.served import AREAS
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.budgets import Window
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.routes import Area, Route
from bulk.sandbox.settings import DEFAULT_RATE_LIMITS, RateLimit
from tests.simulation.wire import probes
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.world import PREFIX, TOKEN, World, now, simulate, world

CATEGORIES = tuple(DEFAULT_RATE_LIMITS)
"""All twelve."""


async def _spent(call: Call) -> Answer:
    return Answer(200, {"spent": call.params["number"]})


PAID = Area(
    "Paid",
    tuple(Route("GET", f"/paid/{category}/{{number}}", _spent, category=category) for category in CATEGORIES),
)


@dataclass(slots=True)
class Counted(Window):
    """A window that remembers those before it.

    Attributes:
        taken: by others, in this window (count).
        refused: requests of ours beyond it (count).
        before: windows that are over: used by us, taken by others, refused (counts).
    """

    taken: int = 0
    refused: int = 0
    before: list[tuple[int, int, int]] = field(default_factory=list)

    def roll(self, now: float) -> None:
        """Forget a window that is over, but for its figures."""
        used = self.used
        was_open = self.started_at is not None
        Window.roll(self, now)
        if was_open and self.started_at is None:
            self.before.append((used - self.taken, self.taken, self.refused))
            self.taken = self.refused = 0

    def take(self, now: float) -> bool:
        """Count one request of ours."""
        is_free = Window.take(self, now)
        self.refused += not is_free
        return is_free

    def take_away(self, count: int, now: float) -> None:
        """Somebody else takes `count`, or what is there."""
        for _ in range(count):
            self.taken += Window.take(self, now)


@dataclass(frozen=True, slots=True)
class Spent:
    """What came of the hours.

    Attributes:
        sent: requests that the platform had (count). refused: of them beyond a budget.
        after: requests that left in a category after its first limited answer, before its reset (count).
        shares: for each whole window, how much of what others left was used.
        taken: by others, as a share of all windows.
        asked: how often `/rate_limit` was.
    """

    sent: int
    refused: int
    after: int
    shares: tuple[float, ...]
    taken: float
    asked: int

    @property
    def share(self) -> float:
        """Of what others left, over all windows."""
        return sum(self.shares) / len(self.shares)


@dataclass(frozen=True, slots=True)
class Hours:
    """How long, how much, and who else.

    Attributes:
        limit: requests in a window (count) of `window_s` seconds; so many `windows`.
        rival: share of each window that somebody else takes, in bursts.
        shows_budgets: whether answers carry X-RateLimit headers.
    """

    limit: int = 5_000
    window_s: int = 3_600
    windows: int = 10
    rival: float = 0.0
    shows_budgets: bool = True
    seed: int = 0


def spend(folder: Path, hours: Hours) -> Spent:
    """Run the engine for those hours."""

    async def main() -> Spent:
        limits = dict.fromkeys(CATEGORIES, RateLimit(hours.limit, hours.window_s))
        areas = (*AREAS, PAID)
        async with world(folder, limits=limits, areas=areas, has_journal=False, seed=hours.seed) as made:
            made.network.is_forgetful, made.network.hides_budgets = True, not hours.shows_budgets
            windows = _counted(made, hours)
            after = _After(made, windows)
            manifest = made.write(
                "hours", dict(_jobs(hours)), {"max_duration": f"{hours.windows * hours.window_s + 30}s"}
            )
            async with anyio.create_task_group() as group:
                for number, window in enumerate(windows.values()):
                    group.start_soon(_rival, made, window, hours, random.Random(f"{hours.seed} {number}"))
                report = await made.run(manifest)
                assert report.exit_code == 3, (report.exit_code, now())
                group.cancel_scope.cancel()
            for window in windows.values():
                window.roll(made.platform_clock.now() + 2 * hours.window_s)
            whole = [each for window in windows.values() for each in window.before[: hours.windows]]
            assert len(whole) == len(CATEGORIES) * hours.windows
            return Spent(
                sent=sum(ours + refused for ours, _, refused in whole),
                refused=sum(refused for _, _, refused in whole),
                after=after.count,
                shares=tuple(ours / (hours.limit - taken) for ours, taken, _ in whole),
                taken=sum(taken for _, taken, _ in whole) / hours.limit / len(whole),
                asked=after.asked,
            )

    with probes.installed():
        return simulate(main, at_most_s=2.0 * hours.windows * hours.window_s, tick_s=60.0)


def _jobs(hours: Hours) -> Iterator[tuple[str, dict[str, object]]]:
    count = hours.limit * (hours.windows + 2)
    for category in CATEGORIES:
        items = [{"number": str(number)} for number in range(count)]
        yield category.replace("_", "-"), {"operation": f"paid.{category.replace('_', '-')}", "items": items}


def _counted(made: World, hours: Hours) -> dict[str, Counted]:
    """The windows of the engine's token, so that they can be watched."""
    context = made.sandbox.context
    token = context.state.token(TOKEN)
    assert token is not None
    windows = {category: Counted(category, hours.limit, hours.window_s) for category in CATEGORIES}
    for category, window in windows.items():
        context.budgets._windows[token.payer, category] = window
    return windows


class _After:
    """Counts what leaves in a category between its first limited answer and its reset."""

    def __init__(self, made: World, windows: dict[str, Counted]) -> None:
        self.count = self.asked = 0
        self._made, self._windows = made, windows
        self._until: dict[str, int] = {}
        made.network.watchers.append(self._leaves)
        made.network.listeners.append(self._heard)

    def _leaves(self, exchange: Exchange) -> None:
        self.asked += exchange.path == f"{PREFIX}/rate_limit"
        until = self._until.get(_category(exchange))
        if until is not None and self._made.platform_clock.now() < until:
            self.count += 1

    def _heard(self, exchange: Exchange) -> None:
        if exchange.status in (403, 429):
            window = self._windows[_category(exchange)]
            self._until[window.category] = window.reset_at(self._made.platform_clock.now())


def _category(exchange: Exchange) -> str:
    parts = exchange.path.removeprefix(PREFIX).split("/")
    return parts[2] if parts[1] == "paid" else ""


async def _rival(made: World, window: Counted, hours: Hours, dice: random.Random) -> None:
    """Somebody else takes the share in bursts of a fiftieth to a tenth of it, evenly at random over each window."""
    share = round(hours.rival * hours.limit)
    while share:
        begun, left = now(), share
        moments: list[tuple[float, int]] = []
        while left:
            burst = min(left, dice.randint(max(1, share // 50), max(1, share // 10)))
            left -= burst
            moments.append((begun + dice.uniform(0.0, hours.window_s), burst))
        for moment, burst in sorted(moments):
            await anyio.sleep(max(0.0, moment - now()))
            window.take_away(burst, made.platform_clock.now())
        await anyio.sleep(max(0.0, begun + hours.window_s - now()))


assert len(CATEGORIES) == 12
