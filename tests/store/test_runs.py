"""A run comes into a store: once, whoever submits it, and whole."""

import threading

import msgspec
import pytest

from bulk.cli.app import main
from bulk.clock import Clock
from bulk.errors import RunDirectoryError, RunStopped, UsageError
from bulk.ledger.directory import names_at
from bulk.ledger.records import Minute
from bulk.model import OutcomeKind
from bulk.store import bundles, runs, submissions
from bulk.store.export import end_wait
from bulk.store.holding import Holding
from bulk.store.leases import Kind, Lease, Shard
from bulk.store.ledger import StoreLedger
from bulk.store.view import StoreView
from tests.ledger.samples import STATUS, identity, record
from tests.store.places import ENGINE, NAMES, StorePlace, comes_true, connection_to, ranges
from tests.store.proxy import Cut, link_to


def submission(name: str, digest: str, shards: list[Shard], **more) -> submissions.Submission:
    """A run of that name, of the manifest with that digest."""
    whose = identity(name=name, manifest_digest=f"{digest:a<64}")
    given = {"bundle": b"", "engine": ENGINE, "limits": {"concurrency": 8}, "grace_s": 1.0, "groups": [0, 1], **more}
    return submissions.Submission(name=name, identity=whose, shards=shards, **given)


def test_the_same_manifest_is_one_run(shared_store):
    """Of many who submit it at the same time one makes the run, and all get its name (failures.md row 85)."""
    digest, shards = next(NAMES), ranges(((0, 0, 4), (1, 0, 4)))
    got: list[tuple[str, bool]] = []

    def submit(name: str) -> None:
        with connection_to(shared_store) as store:
            got.append(submissions.submit(store, submission(name, digest, shards)))

    threads = [threading.Thread(target=submit, args=(f"{digest}-{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({name for name, _ in got}) == 1
    assert [is_new for _, is_new in got].count(True) == 1
    with connection_to(shared_store) as store:
        run = runs.find(store, got[0][0])
    assert (run.state, run.shards, run.done, run.limits, run.workers) == ("running", 2, 0, {"concurrency": 8}, 0)


def test_a_bundle_stays_as_long_as_a_run_has_it(shared_store, tmp_path):
    """Who forgets a run takes the bundle away only where nobody submits another run with it: that one says so, or has
    it.
    """
    shards, digest = ranges(((0, 0, 1),)), next(NAMES)
    (tmp_path / "manifest.yaml").write_text(digest)
    with connection_to(shared_store) as store, connection_to(shared_store) as another:

        def submitted(name: str) -> runs.StoredRun:
            submissions.submit(store, submission(name, name, shards, bundle=bundle))
            return runs.find(store, name)

        bundle = bundles.upload(store, tmp_path, ["manifest.yaml"])
        runs.forget(another, submitted(f"{digest}-a"))
        with pytest.raises(RunStopped, match=r"went with another run .* the same command goes on"):
            submitted(f"{digest}-b")
        assert not submissions.is_taken(store, f"{digest}-b")
        bundles.upload(store, tmp_path, ["manifest.yaml"])
        earlier = submitted(f"{digest}-a")
        with store.transaction():  # the run is made, and not yet there for others
            submitted(f"{digest}-b")
            thread = threading.Thread(target=runs.forget, args=(another, earlier))
            thread.start()
            thread.join(0.3)
        thread.join()
        assert not submissions.is_taken(store, f"{digest}-a")
        assert bundles.download(store, bundle, tmp_path / "target") == ["manifest.yaml"]


def test_a_name_belongs_to_one_manifest(shared_store):
    """Another manifest under the name of a run is refused, with both ways out; a complete run makes room."""
    name, digest = next(NAMES), next(NAMES)
    shards = ranges(((0, 0, 1),))
    with connection_to(shared_store) as store:
        assert submissions.submit(store, submission(name, digest, shards)) == (name, True)
        with pytest.raises(RunDirectoryError, match=f"name this one otherwise, or forget that one: bulk forget {name}"):
            submissions.submit(store, submission(name, f"{digest}-other", shards))
        assert submissions.submit(store, submission(f"{name}-b", digest, shards)) == (name, False)
        with store.using() as connection:
            connection.execute("UPDATE run SET state = 'complete' WHERE name = %s", (name,))
        assert submissions.submit(store, submission(f"{name}-b", digest, shards)) == (f"{name}-b", True)
        with pytest.raises(UsageError, match=f"did you mean {name}"):
            runs.find(store, f"{name}x")
        with pytest.raises(UsageError, match="bulk runs --store"):
            runs.find(store, "nothing like it")


@pytest.mark.parametrize("name", ["a\0b", "\udcff"])
def test_a_name_that_no_row_can_have_is_nobodys(shared_store, name):
    """Neither the page nor a command is told that the store is out of reach."""
    with connection_to(shared_store) as store:
        assert runs.named(store, name) is None
        with pytest.raises(UsageError, match="has no run"):
            runs.find(store, name)


def test_who_waits_for_a_run_gets_it_until_it_is_at_home(shared_store):
    """Though it is complete by then; who does not wait for one, or has taken it home, submits a new one."""
    name, digest, shards = next(NAMES), next(NAMES), ranges(((0, 0, 1),))
    with connection_to(shared_store) as store, store.using() as connection:

        def got(number: int, **more: bool) -> str:
            found, _ = submissions.submit(store, submission(f"{name}-{number}", digest, shards, **more))
            connection.execute("UPDATE run SET state = 'complete' WHERE name = %s", (found,))
            return found.removeprefix(f"{name}-")

        assert [got(1), got(2), got(3, is_awaited=True)] == ["1", "2", "3"]
        assert [got(4, is_awaited=True), got(5), got(6, is_awaited=True)] == ["3", "5", "3"]
        end_wait(store, runs.find(store, f"{name}-3"))
        assert got(7, is_awaited=True) == "7"


def test_a_run_without_items_is_complete_at_once(shared_store):
    """There is nothing to wait for, and jobs without items hold nobody up."""
    name = next(NAMES)
    with connection_to(shared_store) as store:
        submissions.submit(store, submission(name, name, []))
        assert runs.find(store, name).state == "complete"
        other = next(NAMES)
        shard = Shard(no=0, kind=Kind.RANGE, job_group=1, behind=2, items=2, needs=(0,))
        submissions.submit(store, submission(other, other, [shard]))
        run = runs.find(store, other).id
        with store.using() as connection:
            found = connection.execute("SELECT no, state FROM job WHERE run = %s ORDER BY no", (run,)).fetchall()
    assert found == [(0, "over"), (1, "open")]


def test_what_is_submitted_is_whole_or_not_there(shared_store):
    """A run whose shards can't be written leaves nothing behind."""
    name = next(NAMES)
    twice = [Shard(no=0, kind=Kind.RANGE, job_group=0, items=1)] * 2
    with connection_to(shared_store) as store:
        with pytest.raises(ValueError, match="duplicate key"):
            submissions.submit(store, submission(name, name, twice))
        with pytest.raises(UsageError):
            runs.find(store, name)


def test_a_worker_with_listed_items_sees_them_alone(shared_store, tmp_path):
    """Of a shard of lanes the bits, intents and counts are those of its items, and of no other."""
    place = StorePlace(shared_store, tmp_path, shards=ranges(((0, 0, 4), (0, 4, 8), (1, 0, 9))))
    leases = place.leases()
    _, (shard,) = leases.claim(place.run, only=0)
    holding = Holding()
    holding.hold(0, shard.epoch, items=[(0, 1), (0, 6), (1, 3), (0, 7)])
    with StoreLedger(connection_to(place.text), place.run, leases.worker, tmp_path, holding) as ledger:
        ledger.commit([record(6), record(3, job=1)], STATUS, minute=Minute(3, b"x"))
        assert ledger.done_bits(0, 8) == bytearray([0b0111_1101])
        assert ledger.done_bits(1, 9) == bytearray([0xFF, 0b1])
        assert ledger.counts() == {0: {"succeeded": 1}, 1: {"succeeded": 1}}
        assert ledger.reopen({OutcomeKind.SUCCEEDED}) == 2
        ledger.commit([record(index) for index in (1, 6, 7)])
        ledger.commit([record(3, job=1)])
        with connection_to(place.text) as store:
            assert StoreView(store, place.run).timeline() == [Minute(3, b"x")]
            assert StoreView(store, place.run, worker=-1).timeline() == []
    assert leases.finish(Lease(place.run, 0, shard.epoch)).value == "done"
    place.close()


def test_what_others_are_made_from_is_not_done_again(shared_store, tmp_path):
    """Items are known by their place among those that were made: what succeeded stays; what failed may succeed."""
    place = StorePlace(shared_store, tmp_path)
    place.opened().commit([record(0), record(1, OutcomeKind.FAILED)])
    place.let_lapse()
    place.sql("UPDATE shard SET kind = 'make', done = true, items = 7 WHERE run = %s AND no = 1", place.run)
    with connection_to(shared_store) as store:
        run = runs.find(store, place.name)
        with pytest.raises(UsageError, match="can't be run again in a store"):
            runs.reopen(store, run, {OutcomeKind.SUCCEEDED, OutcomeKind.FAILED}, "me")
        assert runs.reopen(store, run, {OutcomeKind.FAILED}, "me") == 1
    assert place.sql("SELECT done, items FROM shard WHERE run = %s AND no = 1", place.run) == [(False, -1)]
    place.close()


def test_a_retry_waits_for_another_run_of_the_same(shared_store, tmp_path):
    """Both would send the same: it is refused while the other one goes on, and the message names the way out."""
    place = StorePlace(shared_store, tmp_path, shards=ranges(((0, 0, 1),)))
    leases = place.leases()
    ledger = place.opened(leases=leases)
    ledger.commit([record(0, OutcomeKind.FAILED)])
    leases.finish(Lease(place.run, 0, ledger.holding.epoch_of(0)))
    with connection_to(shared_store) as store:
        first = runs.find(store, place.name)
        assert first.state == "complete"
        again = submission(f"{place.name}-again", "", place.shards)
        submissions.submit(store, msgspec.structs.replace(again, identity=place.identity))
        with pytest.raises(RunDirectoryError, match=r"another run of the same manifest .* bulk runs --store"):
            runs.reopen(store, first, {OutcomeKind.FAILED}, "me")
        runs.forget(store, runs.find(store, f"{place.name}-again"))
        assert runs.reopen(store, first, {OutcomeKind.FAILED}, "me") == 1
    place.close()


def test_a_forgotten_run_is_known_nowhere(shared_store, tmp_path):
    """Whoever had it open is told so."""
    place = StorePlace(shared_store, tmp_path)
    ledger = place.opened()
    place.let_lapse()
    with connection_to(shared_store) as store:
        runs.forget(store, runs.find(store, place.name))
        with pytest.raises(RunDirectoryError, match="it was forgotten"):
            StoreLedger(store, place.run, 1, tmp_path, Holding())
        with pytest.raises(RunDirectoryError, match="it was forgotten"):
            StoreView(store, place.run).identity()
    with pytest.raises(RunDirectoryError):
        ledger.commit([record(0)])
    place.close()


def test_two_manifests_of_one_name_at_the_same_moment(shared_store, tmp_path, capsys):
    """Names are made from the time: where another manifest has got the name meanwhile, this one gets the next
    (failures.md row 85)."""
    manifest = tmp_path / f"{next(NAMES)}.yaml"
    item = f"{{owner: a, repo: {manifest.stem}}}"
    manifest.write_text(f"{{version: 1, jobs: {{reads: {{operation: readme.get, items: [{item}]}}}}}}\n")
    now = Clock().now()
    taken = [next(names_at(manifest.stem, now + seconds)) for seconds in range(60)]
    are_made = threading.Event()

    def make_and_commit_when_waited_for() -> None:
        waits = "SELECT FROM pg_locks WHERE NOT granted"
        with (
            connection_to(shared_store) as store,
            connection_to(shared_store) as looking,
            store.transaction() as connection,
            looking.using() as watched,
        ):
            for name in taken:
                submissions._make(connection, submission(name, name, []), name.encode())
            are_made.set()
            assert comes_true(lambda: watched.execute(waits).fetchone() is not None)

    thread = threading.Thread(target=make_and_commit_when_waited_for)
    thread.start()
    assert are_made.wait(60.0)
    platform = ("--base-url", "https://code.example.com/api/v3")
    assert main(["submit", str(manifest), "--store", shared_store, *platform]) == 0, capsys.readouterr().err
    thread.join()
    assert capsys.readouterr().out.strip().removesuffix("-2") in taken


@pytest.mark.parametrize("cut", [Cut.REQUEST, Cut.ANSWER])
def test_what_is_said_of_a_submission_is_so(shared_store, cut):
    """The connection is cut at the very end: where the run was made, that is found out, because the same command could
    begin a second one as soon as this one is complete (failures.md row 82)."""
    name, shards = next(NAMES), ranges(((0, 0, 4), (1, 0, 4)))
    with link_to(shared_store) as (link, text), connection_to(text) as store:
        link.next_place, link.next_cut = b"COMMIT", cut
        if cut is Cut.ANSWER:
            assert submissions.submit(store, submission(name, name, shards)) == (name, True)
        else:
            with pytest.raises(RunStopped, match="the same command goes on"):
                submissions.submit(store, submission(name, name, shards))
        assert store.made == 2
        assert submissions.is_taken(store, name) == (cut is Cut.ANSWER)


def test_what_is_asked_of_a_run_that_has_just_been_forgotten(shared_store, tmp_path):
    """Whoever found the run a moment earlier is told so, whatever he asks for, and nothing else is blamed."""
    place = StorePlace(shared_store, tmp_path)
    with connection_to(shared_store) as store:
        found = runs.find(store, place.name)
        runs.forget(store, found)
        for ask in (
            lambda: runs.forget(store, found),
            lambda: runs.steer(store, found, "pause", "me"),
            lambda: runs.reopen(store, found, {OutcomeKind.FAILED}, "me"),
            lambda: runs.change_limits(store, found, lambda limits: limits, "me", {}),
        ):
            with pytest.raises(UsageError, match=f"has no run {place.name} any more"):
                ask()
