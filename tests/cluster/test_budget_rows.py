"""Budgets in rows of a store: what a platform has once said of them, and what it says no more."""

from dataclasses import replace

import anyio
import msgspec
import psycopg
import pytest

from bulk.clock import Clock
from bulk.cluster.budgets import StorePeers
from bulk.govern.budgets.shared_bucket import Wish
from bulk.govern.governor import Governor
from bulk.govern.user_limits import UserLimits
from bulk.platform.classification import Limits
from tests.govern.counting import Source
from tests.store.places import connection_to

NAMED = Limits(category="core", limit=100, remaining=8, used=92, reset=1_060)
WISH = Wish(most=50, work=5_000, concurrency=8)


def test_limits_that_were_turned_off_end_with_their_window(store_text: str) -> None:
    """A budget that the platform has named holds until its window ends. Where it names none any more, nobody waits
    for windows that nobody knows of; who has not heard of that waits until it has asked."""

    async def lent(*asked: tuple[Wish, float]) -> list[tuple[int, bool]]:
        with connection_to(store_text) as store:
            clock = Clock()
            peers = StorePeers(store, "https://code.example.com/api/v3", 1, lambda _: 0, 10.0, clock.monotonic)
            governor = Governor(UserLimits(40, lambda _: 0, False, 60.0), clock, lambda *_: 9, lambda _: None, peers)
            account = governor.open_account(Source("token-one"), ["core"])
            peers.know([account], {"me": [account]})
            await peers.told(account.name, {"core": NAMED}, {}, 1_000.0, 1_000.0)
            found = []
            for wish, at in asked:
                answer = await peers.lease(account.name, "core", wish, at, at)
                assert answer is not None
                found.append((answer[0].tokens, answer[1] is None))
            return found

    off = replace(WISH, is_unlimited=True)
    (first, second, third, fourth) = anyio.run(lent, (off, 1_001.0), (WISH, 1_005.0), (off, 1_061.0), (WISH, 1_062.0))
    assert 0 < first[0] <= 8
    assert not first[1], "its window goes on"
    assert second[0] <= 8 - first[0]
    assert not second[1]
    assert third == (WISH.most, True)
    assert fourth == (0, True)


def test_what_a_worker_spends_before_it_leases_counts_before_others_lease(store_text: str) -> None:
    """A worker that comes later has asked to whom its tokens belong: these requests are taken off the budget that
    others have told of, before it leases anything, and once. Who tells first has heard of its own.
    """

    async def left() -> list[int]:
        with connection_to(store_text) as store, connection_to(store_text) as other:
            clock = Clock()
            workers = []
            for number, connection in ((1, store), (2, other)):
                platform = "https://code.example.com/api/v3"
                peers = StorePeers(connection, platform, number, lambda _: 0, 10.0, clock.monotonic)
                governor = Governor(
                    UserLimits(40, lambda _: 0, False, 60.0), clock, lambda *_: 9, lambda _: None, peers
                )
                accounts = [governor.open_account(Source(f"token-{name}"), ["core"]) for name in ("one", "two")]
                peers.know(accounts, {"me": accounts})
                workers.append((peers, accounts[0].name))
            (first, mine), (second, yours) = workers
            found = []

            async def look() -> None:
                answer = await first.lease(mine, "core", Wish(most=0, work=0, concurrency=8), 1_001.0, 1_001.0)
                assert answer is not None
                assert answer[1] is not None
                found.append(answer[1].free)

            await first.told(mine, {"core": NAMED}, {}, 1_000.0, 1_000.0)
            await look()
            await second.marks(yours)
            await look()
            await second.told(yours, {"core": NAMED}, {}, 1_000.0, 1_000.0)
            await second.lease(yours, "core", Wish(most=0, work=0, concurrency=8), 1_001.0, 1_001.0)
            await look()
            return found

    assert anyio.run(left) == [8, 6, 6]


DAMAGED = (b"", b"no JSON", b"[1]", b"{}", b'{"bucket":{},"next_slot":0,"holds":[],"seen":[]}', b"[" * 100_000)


@pytest.mark.parametrize("damage", [*range(len(DAMAGED)), "free", "limit", "asked", "holds"])
def test_a_damaged_budget_is_made_anew_and_never_overspent(store_text: str, damage: int | str) -> None:
    """Nothing is lent of it while what was lent before may be under way, whatever the platform says meanwhile; then it
    is what the platform says (failures.md row 112)."""

    async def lent() -> list[int]:
        with connection_to(store_text) as store, psycopg.connect(store_text, autocommit=True) as admin:
            clock = Clock()
            peers = StorePeers(store, "https://code.example.com/api/v3", 1, lambda _: 0, 0.2, clock.monotonic)
            governor = Governor(UserLimits(40, lambda _: 0, False, 60.0), clock, lambda *_: 9, lambda _: None, peers)
            account = governor.open_account(Source("token-one"), ["core"])
            peers.know([account], {"me": [account]})
            found = []

            async def lease() -> None:
                answer = await peers.lease(account.name, "core", WISH, 1_001.0, 1_001.0)
                assert answer is not None
                found.append(answer[0].tokens)

            async def tell() -> None:
                marks = await peers.marks(account.name)
                await peers.told(account.name, {"core": NAMED}, marks or {}, 1_000.0, 1_000.0)

            await tell()
            await lease()
            (kept,) = admin.execute("SELECT state FROM bulk.bucket").fetchone() or (b"",)
            admin.execute("UPDATE bulk.bucket SET state = %s", (damaged(bytes(kept), damage),))
            for _ in range(2):
                await tell()
                await lease()
            back_s = (
                "UPDATE bulk.bucket SET state = replace(convert_from(state, 'UTF8'), 'until\":', 'until\":-')::bytea"
            )
            admin.execute(back_s)  # as if that time were over
            await tell()
            await lease()
            await tell()
            await lease()
            return found

    first, second, third, fourth, fifth = anyio.run(lent)
    assert (first > 0, second, third, fourth) == (True, 0, 0, 0)
    assert 0 < fifth <= 8


def damaged(state: bytes, how: int | str) -> bytes:
    """A row with a value of a kind that it never has, or with one that can't be."""
    if isinstance(how, int):
        return DAMAGED[how]
    data = msgspec.json.decode(state)
    match how:
        case "free":
            data["bucket"]["free"] = -1
        case "limit":
            data["bucket"]["limit"] = "100"
        case "asked":
            data["bucket"]["asked"] = None
        case _:
            data["holds"].append([99, 0, "5", 0.0])
    return msgspec.json.encode(data)
