"""Where the report files come from: `report.json` and `report.html` appear whole or not at all (failures.md row 49).

A link that somebody has put in their place is replaced, never followed; what it pointed to stays as it was. What a
killed process left half-written has a name of its own, and the next process takes it away.
"""

import contextlib
import os
from pathlib import Path

import msgspec

from bulk.errors import RunDirectoryError
from bulk.report.record import Report
from bulk.report.render import html
from bulk.storage.private_files import open_private, write_all

JSON_NAME = "report.json"
HTML_NAME = "report.html"


def write_reports(report: Report, run_dir: Path) -> None:
    """Write both files into `run_dir`, closed to other users (0600).

    Raises:
        RunDirectoryError: one can't be written. The run's truth is in its ledger: the report can be made again.
    """
    contents = {JSON_NAME: as_json(report), HTML_NAME: html.render(report).encode("utf-8", "replace")}
    try:
        directory = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name, content in contents.items():
                _write(directory, name, content)
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        why = error.strerror or str(error)
        raise RunDirectoryError(
            f"{run_dir}: the report can't be written: {why}. The results are safe; `bulk report` shows it at any time"
        ) from error


def as_json(report: Report) -> bytes:
    """The report's stable JSON, indented, with a line break at its end."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def from_json(data: bytes) -> Report:
    """The report that `as_json` wrote.

    Raises:
        msgspec.DecodeError: it is none.
    """
    return msgspec.json.decode(data, type=Report)


def _write(directory: int, name: str, content: bytes) -> None:
    fresh = f"{name}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(fresh, dir_fd=directory)
    target = open_private(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, directory)
    try:
        try:
            write_all(target, content)
            os.fsync(target)
        finally:
            os.close(target)
        os.rename(fresh, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        os.unlink(fresh, dir_fd=directory)
        raise
