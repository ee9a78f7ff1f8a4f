"""Writes the report files: `report.json` and `report.html` appear whole or not at all (failures.md row 49).

A symbolic link in the place of one of them is replaced, never followed; the file that it points to stays as it was.
"""

from pathlib import Path

import msgspec

from bulk.errors import RunDirectoryError
from bulk.report.exploration import Exploration
from bulk.report.record import Report
from bulk.report.render import html
from bulk.report.render.json_data import as_data
from bulk.storage.private_files import sync_directory, write_whole

JSON_NAME = "report.json"
HTML_NAME = "report.html"


def write_reports(report: Report, run_dir: Path, exploration: Exploration | None = None) -> None:
    """Write both files into `run_dir`, closed to other users (0600).

    Raises:
        RunDirectoryError: a file can't be written. The run's truth is in its ledger: the report can be made again.
    """
    contents = {JSON_NAME: as_json(report), HTML_NAME: html.render(report, exploration).encode("utf-8", "replace")}
    try:
        for name, content in contents.items():
            write_whole(run_dir / name, content)
        sync_directory(run_dir)
    except OSError as error:
        why = error.strerror or str(error)
        raise RunDirectoryError(
            f"{run_dir}: the report can't be written: {why}. The results are safe; `bulk report` shows it at any time"
        ) from error


def as_json(report: Report) -> bytes:
    """Return the report's stable JSON, indented, with a line break at its end."""
    return msgspec.json.format(msgspec.json.encode(as_data(report)), indent=2) + b"\n"
