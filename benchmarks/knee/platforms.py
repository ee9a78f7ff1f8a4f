"""Platforms to be simulated: workers, queues, networks and how they suffer. Words only; times are seconds."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

Draw = Callable[[random.Random, float], float]
"""One service time (seconds), from a source of randomness and the time of the simulation."""
Course = Callable[[float], float]
"""A number as it changes with the time of the simulation."""


def constant(value: float) -> Course:
    """Always the same."""
    return lambda _: value


def uniform(mean_s: float, spread: float) -> Draw:
    """Service times that differ by at most `spread` (share of the mean)."""
    return lambda rng, _: mean_s * (1.0 - spread + 2.0 * spread * rng.random())


def skewed(mean_s: float, sigma: float) -> Draw:
    """Service times as most servers have them: log-normal, with that mean."""
    scale = mean_s / _mean_of(sigma)
    return lambda rng, _: scale * rng.lognormvariate(0.0, sigma)


def drifting(mean_s: Course, sigma: float) -> Draw:
    """Log-normal service times whose mean changes."""
    share = 1.0 / _mean_of(sigma)
    return lambda rng, now: share * mean_s(now) * rng.lognormvariate(0.0, sigma)


def two_kinds(rare: Course, quick_s: float, slow_s: float) -> Draw:
    """Reads and writes: `rare` is the share of the slow kind; each differs by a tenth."""

    def draw(rng: random.Random, now: float) -> float:
        mean_s = slow_s if rng.random() < rare(now) else quick_s
        return mean_s * (0.9 + 0.2 * rng.random())

    return draw


def _mean_of(sigma: float) -> float:
    return float(2.718281828459045 ** (sigma * sigma / 2.0))


@dataclass(frozen=True)
class Platform:
    """Attributes:
    service: how long a worker has a request.
    workers: requests served at once (count); None: any number. The others wait in one queue.
    network_s: what is added to every answer.
    slowdown: factor of the service time, by how many requests the platform holds.
    queue_room: requests that may wait (count); others get 503 at once. None: all may.
    per_second: requests of each second that are allowed (count); others get 429 with Retry-After.
    pause: every so many seconds no work is done for so many seconds.
    changes: from when on there are how many workers.
    outage: from when to when every answer is a 503.
    wrong, lost: share of the answers that are a 500 in the place of work; that never come, noticed after `lost_s`.
    """

    service: Draw
    workers: int | None = None
    network_s: Course = field(default_factory=lambda: constant(0.0))
    slowdown: Callable[[int], float] | None = None
    queue_room: int | None = None
    per_second: int | None = None
    pause: tuple[float, float] | None = None
    changes: tuple[tuple[float, int], ...] = ()
    outage: tuple[float, float] | None = None
    wrong: float = 0.0
    lost: float = 0.0
    lost_s: float = 0.02


@dataclass(frozen=True)
class Scenario:
    """One client, or two, and a platform.

    Attributes:
        best: good answers a second that are possible, by time. unloaded_s: latency where nobody waits, by time.
        until: how long it runs; `steady`: from when to when it is measured (seconds).
        most: the user's limit (count).
        pace: requests a second that the client sends; None: as many as it may. By time.
        others: requests a second of somebody else. others_held: requests that somebody else always has there (count).
        twin_from: when a second client with the same rule begins; its answers count as well.
    """

    name: str
    platform: Platform
    best: Course
    unloaded_s: Course
    until: float
    steady: tuple[float, float]
    most: int = 1_000
    pace: Callable[[float], float | None] | None = None
    others: float = 0.0
    others_held: int = 0
    twin_from: float | None = None
