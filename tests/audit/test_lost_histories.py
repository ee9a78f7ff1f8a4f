"""A history that has lost a file, holds somebody else's, or whose machine has a wrong clock."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.audit.nights import FILES, Nights
from tests.e2e.support.platform import Home, served

A_DAY_BACK = """
import sys, time

real = time.time
time.time = lambda: real() - 86_400
from bulk.cli import main

sys.exit(main(["audit", "files.yaml", "--progress", "none", "--format", "json"]))
"""


@pytest.fixture(scope="module")
def two_nights(tmp_path_factory):
    """An audit of three files that has had two nights, and a copy of all that it has."""
    folder = tmp_path_factory.mktemp("nights")
    (folder / "home").mkdir()
    with served(folder / "sandbox") as sandbox:
        found = Nights(Home(folder / "home"), sandbox)
        found.write()
        for _ in range(2):
            assert found.audit().exit_code == 0
        yield found, shutil.copytree(found.folder, folder / "kept"), [found.text(item) for item in FILES]


@pytest.fixture
def nights(two_nights):
    """That audit as it was after its second night: all that it has, and the files on the platform."""
    found, kept, texts = two_nights
    again = Nights(found.home, found.sandbox)
    for item, text in zip(FILES, texts, strict=True):
        if again.text(item) != text:
            again.put(item, text)
    shutil.rmtree(again.folder)
    shutil.copytree(kept, again.folder)
    return again


@pytest.fixture
def place(nights):
    """Where its history lies."""
    return nights.folder / "audits" / "files"


def test_a_history_without_its_index_is_refused_and_loses_no_night(nights, place):
    """Exit 5 before anything is asked; the nights are not given up, and count when the index is back."""
    index, asked = (place / "audit.json").read_bytes(), len(nights.sandbox.requests())
    (place / "audit.json").unlink()
    ran = nights.audit()
    assert (ran.exit_code, "has files of 2 nights and no audit.json" in ran.err) == (5, True), ran.err
    assert not (place / "audit.json").exists()
    assert len(nights.sandbox.requests()) == asked
    (place / "audit.json").write_bytes(index)
    assert nights.audit().exit_code == 0
    assert [night.is_good for night in nights.history().nights] == [True] * 3


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (os.mkfifo, "audit.json: is not a regular file"),
        (Path.mkdir, "audit.json: is a folder"),
        (lambda path: path.symlink_to("gone"), "audit.json: is a link to 'gone', where no file is"),
    ],
)
def test_an_index_that_is_no_file_is_refused(nights, place, make, says):
    """Exit 5 before anything is asked; nobody waits for a FIFO, and a link that leads nowhere is not a first night."""
    asked = len(nights.sandbox.requests())
    (place / "audit.json").unlink()
    make(place / "audit.json")
    ran = nights.audit()
    assert (ran.exit_code, says in ran.err) == (5, True), ran.err
    assert len(nights.sandbox.requests()) == asked


def test_a_first_night_without_its_index_counts_again(nights, place):
    """It looks as if the audit had been killed: the night is ended by the same command, and nothing asked again."""
    shutil.rmtree(place)
    assert nights.audit().exit_code == 0
    asked, (first,) = len(nights.sandbox.requests()), nights.history().nights
    (place / "audit.json").unlink()
    assert nights.audit().exit_code == 0
    assert (nights.history().nights, len(nights.sandbox.requests())) == ((first,), asked)


def test_a_history_that_is_gone_begins_anew(nights, place):
    """Without its folder the next night is the first: nothing is drift."""
    shutil.rmtree(place)
    nights.put(FILES[0], "Changed while there was no history.\n")
    code, found = nights.result()
    assert (code, found["drift"]["is_first"], found["changes"]) == (0, True, [])


@pytest.mark.parametrize("kind", ["baseline", "judged"])
def test_what_the_next_night_needs_is_named_where_it_is_gone(nights, place, kind):
    """Exit 5 with the file and the way out; when it is back, the same night is ended and nothing asked again."""
    nights.put(FILES[0], "Changed.\n")
    away = (place / kind).rename(nights.folder / "away")
    ran = nights.audit()
    assert ran.exit_code == 5
    last = nights.history().nights[-1].run
    said = (
        f"{kind}/{last}.{'db' if kind == 'baseline' else 'json'}, of the last good night, is gone: restore it, or name"
    )
    assert said in ran.err
    assert "asks nothing again" in ran.err
    asked = len(nights.sandbox.requests())
    shutil.copytree(away, place / kind, dirs_exist_ok=True)
    assert nights.audit().exit_code == 7
    assert len(nights.sandbox.requests()) == asked


def test_what_somebody_else_has_put_among_the_runs_stays(nights, place):
    """A file or a folder, however old, neither stops an audit nor is taken for a run that can go."""
    (place / "runs/.DS_Store").write_text("x")
    for name in ("aaa", "zzz"):
        (place / "runs" / name).mkdir()
        (place / "runs" / name / "mine.txt").write_text("mine")
    ran = nights.audit("--resume-within", "1s")
    assert ran.exit_code == 0, ran.err
    assert len(nights.history().nights) == 3
    assert sorted(path.parent.name for path in place.glob("runs/*/mine.txt")) == ["aaa", "zzz"]


@pytest.mark.parametrize("kind", ["baseline", "judged"])
def test_what_is_old_and_can_not_be_removed_is_a_warning(nights, place, kind):
    """A folder where files are expected: the night counts, and its exit code stays."""
    (place / kind / "somebody's").mkdir()
    ran = nights.audit()
    assert (ran.exit_code, "warning: old nights stay: " in ran.err) == (0, True), ran.err
    assert len(nights.history().nights) == 3


@pytest.mark.parametrize("kind", ["tables", "changes", "violations", "pages"])
def test_a_file_where_a_folder_belongs_is_named(nights, place, kind):
    """Exit 5 with its name; without it the same night is ended and nothing asked again."""
    shutil.rmtree(place / kind)
    (place / kind).write_text("x")
    ran = nights.audit()
    assert (ran.exit_code, "the same command goes on with this night" in ran.err) == (5, True), ran.err
    assert f"audits/files/{kind}" in ran.err
    asked = len(nights.sandbox.requests())
    (place / kind).unlink()
    assert nights.audit().exit_code == 0
    assert len(nights.sandbox.requests()) == asked


def test_a_clock_that_is_set_back_a_day_changes_nothing(nights):
    """Nights count in their order: each is compared with the one before it, whatever the clock says."""
    nights.put(FILES[0], "Changed before the clock was set back.\n")
    nights.home.write("back.py", A_DAY_BACK)
    back = nights.home.run_any([sys.executable, str(nights.folder / "back.py")])
    found = json.loads(back.out)
    assert (back.exit_code, found["drift"]["items"], found["drift"]["is_first"]) == (7, 1, False), back.err
    assert found["night"]["at"] < nights.history().nights[0].at
    code, quiet = nights.result()
    assert (code, quiet["night"]["units"], quiet["changes"]) == (0, 0, [])
    nights.put(FILES[0], "Changed after it was right again.\n")
    assert nights.result()[0] == 7
    assert [night.exit_code for night in nights.history().nights] == [0, 0, 7, 0, 7]
    assert nights.sql("SELECT count(*) AS n FROM changes WHERE field = 'result.sha'") == [{"n": 2}]


def test_a_history_is_of_one_manifest(nights):
    """Another manifest with the same history is exit 5, and asks nothing."""
    other = json.loads((nights.folder / "files.yaml").read_text()) | {"name": "other"}
    nights.home.write("other.yaml", json.dumps(other))
    asked = len(nights.sandbox.requests())
    ran = nights.home.run("audit", "other.yaml", "--history", "audits/files")
    assert (ran.exit_code, "is the history of files, not of other: name another --history" in ran.err) == (5, True)
    assert len(nights.sandbox.requests()) == asked


def test_a_second_manifest_of_the_same_name_is_refused(nights, place):
    """Exit 5 before anything is asked, with the way out; the nights of the first are not compared with its own."""
    asked = len(nights.sandbox.requests())
    text = (nights.folder / "files.yaml").read_text()
    nights.home.write("other/files.yaml", text.replace("files.jsonl", "../files.jsonl"))
    ran = nights.home.run("audit", "other/files.yaml", "--progress", "none")
    assert (ran.exit_code, f"the history of {nights.folder / 'files.yaml'}" in ran.err) == (5, True), ran.err
    assert "another --history" in ran.err
    assert len(nights.sandbox.requests()) == asked
    assert nights.home.run("audit", "other/files.yaml", "--progress", "none", "--history", "b").exit_code == 0
    assert nights.audit().exit_code == 0
    assert [night.is_good for night in nights.history().nights] == [True] * 3


def test_a_manifest_that_was_edited_or_has_moved_goes_on_with_its_nights(nights):
    """Its items are compared with what they were, wherever it lies now, and by whatever link it is named."""
    link = nights.folder / "link"
    link.symlink_to(nights.folder)
    nights.items = FILES[:2]
    nights.write(keep={"runs": 7})
    nights.put(FILES[0], "Changed.\n")
    ran = nights.home.run("audit", "link/files.yaml", "--progress", "none", "--format", "json")
    assert (ran.exit_code, json.loads(ran.out)["drift"]["items"]) == (7, 1), ran.err
    moved = {"name": "files", **json.loads((nights.folder / "files.yaml").read_text())}
    (nights.folder / "files.yaml").unlink()
    nights.home.write("fleet.yaml", json.dumps(moved))
    nights.put(FILES[1], "Changed.\n")
    ran = nights.home.run("audit", "fleet.yaml", "--progress", "none", "--format", "json")
    assert (ran.exit_code, json.loads(ran.out)["drift"]["items"]) == (7, 1), ran.err
    assert [night.is_good for night in nights.history().nights] == [True] * 4


@pytest.mark.parametrize("text", [b"", b"no database", None])
def test_a_damaged_baseline_is_named_and_no_night_is_compared_with_nothing(nights, place, text):
    """Exit 5 names the file of the last good night, also where it is empty; with the file back the night counts."""
    baseline = place / "baseline" / f"{nights.history().nights[-1].run}.db"
    kept = baseline.read_bytes()
    baseline.write_bytes(kept[:5_000] if text is None else text)
    ran = nights.audit()
    assert (ran.exit_code, f"{baseline.relative_to(nights.folder)} is damaged" in ran.err) == (5, True), ran.err
    baseline.write_bytes(kept)
    nights.put(FILES[0], "Changed.\n")
    code, found = nights.result()
    assert (code, found["drift"]["is_first"]) == (0, False)
    assert [night.is_good for night in nights.history().nights] == [True] * 3


@pytest.mark.parametrize("out", ["audit.json", "audit.lock", "runs/a.json", "../files/judged/a.json"])
def test_no_report_takes_the_place_of_a_file_of_the_history(nights, place, out):
    """Exit 2 before anything is asked; a file beside them can be written."""
    index, asked = (place / "audit.json").read_bytes(), len(nights.sandbox.requests())
    ran = nights.audit("--format", "json", "--out", str(place / out))
    assert (ran.exit_code, "is a file of the history" in ran.err) == (2, True), ran.err
    assert ((place / "audit.json").read_bytes(), len(nights.sandbox.requests())) == (index, asked)
    assert nights.audit("--format", "json", "--out", str(place / "report.json")).exit_code == 0


@pytest.mark.parametrize("name", ["manifest.yaml", "ledger.db", "last-year"])
def test_a_folder_of_something_else_is_no_history(nights, name):
    """A project, a run directory or a folder of histories is exit 5; nothing is asked, or made there."""
    other, asked = nights.folder / "other", len(nights.sandbox.requests())
    other.mkdir()
    (other / name).touch()
    ran = nights.audit("--history", str(other))
    assert (ran.exit_code, f"it holds '{name}' and no audit.json; name an empty or a new folder" in ran.err) == (
        5,
        True,
    ), ran.err
    assert ([path.name for path in other.iterdir()], len(nights.sandbox.requests())) == ([name], asked)


def test_a_new_volume_may_be_a_history(nights):
    """What the file system has put there, and an index that a killed process has half-written, are in no way."""
    volume = nights.folder / "volume"
    (volume / "lost+found").mkdir(parents=True)
    (volume / "audit.json.part").touch()
    assert nights.audit("--history", str(volume)).exit_code == 0
