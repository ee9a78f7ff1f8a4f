"""The budgets of a platform that was not written with the engine: windows, and what is said of them, each wrong in its
own way.

What is charged is the truth. What headers and `/rate_limit` say of it can be late, frozen, absent or nonsense, each for
itself. Written from the specification; imports nothing of the engine and nothing of the sandbox.
"""

import bisect
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Headers(StrEnum):
    """What X-RateLimit headers are like."""

    RIGHT = "right"
    ABSENT = "absent"
    LATE = "late"  # what was so 5 s ago
    WRONG = "wrong"  # one kind of nonsense after the other
    ZERO = "zero"  # limit and end are right, and nothing is ever left
    FAR = "far"  # the end is always most of an hour away
    PAST = "past"  # the end was long ago
    SOON = "soon"  # the end is always three seconds away
    NAMELESS = "nameless"  # right, and no category is named


class Answers(StrEnum):
    """What `/rate_limit` is like."""

    RIGHT = "right"
    LATE_A_LITTLE = "0.5 s late"
    LATE = "5 s late"
    FROZEN = "frozen"  # its first answer for ever
    SAME = "same numbers"  # the first `remaining` for ever, with the right end
    NOT_FOUND = "404"
    BROKEN = "5xx"
    FORBIDDEN = "403"
    HANGS = "hangs"  # no answer ever comes
    RESETS = "resets"  # the connection is lost
    HANGS_LATER = "hangs later"  # the first answer is right, and no other one comes
    RESETS_LATER = "resets later"
    MISSING = "category missing"
    NONSENSE = "nonsense"
    IDLE = "of an idle category"  # the numbers of another category, from which nobody sends
    SPENT = "of a spent category"  # those of another one, of which nothing is left in any window
    BUSY = "of a busy category"  # those of another one, of which one is left in any window
    SMALL = "of a small category"  # those of an idle one that has less


LOST = (Answers.HANGS, Answers.RESETS)
LOST_LATER = (Answers.HANGS_LATER, Answers.RESETS_LATER)
OF_ANOTHER = {
    Answers.IDLE: (50.0, None, 3_600),
    Answers.SPENT: (3.0, 0, 20),
    Answers.BUSY: (3.0, 1, 25),
    Answers.SMALL: (0.3, None, 60),
}
"""Limit of the other category in those of this one, what is left of it (None: all), and its window (seconds)."""
LATE_S = {Answers.LATE_A_LITTLE: 0.5, Answers.LATE: 5.0}
HEADERS_LATE_S = 5.0
STATUS = {Answers.NOT_FOUND: 404, Answers.BROKEN: 502, Answers.FORBIDDEN: 403}


@dataclass(slots=True)
class _Account:
    """One category of one token.

    Attributes:
        changes: (moment, start of the window, used) after each request that counted.
        spent: (start of the window, served, refused) of each window that held a request.
    """

    changes: list[tuple[float, float, int]] = field(default_factory=list)
    spent: list[tuple[float, int, int]] = field(default_factory=list)


class Limits:
    """Budgets of `limit` requests in `window_s` whole seconds.

    Args:
        is_grid: windows begin at fixed moments; otherwise at the whole second that holds the first request.
        limit_at: another limit from the window with that number (from 0) on.
    """

    def __init__(
        self,
        limit: int,
        window_s: int,
        headers: Headers = Headers.RIGHT,
        answers: Answers = Answers.RIGHT,
        *,
        is_grid: bool = False,
        limit_at: dict[int, int] | None = None,
        category: str = "core",
    ) -> None:
        self.window_s, self.shown_as, self.asked_as = window_s, headers, answers
        self.size, self._is_grid, self._limit_at, self._category = limit, is_grid, limit_at or {}, category
        self._accounts: dict[tuple[str, str], _Account] = {}
        self._frozen: dict[str, Any] | None = None
        self._told = self._nonsense = 0

    def _account(self, category: str, token: str) -> _Account:
        return self._accounts.setdefault((token, category), _Account())

    def limit(self, account: _Account, start: float | None) -> int:
        """Of the window that begins at `start` (count)."""
        number = len([each for each in account.spent if start is None or each[0] < start])
        past = [at for at in self._limit_at if at <= number]
        return self._limit_at[max(past)] if past else self.size

    def _state(self, account: _Account, moment: float) -> tuple[float | None, int]:
        """(start of the window, used in it) at that moment; None: no window is open."""
        place = bisect.bisect_right(account.changes, moment, key=lambda change: change[0])
        start, used = account.changes[place - 1][1:] if place else (None, 0)
        if start is not None and moment >= start + self.window_s:
            start, used = None, 0
        if start is None and self._is_grid:
            return moment // self.window_s * self.window_s, 0
        return start, used

    def charge(self, now: float, category: str = "core", token: str = "") -> bool:
        """Count one request; False: the budget is spent, and nothing was counted."""
        account = self._account(category, token)
        start, used = self._state(account, now)
        if start is None:
            start = float(int(now))
        limit = self.limit(account, start)
        if not account.spent or account.spent[-1][0] != start:
            account.spent.append((start, 0, 0))
        _, served, refused = account.spent[-1]
        is_served = used < limit
        account.spent[-1] = (start, served + is_served, refused + (not is_served))
        account.changes.append((now, start, used + is_served))
        return is_served

    def spent(self, category: str = "core", token: str = "") -> list[tuple[float, int, int]]:
        """(start, served, refused) of each window that held a request."""
        return list(self._account(category, token).spent)

    def left(self, now: float, category: str = "core", token: str = "") -> int:
        """Requests that are left at that moment (count)."""
        account = self._account(category, token)
        start, used = self._state(account, now)
        return self.limit(account, start) - used

    def _entry(self, now: float, category: str, token: str) -> dict[str, int]:
        account = self._account(category, token)
        start, used = self._state(account, now)
        limit = self.limit(account, start)
        begun = int(now) if start is None else int(start)
        return {"limit": limit, "used": used, "remaining": limit - used, "reset": begun + self.window_s}

    def headers(self, now: float, category: str = "core", token: str = "") -> dict[str, str]:
        """X-RateLimit headers of an answer that is made now."""
        entry = self._entry(now - (HEADERS_LATE_S if self.shown_as is Headers.LATE else 0.0), category, token)
        match self.shown_as:
            case Headers.ABSENT:
                return {}
            case Headers.WRONG:
                entry = self._nonsense_of(entry, now)
            case Headers.ZERO:
                entry["remaining"], entry["used"] = 0, entry["limit"]
            case Headers.FAR:
                entry["reset"] = int(now) + 3_000
            case Headers.PAST:
                entry["reset"] = int(now) - 4_000
            case Headers.SOON:
                entry["reset"] = int(now) + 3
            case _:
                pass
        shown = {f"X-RateLimit-{name.title()}": str(value) for name, value in entry.items()}
        return shown if self.shown_as is Headers.NAMELESS else {**shown, "X-RateLimit-Resource": category}

    def _nonsense_of(self, entry: dict[str, int], now: float) -> dict[str, int]:
        self._nonsense += 1
        limit, end = entry["limit"], entry["reset"]
        kinds: tuple[tuple[int, int, int], ...] = (
            (limit, limit, end),
            (limit, 10 * limit, end),
            (0, 0, end),
            (limit, limit, int(now) - 100),
            (limit, limit, int(now) + 90_000),
            (limit, -1, 0),
            (1_000 * limit, 1_000 * limit, end),
            (limit, 0, end),
            (limit, limit, end * 1_000),
        )
        limit, remaining, end = kinds[self._nonsense % len(kinds)]
        return {"limit": limit, "used": 0, "remaining": remaining, "reset": end}

    def _of_another(self, now: float) -> dict[str, int]:
        times, left, window_s = OF_ANOTHER[self.asked_as]
        limit = max(1, int(times * self.size))  # with nothing to spend at all a run does not begin
        if left is None:
            return {"limit": limit, "used": 0, "remaining": limit, "reset": int(now) + window_s}
        end = int(now // window_s + 1) * window_s
        return {"limit": limit, "used": limit - left, "remaining": left, "reset": end}

    @property
    def hangs(self) -> bool:
        """Whether nothing happens where no answer comes; otherwise the connection is lost."""
        return self.asked_as in (Answers.HANGS, Answers.HANGS_LATER)

    def is_lost(self) -> bool:
        """Whether `GET /rate_limit`, which is asked now, gets no answer."""
        self._told += 1
        return self.asked_as in LOST or (self.asked_as in LOST_LATER and self._told > 1)

    def body(self, now: float, token: str = "") -> dict[str, Any] | int:
        """What `GET /rate_limit` answers now: its body, or the status of a refusal."""
        if self.asked_as in STATUS:
            return STATUS[self.asked_as]
        entry = self._entry(now - LATE_S.get(self.asked_as, 0.0), self._category, token)
        if self.asked_as is Answers.MISSING:
            return {"resources": {"search": entry}}
        if self.asked_as is Answers.NONSENSE:
            entry = self._nonsense_of(entry, now)
        if self.asked_as in OF_ANOTHER:
            entry = self._of_another(now)
        if self._frozen is None:
            self._frozen = dict(entry)
        if self.asked_as is Answers.FROZEN:
            entry = self._frozen
        elif self.asked_as is Answers.SAME:
            entry = {**self._frozen, "reset": entry["reset"]}
        return {"resources": {self._category: entry}, "rate": entry}
