"""What `bulk init` writes is accepted for every operation, once it is filled in."""

import base64
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from bulk import operation
from bulk.bundle.checked import Checked
from bulk.capabilities import file_fields
from bulk.check.checking import check
from bulk.cli.catalog.beginnings import MANIFEST, Beginning, beginnings, files_of
from bulk.errors import ManifestError
from bulk.manifest.reading import Overrides, read_manifest

NAMES = operation.names()


def written(folder: Path, *names: str) -> list[Beginning]:
    """The files for these operations, in `folder`."""
    jobs = beginnings([operation.find(name) for name in names])
    for name, text in files_of(jobs).items():
        (folder / name).write_text(text)
    return jobs


def checked(folder: Path) -> Checked:
    """The check of what is there."""
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    return check(read_manifest(folder / MANIFEST, Overrides(), {}), workspace)


def cell(folder: Path, job: Beginning, column: str) -> str:
    """What the example has for a column, as it is written into a CSV file."""
    instead = file_fields(job.operation)
    if column == "sbom_file":  # stands in the place of manifest_file
        return ""
    if column in instead:
        content = job.operation.example[instead[column]]
        is_text = isinstance(content, str)
        (folder / f"{column}.data").write_bytes(base64.b64decode(content) if is_text else json.dumps(content).encode())
        return f"{column}.data"
    value: Any = job.operation.example
    for part in column.split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    return value if isinstance(value, str) else json.dumps(value)


def fill(folder: Path, job: Beginning) -> None:
    """Write the example into the items file of a job."""
    text = io.StringIO()
    csv.writer(text).writerow([cell(folder, job, field.name) for field in job.columns])
    with (folder / job.file).open("a") as file:
        file.write(text.getvalue())


def test_there_are_45_operations():
    """All of them are tried below."""
    assert len(NAMES) == 45


@pytest.mark.parametrize("name", NAMES)
def test_each_operation_can_be_begun(name, tmp_path):
    """Not filled in, only items are missing; filled with the example, it passes."""
    (job,) = written(tmp_path, name)
    if not job.columns:
        assert not job.operation.example
        assert checked(tmp_path).jobs[0].items == 1
        return
    with pytest.raises(ManifestError) as caught:
        checked(tmp_path)
    assert [flaw.message.partition(":")[0] for flaw in caught.value.flaws] == ["holds a header and no items"]
    fill(tmp_path, job)
    assert checked(tmp_path).jobs[0].items == 1


def test_all_at_once(tmp_path):
    """One manifest holds a job for each, two of one operation too; comments name every column and every other field."""
    jobs = written(tmp_path, *NAMES, "readme.get")
    assert [job.name for job in jobs[-1:]] == ["readme-get-2"]
    text = (tmp_path / MANIFEST).read_text()
    for job in jobs:
        for field in job.columns:
            assert f"\n    #   {field.name} " in text
        assert all(name in text for name in job.more)
    assert "This can't be undone." in text
    assert max(map(len, text.splitlines())) <= 120
