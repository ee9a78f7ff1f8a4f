"""A run that is left while its items are checked has written its last when the caller goes on."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

import bulk

COUNT = 60_000
"""Items: their check takes long enough for the caller to leave within (count)."""


def reads() -> Iterator[dict[str, str]]:
    """`COUNT` READMEs."""
    return ({"owner": "acme-fleet", "repo": f"repo-{number:05d}"} for number in range(COUNT))


def broken(status: bulk.RunStatus) -> None:
    """Leave as soon as the check tells of itself."""
    raise LookupError(f"the caller leaves while {status.state}")


def written(folder: Path) -> dict[str, int]:
    """Every file of a folder with when it was written."""
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_nothing_is_written_afterwards(tmp_path: Path) -> None:
    """No platform is asked: the run is left before. Nothing in its directory changes any more."""
    with pytest.raises(LookupError, match="while checking"):
        list(
            bulk.map(
                "readme.get",
                reads(),
                run_dir=tmp_path / "run",
                progress=broken,
                base_url="http://127.0.0.1:9/api/v3",
                environ={"BULK_TOKEN": "t"},
            )
        )
    before = written(tmp_path)
    anyio.run(anyio.sleep, 0.5)
    assert written(tmp_path) == before
