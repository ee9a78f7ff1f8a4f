"""The database's clock is set back by hours, or another machine with such a clock takes over: nothing waits for hours.

Moments in rows that are moved ahead are the same thing, as nothing else is compared with that clock.
"""

import anyio
import pytest

from bulk.clock import Clock
from bulk.cluster.budgets import StorePeers
from bulk.govern.governor import Governor
from bulk.govern.user_limits import UserLimits
from bulk.store.leases import TTL_S, Lease
from tests.govern.counting import Source
from tests.store.places import StorePlace, connection_to, ranges

PLATFORM = "https://code.example.com/api/v3"
BACK = "interval '3 hours'"


@pytest.fixture
def place(shared_store, tmp_path):
    """A run with one shard."""
    made = StorePlace(shared_store, tmp_path, shards=ranges([(0, 0, 2)]))
    yield made
    made.close()


@pytest.mark.parametrize("asks", ["claim", "tidy"])
def test_a_dead_worker_s_shard_can_be_had_after_its_lease_and_grace(place, asks):
    """The lease ends as long after the clock was set back as it was to last, and not before: its worker may live
    (failures.md row 96)."""
    dead, other = place.leases(), place.leases()
    dead.claim(place.run)
    place.sql(f"UPDATE shard SET lease_until = lease_until + {BACK} WHERE run = %s", place.run)
    found = other.claim(place.run)[1] if asks == "claim" else other.tidy()
    assert not [each for each in found if asks == "claim" or each[0] == place.run]
    left = "SELECT extract(epoch FROM lease_until - clock_timestamp())::float8 FROM shard WHERE run = %s"
    ((left_s,),) = place.sql(left, place.run)
    assert TTL_S - 5.0 < left_s <= TTL_S
    place.let_lapse()
    assert [shard.epoch for shard in other.claim(place.run)[1]] == [2]


def test_a_living_worker_keeps_its_shard(place):
    """It renews the lease, as ever; another one's shorter lease is no measure for it."""
    one, other = place.leases(), place.leases(ttl_s=2.0)
    ((shard,),) = (one.claim(place.run)[1],)
    place.sql(f"UPDATE shard SET lease_until = lease_until + {BACK} WHERE run = %s", place.run)
    for _ in range(2):
        assert not other.claim(place.run)[1]
        other.tidy()
        assert one.renew([Lease(place.run, shard.no, shard.epoch)]).lost == ()
    ((left_s,),) = place.sql(
        "SELECT extract(epoch FROM lease_until - clock_timestamp())::float8 FROM shard WHERE run = %s", place.run
    )
    assert TTL_S - 5.0 < left_s <= TTL_S


def test_pauses_and_pollers_do_not_last_for_hours(store_text, place):
    """A worker that comes later hears of a pause that is as long as the platform has said; `/rate_limit` is asked."""
    del place

    async def heard() -> tuple[float, object, object]:
        with connection_to(store_text) as store, connection_to(store_text) as other:
            clock, workers = Clock(), []
            for number, link in ((1, store), (2, other)):
                peers = StorePeers(link, PLATFORM, number, lambda _: 0, 10.0, clock.monotonic)
                limits = UserLimits(40, lambda _: 0, False, 60.0)
                governor = Governor(limits, clock, lambda *_: 9, lambda _: None, peers)
                account = governor.open_account(Source("token-one"), ["core"])
                peers.know([account], {"me": [account]})
                workers.append((peers, governor, account))
            (first, _, mine), (second, governor, yours) = workers
            asked = await first.marks(mine.name)
            mine.pause_all(clock.monotonic() + 60.0, "Retry-After")
            async with anyio.create_task_group() as group:
                group.start_soon(first.tell)
                with anyio.fail_after(20.0):
                    while not await anyio.to_thread.run_sync(told, store_text):
                        await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            with connection_to(store_text) as third, third.using() as connection:
                connection.execute(
                    f"""UPDATE account SET paused_until = paused_until + {BACK}, told_at = told_at + {BACK},
                    quiet_until = quiet_until + {BACK}, poll_until = poll_until + {BACK}""".encode()
                )
            await second.hear(governor)
            return yours.paused_until - clock.monotonic(), asked, await second.marks(yours.name)

    paused_s, first, second = anyio.run(heard)
    assert 50.0 < paused_s <= 60.0
    assert first is not None
    assert second is not None


def told(text: str) -> bool:
    """Whether somebody has told of a pause."""
    with connection_to(text) as store, store.using() as connection:
        return connection.execute("SELECT FROM account WHERE paused_until IS NOT NULL").fetchone() is not None
