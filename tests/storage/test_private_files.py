"""A file of the run directory is there as a whole or not at all (failures.md row 49)."""

from pathlib import Path

import pytest

from bulk.storage.private_files import replacing


def test_a_file_takes_its_place_when_it_is_whole(tmp_path: Path) -> None:
    """What was there stays until the block ends; what a killed process left goes; the new file is its owner's alone."""
    path, left = tmp_path / "report.json", tmp_path / "report.json.part"
    path.write_bytes(b"old")
    left.write_bytes(b"torn by a killed process")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_block_that_fails_changes_nothing(tmp_path: Path) -> None:
    """An error within the block leaves the old file, and nothing half-written beside it."""
    path = tmp_path / "report.json"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), replacing(path) as file:
        file.writelines([b"new", "no bytes"])  # type: ignore[list-item]
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
