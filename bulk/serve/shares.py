"""Who works on what: words, no logic. Nothing of a store has to be installed for it."""

from collections.abc import Sequence

import msgspec


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker has done of a run: `shards` that it holds now (count); `exit_code`: None while it works on it."""

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
        silent_s: since it was heard of (seconds).
        work: the newest first; what has ended is left out of `working` ones.
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
        leased: that a worker holds. lapsed: whose worker has let its lease end: another one takes them over.
        taken_again: how often a shard had another holder after the first one: takeovers, and what was given back.
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
