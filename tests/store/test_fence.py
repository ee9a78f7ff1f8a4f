"""Nothing of a worker that lost a shard is kept, and nothing of one that only lost an answer is written twice."""

import contextlib

import psycopg
import pytest

from bulk.errors import RunStopped
from bulk.ledger.records import Intent, Record
from bulk.model import OutcomeKind
from bulk.store.connections import ShardsLost
from bulk.store.ledger import StoreLedger
from tests.ledger.samples import STATUS, finished, intent, record
from tests.store.places import StorePlace, connection_to, ranges
from tests.store.postgres import new_store
from tests.store.proxy import Cut, link_to

TWO_SHARDS = ranges(((0, 0, 10), (0, 10, 20), (1, 0, 20)))


@pytest.fixture
def place(shared_store, tmp_path):
    """A run of two jobs, the first in two shards."""
    made = StorePlace(shared_store, tmp_path, shards=TWO_SHARDS)
    yield made
    made.close()


def rows(place: StorePlace) -> list[int]:
    """How many rows there are of this run in each table that a group writes to."""
    tables = ("outcome", "chunk", "intent", "count", "newborn", "action")
    return [place.sql(f"SELECT count(*) FROM {table} WHERE run = %s", place.run)[0][0] for table in tables]


def a_zombie_wakes_up(place: StorePlace) -> None:
    """A worker stands still while its shards are taken over; then it goes on as if nothing had happened."""
    zombie = place.opened()
    zombie.commit([intent(1), record(0)])
    successor = place.opened()
    successor.commit([record(1, OutcomeKind.UNCHANGED, job=1), record(2, OutcomeKind.UNCHANGED)])
    before = rows(place)
    with contextlib.suppress(ShardsLost):
        zombie.commit([intent(3), record(3), Record(1, finished(4, job=1), new_names=("acme/api",))])
    assert rows(place) == before, "the zombie's group was kept"
    assert successor.counts() == {0: {"succeeded": 1, "unchanged": 1}, 1: {"unchanged": 1}}


def test_a_zombie_writes_nothing(place):
    """What a worker writes after its shards were taken over is refused, all of it (failures.md row 83)."""
    a_zombie_wakes_up(place)


def test_without_the_fence_a_zombie_writes(postgres, tmp_path):
    """With the fence taken away, the same scenario sees what the zombie wrote (planted bug `no fence`)."""
    text = new_store(postgres)
    with psycopg.connect(text, autocommit=True) as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION bulk.fence(of_run bigint, shards int[], epochs int[]) RETURNS void "
            "LANGUAGE sql AS ''"
        )
    place = StorePlace(text, tmp_path, shards=TWO_SHARDS)
    with pytest.raises(AssertionError, match="the zombie's group was kept"):
        a_zombie_wakes_up(place)
    place.close()


def test_of_a_group_with_one_stale_shard_nothing_is_kept(place):
    """One shard of two was taken over: the group is refused and names it; what is of the other goes in alone."""
    ledger = place.opened()
    place.opened(1)
    before = rows(place)
    with pytest.raises(ShardsLost) as refused:
        ledger.commit([record(0), record(10), intent(0)], STATUS)
    assert refused.value.shards == (1,)
    assert rows(place) == before
    ledger.holding.let_go(1)
    ledger.commit([record(0), intent(0)])
    assert ledger.counts() == {0: {"succeeded": 1}}


def test_a_lapsed_lease_keeps_its_holder_out(place):
    """A lease that is over fences its holder, before anybody has taken the shard over."""
    ledger = place.opened()
    place.let_lapse(0)
    with pytest.raises(ShardsLost, match="not held any more: 0"):
        ledger.commit([record(0)])
    ledger.commit([record(10)])


def test_what_belongs_to_no_held_shard_is_refused(place):
    """An item of a shard that was never claimed is not written by mistake."""
    ledger = place.opened(0)
    with pytest.raises(ShardsLost):
        ledger.commit([record(0), record(15)])
    assert rows(place)[0] == 0


def test_a_claim_waits_for_no_commit_and_no_commit_slips_past_a_claim(place):
    """While a group is being written its shards can't be claimed, however long their leases are over by then."""
    ledger, rival = place.opened(), place.leases()
    with ledger._store.transaction() as connection:
        connection.execute("SELECT fence(%s, '{0}', %s)", (place.run, [ledger.holding.epoch_of(0)]))
        assert rival.claim(place.run, only=0)[1] == []
        assert rival.renew([]).lost == ()


@pytest.mark.parametrize("cut", [Cut.REQUEST, Cut.ANSWER])
@pytest.mark.parametrize("between", [False, True])
def test_a_group_is_written_once_though_its_answer_is_lost(place, tmp_path, cut, between):
    """Given again, a group counts as written if it was; also behind another group (failures.md row 82)."""
    with link_to(place.text) as (link, text):
        first = place.opened()
        with StoreLedger(connection_to(text), place.run, first.worker, tmp_path, first.holding) as ledger:
            group: list[Intent | Record] = [
                intent(1),
                record(1, job=1),
                intent(2),
                record(3),
                record(12, OutcomeKind.FAILED),
            ]
            ledger.commit([record(0)])
            link.next_cut = cut
            with pytest.raises(RunStopped):
                ledger.commit(group, STATUS)
            if between:
                ledger.commit([record(4)])
            ledger.commit(group, STATUS)
            assert ledger.counts() == {0: {"succeeded": 2 + between, "failed": 1}, 1: {"succeeded": 1}}
            assert set(ledger.open_intents()) == {(1, 2)}
            assert len(list(ledger.view().finished())) == 4 + between
            with pytest.raises(ValueError, match="outcome already"):
                ledger.commit(group)


def test_what_an_earlier_connection_still_sends_is_refused(place, tmp_path):
    """A group that arrives late, on a connection that was given up, is not written beside its repetition."""
    ledger = place.opened()
    late = pytest.raises(ShardsLost, match="given up")
    with StoreLedger(connection_to(place.text), place.run, ledger.worker, tmp_path, ledger.holding), late:
        ledger.commit([record(0)])
    assert rows(place)[0] == 0


def test_new_names_are_everybodys(place):
    """What one worker created the others learn by its name, as long as it is new."""
    maker, other = place.opened(0), place.opened(2)
    maker.commit([Record(0, finished(0), new_names=("acme/api", "acme"))])
    assert other.recent_creations(60.0) == {"acme/api", "acme"}
    assert other.recent_creations(60.0, ["acme", "nobody"]) == {"acme"}
    assert other.recent_creations(0.0) == set()
