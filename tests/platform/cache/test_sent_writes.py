"""What was sent last: what can't be taken back before another write leaves is thrown away, or nothing leaves."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from bulk.errors import RunStopped
from bulk.platform.cache.sent_writes import NAME, SentWrites

PLATFORM, PLACE, DIGEST, ELSEWHERE = "https://code.example.com/api/v3", "snapshot acme/api", b"1", "snapshot acme/web"
REFUSES = "CREATE TRIGGER full BEFORE DELETE ON sent BEGIN SELECT RAISE(ABORT, 'disk is full'); END"


def noted(folder: Path) -> Path:
    """A file in which one write is noted."""
    sent = SentWrites(folder, PLATFORM)
    sent.note(PLACE, DIGEST, 10.0)
    assert SentWrites(folder, PLATFORM).was_sent(PLACE, DIGEST, 0.0)
    return folder / NAME


def test_a_database_that_takes_nothing_back_is_thrown_away(tmp_path: Path) -> None:
    """failures.md row 106: the disk refuses to delete what was noted, as a full one does: another process finds nothing
    noted any more, and this one goes on to note."""
    path = noted(tmp_path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(REFUSES)
    sent = SentWrites(tmp_path, PLATFORM)
    sent.forget(ELSEWHERE)
    assert sent.was_sent(PLACE, DIGEST, 0.0), "of another place nothing had to be taken back"
    sent.forget(PLACE)
    assert not sent.was_sent(PLACE, DIGEST, 0.0)
    assert not SentWrites(tmp_path, PLATFORM).was_sent(PLACE, DIGEST, 0.0)
    sent.note(PLACE, b"2", 20.0)
    assert SentWrites(tmp_path, PLATFORM).was_sent(PLACE, b"2", 0.0)


@pytest.mark.parametrize("flaw", [b"no database", b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_damaged_file_is_thrown_away(tmp_path: Path, flaw: bytes) -> None:
    """What can't be read now may be read later, as where a disk comes back: it must not be believed then."""
    path = noted(tmp_path)
    path.with_name(f"{NAME}-wal").unlink()  # it has all of the pages
    path.write_bytes(flaw)
    SentWrites(tmp_path, PLATFORM).forget(PLACE)
    assert not path.exists()


def test_what_cant_be_thrown_away_stops_the_run(tmp_path: Path) -> None:
    """Something that can't be opened or removed is in the place of the file: nothing is sent, because what is noted
    there may be believed later."""
    (tmp_path / NAME).mkdir()
    with pytest.raises(RunStopped, match="--no-cache"):
        SentWrites(tmp_path, PLATFORM).forget(PLACE)


def test_what_was_never_noted_needs_no_file(tmp_path: Path) -> None:
    """A folder that can't be made holds nothing that could be believed."""
    (tmp_path / "file").write_text("")
    SentWrites(tmp_path / "file" / "folder", PLATFORM).forget(PLACE)
