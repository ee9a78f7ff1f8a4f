"""`limits.hours` in a real run: it leaves to others what the hour says, from its first request on."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from bulk.clock import Clock
from tests.e2e.support.judging import Line
from tests.e2e.support.platform import Home, served

FLEET = {"organization": "acme-fleet", "count": 100, "readme_bytes": 100}
LIMIT = 40


def least_left(lines: Iterable[Line]) -> int:
    """What remained when the most of a window was used (count)."""
    return min(int(line["remaining"]) for line in lines if line["category"] == "core")


def test_a_run_leaves_to_others_what_the_hour_says(tmp_path: Path) -> None:
    """Half of each window, though `reserve` is nothing; `--reserve` beats the hours."""
    home = Home(tmp_path / "home")
    home.folder.mkdir()
    home.lines("repos.jsonl", [{"owner": "acme-fleet", "repo": f"repo-{n:05d}"} for n in range(50)])
    first, behind = (f"{datetime.fromtimestamp(Clock.now() + seconds, UTC):%H:%M}" for seconds in (-3_600, 3_600))
    limits = {"pace": "burst", "hours": {f"{first}-{behind} UTC": {"reserve": "50%"}}}
    jobs = {"readmes": {"operation": "readme.get", "items": "repos.jsonl"}}
    seed = {"repositories": FLEET}
    with served(tmp_path / "sandbox", "--rate-limit", f"core={LIMIT}/2", seed=seed) as sandbox:
        home.manifest(sandbox.base_url, jobs, limits=limits)
        quiet = ("--no-cache", "--progress", "none")
        assert home.run("run", "manifest.yaml", *quiet, "--run-dir", "run").exit_code == 0
        assert least_left(sandbox.requests()) == LIMIT // 2
        assert home.run("run", "manifest.yaml", *quiet, "--run-dir", "again", "--reserve", "0").exit_code == 0
        assert least_left(sandbox.requests()) == 0
