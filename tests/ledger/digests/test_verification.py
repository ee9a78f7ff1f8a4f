"""Whatever is changed in a run directory behind its back is found, and named; what the run does itself never is."""

import contextlib
import os
import random
import shutil
import sqlite3
import time
from pathlib import Path

import pytest

from bulk.errors import RunDirectoryError
from bulk.ledger.digests.verification import Verification, verify
from bulk.ledger.records import Record, Withdrawn
from bulk.ledger.view import LedgerView
from bulk.model import OutcomeKind
from tests.ledger.samples import JOBS, STATUS, as_killed, finished, intent, opened, record

FAILED = OutcomeKind.FAILED


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A run with reads, a write that has a before-image, an open intent, and an end."""
    run_dir = tmp_path / "run"
    with opened(run_dir) as ledger:
        (run_dir / "manifest.yaml").write_text("version: 1\n")
        ledger.bind_parts()
        ledger.commit([intent(0, before="3d21"), intent(1, before=None)])
        ledger.commit([record(index, result={"n": index}) for index in range(40)])
        ledger.commit([record(0, job=1), record(40, FAILED)])
        ledger.finish(1, "", STATUS)
    return run_dir


def test_a_file_whose_name_is_not_utf8_is_in_no_ones_way(run_dir: Path) -> None:
    """Somebody has put it into the run directory: the run ends as ever, and nothing says that it has written it."""
    (run_dir / os.fsdecode(b"\xff\xfe")).touch()
    with opened(run_dir) as ledger:
        ledger.finish(1, "", STATUS)
    found = verify(run_dir)
    assert (found.flaws, found.is_ended) == ((), True)


def change(run_dir: Path, sql: str) -> None:
    """Do something to a ledger from outside."""
    with contextlib.closing(sqlite3.connect(run_dir / "ledger.db")) as connection, connection:
        connection.execute(sql)


def without_files(run_dir: Path) -> Verification:
    """What the chain alone finds, as after a process that was killed."""
    (run_dir / "digests.json").unlink(missing_ok=True)
    return verify(run_dir)


def test_what_the_run_did_is_intact(run_dir: Path) -> None:
    """After an end, a retry, a compaction and a kill; the head goes on, and an older one is known as such."""
    found = verify(run_dir)
    assert (found.flaws, found.outcomes, found.intents, found.is_ended) == ((), 42, 1, True)
    assert found.head == LedgerView(run_dir).head()
    with opened(run_dir) as ledger:
        assert not (run_dir / "digests.json").exists()
        assert ledger.reopen({FAILED}) == 1
        ledger.commit([record(40, result="again")])
        killed = as_killed(run_dir, run_dir.parent / "killed")
        ledger.finish(0, "", STATUS)
    assert (without_files(killed).flaws, verify(killed).is_ended) == ((), False)
    again = verify(run_dir, expect=LedgerView(run_dir).head())
    assert (again.flaws, again.outcomes) == ((), 42)
    (flaw,) = verify(run_dir, expect=found.head[:12]).flaws
    assert "the run went on since" in flaw.message
    (flaw,) = verify(run_dir, expect="ab" * 32).flaws
    assert "none of this chain" in flaw.message


def test_a_file_that_is_gone_is_named(run_dir: Path) -> None:
    """Each of them, and no other for it; the ledger is not a run directory without itself."""
    for path in sorted(run_dir.iterdir()):
        if path.name in ("ledger.db", "run.lock"):
            continue
        data = path.read_bytes()
        path.unlink()
        found = verify(run_dir)
        assert {flaw.file for flaw in found.flaws} == ({path.name} if path.name != "digests.json" else set()), path.name
        path.write_bytes(data)
    assert verify(run_dir).flaws == ()


def flip_bytes(run_dir: Path, most: int) -> None:
    """Flip `most` bytes of every file, one after the other; each must be found."""
    dice = random.Random(1)
    for path in sorted(run_dir.iterdir()):
        data = path.read_bytes()
        for place in range(len(data)) if len(data) <= most else dice.sample(range(len(data)), most):
            path.write_bytes(data[:place] + bytes([data[place] ^ (1 << dice.randrange(8))]) + data[place + 1 :])
            assert is_refused(run_dir), (path.name, place)
        path.write_bytes(data)
    assert verify(run_dir).flaws == ()


def test_flipped_bytes_are_found(run_dir: Path) -> None:
    """In every file, wherever in it they are."""
    flip_bytes(run_dir, 40)


@pytest.mark.soak
def test_every_flipped_byte_is_found(run_dir: Path) -> None:
    """Each byte of each file."""
    flip_bytes(run_dir, 10**9)


def is_refused(run_dir: Path) -> bool:
    """Whether something is found, or the directory is none any more."""
    try:
        return bool(verify(run_dir).flaws)
    except RunDirectoryError:
        return True


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("DELETE FROM outcomes WHERE job = 0 AND idx = 7", "outcome was removed"),
        ("DELETE FROM links WHERE number = 2", "link 2"),
        ("UPDATE links SET leaves = zeroblob(length(leaves)) WHERE number = 3", "link 3"),
        ("UPDATE intents SET path = '/elsewhere'", "intent was changed"),
        ("DELETE FROM intents", "intent was removed"),
        ("UPDATE meta SET base_url = 'http://other'", "whose run it is"),
        ("UPDATE counts SET items = items + 1", "counts are not"),
        ("UPDATE outcomes SET outcome = (SELECT outcome FROM outcomes WHERE idx = 40) WHERE idx = 3", "counts are not"),
    ],
)
def test_the_ledger_is_compared_with_the_chain(run_dir: Path, sql: str, words: str) -> None:
    """Rows that were removed or changed, where no file says so."""
    with opened(run_dir) as ledger:
        ledger.commit([intent(2, before=["a"])])
    assert without_files(run_dir).flaws == ()
    change(run_dir, sql)
    assert any(words in flaw.message for flaw in verify(run_dir).flaws)


def test_an_intent_goes_only_with_a_word(tmp_path: Path) -> None:
    """What was taken back, ended, or made to-do again has none, and nothing is wrong with that."""
    run_dir = tmp_path / "run"
    with opened(run_dir) as ledger:
        ledger.commit([intent(index) for index in range(4)])
        ledger.commit([Withdrawn(1, 0), record(1, job=1), record(2, OutcomeKind.FAILED, job=1)])
        assert ledger.reopen({OutcomeKind.FAILED}) == 1
        ledger.commit([Withdrawn(1, 3), intent(3)])  # begun anew at once
        assert ledger.open_intents().keys() == {(1, 3)}
    found = verify(run_dir)
    assert (found.flaws, found.intents) == ((), 1)
    with opened(run_dir) as ledger:
        ledger.commit([intent(0), intent(2)])
    change(run_dir, "DELETE FROM intents WHERE idx IN (0, 2)")
    assert [flaw.index for flaw in verify(run_dir).flaws if "intent was removed" in flaw.message] == [0, 2]


def test_a_before_image_is_bound(tmp_path: Path) -> None:
    """It is what `bulk undo` writes back: nobody changes it unnoticed."""
    run_dir = tmp_path / "run"
    with opened(run_dir) as ledger:
        ledger.commit([intent(0, before="3d21")])
        ledger.commit([Record(1, finished(0, job=1), before="3d21")])
    assert LedgerView(run_dir).befores(1, 0, 9) == {0: "3d21"}
    assert verify(run_dir).flaws == ()
    change(run_dir, "UPDATE befores SET before = '\"ffff\"'")
    assert [flaw.message for flaw in verify(run_dir).flaws] == ["its before-image was changed"]


def scrambled(run_dir: Path, dice: random.Random, flips: int, moves: int) -> tuple[set[int], set[int]]:
    """Flip bytes of `flips` lines, and remove or swap `moves` others; which are gone, and which were moved."""
    lines = (run_dir / "results.jsonl").read_bytes().splitlines(keepends=True)
    chosen = dice.sample(range(len(lines)), flips + 2 * moves)
    for place in chosen[:flips]:
        at = dice.randrange(len(lines[place]) - 1)
        changed = lines[place][at] ^ (1 << dice.randrange(8))
        lines[place] = lines[place][:at] + bytes([changed]) + lines[place][at + 1 :]
    gone, moved = set(chosen[:flips]), set()
    rest = sorted(chosen[flips:])
    for first, second in zip(rest[::2], rest[1::2], strict=True):
        if dice.random() < 0.5:
            lines[first] = b""
            gone.add(first)
        else:
            lines[first], lines[second] = lines[second], lines[first]
            moved |= {first, second}
    (run_dir / "results.jsonl").write_bytes(b"".join(lines))
    return gone, moved


def check_scrambled(run_dir: Path, items: int, flips: int, moves: int) -> float:
    """Make a run of `items` items, scramble it, and see that exactly what was done is named; seconds while intact."""
    with opened(run_dir) as ledger:
        for first in range(0, items, 1_000):
            last = min(items, first + 1_000)
            ledger.commit([record(index, result={"n": index, "text": "x" * 120}) for index in range(first, last)])
        ledger.finish(0, "", STATUS)
    began = time.perf_counter()
    assert verify(run_dir).flaws == ()
    seconds = time.perf_counter() - began
    gone, moved = scrambled(run_dir, random.Random(7), flips, moves)
    found = [flaw for flaw in verify(run_dir).flaws if flaw.file == "results.jsonl" and flaw.index is not None]
    assert {flaw.index for flaw in found if flaw.what == "line"} == gone
    assert {flaw.index for flaw in found if flaw.what == "order"} >= moved
    assert {flaw.job for flaw in found} == {JOBS[0]}
    return seconds


def test_what_was_done_to_lines_is_named(tmp_path: Path) -> None:
    """Flipped, removed and swapped lines, each of them, and nothing that stands behind them."""
    check_scrambled(tmp_path / "run", 3_000, 300, 30)


@pytest.mark.soak
def test_a_million_outcomes(tmp_path: Path) -> None:
    """In at most 10 seconds; 10,000 flipped bytes and 1,000 lines that were removed or swapped, all of them named."""
    seconds = check_scrambled(tmp_path / "run", 1_000_000, 10_000, 1_000)
    print(f"1,000,000 outcomes verified in {seconds:.1f} s")  # noqa: T201
    assert seconds <= 10.0
    shutil.rmtree(tmp_path / "run")
