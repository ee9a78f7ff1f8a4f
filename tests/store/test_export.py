"""A run that workers did in a store, as a run directory: the same as if one machine had done it."""

import contextlib
import json
import shutil
import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from bulk.cli.app import main
from bulk.clock import Clock
from bulk.cluster.local.folder_beside import is_at_home
from bulk.errors import RunDirectoryError
from bulk.ledger import rows
from bulk.ledger.database import LEDGER, open_reader
from bulk.ledger.digests.verification import verify
from bulk.ledger.ledger import Ledger
from bulk.ledger.records import Action, Minute
from bulk.ledger.view import LedgerView
from bulk.model import OutcomeKind
from bulk.report.fold import fold
from bulk.report.run_state import next_command, run_state_of
from bulk.report.timeline import Timeline, merged, read_minutes
from bulk.serve.fleet import STORED
from bulk.serve.stored.stored_runs import StoredRuns
from bulk.status import JobStatus, RunStatus, Tell, untold
from bulk.store import bundles, export, runs
from bulk.store.address import read
from bulk.store.leases import Ended, Lease
from tests.ledger.samples import NOW, STATUS, intent, record
from tests.store.places import StorePlace, connection_to, ranges

SHARDS = ranges(((0, 0, 6), (0, 6, 12), (1, 0, 8)))
RETRIED = {OutcomeKind.FAILED, OutcomeKind.SKIPPED, OutcomeKind.UNKNOWN}


@pytest.fixture
def place(shared_store, tmp_path):
    """A run of 20 items in three shards."""
    made = StorePlace(shared_store, tmp_path, shards=SHARDS)
    yield made
    made.close()


def groups():
    """What happens in the run, group by group: every outcome, writes that stay open, and what is done again."""
    kinds = list(OutcomeKind)
    yield [record(index, kinds[index % 5], result="x" * index) for index in range(6)]
    yield [intent(0), intent(1, before={"sha": "a"}), record(0, job=1), record(7), record(6, OutcomeKind.FAILED)]
    yield [replace(record(1, job=1), may_arrive_late=True, before={"sha": "é"})]
    yield [record(index) for index in range(8, 12)]
    yield [intent(2), record(2, OutcomeKind.UNKNOWN, job=1), *(record(index, job=1) for index in range(3, 8))]


def exported(place: StorePlace, run_dir: Path, tell: Tell = untold) -> RunStatus:
    """Export it."""
    with connection_to(place.text) as store:
        return export.export(store, runs.find(store, place.name), run_dir, merged, tell)


def told(run_dir: Path):
    """What a run directory says of its items."""
    view = LedgerView(run_dir)
    view.refuse_edited()
    report = fold(view)
    jobs = [(job.name, job.items, job.outcomes, job.errors) for job in report.jobs]
    return list(view.lines()), view.counts(), view.error_counts(), jobs, report.outcomes, view.befores(1, 0, 20)


def test_an_export_says_how_many_items_are_written(place, tmp_path):
    """Those of a large run take seconds, in which somebody waits."""
    ledger, said = place.opened(), list[int]()
    for group in groups():
        ledger.commit(group, STATUS)
    exported(place, tmp_path / "out", said.append)
    assert said == [sum(sum(kinds.values()) for kinds in LedgerView(tmp_path / "out").counts().values())]


def test_an_exported_run_is_what_one_machine_would_have(place, tmp_path):
    """Lines, counts, errors, open and late writes, and the report are the same, also after a retry."""
    whole, single = place.opened(), tmp_path / "single"
    with Ledger.open(single, place.identity, now=NOW) as ledger:
        for group in groups():
            ledger.commit(group)
            whole.commit(group, STATUS)
        assert ledger.reopen(RETRIED) == whole.reopen(RETRIED) == 5
        again = [record(index, result="again") for index in (2, 3, 4, 6)]
        ledger.commit([*again, record(2, job=1)])
        whole.commit([*again, record(2, job=1)])
        ledger.finish(0, "", STATUS)
    leases = place.leases()
    place.let_lapse()
    _, shards = leases.claim(place.run, 9)
    assert {leases.finish(Lease(place.run, shard.no, shard.epoch)) for shard in shards} == {Ended.DONE}
    status = exported(place, tmp_path / "out")
    assert (status.state, [job.outcomes for job in status.jobs]) == (
        "complete",
        [{"succeeded": 11, "unchanged": 1}, {"succeeded": 8}],
    )
    assert told(tmp_path / "out") == told(single)
    assert LedgerView(single).befores(1, 0, 20) == {1: {"sha": "é"}}
    (epoch,) = LedgerView(tmp_path / "out").epochs()
    assert (epoch.exit_code, epoch.why) == (0, "")
    with Ledger.open(tmp_path / "out", place.identity, now=NOW) as ledger:
        assert set(ledger.late_writes()) == {(1, 1)}
        assert ledger.open_intents() == {}


def test_the_chain_of_an_exported_run_has_its_lines(place, tmp_path):
    """Each line and before-image is bound, so that whatever is changed after the export is found."""
    whole = place.opened()
    for group in groups():
        whole.commit(group, STATUS)
    exported(place, tmp_path / "one")
    found = verify(tmp_path / "one")
    assert (found.flaws, found.unbound, found.outcomes > 10) == ((), 0, True)
    with contextlib.closing(sqlite3.connect(tmp_path / "one" / LEDGER)) as ledger, ledger:
        ledger.execute("UPDATE befores SET before = ?", (b"{}",))
        ledger.execute("UPDATE outcomes SET idx = 19 WHERE job = 0 AND idx = 11")
    messages = {flaw.message for flaw in verify(tmp_path / "one").flaws}
    assert {"its before-image was changed", "its outcome was removed"} <= messages


def test_an_unfinished_run_can_be_looked_at(place, tmp_path):
    """It is a stopped run with work left, whose open writes are among what it knows."""
    ledger = place.opened()
    ledger.planned_from(NOW + 1.5)
    ledger.commit([record(0), intent(3)], STATUS)
    status = exported(place, tmp_path / "out")
    assert (status.state, status.why) == ("stopped", export.UNFINISHED)
    (epoch,) = LedgerView(tmp_path / "out").epochs()
    assert (epoch.exit_code, epoch.started_at) == (3, ledger.began_at)
    with open_reader(tmp_path / "out" / LEDGER) as single:
        assert rows.read_open(single) == {(1, 3): intent(3)}
        assert single.execute("SELECT planned_from FROM seal").fetchone() == (NOW + 1.5,)
        assert rows.done_bits(single, 0, 12)[0] == 1


def test_what_the_store_goes_on_with_is_not_begun_here(place, tmp_path):
    """Nobody sends from the run directory what workers send, too: it says which command goes on, and a complete one can
    be retried (failures.md row 94)."""
    ledger = place.opened()
    ledger.commit([record(0), intent(0)])
    exported(place, tmp_path / "run")
    view = LedgerView(tmp_path / "run")
    command = f"bulk resume {place.name} --store {place.text}"
    assert next_command(run_state_of(view, NOW), tmp_path / "run").replace("'", "") == command
    assert not is_at_home(tmp_path / "run")
    with pytest.raises(RunDirectoryError, match="goes on with it, and what was sent from here could be sent twice"):
        Ledger.open(tmp_path / "run", place.identity, now=NOW)
    assert verify(tmp_path / "run").flaws == ()
    place.sql("UPDATE run SET state = 'complete' WHERE id = %s", place.run)
    exported(place, tmp_path / "complete")
    Ledger.open(tmp_path / "complete", place.identity, now=NOW).close()
    assert is_at_home(tmp_path / "complete")


def test_figures_of_several_workers_become_one_minute(place, tmp_path):
    """Each minute is there once, with everybody's samples in the order of their times; actions come along."""
    for offset, ledger in enumerate((place.opened(0), place.opened(1))):
        timeline = Timeline(NOW)
        for second in range(3):
            job = JobStatus(name="readmes", operation="readme.get", items=9, outcomes={"succeeded": second})
            status = RunStatus(name="run", state="running", at=NOW + 2 * second + offset, started_at=NOW, jobs=(job,))
            minute = timeline.note(status, [])
        acted = Action(at=NOW + offset, who="me", verb="pause", args={"n": offset}, result="pausing")
        ledger.commit([], status, minute=minute, actions=[acted])
    exported(place, tmp_path / "out")
    view = LedgerView(tmp_path / "out")
    (minute,) = view.timeline()
    samples = read_minutes([minute])
    assert [sample.at for sample in samples] == [NOW + second for second in range(6)]
    assert sum(sample.outcomes.get(0, [0])[0] for sample in samples) == 4
    assert [action.args for action in view.actions()] == [{"n": 0}, {"n": 1}]
    assert merged([Minute(2, b"b"), Minute(1, b"a")]) == [Minute(1, b"a"), Minute(2, b"b")]


def test_the_files_of_the_bundle_come_along(place, tmp_path, monkeypatch):
    """What a retry and a resume need is in the directory, bound to the ledger as a check's own files are. They come
    through a folder that the next export removes, where this one is killed."""
    folder = tmp_path / "bundle"
    folder.mkdir()
    for name in ("manifest.yaml", "check.json"):
        (folder / name).write_text(name)
    with connection_to(place.text) as store:
        digest = bundles.upload(store, folder, ["manifest.yaml", "check.json"])
    place.sql("UPDATE run SET bundle = %s WHERE id = %s", digest, place.run)
    made = tempfile.mkdtemp
    places = list[Path]()

    def making(*given):
        places.append(Path(made(*given)))
        return str(places[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", making)
    exported(place, tmp_path / "out")
    assert {each.parent for each in places} == {tmp_path / "out.part"}
    assert (tmp_path / "out" / "check.json").read_text() == "check.json"
    (tmp_path / "out" / "check.json").write_text("edited")
    from bulk.ledger.companion_files import refuse_changed_parts

    with pytest.raises(RunDirectoryError, match=r"check\.json"):
        refuse_changed_parts(tmp_path / "out")


def test_an_export_is_whole_or_not_there(place, tmp_path):
    """A folder that is there stays as it is; what an export that was killed left is not an obstacle."""
    place.opened(0).commit([record(0)])
    out = tmp_path / "out"
    exported(place, out)
    before = msgspec.json.encode(sorted(path.name for path in out.iterdir()))
    with pytest.raises(RunDirectoryError, match="is there already; name another folder with --run-dir"):
        exported(place, out)
    assert msgspec.json.encode(sorted(path.name for path in out.iterdir())) == before
    shutil.copytree(out, tmp_path / "again.part")
    exported(place, tmp_path / "again")
    assert told(tmp_path / "again") == told(out)
    assert not (tmp_path / "again.part").exists()


def test_an_outcome_without_its_line_is_damage(place, tmp_path):
    """A store that lost a group of lines is not exported as if it were whole."""
    place.opened(0).commit([record(0)])
    place.sql("DELETE FROM chunk WHERE run = %s", place.run)
    with pytest.raises(RunDirectoryError, match="an outcome without its line"):
        exported(place, tmp_path / "out")
    with pytest.raises(RunDirectoryError, match="an outcome without its line"):
        list(place.opened(0).view().finished())
    assert not (tmp_path / "out").exists()


def test_two_exports_do_not_mix(place, tmp_path):
    """While one writes, another one to the same folder is refused, and leaves it alone."""
    place.opened(0).commit([record(0)])

    def meanwhile(minutes):
        with pytest.raises(RunDirectoryError, match="another command exports to"):
            exported(place, tmp_path / "out")
        return merged(minutes)

    with connection_to(place.text) as store:
        export.export(store, runs.find(store, place.name), tmp_path / "out", meanwhile)
    assert len(told(tmp_path / "out")[0]) == 1


@pytest.mark.parametrize("name", [".", "file", "file/x", "/proc/none/x"])
def test_a_place_that_can_not_be_is_refused(place, tmp_path, monkeypatch, name):
    """The current folder, even if it is empty, a file, what is below one, and where nothing can be written."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path / "empty" if name == "." else tmp_path)
    with pytest.raises(RunDirectoryError, match="--run-dir"):
        exported(place, Path(name))
    assert list((tmp_path / "empty").iterdir()) == []


def completed(place: StorePlace) -> None:
    """All of the run is done: one item failed, and the first write of the first job may still arrive."""
    leases = place.leases()
    ledger = place.opened(leases=leases)
    for group in groups():
        ledger.commit(group, STATUS)
    for no in range(len(SHARDS)):
        assert leases.finish(Lease(place.run, no, ledger.holding.epoch_of(no))) is Ended.DONE


def test_what_is_exported_is_one_moment(place, tmp_path):
    """A run that was complete when it was found, and is done again before it is read, is no complete run: what its
    workers go on with is nobody else's, and it is not told as a success (failures.md row 94)."""
    completed(place)
    with connection_to(place.text) as store, connection_to(place.text) as another:
        found = runs.find(store, place.name)
        runs.reopen(another, found, RETRIED, "somebody")
        status = export.export(store, found, tmp_path / "out", merged)
        assert (found.state, status.state) == ("complete", "stopped")
        assert f"bulk resume {place.name}" in LedgerView(tmp_path / "out").elsewhere()
        runs.forget(another, runs.find(another, place.name))
        with pytest.raises(RunDirectoryError, match="was forgotten"):
            export.export(store, found, tmp_path / "again", merged)


DAMAGES = {
    "identity": "UPDATE run SET identity = '{{}}' WHERE id = {run}",
    "limits": "UPDATE run SET limits = '[1]' WHERE id = {run}",
    "status, no JSON": "UPDATE participant SET status = 'x' WHERE run = {run}",
    "status, no status": "UPDATE participant SET status = '[]' WHERE run = {run}",
    "lines, not packed": "UPDATE chunk SET data = 'x' WHERE run = {run}",
    "lines, too short": "UPDATE outcome SET length = length + 100000 WHERE run = {run}",
    "lines, elsewhere": "UPDATE outcome SET position = position + 1 WHERE run = {run}",
    "word": "UPDATE outcome SET outcome = 99 WHERE run = {run}",
    "job": "UPDATE outcome SET job = 99 WHERE run = {run} AND job = 1 AND idx = 0",
    "outcomes": "DELETE FROM outcome WHERE run = {run} AND idx = 3",
    "counts": "UPDATE count SET items = items + 1 WHERE run = {run}",
    "action": "INSERT INTO action (run, at, who, verb, args, result) VALUES ({run}, 1, 'x', 'y', 'no JSON', 'z')",
    "intent": "UPDATE intent SET effect = 'none of ours' WHERE run = {run}",
    "before": "UPDATE intent SET before = 'no JSON' WHERE run = {run}",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_was_not_written_so_is_damage(place, tmp_path, capsys, damage):
    """Whatever is wrong with the rows of a run: it is not exported as if it were whole, exit 5, and the store is named
    as the cause (failures.md row 100)."""
    completed(place)
    place.sql(DAMAGES[damage].format(run=place.run))
    told = (place.name, "--store", place.text)
    assert main(["export", *told, "--run-dir", str(tmp_path / "out")]) == 5
    assert "the store is damaged: it has" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    for command in ("status", "retry"):
        assert main([command, *told]) in (0, 5)
        said = capsys.readouterr().err
        assert "bug" not in said
        assert "the same command goes on" not in said
    place.sql("DELETE FROM run WHERE id = %s", place.run)


@pytest.mark.parametrize("damage", ["identity", "limits"])
def test_a_damaged_run_hides_no_other(shared_store, tmp_path, capsys, damage):
    """A list has the others, says what is wrong with that one, and exits 5; so do the names to choose from, and the
    page lists it, too (failures.md row 111)."""
    whole = StorePlace(shared_store, tmp_path / "whole", shards=SHARDS)
    broken = StorePlace(shared_store, tmp_path / "broken", shards=SHARDS)
    for place in (whole, broken):
        completed(place)
    broken.sql(DAMAGES[damage].format(run=broken.run))
    assert main(["runs", "--store", shared_store, "--json"]) == 5
    said = capsys.readouterr()
    states = {run["run_dir"]: run["state"] for run in json.loads(said.out)}
    assert (states[whole.name], states[broken.name]) == ("complete", "damaged")
    assert f"{broken.name} is damaged: the store is damaged: it has a value that can't be read" in said.err
    assert main(["status", whole.name + "x", "--store", shared_store]) == 2
    assert f"did you mean {whole.name}?" in capsys.readouterr().err
    stored = StoredRuns(read(shared_store), Clock())
    try:
        page = {run.name: run.listed.state for run in stored.runs()}
    finally:
        stored.close()
    assert (page[f"{STORED}{whole.name}"], page[f"{STORED}{broken.name}"]) == ("complete", "damaged")
    for place in (whole, broken):
        place.sql("DELETE FROM run WHERE id = %s", place.run)
        place.close()


def test_who_is_killed_before_the_reports_goes_on_with_them(place, tmp_path, capsys):
    """The directory has its name as soon as its results are whole: the same command writes what is missing, and no
    other moment of the run is taken for this one (failures.md row 49)."""
    completed(place)
    exported(place, tmp_path / "out")
    again = ("export", place.name, "--store", place.text, "--run-dir", str(tmp_path / "out"))
    place.sql("UPDATE run SET ended_at = ended_at + interval '1 microsecond' WHERE id = %s", place.run)
    assert main([*again]) == 5
    place.sql("UPDATE run SET ended_at = ended_at - interval '1 microsecond' WHERE id = %s", place.run)
    assert main([*again]) == 0
    assert (tmp_path / "out" / "report.html").is_file()
    assert main([*again]) == 5
    assert "is there already" in capsys.readouterr().err
