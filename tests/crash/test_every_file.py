"""A run that is killed right before it touches a file, whichever: the same command brings it to its end."""

import base64
from collections.abc import Iterable
from itertools import count
from pathlib import Path

import pytest

from tests.crash import points
from tests.crash.launcher import KILLED, Launcher
from tests.e2e.judging import effects
from tests.e2e.platform import Home, Served, served

OWNER, REPO = "acme-eng", "hello-world"
MOST = 1_000


@pytest.mark.timeout(120)
def test_a_run_killed_at_some_files(tmp_path: Path, figure) -> None:
    """Every ninth file that a run touches, from its start to its report (failures.md rows 42, 43)."""
    _kill_at_each(tmp_path, figure, range(1, MOST, 9))


@pytest.mark.soak
@pytest.mark.timeout(1_200)
def test_a_run_killed_at_every_file(tmp_path: Path, figure) -> None:
    """Every file that a run touches, from its start to its report (failures.md rows 42, 43)."""
    _kill_at_each(tmp_path, figure, count(1))


def _kill_at_each(folder: Path, figure, moments: Iterable[int]) -> None:
    home, kills = Home(folder), 0
    with served(folder / "sandbox", "--rate-limit", "off") as sandbox, Launcher(home) as launcher:
        for nth in moments:
            _prepare(home, sandbox, nth)
            command = ("run", "manifest.yaml", "--run-dir", f"run-{nth}", "--progress", "none")
            exit_code = launcher.run(*command, point=points.FILE_TOUCHED, nth=nth)
            if exit_code == 0:
                break
            assert exit_code == KILLED, (nth, exit_code, (folder / "output.txt").read_text())
            kills += 1
            assert launcher.run(*command) == 0, (nth, (folder / "output.txt").read_text())
            assert len(effects(sandbox.journal())) == 2 * kills, (
                f"killed before file {nth}: {effects(sandbox.journal())[-3:]}"
            )
        else:
            raise AssertionError(f"a run touches more than {MOST} files")
    assert kills > 5
    figure(f"killed {kills} times right before a file was touched: 0 refused, 0 lost, 0 doubled")


def _prepare(home: Home, sandbox: Served, nth: int) -> None:
    """Items of each kind of source: CSV (kept again as lines), lines with equal reads (their copies), inline."""
    content = base64.b64encode(b"%d" % nth).decode()
    home.write("puts.csv", f"owner,repo,path,message,content\n{OWNER},{REPO},a.txt,Put,{content}\n")
    home.lines("reads.jsonl", [{"owner": OWNER, "repo": REPO}] * 2)
    inline = {"owner": OWNER, "repo": REPO, "path": "b.txt", "message": "Put", "content": content}
    jobs = {
        "puts": {"operation": "contents.put", "items": "puts.csv"},
        "reads": {"operation": "readme.get", "items": "reads.jsonl"},
        "more": {"operation": "contents.put", "items": [inline], "save": "{path}.json"},
    }
    home.manifest(sandbox.base_url, jobs)
