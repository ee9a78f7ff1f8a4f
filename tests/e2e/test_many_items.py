"""Memory and time of manifests of any size: bounded by what is in flight, never by the number of items."""

from pathlib import Path

import pytest

from tests.e2e.support.measured import Measured, measure
from tests.e2e.support.platform import BULK, Home
from tests.e2e.support.programs import canned

MANY, VERY_MANY = 25_000, 1_000_000
FULL_MB = 90.0
"""What fills up once, caches and what may wait for a slow disk, is full with many items: 61 to 68 MB were measured."""
GROWTH_MB = 20.0
PEAK_MB = 200.0
CHECKED, CHECKED_PER_S = 150_000, 50_000


def written(home: Home, base_url: str, count: int) -> str:
    """A manifest of `count` READMEs, and its items file: its name."""
    with (home.folder / f"{count}.jsonl").open("w") as file:
        file.writelines(f'{{"owner":"acme-fleet","repo":"repo-{number:08}"}}\n' for number in range(count))
    job = {"operation": "readme.get", "items": f"{count}.jsonl"}
    return home.manifest(base_url, {"readmes": job}, name=f"{count}.yaml").name


def run(home: Home, base_url: str, count: int, *options: str) -> Measured:
    """Run `count` READMEs against the canned platform."""
    name, run_dir = written(home, base_url, count), f"run-{count}"
    command = [*BULK, "run", name, "--run-dir", run_dir, "--progress", "none", *options]
    found = measure(command, home.folder, home.environment())
    assert found.exit_code == 0, found.err
    with (home.folder / run_dir / "results.jsonl").open("rb") as results:
        assert sum(1 for _ in results) == count
    return found


def compare(tmp_path: Path, few: int, many: int, figure, *options: str) -> tuple[Measured, Measured]:
    """Run both sizes."""
    home = Home(tmp_path)
    with canned() as base_url:
        small, large = run(home, base_url, few, *options), run(home, base_url, many, *options)
    figure(
        f"peak memory {small.peak_mb:.0f} MB for {few:,} items, {large.peak_mb:.0f} MB for {many:,}; "
        f"{many / large.took_s:,.0f} items/s"
    )
    return small, large


def test_memory_does_not_grow_with_the_items(tmp_path: Path, figure) -> None:
    """The peak memory of a run with 25,000 READMEs is that of a small one, and its caches (failures.md row 53)."""
    with canned() as base_url:
        found = run(Home(tmp_path), base_url, MANY, "--no-cache")
    figure(f"peak memory {found.peak_mb:.0f} MB for {MANY:,} items; {MANY / found.took_s:,.0f} items/s")
    assert found.peak_mb < FULL_MB


@pytest.mark.soak
def test_a_million_items(tmp_path: Path, figure) -> None:
    """1,000,000 READMEs with a cache: below 200 MB, and no more than for 25,000 but the bits of the items."""
    small, large = compare(tmp_path, MANY, VERY_MANY, figure)
    assert large.peak_mb < PEAK_MB
    assert large.peak_mb - small.peak_mb < GROWTH_MB


def test_checking_is_fast(tmp_path: Path, figure) -> None:
    """`bulk check` reads and checks more than 50,000 items in a second of processor time, its start included."""
    home = Home(tmp_path)
    name = written(home, "http://127.0.0.1:9/api/v3", CHECKED)
    found = measure([*BULK, "check", name], home.folder, home.environment())
    figure(
        f"{CHECKED:,} items checked in {found.used_s:.2f} s: {CHECKED / found.used_s:,.0f}/s, {found.peak_mb:.0f} MB"
    )
    assert found.exit_code == 0, found.err
    assert CHECKED / found.used_s > CHECKED_PER_S
    assert found.peak_mb < PEAK_MB
