"""A manifest is read once, because a large one takes seconds."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bulk
from bulk.cli import main
from bulk.items.yaml_text import read_document
from bulk.manifest import reading
from tests.e2e.support.platform import ADMIN, Home, served

JOBS = {"a": {"operation": "readme.get", "items": [{"owner": "acme-eng", "repo": "hello-world"}]}}
QUIET = ("--progress", "none", "--no-cache")
WAYS: dict[str, Callable[[], Any]] = {
    "run": lambda: main(["run", "manifest.yaml", *QUIET]),
    "run in a folder": lambda: main(["run", "manifest.yaml", "--run-dir", "run", *QUIET]),
    "workers": lambda: main(["run", "manifest.yaml", "--workers", "1", *QUIET[:2]]),
    "workers in a folder": lambda: main(["run", "manifest.yaml", "--workers", "1", "--run-dir", "run", *QUIET[:2]]),
    "audit": lambda: main(["audit", "manifest.yaml", *QUIET]),
    "library": lambda: bulk.run("manifest.yaml", environ=dict(os.environ)).exit_code,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_manifest_is_read_once(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the name in it is needed for the folder of the run or not."""
    read, times = read_document, list[int]()

    def counted(*arguments: Any) -> Any:
        times.append(1)
        return read(*arguments)

    home = Home(tmp_path)
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        home.manifest(sandbox.base_url, JOBS, name="manifest.yaml")
        monkeypatch.setattr(reading, "read_document", counted)
        monkeypatch.setenv("BULK_TOKEN", ADMIN)
        monkeypatch.setenv("BULK_BASE_URL", sandbox.base_url)
        monkeypatch.chdir(tmp_path)
        assert WAYS[way]() == 0
    assert len(times) == 1
