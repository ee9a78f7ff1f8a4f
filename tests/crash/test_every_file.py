"""A run that is killed right before it touches a file, whichever: the same command brings it to its end."""

import base64
from collections.abc import Iterable
from itertools import count
from pathlib import Path

import pytest

from tests.crash import points
from tests.crash.launcher import KILLED, Launcher
from tests.e2e.support.judging import effects
from tests.e2e.support.platform import Home, Served, served

OWNER, REPO = "acme-eng", "hello-world"
MOST = 1_000


def test_a_run_killed_at_some_files(tmp_path: Path, figure) -> None:
    """Every ninth file that a run touches, from its start to its report (failures.md rows 42, 43)."""
    _kill_at_each(tmp_path, figure, range(1, MOST, 9), is_retry=False)


@pytest.mark.soak
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("is_retry", [False, True], ids=["run", "retry"])
def test_a_run_killed_at_every_file(tmp_path: Path, figure, is_retry: bool) -> None:
    """Every file that a run touches, or a retry, from its start to its report (failures.md rows 42, 43)."""
    _kill_at_each(tmp_path, figure, count(1), is_retry=is_retry)


def _kill_at_each(folder: Path, figure, moments: Iterable[int], *, is_retry: bool) -> None:
    home, kills, at_end = Home(folder), 0, 1 if is_retry else 0
    with served(folder / "sandbox", "--rate-limit", "off") as sandbox, Launcher(home) as launcher:
        for nth in moments:
            items = _prepare(home, sandbox, nth, fails=is_retry)
            run = ("run", "manifest.yaml", "--run-dir", f"run-{nth}", "--progress", "none")
            command = ("retry", f"run-{nth}", "--progress", "none") if is_retry else run
            if is_retry:
                assert launcher.run(*run) == at_end
            exit_code = launcher.run(*command, point=points.FILE_TOUCHED, nth=nth)
            if exit_code == at_end:
                break
            said = (folder / "output.txt").read_text()
            assert exit_code == KILLED, f"file {nth}: exit {exit_code}: {said}"
            kills += 1
            exit_code = launcher.run(*command)
            said = (folder / "output.txt").read_text()
            assert exit_code == at_end, f"after file {nth}: exit {exit_code}: {said}"
            assert len((folder / f"run-{nth}" / "results.jsonl").read_text().splitlines()) == items
            done = effects(sandbox.journal())
            assert len(done) == 2 * kills, f"after file {nth}: {done[-3:]}"
        else:
            raise AssertionError(f"it touches more than {MOST} files")
    assert kills > 5
    figure(f"killed {kills} times right before a file was touched: 0 refused, 0 lost, 0 doubled")


def _prepare(home: Home, sandbox: Served, nth: int, *, fails: bool) -> int:
    """Items of each kind of source: CSV (kept again as lines), lines with equal reads (their copies), inline; how many.

    Args:
        fails: one of them does, so that there is something to retry.
    """
    content = base64.b64encode(b"%d" % nth).decode()
    home.write("puts.csv", f"owner,repo,path,message,content\n{OWNER},{REPO},a.txt,Put,{content}\n")
    reads = [{"owner": OWNER, "repo": REPO}] * 2 + [{"owner": OWNER, "repo": "no-such-repo"}] * fails
    home.lines("reads.jsonl", reads)
    inline = {"owner": OWNER, "repo": REPO, "path": "b.txt", "message": "Put", "content": content}
    jobs = {
        "puts": {"operation": "contents.put", "items": "puts.csv"},
        "reads": {"operation": "readme.get", "items": "reads.jsonl"},
        "more": {"operation": "contents.put", "items": [inline], "save": "{path}.json"},
    }
    home.manifest(sandbox.base_url, jobs)
    return len(reads) + 2
