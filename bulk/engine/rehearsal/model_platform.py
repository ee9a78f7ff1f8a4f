"""A model of the platform: windows of its budgets, how long answers take, and what share of them is lost.

The model ignores the content of requests: only their number and times count. Latencies are drawn around learnt ones.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from typing import Any, Self

from bulk.clock import Clock
from bulk.manifest.manifest import Platform
from bulk.model import ErrorCode, Failure, FailureKind, Reply, Request

LOST = "drop-after"
UNAVAILABLE = "unavailable"
FAULTS = (LOST, UNAVAILABLE)
COMMIT_S = 0.004
"""How long the disk takes to make a group durable (seconds)."""
JITTER = 0.3
"""How far latencies spread around their mean if that was not learnt (share of the mean)."""


@dataclass(frozen=True, slots=True)
class ModelBudget:
    """A budget as the platform has it: requests in a window, its length, and what is left of the one under way.

    Attributes:
        limit, remaining: requests in a window, and left in the one under way (counts). seconds: length of a window.
        ends_in_s: when the window under way ends (seconds from now); None: none is under way.
    """

    limit: int
    seconds: float
    remaining: int
    ends_in_s: float | None = None

    def times(self, count: int) -> "ModelBudget":
        """Return the budget of `count` tokens together: this one as it is, and others that are full."""
        others = (count - 1) * self.limit
        return replace(self, limit=self.limit + others, remaining=self.remaining + others)


@dataclass(slots=True)
class ModelWindow:
    """One budget of one credential, as time goes by; `windows`: windows from which requests were spent (count)."""

    budget: ModelBudget
    ends_at: float | None
    used: int
    windows: int = 0
    spent: int = 0

    def roll(self, now: float) -> None:
        """Clear the window if it is over."""
        if self.ends_at is not None and now >= self.ends_at:
            self.ends_at, self.used = None, 0

    def take(self, now: float) -> bool:
        """Count a request, and return whether the budget allows it."""
        self.roll(now)
        if self.ends_at is None:
            self.ends_at, self.used = float(int(now)) + self.budget.seconds, 0
            self.windows += 1
        if self.used >= self.budget.limit:
            return False
        self.windows = max(1, self.windows)
        self.used += 1
        self.spent += 1
        return True

    def reset_at(self, now: float) -> int:
        """Return when the budget is full again (UTC epoch seconds)."""
        return int(self.ends_at if self.ends_at is not None else now + self.budget.seconds)


@dataclass(frozen=True, slots=True)
class Model:
    """What is known of a platform.

    Attributes:
        budgets: by category; a category without one is not limited.
        answer_s: how long an answer takes, by operation (seconds). spread: its standard deviation (share of the mean).
        default_s: how long all other answers take (seconds).
        commit_s: how long the disk takes to make a group durable (seconds).
        faults: shares of the requests, by kind: an answer that is lost after the effect, a 503.
    """

    budgets: Mapping[str, ModelBudget]
    answer_s: Mapping[str, float] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    default_s: float = 0.1
    commit_s: float = COMMIT_S
    faults: Mapping[str, float] = field(default_factory=dict)


class ModelWire:
    """Answers instead of the platform: a `Wire`.

    Paths of requests are `/CATEGORY/OPERATION/KIND/KEY`, as `shaped_operations.py` makes them.
    """

    def __init__(self, model: Model, platform: Platform, concurrency: int, clock: Clock, seed: int) -> None:
        self.most_in_flight, self.platform = concurrency, platform
        self._model, self._clock, self._dice = model, clock, random.Random(seed)
        self.windows: dict[tuple[Any, str], ModelWindow] = {}
        self._applied: set[str] = set()
        self._date = (0, "")
        self.requests: dict[str, int] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def distrust(self) -> None:
        """Do nothing, because there are no connections."""

    def step_aside(self, holder: Any) -> None:
        """Do nothing, because nothing is held."""

    async def download(self, url: str, max_bytes: int, *, takes_file: bool, holder: Any) -> Reply | Failure:
        """Answer 404, because nothing lies elsewhere."""
        return Reply(status=404, headers={})

    async def send(
        self,
        request: Request,
        token: Any,
        stored: Any = None,
        may_leave: Callable[[], bool] | None = None,
        holder: Any = None,
    ) -> Reply | Failure:
        """Answer a request after the latency of its operation."""
        if may_leave is not None and not may_leave():
            return Failure(kind=FailureKind.NOT_SENT, code=ErrorCode.CONNECTION, message="withheld")
        model, clock = self._model, self._clock
        if request.path == "/rate_limit":
            await clock.sleep(model.default_s)
            return self._limits(token)
        if request.path == "/user":  # the model does not know whose token it is
            return Reply(status=404, headers={})
        _, category, operation, _, key = request.path.split("/", 4)
        self.requests[category] = self.requests.get(category, 0) + 1
        fault = self._fault()
        now = clock.now()
        headers = {"date": self._http_date(now)}
        if fault == UNAVAILABLE:
            await clock.sleep(0.01)
            return Reply(status=503, headers={**headers, "retry-after": "1"})
        window = self._window(token, category, now)
        if window is not None:
            is_let = window.take(now)
            headers |= self._told(category, window, now)
            if not is_let:
                return Reply(status=403, headers=headers, body={"message": "API rate limit exceeded"})
        usual_s = model.answer_s.get(operation, model.default_s)
        spread = min(1.0, model.spread.get(operation, JITTER))
        await clock.sleep(usual_s * (1.0 + spread * (self._dice.expovariate(1.0) - 1.0)))
        if fault == LOST:
            self._applied.add(key)
            return Failure(kind=FailureKind.LOST, code=ErrorCode.CONNECTION, message="lost")
        return Reply(status=200, headers=headers, body=key in self._applied)

    def _fault(self) -> str | None:
        if not self._model.faults:
            return None
        drawn = self._dice.random()
        for kind, share in self._model.faults.items():
            drawn -= share
            if drawn < 0.0:
                return kind
        return None

    def _window(self, token: Any, category: str, now: float) -> ModelWindow | None:
        budget = self._model.budgets.get(category)
        if budget is None:
            return None
        window = self.windows.get((token, category))
        if window is None:
            ends_at = None if budget.ends_in_s is None else float(round(now + budget.ends_in_s))
            window = self.windows[token, category] = ModelWindow(budget, ends_at, budget.limit - budget.remaining)
        window.roll(now)
        return window

    def _limits(self, token: Any) -> Reply:
        now = self._clock.now()
        resources = {}
        for category in self._model.budgets:
            window = self._window(token, category, now)
            assert window is not None, "there is one for each budget"
            left = window.budget.limit - window.used
            resources[category] = {
                "limit": window.budget.limit,
                "remaining": left,
                "used": window.used,
                "reset": window.reset_at(now),
            }
        headers = {"date": self._http_date(now)}
        if not resources:
            return Reply(status=404, headers=headers, body={"message": "Rate limiting is not enabled."})
        return Reply(status=200, headers=headers, body={"resources": resources})

    def _told(self, category: str, window: ModelWindow, now: float) -> dict[str, str]:
        return {
            "x-ratelimit-limit": str(window.budget.limit),
            "x-ratelimit-remaining": str(window.budget.limit - window.used),
            "x-ratelimit-used": str(window.used),
            "x-ratelimit-reset": str(window.reset_at(now)),
            "x-ratelimit-resource": category,
        }

    def _http_date(self, now: float) -> str:
        second = int(now)
        if self._date[0] != second:
            self._date = second, formatdate(second, usegmt=True)
        return self._date[1]
