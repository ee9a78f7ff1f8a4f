"""`bulk run` under kill -9: whatever the moment, the same command goes on, and nothing is lost or done twice."""

from pathlib import Path

import pytest

from tests.crash import points
from tests.crash.campaign import RUN, Killed, campaign
from tests.crash.launcher import KILLED, Launcher
from tests.crash.work import Work
from tests.e2e.support.platform import Home, served

SEED = 20261121
WORK = Work(files=340, organizations=50, snapshots=110, refused=10)
"""500 writes with an effect, for 50 kills: files enough that some are left to be saved before the last of these."""
CAMPAIGNS = 20
"""Of the soak: 1,000 kills over 10,000 writes."""


def told(killed: Killed) -> str:
    """A line for people."""
    at_random = killed.at["at random"]
    return (
        f"{killed.kills} kills, {at_random} at random, the others at {len(killed.at) - 1} named points; "
        f"0 of 500 writes lost, 0 doubled, 0 of 510 items misreported; {killed.requests:,} requests, "
        f"{killed.lost:,} answers lost, {killed.refused:,} were 502, {killed.took_s:.0f} s"
    )


@pytest.mark.interpreted
def test_fifty_kills_lose_nothing_and_double_nothing(tmp_path: Path, figure) -> None:
    """50 kills at every named point and at random, 10% of the answers lost, 5% are 502 after the effect: every effect
    exactly once, every item reported as it is, no file left half-written (failures.md rows 42, 43)."""
    killed = campaign(tmp_path, SEED, WORK)
    figure(f"seed {SEED}: {told(killed)}")
    assert set(killed.at) == {*points.EVERY, "at random"}
    assert killed.kills == 50


@pytest.mark.interpreted
@pytest.mark.parametrize("point", ["outcome durable", "epoch ended"])
def test_after_a_kill_at_the_very_end_a_resume_writes_the_last_files(tmp_path: Path, point: str) -> None:
    """failures.md row 42: the ledger has every outcome, and neither reports nor digests of its files are there: a
    resume makes them, sends nothing more, not even the question for limits, and from then on edits are found."""
    home, run_dir = Home(tmp_path), tmp_path / "run"
    with served(tmp_path / "sandbox") as sandbox, Launcher(home) as launcher:
        items = [{"owner": "acme-eng", "repo": "hello-world"}]
        home.manifest(sandbox.base_url, {"reads": {"operation": "readme.get", "items": items}})
        assert launcher.run(*RUN, point=point, nth=1) == KILLED
        assert not {"digests.json", "report.html"} & {path.name for path in run_dir.iterdir()}
        sent = len(sandbox.journal())
        assert launcher.run("resume", "run", "--progress", "none") == 0
        assert len(sandbox.journal()) == sent
        read = [line for line in sandbox.requests() if line["path"].endswith("/readme")]
        assert len(read) == 1
        assert {"digests.json", "report.html"} <= {path.name for path in run_dir.iterdir()}
        assert launcher.run("verify", "run") == 0
        (run_dir / "report.html").write_text("edited")
        assert launcher.run("verify", "run") == 5


@pytest.mark.soak
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("number", range(CAMPAIGNS))
def test_a_thousand_kills(number: int, tmp_path: Path, figure) -> None:
    """One of 20 campaigns, which together are 1,000 kills over 10,000 writes (failures.md rows 42, 43)."""
    killed = campaign(tmp_path, SEED + number, WORK)
    figure(f"seed {SEED + number}: {told(killed)}")
    assert killed.kills == 50
