"""`bulk rehearse` against what then really happens, and what it says of wrong words."""

import re
from pathlib import Path

import pytest

from tests.e2e.support.platform import Home, served

FLEET = {"organization": "acme-fleet", "count": 1_000, "readme_bytes": 100}


@pytest.mark.timeout(240)
def test_the_end_is_the_real_one(tmp_path: Path) -> None:
    """650 reads, 200 in 4 seconds: budgets bind, and latencies are learnt from a trial of 20; within 15%, as the
    machine has other things to do."""
    home = Home(tmp_path / "home")
    home.folder.mkdir()
    home.lines("repos.jsonl", [{"owner": "acme-fleet", "repo": f"repo-{n:05d}"} for n in range(650)])
    quiet = ("--progress", "none", "--no-cache")
    jobs = {"readmes": {"operation": "readme.get", "items": "repos.jsonl"}}
    seed = {"repositories": FLEET}
    with served(tmp_path / "trial", "--rate-limit", "off", seed=seed) as sandbox:
        home.manifest(sandbox.base_url, jobs)
        assert home.run("run", "manifest.yaml", "--limit", "20", "--run-dir", "trial", *quiet).exit_code == 0
    with served(tmp_path / "sandbox", "--rate-limit", "core=200/4", seed=seed) as sandbox:
        home.manifest(sandbox.base_url, jobs)
        sent = len(sandbox.requests())
        told = home.run("rehearse", "manifest.yaml", "--from", "trial", "--budget", "core=200/4")
        assert (told.exit_code, len(sandbox.requests())) == (0, sent), told.err
        found = re.match(r"ends after (?:([\d.]+) min )?([\d.]+) s", told.out)
        assert found, told.out
        expected = float(found[1] or 0) * 60 + float(found[2])
        assert "limit: core, 4 windows, 150 requests to spare in the last" in told.out
        assert home.run("run", "manifest.yaml", "--run-dir", "run", *quiet, timeout_s=120).exit_code == 0
        real = home.report("run")["active_s"]
        assert abs(real - expected) <= 0.15 * real, (real, expected)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--budget", "core=many"), "write CATEGORY=N/SECONDS"),
        (("--fault", "fire=1%"), "the kinds are drop-after, unavailable"),
        (("--fault", "drop-after=3"), "write KIND=SHARE"),
        (("--assume", "nothing=3"), "the manifest has no job of that name"),
        (("--from", "nowhere"), "is not a run directory"),
    ],
)
def test_wrong_words_are_named(tmp_path: Path, option: tuple[str, str], words: str) -> None:
    """With what was expected; nothing is sent."""
    home = Home(tmp_path)
    home.manifest("http://127.0.0.1:9/api/v3", {"r": {"operation": "rate-limit.get", "items": [{}]}})
    told = home.run("rehearse", "manifest.yaml", "--offline", *option)
    assert (told.exit_code in (2, 5), words in " ".join(told.err.split())) == (True, True), told.err
