"""Results of any size go to disk as they come: memory stays flat, files are whole, nothing is left behind."""

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bulk.platform.bodies.spool import ARRIVING
from tests.e2e.support.canned_files import blocks, is_whole
from tests.e2e.support.measured import Measured, measure
from tests.e2e.support.platform import BULK, Home, wait_for
from tests.e2e.support.programs import canned_files

MB = 1_000_000
SMALL = 1_000
PEAK_MB = 140.0
"""Half of what the files of the short test hold together; a run of small ones takes about 57."""
GIVEN_BACK_MB = 200.0
"""139 to 149 were measured; 231 to 298 where the allocator keeps what was freed."""
GROWTH_MB = 160.0
"""Room for 16 MB of bodies, what 64 connections and the files that are being written have in their hands, and what the
allocator does not give back."""


def manifest(home: Home, base_url: str, sizes: Sequence[int], **job: Any) -> None:
    """A job that reads files of these sizes (bytes)."""
    items = [{"owner": "acme", "repo": "api", "path": f"{size}/{number}"} for number, size in enumerate(sizes)]
    home.manifest(base_url, {"files": {"operation": "contents.get", "items": items, **job}})


def run(folder: Path, sizes: Sequence[int], *options: str, saves: bool = True, media: str = "raw") -> Measured:
    """Read files of these sizes, each with 64 in flight, and check what is on disk afterwards."""
    folder.mkdir()
    home = Home(folder)
    with canned_files(*options) as base_url:
        manifest(home, base_url, sizes, **{"with": {"media_type": media}}, **({"save": "{path}"} if saves else {}))
        command = [*BULK, "run", "manifest.yaml", "--run-dir", "run", "--progress", "none"]
        found = measure(command, folder, home.environment())
    assert found.exit_code == 0, found.err
    check(home, sizes, saves)
    # what the platform sent is random, and half a gigabyte of it would be searched for secrets when the session ends
    shutil.rmtree(folder / "cache")
    return found


def check(home: Home, sizes: Sequence[int], saves: bool = True) -> None:
    """Every result says what its file holds, every file is whole, and nothing else is there."""
    lines = {line["index"]: line for line in home.results("run")}
    assert sorted(lines) == list(range(len(sizes)))
    for number, size in enumerate(sizes):
        result = lines[number]["result"]
        assert result["size"] == size
        if "sha256" in result:
            digest = hashlib.sha256()
            for block in blocks(number, size):
                digest.update(block)
            assert result["sha256"] == digest.hexdigest()
    run_dir = home.folder / "run"
    assert not (run_dir / ARRIVING).exists()
    if saves:
        saved = [path for path in (run_dir / "saved").rglob("*") if path.is_file()]
        assert len(saved) == len(sizes)
        assert all(path.stat().st_mode & 0o777 == 0o600 for path in saved)
        for number, size in enumerate(sizes):
            path = run_dir / "saved" / f"{size}/{number}"
            assert is_whole(path, number, size)
            path.unlink()  # nothing is left of it in which secrets would have to be looked for
    else:
        assert not (run_dir / "saved").exists()


def test_memory_does_not_grow_with_the_size_of_files(tmp_path: Path, figure) -> None:
    """30 saved files of 9 MB, all in flight at once, never are in memory together, and arrive as they are."""
    large = run(tmp_path / "large", [9 * MB] * 30)
    figure(f"30 saved files of 9 MB, 270 MB together: peak memory {large.peak_mb:.0f} MB")
    assert large.peak_mb < PEAK_MB


def test_memory_is_given_back_after_answers_that_fit_into_it(tmp_path: Path, figure) -> None:
    """60 saved files of 8 MB, a few of them in memory at a time: what is free again does not stay the process's."""
    large = run(tmp_path / "large", [8 * MB] * 60)
    figure(f"60 saved files of 8 MB, 480 MB together: peak memory {large.peak_mb:.0f} MB")
    assert large.peak_mb < GIVEN_BACK_MB


@pytest.mark.soak
@pytest.mark.parametrize("size", [2 * MB, 8 * MB, 9 * MB])
def test_memory_with_large_files(tmp_path: Path, figure, size) -> None:
    """200 saved files of a few MB take little more memory than 200 of 1 kB, by way of a file or not."""
    small, large = run(tmp_path / "small", [SMALL] * 200), run(tmp_path / "large", [size] * 200)
    figure(f"200 files of 1 kB: peak {small.peak_mb:.0f} MB; of {size:,} bytes: {large.peak_mb:.0f} MB")
    assert large.peak_mb - small.peak_mb < GROWTH_MB


@pytest.mark.soak
@pytest.mark.parametrize("options", [(), ("--chunked", "--break-first"), ("--gzip",)])
@pytest.mark.parametrize("saves", [True, False])
def test_memory_with_very_large_files(tmp_path: Path, figure, options, saves) -> None:
    """60 files of 50 to 100 MB, saved or not, whole or broken off at first, take no more memory than small ones do."""
    sizes = [50 * MB + number * 800_000 for number in range(60)]
    small = run(tmp_path / "small", [SMALL] * 60, saves=saves)
    large = run(tmp_path / "large", sizes, *options, saves=saves)
    figure(f"{options} {'saved' if saves else 'not saved'}: peak {small.peak_mb:.0f} MB, {large.peak_mb:.0f} MB")
    assert large.peak_mb - small.peak_mb < GROWTH_MB


@pytest.mark.soak
def test_memory_with_long_json(tmp_path: Path, figure) -> None:
    """500 files of 1 MB as JSON, saved, take a few times the room for bodies."""
    found = run(tmp_path / "large", [MB] * 500, media="json")
    figure(f"500 JSON answers of 1.3 MB: peak {found.peak_mb:.0f} MB")
    assert found.peak_mb < 200.0


def test_a_kill_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    """Killed while large files arrive, a run is resumed to whole files, and no part of one stays behind (failures.md
    row 42)."""
    home, sizes = Home(tmp_path), [12 * MB] * 8
    arriving = tmp_path / "run" / ARRIVING
    with canned_files() as base_url:
        manifest(home, base_url, sizes, save="{path}", **{"with": {"media_type": "raw"}})
        command = ("run", "manifest.yaml", "--run-dir", "run", "--progress", "none")
        with home.running(*command) as process:
            wait_for(lambda: arriving.exists() and len(list(arriving.iterdir())) > 2, process)
            process.kill()
            process.communicate()
        assert list(arriving.iterdir()), "killed in the middle"
        ended = home.run(*command)
    assert ended.exit_code == 0, ended.err
    check(home, sizes)


@pytest.mark.soak
def test_a_file_that_broke_off_is_read_again(tmp_path: Path, figure) -> None:
    """A large answer that ends early, of unknown length too, never becomes a file; what comes the next time does."""
    found = run(tmp_path / "broken", [9 * MB] * 3, "--chunked", "--break-first")
    figure(f"3 broken answers of 9 MB: peak {found.peak_mb:.0f} MB")


@pytest.mark.soak
def test_a_full_disk_while_a_file_arrives_stops_the_run(tmp_path: Path) -> None:
    """When a large answer finds no room on the disk, the run stops and can go on; it is not the platform's fault."""
    home, sizes = Home(tmp_path), [SMALL, 9 * MB]
    with canned_files() as base_url:
        manifest(home, base_url, sizes, save="{path}", **{"with": {"media_type": "raw"}})
        command = [*BULK, "run", "manifest.yaml", "--run-dir", "run", "--progress", "none"]
        stopped = home.run_any(["bash", "-c", 'ulimit -f 4000; exec "$@"', "bash", *command])
        assert stopped.exit_code == 3, stopped.err
        assert "File too large" in stopped.out
        assert not (tmp_path / "run" / ARRIVING).exists()
        assert home.run_any(command).exit_code == 0
    check(home, sizes)
    assert json.loads((tmp_path / "run" / "report.json").read_text())["exit_code"] == 0
