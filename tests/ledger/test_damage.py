"""Ledgers with flipped bits, cut anywhere, overwritten in places; disks that refuse every single write.

SQLite has no checksum over a row, so not every flip can be seen. What is seen is refused and left as it is; whatever
happens, it is told in words of ours: no damage makes a traceback (failures.md rows 46, 47).
"""

import contextlib
import random
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulk.errors import RunDirectoryError, RunStopped
from bulk.ledger.view import LedgerView
from bulk.model import OutcomeKind
from tests.ledger.samples import STATUS, as_killed, identity, intent, opened, record, run_child

MEMORY = Path("/dev/shm")


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory, where there is such a place: hundreds of ledgers are opened."""
    with tempfile.TemporaryDirectory(prefix="bulk-ledger-", dir=MEMORY if MEMORY.is_dir() else None) as path:
        yield Path(path)


@pytest.fixture
def killed(folder: Path) -> Path:
    """What a killed process left: 300 outcomes, some intents, a log that was not taken over."""
    with opened(folder / "run") as ledger:
        kinds = list(OutcomeKind)
        ledger.commit([record(index, kinds[index % 5], result={"n": index}) for index in range(200)])
        ledger.commit([intent(index, before={"sha": "0" * 40}) for index in range(20)])
        ledger._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ledger.commit([record(index, result={"n": index}) for index in range(200, 300)], STATUS)
        return as_killed(folder / "run", folder / "killed")


@pytest.mark.parametrize("column", ["started_at", "ended_at", "pid", "exit_code", "host"])
def test_a_number_of_a_process_that_is_none_is_damage(killed: Path, column: str) -> None:
    """SQLite keeps any value in any column: a list of runs with such a one says so, and lists the others."""
    with contextlib.closing(sqlite3.connect(killed / "ledger.db", isolation_level=None)) as connection:
        connection.execute(f"UPDATE epochs SET {column} = ?", ["x" if column != "host" else b"x"])
    with pytest.raises(RunDirectoryError, match="damaged"):
        LedgerView(killed).epochs()


@pytest.mark.parametrize(("column", "value"), [("number", None), ("head", None), ("head", "x")])
def test_a_link_that_is_none_is_damage(killed: Path, column: str, value: object) -> None:
    """The chain goes on only from a number and a head; else the ledger is refused before anything is written."""
    with contextlib.closing(sqlite3.connect(killed / "ledger.db", isolation_level=None)) as connection:
        connection.executescript("CREATE TABLE copy AS SELECT * FROM links; DROP TABLE links")
        connection.execute(f"UPDATE copy SET {column} = ?", [value])
        connection.execute("ALTER TABLE copy RENAME TO links")
    with pytest.raises(RunDirectoryError, match="damaged"), opened(killed):
        pass


def harmed(dice: random.Random, data: bytes) -> bytes:
    """A few bits flipped, a piece cut off, or a piece overwritten."""
    changed = bytearray(data)
    match dice.randrange(5):
        case 0 | 1 | 2:
            for _ in range(dice.choice([1, 1, 2, 8, 64])):
                changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
        case 3:
            del changed[dice.randrange(len(changed)) :]
        case 4:
            start = dice.randrange(len(changed))
            piece = dice.randbytes(dice.choice([1, 16, 500]))
            changed[start : start + len(piece)] = piece[: len(changed) - start]
    return bytes(changed)


def meet(killed: Path, place: Path, seed: int) -> str:
    """Harm a copy in one way and use it as a resume does; how that ended. Nothing but our own refusals may come."""
    dice = random.Random(f"damage {seed}")
    copy = Path(shutil.copytree(killed, place))
    (copy / "ledger.db-shm").unlink(missing_ok=True)
    name = dice.choice(["ledger.db", "ledger.db", "ledger.db-wal", "results.jsonl"])
    (copy / name).write_bytes(harmed(dice, (copy / name).read_bytes()))
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    try:
        ledger = opened(copy)
    except RunDirectoryError:
        if name == "ledger.db":
            assert (copy / "results.jsonl").read_bytes() == before["results.jsonl"]
            assert (copy / "ledger.db").is_file()
        return "refused"
    except RunStopped:
        return "stopped"
    try:
        with ledger:
            ledger.done_bits(0, 1_000)
            ledger.open_intents()
            ledger.counts()
            ledger.commit([record(999)])
            ledger.finish(0, "", STATUS)
        view = LedgerView(copy)
        view.counts()
        sum(1 for _ in view.finished())
    except RunDirectoryError:
        return "refused later"
    except RunStopped:
        return "stopped"
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    return "went on"


def survive(killed: Path, folder: Path, seeds: range) -> str:
    """All of these; a line for people."""
    ends: Counter[str] = Counter()
    for seed in seeds:
        try:
            ends[meet(killed, folder / f"copy-{seed}", seed)] += 1
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        shutil.rmtree(folder / f"copy-{seed}", ignore_errors=True)
    assert ends["refused"] > len(seeds) / 20
    return f"{len(seeds):,} damaged ledgers: {dict(ends)}"


def test_no_damage_makes_a_traceback(killed: Path, folder: Path) -> None:
    """failures.md row 46: 150 damaged ledgers are refused or go on, and are never overwritten where refused."""
    survive(killed, folder, range(150))


@pytest.mark.soak
def test_no_damage_makes_a_traceback_at_length(killed: Path, folder: Path) -> None:
    """failures.md row 46: 20,000 of them."""
    survive(killed, folder, range(1_000, 21_000))


EVERY_WRITE = """
    import resource

    def limit(bytes):
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, resource.RLIM_INFINITY))

    refusals = 0
    for number in range(200):
        place = run_dir / str(number)
        with opened(place) as ledger:
            ledger.commit([record(index, result="x" * 900) for index in range(20)])
            if sys.argv[2] == "results.jsonl":
                ledger._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            group = [intent(5), *(record(index, result="y" * 900) for index in range(20, 60))]
            limit((place / sys.argv[2]).stat().st_size + number * int(sys.argv[3]))
            try:
                ledger.commit(group)
                was_refused = False
            except RunStopped:
                was_refused = True
                assert len(keys(place)) == 20, "a part of the group"
            limit(resource.RLIM_INFINITY)
            if was_refused:
                ledger.commit(group)
            ledger.finish(0, "", STATUS)
        assert [index for _, index in keys(place)] == list(range(60))
        assert (place / "results.jsonl").read_bytes().count(b"\\n") == 60
        refusals += was_refused
        if not was_refused:
            break
    print(refusals)
"""


@pytest.mark.parametrize(("name", "step_bytes"), [("ledger.db-wal", 4_120), ("results.jsonl", 6_000)])
def test_every_write_may_be_refused(folder: Path, name: str, step_bytes: int) -> None:
    """failures.md row 47: whichever write the disk refuses: all of a group or nothing, and later all of it, once."""
    (folder / "runs").mkdir()
    code, out = run_child(folder / "runs", EVERY_WRITE, name, str(step_bytes))
    assert code == 0
    assert int(out) >= 3


def test_the_samples_are_sound(killed: Path) -> None:
    """Without damage the same ledger goes on, or the tests above would prove nothing."""
    with opened(killed, identity=identity()) as ledger:
        assert sum(ledger.counts()[0].values()) == 300
        assert len(ledger.open_intents()) == 20
