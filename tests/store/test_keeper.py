"""What a worker holds is renewed while it can be, and is known to be over when it can't."""

import threading

import pytest

from bulk.clock import Clock
from bulk.store import runs
from bulk.store.keeper import Keeper
from bulk.store.leases import Lease, Leases, Renewed
from tests.store.places import StorePlace, comes_true, connection_to, ranges
from tests.store.proxy import Cut, link_to

TTL_S = 1.0


class Heard:
    """A worker that remembers what it is told."""

    def __init__(self) -> None:
        self.lost: list[Lease] = []
        self.states: dict[int, tuple[str, str]] = {}
        self.offers: list[int] = []
        self.renewals = threading.Semaphore(0)

    def renewed(self, renewed: Renewed) -> None:
        self.lost += renewed.lost
        self.states.update(renewed.states)
        self.renewals.release()

    def offered(self, run: int) -> None:
        self.offers.append(run)


@pytest.fixture
def place(shared_store, tmp_path):
    """A run of two shards."""
    made = StorePlace(shared_store, tmp_path, shards=ranges(((0, 0, 2), (1, 0, 2))))
    yield made
    made.close()


def claimed(place: StorePlace, leases: Leases) -> tuple[float, list[Lease]]:
    """All that can be had."""
    asked_at, shards = leases.claim(place.run, 9)
    return asked_at, [Lease(shard.run, shard.no, shard.epoch) for shard in shards]


def test_leases_are_renewed_as_long_as_their_worker_lives(place):
    """Long after the first lease would be over nobody else can have the shards, and sending goes on."""
    leases, heard = place.leases(ttl_s=TTL_S), Heard()
    with Keeper(connection_to(place.text), leases, heard) as keeper:
        asked_at, held = claimed(place, leases)
        keeper.hold(held, asked_at)
        first = keeper.certain_until(held[0])
        assert first == asked_at + TTL_S
        for _ in range(8):
            assert heard.renewals.acquire(timeout=10)
        assert keeper.certain_until(held[0]) > first + TTL_S / 2
        assert keeper.may_send(held[0], TTL_S / 4)
        assert not keeper.may_send(held[0], TTL_S), "it might arrive after the lease"
        assert place.leases().claim(place.run, 9)[1] == []
        keeper.let_go(held[:1])
        assert not keeper.may_send(held[0], 0.0)
    assert heard.lost == []


def test_who_can_not_reach_the_store_stops_by_itself(place):
    """Without the store a lease is over when its time is over, with nobody to tell; with it the worker goes on."""
    with link_to(place.text) as (link, text):
        leases, heard = place.leases(ttl_s=TTL_S), Heard()
        asked_at, held = claimed(place, leases)
        with Keeper(connection_to(text), leases, heard) as keeper:
            keeper.hold(held, asked_at)
            assert comes_true(lambda: keeper.certain_until(held[0]) > asked_at + TTL_S)
            link.is_away = True
            link.next_cut = Cut.REQUEST
            assert comes_true(lambda: not keeper.may_send(held[0], 0.0))
            assert keeper.failure is not None
            link.is_away = False
            place.let_lapse()
            assert comes_true(lambda: set(heard.lost) == set(held))
            assert keeper.failure is None


def test_a_change_is_heard_at_once(place):
    """A pause reaches a worker long before its next renewal; so does work that there is to claim."""
    leases, heard = place.leases(), Heard()
    asked_at, held = claimed(place, leases)
    with Keeper(connection_to(place.text), leases, heard, renew_s=3_600.0) as keeper:
        keeper.hold(held, asked_at)
        assert comes_true(lambda: heard.states.get(place.run) == ("running", ""))
        with connection_to(place.text) as store:
            runs.steer(store, runs.find(store, place.name), "pause", "me", "lunch")
            assert comes_true(lambda: heard.states.get(place.run) == ("pausing", "lunch"))
            runs.steer(store, runs.find(store, place.name), "resume", "me")
            assert comes_true(lambda: heard.states.get(place.run) == ("running", ""))
        assert place.run in heard.offers


def test_a_lease_is_measured_by_a_clock_that_does_not_sleep():
    """The moment goes on while the machine is suspended, and never back."""
    clock = Clock()
    assert clock.boottime() <= clock.boottime()
    assert clock.boottime() >= clock.monotonic() - 1.0
