"""The rule that the engine had until the knee was found: kept to be compared with.

It grew by one for each round of good answers until one took 8 times the best and a quarter of a second, and fell to
half with any bad answer.
"""

from dataclasses import dataclass

START = 16
SLOW_FACTOR = 8.0
SLOW_FLOOR_S = 0.25
"""Growth stops where an answer takes 8 times the best and more than a quarter of a second: the platform is queueing."""

LONG_TURN_S = 0.008
BUSY_SHARE = 0.5
"""A turn of our event loop that takes longer (processor time), while the loop has been busy for more than that share of
the time, has too much to serve. One long turn in a process that mostly waits was something else's."""

MEMORY = 0.05
"""Weight of the newest latency in the moving mean."""


@dataclass(slots=True)
class AdaptiveLimit:
    """Attributes:
    most: the user's limit (count). limit: what is allowed now (count, 1..most). in_flight: requests under way (count).
    best_s: best latency seen; it forgets slowly, so that a platform that got slower for good is not throttled for ever.
    mean_s: moving mean of latency (seconds).
    is_busy: it was this process that had too much to serve, when the limit fell last.
    is_capped: this machine can't hold as many connections as the user allows.
    """

    most: int
    limit: float = float(START)
    in_flight: int = 0
    best_s: float = 0.0
    mean_s: float = 0.0
    is_starting: bool = True
    is_busy: bool = False
    is_capped: bool = False
    calm_after: float = 0.0

    def __post_init__(self) -> None:
        self.limit = float(min(self.most, START))

    @property
    def allowed(self) -> int:
        """Requests that may be in flight now (count, >= 1)."""
        return int(self.limit)

    @property
    def has_room(self) -> bool:
        """Whether one more may leave."""
        return self.in_flight < int(self.limit)

    @property
    def obstacle(self) -> str:
        """Why there is no room, for people."""
        if self.is_busy:
            return "concurrency, as this process is busy"
        return "concurrency, as few files may be open" if self.is_capped and self.limit >= self.most else "concurrency"

    def cap(self, most: int) -> None:
        """This machine can't hold more connections than that."""
        self.is_capped = self.is_capped or most < self.most
        self.most = min(self.most, most)
        self.limit = min(self.limit, float(self.most))

    def answered(self, latency_s: float) -> None:
        """A good answer after that many seconds."""
        if self.best_s == 0.0:
            self.best_s = self.mean_s = latency_s
        self.mean_s += MEMORY * (latency_s - self.mean_s)
        self.best_s = latency_s if latency_s < self.best_s else self.best_s + 0.0001 * (latency_s - self.best_s)
        if self.limit >= self.most or self.in_flight + 1 < int(self.limit):
            return
        if self.mean_s > SLOW_FLOOR_S and self.mean_s > SLOW_FACTOR * self.best_s:
            self.is_starting = self.is_busy = False
            return
        self.limit = min(float(self.most), self.limit + (1.0 if self.is_starting else 1.0 / self.limit))
        self.is_busy = self.is_busy and self.limit < self.most

    def turned(self, turn_s: float, busy: float) -> None:
        """A turn of our event loop took `turn_s` of processor time, and lately it was `busy` for that share of time."""
        if turn_s <= LONG_TURN_S or busy <= BUSY_SHARE or self.limit <= START:
            return
        self.is_starting, self.is_busy = False, True
        self.limit = max(float(START), self.limit * max(0.5, LONG_TURN_S / turn_s))

    def suffered(self, now: float) -> None:
        """A sign that the platform is not well, at monotonic time `now`."""
        self.is_starting = self.is_busy = False
        if now < self.calm_after:
            return
        self.limit = max(1.0, self.limit / 2)
        self.calm_after = now + max(self.mean_s, 0.05)
