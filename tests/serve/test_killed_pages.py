"""The page is killed again and again while it pauses, sets and resumes: the run never minds."""

import contextlib
import http.client
import random
import threading
from pathlib import Path

import pytest

from bulk.control import client
from bulk.serve.server import Served
from tests.e2e.support.judging import effects
from tests.e2e.support.platform import Home, served, wait_for
from tests.serve.conftest import Asker
from tests.serve.test_steering import FLEET

ITEMS, KILLS = 200, 50
VERBS: tuple[tuple[str, dict[str, str]], ...] = (
    ("pause", {}),
    ("set", {"concurrency": "2"}),
    ("resume", {}),
    ("set", {"concurrency": "4"}),
)


@pytest.mark.soak
@pytest.mark.timeout(580)
def test_a_page_that_is_killed_harms_no_run(tmp_path: Path) -> None:
    """Fifty servers are killed, each at a random moment around a change that it was told: what the run says is always
    one of the states that were asked for, it ends complete when it is resumed, and every effect is there once.
    """
    home, dice = Home(tmp_path), random.Random(11)
    items = [{"owner": "acme-fleet", "repo": f"repo-{n:05d}", "path": "x.txt"} for n in range(ITEMS)]
    writes = {"operation": "contents.put", "with": {"message": "Add", "content": "QQ=="}, "items": items}
    with served(tmp_path / "sandbox", "--latency", "150", seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, {"files": writes}, limits={"concurrency": 4, "settle": "1s"})
        with home.running("run", "manifest.yaml", "--run-dir", "run") as process:
            wait_for((tmp_path / "run" / "control.sock").exists, process)
            wait_for(lambda: client.ask(tmp_path / "run", "status", who="test").state == "running", process)
            client.ask(tmp_path / "run", "pause", {}, who="test")
            for turn in range(KILLS):
                if turn == KILLS // 2:
                    client.ask(tmp_path / "run", "resume", {}, who="test")
                verb, args = VERBS[turn % len(VERBS)]
                with home.running("serve", "--runs", ".", "--port", "0") as page:
                    assert page.stdout is not None
                    url, _, key = page.stdout.readline().strip().partition("/#key=")
                    killer = threading.Timer(dice.uniform(0.0, 0.05), page.kill)
                    killer.start()
                    with contextlib.suppress(OSError, http.client.HTTPException):  # it was cut off
                        Asker(Served(url, key, "")).post(f"/runs/run/{verb}", args)
                    killer.join()
                    page.wait(60)
                if process.poll() is not None:
                    break
                answer = client.ask(tmp_path / "run", "status", who="test")
                assert answer.state in ("running", "pausing", "paused")
                assert answer.in_force["concurrency"] in (2, 4)
            if process.poll() is None:
                client.ask(tmp_path / "run", "resume", {}, who="test")
            assert process.wait(120) == 0
        made = effects(sandbox.requests())
        assert len(made) == len(set(made)) == ITEMS
    done = home.report("run")["actions"]
    assert {each["verb"] for each in done} == {"pause", "set", "resume"}
