"""Random weather from a seed: what befalls the requests of a run.

The weather is bad, but it spares a request after three misfortunes in a row, so that every item can be brought to its
one right outcome whatever the seed. A request that comes late comes within the settle time where the engine relies on
that (a rename), and what a read shows is no older than half of it.
"""

import random
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.schedules import LATEST_S, SETTLE_S, TIMEOUT_S
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer

STALE_S = SETTLE_S / 2
"""A read may show what was true that long ago (seconds)."""


@dataclass(slots=True)
class Weather:
    """Fates from a seed.

    Attributes:
        share: of the requests that meet a misfortune; `most` in a row of one path as it is spelled, of these `kinds`:
            several items may read one thing under several names.
        outages: spells in which nobody gets anything but 5xx: begin and end, on the loop's scale (seconds).
    """

    seed: int
    share: float = 0.2
    most: int = 3
    outages: tuple[tuple[float, float], ...] = ()
    kinds: tuple[str, ...] = (
        "cut request",
        "cut answer",
        "reset",
        "late",
        "mute",
        "5xx before",
        "5xx after",
        "slow",
        "drip",
        "limited",
        "stale",
    )
    _met: int = 0
    _in_a_row: dict[tuple[str, str], int] = field(default_factory=dict)

    def __call__(self, exchange: Exchange) -> Fate:
        """What befalls the next request."""
        self._met += 1
        dice = random.Random(f"weather {self.seed} {self._met}")
        key = (exchange.method, exchange.path.partition("?")[0])
        if any(begin <= exchange.at < end for begin, end in self.outages):
            return answer(dice.choice((500, 502, 503, 504)), is_passed_on=dice.random() < 0.3)
        if dice.random() >= self.share or self._in_a_row.get(key, 0) >= self.most:
            self._in_a_row[key] = 0
            return Fate(request_s=dice.uniform(0.001, 0.01), answer_s=dice.uniform(0.001, 0.01))
        self._in_a_row[key] = self._in_a_row.get(key, 0) + 1
        return _misfortune(dice.choice(self.kinds), dice)


def _misfortune(kind: str, dice: random.Random) -> Fate:
    trips: dict[str, Any] = {"request_s": dice.uniform(0.001, 0.05), "answer_s": dice.uniform(0.001, 0.05)}
    match kind:
        case "cut request":
            return Fate(kind=kind, request_cut=dice.randrange(600), **trips)
        case "cut answer":
            return Fate(kind=kind, answer_cut=dice.randrange(1_200), **trips)
        case "reset":
            return Fate(kind=kind, answer_cut=dice.randrange(1_200), is_reset=True, **trips)
        case "late":
            return Fate(kind=kind, request_s=dice.uniform(TIMEOUT_S, LATEST_S))
        case "mute":
            return Fate(kind=kind, is_mute=True)
        case "5xx before":
            return answer(dice.choice((500, 502, 503, 504)))
        case "5xx after":
            return answer(dice.choice((500, 502, 504)), is_passed_on=True)
        case "stale":
            return Fate(kind=kind, stale_s=STALE_S)
        case "slow":
            return Fate(kind=kind, request_s=dice.uniform(0.1, 2.0), answer_s=dice.uniform(0.1, 2.0))
        case "drip":
            return Fate(kind=kind, drip_s=dice.choice((0.001, 0.01)), **trips)
        case "limited":
            body = b'{"message": "You have exceeded a secondary rate limit."}'
            return answer(429, body, "application/json", Retry_After=str(dice.randrange(1, 4)))
    return FINE
