"""Data types for workers and the runs that they work on; they need no client of a store to be installed."""

from collections.abc import Sequence

import msgspec


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's part in a run; `shards`: how many it holds now (count); `exit_code`: None while it works on it."""

    run: str
    shards: int
    exit_code: int | None
    why: str
    per_second: float
    in_flight: int


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker.

    Attributes:
        state: `working`; `silent`: it holds shards, and is not heard of; `idle`: it holds none, and looks for work;
            `gone`: it holds none, and is not heard of.
        silent_s: the time since the store last heard of it (seconds).
        work: its parts in runs, the newest first; parts that have ended are left out while it holds shards.
    """

    name: str
    engine: str
    state: str
    began_at: float
    seen_at: float
    silent_s: float
    work: Sequence[Work]


class RunShards(msgspec.Struct, frozen=True, kw_only=True):
    """The shards of a run (counts).

    Attributes:
        leased: shards that a worker holds. lapsed: shards whose lease has ended: another worker takes them over.
        taken_again: how often a shard was claimed again after its first claim: takeovers, and shards given back.
    """

    run: str
    state: str
    engine: str
    shards: int
    done: int
    leased: int
    lapsed: int
    taken_again: int


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """How the work on one run is shared."""

    shards: RunShards | None
    workers: Sequence[Worker]
