"""Tables of many nights: writes their files, and makes tables of one night or of all nights from them."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from bulk.audit.tables import asking, statements
from bulk.audit.tables.child import Task
from bulk.audit.tables.columns import COMMON
from bulk.audit.tables.writing import RunTables, write_parquet
from bulk.errors import RunDirectoryError
from bulk.storage.private_files import sync_directory


def write_missing(tables: RunTables, places: Mapping[str, Path]) -> None:
    """Write the tables whose files are not there yet; each file gets its name only when it is whole.

    Raises:
        RunDirectoryError: the disk is full, or a file can't be written.
    """
    missing = {name: place for name, place in places.items() if not place.is_file()}
    if not missing:
        return
    parts = {name: _part(place) for name, place in missing.items()}
    try:
        write_parquet(tables, parts)
        for name, place in missing.items():
            _finish(parts[name], place)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


def write_rows(columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]], place: Path) -> None:
    """Write rows that this process has into a file, which gets its name only when it is whole.

    Raises:
        RunDirectoryError: the disk is full, or a file can't be written.
    """
    part = _part(place)
    given = part.with_suffix(".jsonl")
    kinds = ", ".join(f"{statements.name(name)}: {statements.text(kind)}" for name, kind in columns.items())
    read = f"read_json({statements.text(str(given))}, format = 'newline_delimited', columns = {{{kinds}}})"
    try:
        with given.open("wb") as file:
            file.writelines(msgspec.json.encode(row) + b"\n" for row in rows)
        asking.run(Task(statements=(statements.copy(f"SELECT * FROM {read}", str(part)),)), given)
        _finish(part, place)
    except OSError as error:
        raise RunDirectoryError(f"{place}: {error.strerror}") from error
    finally:
        given.unlink(missing_ok=True)
        part.unlink(missing_ok=True)


def tables_of_night(places: Mapping[str, Path]) -> Task:
    """Return the task that makes the tables of one night for policies.

    The tables are read from their files: most policies want few columns of one table, and loading all takes longer.
    """
    made = [f"CREATE VIEW {statements.name(name)} AS {_read([place])}" for name, place in places.items()]
    rest = [
        f"CREATE TABLE {statements.name(name)} AS {statements.empty(columns)}"
        for name, columns in COMMON.items()
        if name not in places
    ]
    return Task(statements=(*made, *rest), allowed=tuple(map(str, places.values())))


def tables_of_nights(places: Mapping[str, list[Path]]) -> Task:
    """Return the task that makes the tables of all nights, from files by table; a column that a file lacks is NULL."""
    made = []
    for name, files in places.items():
        read = _read(files)
        if name == "changes":
            read = _with_last_seen(read)
        made.append(f"CREATE VIEW {statements.name(name)} AS {read}")
    rest = [
        f"CREATE VIEW {statements.name(name)} AS {statements.empty(columns)}"
        for name, columns in COMMON.items()
        if name not in places
    ]
    return Task(statements=(*made, *rest), allowed=tuple(str(path) for files in places.values() for path in files))


def _with_last_seen(read: str) -> str:
    """Return changes with the time at which each value was last seen: until the next change of the same field."""
    window = "PARTITION BY job, id, item, field ORDER BY first_seen"
    return f"SELECT *, lead(before_at) OVER ({window}) AS last_seen FROM ({read})"


def _read(files: Iterable[Path]) -> str:
    paths = ", ".join(statements.text(str(path)) for path in files)
    return f"SELECT * FROM read_parquet([{paths}], union_by_name = true)"


def _part(place: Path) -> Path:
    return asking.refuse_pattern(place.absolute()).with_name(f"{place.name}.part")


def _finish(part: Path, place: Path) -> None:
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(place)
    sync_directory(place.parent)
