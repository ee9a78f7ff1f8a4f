"""Whose turn a shard is: claimed, renewed, lost, released, finished; all of it by the database's clock."""

import threading

import pytest

from bulk.errors import RunDirectoryError
from bulk.model import OutcomeKind
from bulk.store import runs
from bulk.store.leases import Ended, Kind, Lease, Shard
from tests.ledger.samples import STATUS, record
from tests.store.places import StorePlace, connection_to, hold, ranges

THREE = ranges(((0, 0, 2), (0, 2, 4), (1, 0, 2)))


@pytest.fixture
def place(shared_store, tmp_path):
    """A run with two shards of the first job, and one of the second, which needs the first."""
    *first, second = THREE
    after = Shard(no=second.no, kind=Kind.RANGE, job_group=1, first=0, behind=2, items=2, needs=(0,), after=(1,))
    made = StorePlace(shared_store, tmp_path, shards=[*first, after])
    yield made
    made.close()


def numbers(claimed: tuple[float, list[Shard]]) -> list[tuple[int, int]]:
    """Numbers and epochs of what was claimed."""
    return [(shard.no, shard.epoch) for shard in claimed[1]]


def lease_of(claimed: tuple[float, list[Shard]]) -> Lease:
    """The lease of the one shard that was claimed."""
    (shard,) = claimed[1]
    return Lease(shard.run, shard.no, shard.epoch)


def test_a_shard_has_one_holder_and_each_claim_an_epoch(place):
    """What one worker has the other can't claim; after the lease and GRACE it can, with the next epoch."""
    one, two = place.leases(), place.leases()
    assert numbers(one.claim(place.run)) == [(0, 1)]
    assert numbers(two.claim(place.run, 5)) == [(1, 1)]
    assert numbers(two.claim(place.run, 5)) == []
    half = "UPDATE shard SET lease_until = clock_timestamp() - interval '0.5 s' WHERE run = %s AND no = 0"
    place.sql(half, place.run)
    assert numbers(two.claim(place.run, 5)) == [], "GRACE is not over"
    place.let_lapse(0)
    assert two.claimable()[place.run] == 1
    assert numbers(two.claim(place.run, 5)) == [(0, 2)]


def test_claimed_is_what_the_engine_can_do_and_the_run_wants(place):
    """Another engine's runs are not taken, nor those that are paused; one shard can be asked for by number."""
    leases = place.leases()
    place.sql("UPDATE run SET engine = 'other' WHERE id = %s", place.run)
    assert numbers(leases.claim(place.run, 5)) == []
    assert place.run not in leases.claimable()
    place.sql("UPDATE run SET engine = '1.0 tests', state = 'pausing' WHERE id = %s", place.run)
    assert numbers(leases.claim(place.run, 5)) == []
    place.sql("UPDATE run SET state = 'running' WHERE id = %s", place.run)
    assert numbers(leases.claim(place.run, only=1)) == [(1, 1)]
    assert numbers(leases.claim(place.run, only=2)) == [], "the job that it needs is not over"


def test_two_who_claim_at_once_get_different_shards(shared_store, tmp_path):
    """However many workers claim at the same moment, each shard goes to one of them."""
    place = StorePlace(shared_store, tmp_path, shards=ranges([(0, n, n + 1) for n in range(64)]))
    workers = [place.leases() for _ in range(4)]
    got: list[int] = []

    def claim_all(worker) -> None:
        while claimed := worker.claim(place.run, 3)[1]:
            got.extend(shard.no for shard in claimed)

    threads = [threading.Thread(target=claim_all, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == list(range(64))
    place.close()


def test_a_lease_is_renewed_only_while_it_is_live(place):
    """A renewal says which leases are over, whoever has the shards now, and how the run stands."""
    one, two = place.leases(), place.leases()
    _, shards = one.claim(place.run, 2)
    leases = [Lease(shard.run, shard.no, shard.epoch) for shard in shards]
    assert one.renew(leases).lost == ()
    place.let_lapse(0)
    renewed = one.renew(leases)
    assert renewed.lost == (leases[0],)
    assert renewed.states == {place.run: ("running", "")}
    two.claim(place.run)
    assert one.renew(leases).lost == (leases[0],)
    assert two.renew([leases[1]]).lost == (leases[1],), "it is another worker's"
    with connection_to(place.text) as store:
        runs.steer(store, runs.find(store, place.name), "pause", "me", "lunch")
    assert one.renew([leases[1]]).states[place.run] == ("pausing", "lunch")


def test_what_is_given_back_can_be_had_at_once(place):
    """A clean stop clears the lease; a stale one clears nothing."""
    one, two = place.leases(), place.leases()
    lease = lease_of(one.claim(place.run))
    one.release([lease])
    assert numbers(two.claim(place.run)) == [(0, 2)]
    one.release([lease])
    assert two.renew([Lease(place.run, 0, 2)]).lost == ()


def test_a_shard_is_done_by_what_is_written(place):
    """A worker that believes to be done is told what is left; jobs and the run are over with the last shard."""
    ledger, leases = place.opened(0, 1, leases=(workers := place.leases())), workers
    first, second = (Lease(place.run, no, ledger.holding.epoch_of(no)) for no in (0, 1))
    ledger.commit([record(0)])
    assert leases.finish(first) is Ended.WORK_LEFT
    ledger.commit([record(1, OutcomeKind.UNKNOWN)])
    assert leases.finish(first) is Ended.DONE
    assert leases.finish(first) is Ended.DONE, "who lost the answer asks again"
    assert leases.finish(first._replace(epoch=first.epoch - 1)) is Ended.LOST
    assert leases.claimable().get(place.run) is None
    ledger.commit([record(2), record(3)])
    assert leases.finish(second) is Ended.DONE
    assert leases.claimable()[place.run] == 1, "the job that the last one needs is over"
    _, (third,) = leases.claim(place.run)
    lease = hold(ledger.holding, third)
    ledger.commit([record(0, job=1), record(1, job=1)])
    assert leases.finish(lease) is Ended.DONE
    with connection_to(place.text) as store:
        run = runs.find(store, place.name)
        assert (run.state, run.done, run.shards, run.workers) == ("complete", 3, 3, 0)
        assert run.ended_at is not None
        assert run.counts == {0: {"succeeded": 3, "unknown": 1}, 1: {"succeeded": 2}}
        assert runs.reopen(store, run, {OutcomeKind.UNKNOWN}, "me") == 1
        run = runs.find(store, place.name)
        assert (run.state, run.done, run.ended_at) == ("running", 2, None)
    assert leases.claimable()[place.run] == 1


def test_who_lost_a_shard_does_not_finish_it(place):
    """A stale epoch ends nothing, however complete the shard is."""
    ledger = place.opened(0)
    ledger.commit([record(0), record(1)])
    stale = Lease(place.run, 0, ledger.holding.epoch_of(0))
    other = place.leases()
    place.let_lapse(0)
    fresh = lease_of(other.claim(place.run, only=0))
    assert place.leases().finish(stale) is Ended.LOST
    assert other.finish(fresh) is Ended.DONE


def test_two_who_finish_the_last_two_shards_complete_the_run(shared_store, tmp_path):
    """Neither of two leaves the run open because it saw the other one at work (failures.md row 85)."""
    for _ in range(5):
        place = StorePlace(shared_store, tmp_path, shards=ranges(((0, 0, 1), (1, 0, 1))))
        workers = [place.leases(), place.leases()]
        held = [lease_of(worker.claim(place.run)) for worker in workers]
        place.sql(
            "INSERT INTO count SELECT %s, n, n, 1, 0, 1 FROM generate_series(0, 1) AS n", place.run
        )  # each has its outcome
        threads = [
            threading.Thread(target=worker.finish, args=(lease,)) for worker, lease in zip(workers, held, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert place.sql("SELECT state FROM run WHERE id = %s", place.run) == [("complete",)]
        place.close()


def test_a_run_that_workers_have_is_neither_retried_nor_forgotten(place):
    """Both wait until nobody is at work on it; the message says how to get there."""
    ledger = place.opened(0)
    ledger.commit([record(0, OutcomeKind.FAILED)])
    with connection_to(place.text) as store:
        run = runs.find(store, place.name)
        for call in (lambda: runs.forget(store, run), lambda: runs.reopen(store, run, {OutcomeKind.FAILED}, "me")):
            with pytest.raises(RunDirectoryError, match="at work on it; pause the run"):
                call()
        place.let_lapse()
        assert runs.reopen(store, run, {OutcomeKind.FAILED}, "me") == 1
        runs.forget(store, run)
    tables = ("job", "shard", "outcome", "chunk", "intent", "count", "participant")
    left = [place.sql(f"SELECT count(*) FROM {table} WHERE run = %s", place.run)[0][0] for table in tables]
    assert left == [0] * len(tables)
    assert place.sql("SELECT count(*) FROM run WHERE id = %s", place.run) == [(0,)]


def test_the_janitor_settles_what_nobody_else_does(place):
    """A run that is to pause is paused once nobody holds a shard; lapsed shards are told; one janitor is enough."""
    one, two = place.leases(), place.leases()
    lease = lease_of(one.claim(place.run))
    place.let_lapse(0)
    assert (place.run, 0) in two.tidy()
    with connection_to(place.text) as store:
        with store.transaction() as busy:
            busy.execute("SELECT pg_advisory_xact_lock(%s)", (0x42554C4C,))
            assert two.tidy() == []
        fresh = lease_of(two.claim(place.run, only=0))
        run = runs.find(store, place.name)
        assert runs.steer(store, run, "pause", "me") == "pausing"
        two.tidy()
        assert runs.find(store, place.name).state == "pausing"
        two.release([fresh])
        one.release([lease])
        two.tidy()
        run = runs.find(store, place.name)
        assert run.state == "paused"
        assert runs.steer(store, run, "pause", "me") == "paused", "it is so"
        assert runs.steer(store, run, "resume", "me") == "running"
        assert runs.steer(store, run, "stop", "me") == "stopping"
        two.tidy()
        run = runs.find(store, place.name)
        assert run.state == "stopped"
        assert runs.steer(store, run, "stop", "me") == "stopped"
        with pytest.raises(RunDirectoryError, match="is stopped: it can't be paused"):
            runs.steer(store, run, "pause", "me")
    verbs = place.sql("SELECT verb, result FROM action WHERE run = %s ORDER BY at", place.run)
    assert [verb for verb, _ in verbs] == ["pause", "pause", "resume", "stop", "stop", "pause"]


def test_a_worker_that_leaves_is_listed_only_where_it_worked(place):
    """Who worked on a run stays, with its last status; who did nothing is forgotten."""
    ledger, idle = place.opened(0), place.leases()
    ledger.commit([record(0)], STATUS)
    idle.leave()
    ledger.finish(3, "lunch \ud800", STATUS)
    with connection_to(place.text) as store:
        (worker,) = runs.participants(store, place.run)
    assert (worker.worker, worker.shards, worker.exit_code, worker.why) == ("worker", 1, 3, "lunch ?")
    assert worker.status is not None
    assert place.sql("SELECT count(*) FROM worker WHERE id = %s", idle.worker) == [(0,)]


def test_who_reads_a_run_for_long_holds_up_no_other(place, shared_store, tmp_path):
    """While one run is read, others are submitted, written to and forgotten (failures.md row 87)."""
    place.opened(0).commit([record(0)])
    with connection_to(place.text) as store, store.transaction() as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        assert reader.execute("SELECT count(*) FROM outcome").fetchone() is not None
        assert reader.execute("SELECT count(*) FROM chunk").fetchone() is not None
        other = StorePlace(shared_store, tmp_path / "other", shards=THREE)
        other.opened(0).commit([record(0)])
        other.let_lapse()
        with connection_to(place.text) as steering:
            runs.forget(steering, runs.find(steering, other.name))
        assert other.sql("SELECT count(*) FROM outcome WHERE run = %s", other.run) == [(0,)]
        assert other.sql("SELECT to_regclass(%s) IS NULL", f"outcome_{other.run}") == [(False,)]
    third = StorePlace(shared_store, tmp_path / "third", shards=THREE)
    with connection_to(place.text) as steering:
        runs.forget(steering, runs.find(steering, third.name))
    for run in (other.run, third.run):
        for kind in ("outcome", "chunk"):
            assert place.sql("SELECT to_regclass(%s) IS NULL", f"{kind}_{run}") == [(True,)]
    other.close()
    third.close()
