"""Rate limits: for each payer and category, how many requests fit into a window.

A payer is a user (all tokens that act for him together), an installation, an App, or an anonymous caller's address.

A window begins at the whole second that holds its first request and is a whole number of seconds long, so that the
integer `reset` is exact. Before that first request the status shows a full budget and `reset` as if a window began
now. A request beyond the budget is refused and counts nothing; a 304 is given back. Windows live in memory: a restart
begins new ones.

Requests of an App with its JSON web tokens have the public 5,000 an hour, whatever `core` has: small budgets of its
installations shall not leave them without tokens. Anonymous callers share one budget for each address: the public 60 an
hour of `core`, or the limit of `core` where that is less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bulk.sandbox.settings import RateLimit

ANONYMOUS_LIMIT = 60
WINDOWS_IN_MEMORY = 100_000
APP_LIMIT = RateLimit(5000, 3600)
_ADDRESS, _APP = "address:", "app:"


def address_of(remote: str) -> str:
    """Return the payer of anonymous requests from an IP address."""
    return _ADDRESS + remote


@dataclass(slots=True)
class Window:
    """One category of one payer.

    Attributes:
        category: its name.
        limit: requests in a window (count).
        seconds: length of a window.
        used: requests counted in this window.
        started_at: when it began (whole UTC epoch seconds); None: no request came yet.
    """

    category: str
    limit: int
    seconds: int
    used: int = 0
    started_at: int | None = None

    @property
    def remaining(self) -> int:
        """Requests left in this window (count, >= 0)."""
        return self.limit - self.used

    def reset_at(self, now: float) -> int:
        """Return when the budget is full again (whole UTC epoch seconds)."""
        return (int(now) if self.started_at is None else self.started_at) + self.seconds

    def roll(self, now: float) -> None:
        """Forget a window that is over."""
        if self.started_at is not None and now >= self.started_at + self.seconds:
            self.used, self.started_at = 0, None

    def take(self, now: float) -> bool:
        """Count one request; returns False, without counting it, where the budget is spent."""
        self.roll(now)
        if self.started_at is None:
            self.started_at = int(now)
        if self.used >= self.limit:
            return False
        self.used += 1
        return True

    def give_back(self, started_at: int | None) -> None:
        """Undo one `take` of the window that began at `started_at`, unless a newer one began since."""
        if self.started_at == started_at and self.used:
            self.used -= 1

    def status(self, now: float) -> dict[str, int]:
        """Return the category as `GET /rate_limit` shows it."""
        self.roll(now)
        return {"limit": self.limit, "used": self.used, "remaining": self.remaining, "reset": self.reset_at(now)}


class Budgets:
    """The windows of all payers."""

    def __init__(self, limits: Mapping[str, RateLimit], is_off: bool) -> None:
        self.is_off = is_off
        self.limits = limits
        self._windows: dict[tuple[str, str], Window] = {}

    def window(self, payer: str, category: str, now: float) -> Window:
        """Return the window of a payer (`Token.payer`, or `address_of` an anonymous caller), rolled to `now`."""
        window = self._windows.get((payer, category))
        if window is None:
            if len(self._windows) >= WINDOWS_IN_MEMORY:
                self._windows = {key: kept for key, kept in self._windows.items() if now < kept.reset_at(now)}
            limit = self.limits[category]
            if payer.startswith(_ADDRESS):
                limit = self._anonymous(limit)
            elif payer.startswith(_APP) and category == "core":
                limit = APP_LIMIT
            window = self._windows[payer, category] = Window(category, limit.limit, limit.seconds)
        window.roll(now)
        return window

    @staticmethod
    def _anonymous(limit: RateLimit) -> RateLimit:
        return RateLimit(ANONYMOUS_LIMIT, 3600) if limit.limit > ANONYMOUS_LIMIT else limit
