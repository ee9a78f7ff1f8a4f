"""Items that meet others of their run: superseded ones, and items made from another job's results."""

from collections import Counter
from pathlib import Path
from typing import Any

from tests.e2e.platform import Home, served

FLEET = {"organization": "acme-fleet", "count": 40, "readme_bytes": 100}
COMMAND = ("run", "manifest.yaml", "--run-dir", "run")
SNAPSHOT = {
    "version": 0,
    "ref": "refs/heads/main",
    "sha": "0" * 39 + "1",
    "detector": {"name": "d", "version": "1", "url": "https://example.com/d"},
    "owner": "acme-fleet",
}


def snapshots(rounds: int, repositories: int) -> list[dict[str, Any]]:
    """So many snapshots of each of so many repositories, round after round."""
    return [
        {
            "repo": f"repo-{number:05d}",
            "job": {"id": str(turn), "correlator": "build"},
            "scanned": f"2026-11-21T08:{turn:02}:00Z",
        }
        for turn in range(rounds)
        for number in range(repositories)
    ]


def test_superseded_snapshots_are_not_sent(tmp_path: Path) -> None:
    """Of each lane the last snapshot is sent, the others are `skipped` as `superseded`, and the run is a success."""
    home = Home(tmp_path)
    home.lines("items.jsonl", snapshots(5, 40))
    jobs = {"snapshots": {"operation": "snapshot.create", "items": "items.jsonl", "with": SNAPSHOT}}
    with served(tmp_path / "sandbox", seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, jobs)
        planned = home.run("plan", "manifest.yaml")
        assert "160 items are superseded by a later one" in " ".join(planned.out.split()), planned.out
        cut = home.run(*COMMAND, "--limit", "60")
        ran = home.run(*COMMAND)
        sent = sandbox.requests()
        again = home.run("retry", "run")
        assert (cut.exit_code, ran.exit_code, again.exit_code) == (0, 0, 0), cut.err + ran.err + again.err
        assert len(sandbox.requests()) == len(sent)
    lines = home.results("run")
    assert Counter(line["index"] for line in lines) == Counter(range(200))
    cut_sent = set(range(20, 60))
    for line in lines:
        is_sent = line["index"] >= 160 or line["index"] in cut_sent
        assert line["outcome"] == ("succeeded" if is_sent else "skipped"), line
        assert line["attempts"] == (1 if is_sent else 0)
        if not is_sent:
            assert line["error"]["code"] == "superseded"
    assert len(sent) == 80
