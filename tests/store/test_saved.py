"""Files that items save: they are in the store before the outcome, whole, and come home with the run."""

import os
from pathlib import Path

import pytest

from bulk.errors import RunDirectoryError, RunStopped
from bulk.model import BodyFile, OutcomeKind
from bulk.report.timeline import merged
from bulk.store import export, runs, saved
from bulk.store.connections import ShardsLost
from tests.ledger.samples import record
from tests.store.places import StorePlace, connection_to, ranges


@pytest.fixture
def place(shared_store, tmp_path, monkeypatch):
    """A run of two jobs; parts are small, and few go in one transaction."""
    monkeypatch.setattr(saved, "PART_BYTES", 1_000)
    monkeypatch.setattr(saved, "SENT_BYTES", 2_500)
    made = StorePlace(shared_store, tmp_path, shards=ranges(((0, 0, 10), (1, 0, 10))))
    yield made
    made.close()


def came_home(place: StorePlace, run_dir: Path) -> dict[str, bytes]:
    """What is below `saved/` of the exported run."""
    with connection_to(place.text) as store:
        export.export(store, runs.find(store, place.name), run_dir, merged)
    folder = run_dir / "saved"
    assert not list(run_dir.glob("saved.*")), "it is put together there"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def in_file(ledger, name: str, content: bytes) -> BodyFile:
    """A body that was too long for memory."""
    (ledger.run_dir / name).write_bytes(content)
    return BodyFile(name=name, size_bytes=len(content), sha256="", blob_sha="")


def test_files_of_every_size_come_home(place, tmp_path):
    """From memory and from a file, empty, of one part, of exactly two, of many; names lead nowhere else."""
    ledger = place.opened()
    long, exact = os.urandom(7_321), os.urandom(2_000)
    ledger.commit(
        [
            record(0, save=("acme/api.md", b"# api")),
            record(1, save=("empty", b"")),
            record(2, save=("two", exact)),
            record(3, save=("long", in_file(ledger, "body-1", long))),
            record(4, save=("../../escape", b"x")),
            record(5, save=("a/\0\ud800", b"y")),
            record(6),
        ]
    )
    assert not (ledger.run_dir / "saved").exists(), "it would go with the worker"
    assert came_home(place, tmp_path / "out") == {
        "acme/api.md": b"# api",
        "empty": b"",
        "two": exact,
        "long": long,
        "%2E%2E/%2E%2E/escape": b"x",
        "a/%00%ED%A0%80": b"y",
    }


def test_what_is_done_again_is_saved_again(place, tmp_path):
    """A shorter file replaces a longer one, whole; of an item that has failed since there is none."""
    ledger = place.opened()
    ledger.commit([record(0, save=("a", os.urandom(5_000))), record(1, save=("b", b"old"))])
    assert ledger.reopen({OutcomeKind.SUCCEEDED}) == 2
    ledger.commit([record(0, save=("a", b"new")), record(1, OutcomeKind.FAILED)])
    assert came_home(place, tmp_path / "out") == {"a": b"new"}
    assert place.sql("SELECT count(*) FROM saved WHERE run = %s AND idx = 0", place.run) == [(1,)]


def test_a_file_without_its_outcome_is_none(place, tmp_path, monkeypatch):
    """The worker dies between the two: who takes over reads and saves anew, and what came first is not seen."""
    first = place.opened()
    with monkeypatch.context() as patched:
        patched.setattr(first, "_send", lambda *_: (_ for _ in ()).throw(RunStopped("it died")))
        with pytest.raises(RunStopped):
            first.commit([record(0, save=("a", b"of the dead" * 1_000))])
    assert place.sql("SELECT count(*) > 5 FROM saved WHERE run = %s", place.run) == [(True,)]
    successor = place.taken_over()
    successor.commit([record(1, save=("b", b"b"))])
    assert came_home(place, tmp_path / "out") == {"b": b"b"}
    successor.commit([record(0, save=("a", b"alive"))])
    assert came_home(place, tmp_path / "again") == {"a": b"alive", "b": b"b"}


def test_a_zombie_saves_nothing(place, tmp_path):
    """What a worker saves whose shards were taken over is refused, before anything of it is kept."""
    zombie = place.opened()
    place.opened().commit([record(0, save=("a", b"right"))])
    with pytest.raises(ShardsLost):
        zombie.commit([record(0, save=("a", b"wrong"))])
    assert came_home(place, tmp_path / "out") == {"a": b"right"}


def test_a_file_that_is_gone_stops_the_run(place):
    """A body that can't be read any more is a trouble of the disk, and nothing of its group is kept."""
    ledger = place.opened()
    gone = in_file(ledger, "body-1", b"x")
    (ledger.run_dir / "body-1").unlink()
    with pytest.raises(RunStopped, match="No such file"):
        ledger.commit([record(0, save=("a", gone))])
    assert ledger.counts() == {}


@pytest.mark.parametrize(
    "damage", ["DELETE FROM saved WHERE run = %s AND no = 1", "UPDATE saved SET data = '' WHERE run = %s"]
)
def test_a_part_that_is_missing_is_damage(place, tmp_path, damage):
    """A file that is not whole never comes home as if it were."""
    place.opened().commit([record(0, save=("a", os.urandom(5_000)))])
    place.sql(damage, place.run)
    with pytest.raises(RunDirectoryError, match="a file that is not whole; restore it"):
        came_home(place, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_forgotten_run_leaves_no_files(place):
    """They go with the run."""
    place.opened().commit([record(0, save=("a", b"x")), record(1, job=1, save=("b", b"y"))])
    place.let_lapse()
    with connection_to(place.text) as store:
        runs.forget(store, runs.find(store, place.name))
    assert place.sql("SELECT count(*) FROM saved WHERE run = %s", place.run) == [(0,)]
