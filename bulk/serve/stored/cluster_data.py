"""The cluster of a store: its workers and their work, the shards of its runs, and the budgets that workers share."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from bulk.cluster.budgets import decoded
from bulk.errors import UNDECODABLE
from bulk.serve.shares import RunShards, Shares, Work, Worker
from bulk.status import RunStatus
from bulk.store import sql
from bulk.store.connections import StoreConnection
from bulk.store.runs import Participant

_SQL = sql.load("overview")

_TAGGED = re.compile(r"(.*) ([0-9a-f]{24})")
SILENT_S = 30.0
"""How long a worker must not have been heard of to be `silent` (if it holds shards) or `gone` (seconds)."""


class Takeover(msgspec.Struct, frozen=True, kw_only=True):
    """A shard that was claimed more than once; `holders`: how many times it was claimed (count)."""

    run: str
    shard: int
    holders: int
    items: int
    is_done: bool
    worker: str
    until: float | None


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of a budget that are lent to a worker, and that it has not reported as sent (count)."""

    worker: str
    tokens: int


class SharedBudget(msgspec.Struct, frozen=True, kw_only=True):
    """A budget from which all workers spend; `free`: requests that may still be lent in this window (count)."""

    platform: str
    credential: str
    category: str
    limit: int
    free: int
    reserve: int
    reset_at: float
    sent: int
    held: Sequence[Held]


class SharedAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A credential as all workers see it; `paused_at`: the end of its pause, whose reason is `why`."""

    platform: str
    credential: str
    trust: str
    why: str
    paused_at: float | None


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """The whole cluster; `at`: when it was read, by the store's clock."""

    at: float
    workers: Sequence[Worker]
    runs: Sequence[RunShards]
    takeovers: Sequence[Takeover]
    accounts: Sequence[SharedAccount]
    budgets: Sequence[SharedBudget]


class ClusterData:
    """Reads the data of the cluster from a store.

    Raises:
        BulkError: the store can't be reached (raised by every method).
    """

    def __init__(self, store: StoreConnection) -> None:
        self._store = store

    def of_run(self, name: str, participants: Sequence[Participant], at: float) -> Shares:
        """Return the shards of a run, and its workers, sorted by how many shards they hold; `at`: the store's time."""
        with self._store.using() as connection:
            found = [_shards(row) for row in connection.execute(_SQL["shards"], {"run": name})]
        workers = [
            Worker(
                name=each.worker,
                engine=each.engine,
                state=_state(at - each.seen_at, is_working=each.exit_code is None and each.shards > 0),
                began_at=each.began_at,
                seen_at=each.seen_at,
                silent_s=max(0.0, at - each.seen_at),
                work=(_work(name, each.shards, each.exit_code, each.why, each.status),),
            )
            for each in participants
        ]
        workers.sort(key=lambda worker: (-worker.work[0].shards, worker.silent_s))
        return Shares(shards=found[0] if found else None, workers=workers[:100])

    def all(self) -> Cluster:
        """Return the data of the whole store."""
        with self._store.using() as connection:
            row = connection.execute(_SQL["now"]).fetchone()
            at = float(row[0]) if row else 0.0
            shards = [_shards(row) for row in connection.execute(_SQL["shards"], {"run": ""})]
            again = [Takeover(**dict(zip(Takeover.__struct_fields__, row, strict=True)))
                     for row in connection.execute(_SQL["taken_again"])]  # fmt: skip
            workers = connection.execute(_SQL["workers"]).fetchall()
            work: dict[int, list[Work]] = {}
            for worker, run, exit_code, why, status, _, held in connection.execute(_SQL["work"]):
                work.setdefault(worker, []).append(_work(run, held, exit_code, why, status))
            accounts = connection.execute(_SQL["accounts"]).fetchall()
            buckets = connection.execute(_SQL["buckets"]).fetchall()
        names = {number: name for number, name, *_ in workers}
        return Cluster(
            at=at,
            workers=[_worker(row, work.get(row[0], []), at) for row in workers],
            runs=shards,
            takeovers=again,
            accounts=[
                SharedAccount(platform=platform, credential=_short(name), trust=trust, why=why, paused_at=paused)
                for platform, name, trust, why, paused in accounts
            ],
            budgets=[each for row in buckets if (each := _budget(row, names)) is not None],
        )


def _shards(row: tuple[object, ...]) -> RunShards:
    return msgspec.convert(dict(zip(RunShards.__struct_fields__, row, strict=True)), RunShards)


def _work(run: str, shards: int, exit_code: int | None, why: str, status: bytes | None) -> Work:
    said = None
    if status is not None and exit_code is None:
        try:
            said = msgspec.json.decode(status, type=RunStatus, strict=False)
        except UNDECODABLE:
            said = None
    return Work(
        run=run,
        shards=shards,
        exit_code=exit_code,
        why=why,
        per_second=said.per_second if said else 0.0,
        in_flight=said.in_flight if said else 0,
    )


def _worker(row: tuple[int, str, str, float, float], work: Sequence[Work], at: float) -> Worker:
    _, name, engine, began_at, seen_at = row
    silent_s = max(0.0, at - seen_at)
    going = [each for each in work if each.shards and each.exit_code is None]
    return Worker(
        name=name,
        engine=engine,
        state=_state(silent_s, is_working=bool(going)),
        began_at=began_at,
        seen_at=seen_at,
        silent_s=silent_s,
        work=going or work[:1],
    )


def _state(silent_s: float, *, is_working: bool) -> str:
    if silent_s > SILENT_S:
        return "silent" if is_working else "gone"
    return "working" if is_working else "idle"


def _budget(row: tuple[str, str, str, bytes], names: Mapping[int, str]) -> SharedBudget | None:
    platform, credential, category, state = row
    shared = decoded(state)
    if shared is None:
        return None  # a worker that wants to spend from it has it made anew, and warns
    return SharedBudget(
        platform=platform,
        credential=_short(credential),
        category=category,
        limit=shared.bucket.limit,
        free=shared.bucket.free,
        reserve=shared.bucket.reserve,
        reset_at=shared.bucket.reset_at,
        sent=shared.bucket.sent,
        held=[
            Held(worker=names.get(number, f"worker {number}"), tokens=hold.tokens)
            for number, hold in shared.holds.items()
            if hold.tokens
        ],
    )


def _short(credential: str) -> str:
    """Return the name of a credential, with only the beginning of the tag that tells two tokens of one name apart."""
    found = _TAGGED.fullmatch(credential)
    return credential if found is None else f"{found[1]} {found[2][:4]}"
