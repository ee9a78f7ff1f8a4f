"""Waves of a run that several workers share: none begins before the last is judged, and a mistake stays within one."""

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from bulk.quantities import Share, share
from bulk.schedule.waves import Waves
from tests.cluster.cluster import Cluster
from tests.e2e.migrations.test_waves import FLEET, items, manifest, puts, said
from tests.e2e.support.platform import Home, served
from tests.serve.conftest import asking
from tests.store.places import comes_true

RUN = ("run", "manifest.yaml", "--progress", "none", "--yes", "--run-dir")
SLOW = ("--rate-limit", "off", "--latency", "30")


@contextmanager
def in_waves(store: str, folder: Path, count: int, wrong: set[int], *faults: str, **limits: Any) -> Iterator[Cluster]:
    """A sandbox and a manifest of that many files; no worker yet."""
    with ExitStack() as stack:
        sandbox = stack.enter_context(served(folder / "sandbox", *faults, seed={"repositories": FLEET}))
        home = Home(folder / "home")
        limits = {"request_timeout": "2s", "concurrency": 8, **limits}
        manifest(home, sandbox, count, wrong, **limits)
        yield Cluster(store, store, home, sandbox, stack)


def status(made: Cluster, name: str) -> dict[str, Any]:
    """What `bulk status` says of the run."""
    found: dict[str, Any] = json.loads(made.home.run("status", name, "--store", made.store, "--json").out)
    return found


def newest(made: Cluster) -> str:
    """The name of the run that was submitted last."""
    listed: list[dict[str, str]] = json.loads(made.home.run("runs", "--store", made.store, "--json").out)
    return listed[0]["run_dir"]


def effects_in_order(made: Cluster) -> list[int]:
    """Which files came to be, in order, whatever answer was lost."""
    lines = [line for line in made.sandbox.journal() if line["method"] == "PUT" and line["effect"] is not None]
    return [int(line["path"].rpartition("/f")[2].partition(".")[0]) for line in lines]


def keeps_to(ends: list[int], written: list[int]) -> bool:
    """Whether everything of a wave was written before anything of the next one, and once."""
    spans = [[number for number in written if first <= number < end] for first, end in itertools.pairwise([0, *ends])]
    return list(itertools.chain(*spans)) == written and sorted(written) == list(range(ends[-1]))


def test_no_wave_begins_before_the_last_is_done(store_text: str, tmp_path: Path) -> None:
    """Two workers, one of which is killed in each wave while answers are lost; the items of a lane are in two waves."""
    faults = ("--fault", "drop-after=0.05", "--fault", "error-after=0.05")
    with in_waves(store_text, tmp_path, 160, set(), *SLOW, *faults, waves=[1, 21, 60]) as made:
        made.worker()
        made.worker()
        with made.home.running(*RUN, "run", "--store", store_text) as waiting:
            for wanted in (1, 12, 50, 110):
                made.wait_for_effects(wanted)
                if wanted == 1:
                    made.shorten_grace()
                made.workers[-2].kill()
                made.worker()
            out, err = waiting.communicate(timeout=240.0)
        assert waiting.returncode == 0, out + err
        assert keeps_to([1, 22, 82, 160], effects_in_order(made))
        assert len(made.home.results("run")) == 160


def test_a_gate_is_opened_by_hand(store_text: str, tmp_path: Path) -> None:
    """Nothing of the second wave is sent before it is approved, also after a resume; then workers go on at once."""
    with in_waves(store_text, tmp_path, 40, set(), "--rate-limit", "off", gate="manual", waves=[2, 10]) as made:
        made.worker()
        made.worker()
        ran = made.home.run(*RUN, "run", "--store", store_text)
        assert (ran.exit_code, sorted(puts(made.sandbox))) == (3, [0, 1]), ran.err
        assert "wave 2 of 3 of files waits to be opened" in said(ran)
        told = status(made, name := newest(made))
        assert told["next_command"] == f"bulk approve {name} --wave 2 --store {store_text}"
        assert (told["jobs"][0]["wave"], told["jobs"][0]["waves"]) == (1, 3)
        resumed = made.home.run("resume", name, "--store", store_text)
        assert (resumed.exit_code, told["next_command"] in said(resumed)) == (3, True)
        assert status(made, name)["state"] == "stopped"
        assert sorted(puts(made.sandbox)) == [0, 1]
        for wave, why in ((9, "there is no wave 9"), (1, "has passed wave 1; it waits at wave 2 of 3: bulk approve ")):
            refused = made.home.run("approve", name, "--wave", str(wave), "--store", store_text)
            assert (refused.exit_code, why in refused.err) == (2, True), refused
        assert made.home.run("approve", name, "--wave", "2", "--store", store_text).exit_code == 0
        assert comes_true(lambda: status(made, name)["state"] == "stopped" and len(puts(made.sandbox)) == 12)
        ran = made.home.run("approve", name, "--wave", "3", "--store", store_text)
        assert f"bulk watch {name} --store {store_text}" in said(ran)
        watched = made.home.run("watch", name, "--store", store_text, "--progress", "none")
        assert (watched.exit_code, keeps_to([2, 12, 40], puts(made.sandbox))) == (0, True), watched.err
        assert made.home.run("export", name, "--store", store_text, "--run-dir", "run").exit_code == 0
        assert made.home.run("verify", "run").exit_code == 0


def test_a_gate_that_opens_by_itself(store_text: str, tmp_path: Path) -> None:
    """It keeps its time though every worker is killed meanwhile, and the status says what is waited for."""
    with in_waves(store_text, tmp_path, 3, set(), "--rate-limit", "off", gate={"after": "8s"}, waves=[1]) as made:
        made.worker()
        submitted = made.home.run("submit", "manifest.yaml", "--store", store_text, "--yes")
        name = submitted.out.strip()
        assert comes_true(lambda: status(made, name)["jobs"][0]["opens_at"] is not None)
        told = made.home.run("status", name, "--store", store_text).out
        assert "wave 2 of 2 of files begins in" in told
        assert "worker" not in told, "none is missing"
        made.workers[0].kill()
        made.worker()
        watched = made.home.run("watch", name, "--store", store_text, "--progress", "none")
        assert (watched.exit_code, sorted(puts(made.sandbox))) == (0, [0, 1, 2])
        sent = [datetime.fromisoformat(line["at"]) for line in made.sandbox.journal() if line["method"] == "PUT"]
        assert (sent[1] - sent[0]).total_seconds() >= 7.5


def test_a_mistake_touches_one_item(store_text: str, tmp_path: Path) -> None:
    """A wrong value in every item: one was tried; where that is accepted, those of the second wave are."""
    with in_waves(store_text, tmp_path, 100, set(range(100)), *SLOW, waves=[1, 10], errors={"not_found": 0}) as made:
        made.worker()
        made.worker()
        ran = made.home.run(*RUN, "run", "--store", store_text)
        assert ran.exit_code == 3
        assert "wave 1 of 3 of files stopped: 1 not_found of 1 items, 0 allowed" in said(ran)
        name = newest(made)
        assert sum(status(made, name)["jobs"][0]["outcomes"].values()) == 1
        assert f"bulk resume {name} --store {store_text} --accept-wave 1" in said(ran)
        assert made.home.run("resume", name, "--store", store_text, "--accept-wave", "1").exit_code == 0
        watched = made.home.run("watch", name, "--store", store_text, "--progress", "none")
        assert (watched.exit_code, "wave 2 of 3" in said(watched)) == (3, True)
        tried = {line["path"] for line in made.sandbox.journal() if "/contents/" in line["path"]}
        assert len(tried) <= 11
        ran = made.home.run(*RUN, "run", "--store", store_text, "--accept-wave", "2", "--accept-wave", "3")
        assert ran.exit_code in (1, 6)  # whether what was about to be sent when the run stopped was sent, nobody knows
        ended = Counter(line["outcome"] for line in made.home.results("run"))
        assert (ended.total(), ended["failed"] + ended["unknown"]) == (100, 100)
        assert ended["unknown"] <= 16


def test_no_other_wave_is_accepted(store_text: str, tmp_path: Path) -> None:
    """A wave that the run does not have is refused with exit 2: nothing is submitted, and nothing of it is noted."""
    with in_waves(store_text, tmp_path, 30, set(), "--rate-limit", "off", waves=[2]) as made:
        refusals = {
            "the run has 2 at most": (*RUN, "run", "--store", store_text, "--accept-wave", "3"),
            "there is no such wave": (*RUN, "here", "--workers", "2", "--accept-wave", "9"),
        }
        for says, command in refusals.items():
            ran = made.home.run(*command)
            assert (ran.exit_code, says in ran.err) == (2, True), ran.err
        assert json.loads(made.home.run("runs", "--store", store_text, "--json").out) == []
        assert not (made.home.folder / "here").exists()
        submitted = made.home.run("submit", "manifest.yaml", "--store", store_text, "--yes")
        name = submitted.out.strip()
        ran = made.home.run("resume", name, "--store", store_text, "--accept-wave", "3")
        assert (ran.exit_code, "the run has 2 at most" in ran.err) == (2, True), ran.err
        assert made.home.run("resume", name, "--store", store_text, "--accept-wave", "2").exit_code == 0
        assert puts(made.sandbox) == []


def test_workers_of_this_machine_go_in_waves(tmp_path: Path) -> None:
    """`bulk run --workers` ends at a closed gate, `bulk approve RUN` opens it, and the same command goes on."""
    with in_waves("", tmp_path, 30, set(), "--rate-limit", "off", gate="manual", waves=[2]) as made:
        command = (*RUN, "run", "--workers", "2")
        ran = made.home.run(*command)
        assert (ran.exit_code, sorted(puts(made.sandbox))) == (3, [0, 1]), ran.err
        assert "bulk approve run --wave 2" in said(ran)
        for command_of_one in ("status", "resume"):
            ran = made.home.run(command_of_one, "run")
            assert (ran.exit_code, "bulk status run --store run.store" in said(ran)) == (5, True), ran.err
        told = made.home.run("status", "run", "--store", "run.store")
        assert "bulk approve run --wave 2 --store run.store" in said(told)
        assert made.home.run("approve", "run", "--wave", "2").exit_code == 0
        ran = made.home.run(*command)
        assert (ran.exit_code, keeps_to([2, 30], puts(made.sandbox))) == (0, True), ran.err


def test_the_page_opens_and_accepts_waves(store_text: str, tmp_path: Path) -> None:
    """A run in a store has its gate on the page; it goes on with a wave that is opened or accepted there, no other."""
    limits = {"gate": "manual", "waves": [2], "errors": {"not_found": 0}}
    with (
        in_waves(store_text, tmp_path, 80, {5}, *SLOW, **limits) as made,  # work is left when the budget is exceeded
        asking(tmp_path, cache=tmp_path / "cache", store=store_text) as asker,
    ):
        made.worker()
        assert made.home.run(*RUN, "run", "--store", store_text).exit_code == 3
        run = f"/runs/store:{newest(made)}"
        assert asker.get(run).data["gate"] == {"wave": 2, "of": 2, "job": "files", "is_over": False}
        assert asker.post(f"{run}/gate", {"wave": 1}).status == 409
        resumed = asker.post(f"{run}/resume", {})
        assert (resumed.status, "waits to be opened" in str(resumed.data)) == (409, True)
        assert asker.post(f"{run}/gate", {"wave": 2}).data["state"] == "running"
        assert comes_true(lambda: (asker.get(run).data["gate"] or {}).get("is_over", False))
        assert asker.post(f"{run}/gate", {"wave": 2}).data["state"] == "running"
        assert comes_true(lambda: asker.get(run).data["run"]["state"] == "complete")
        done = [(each["verb"], each["args"]) for each in asker.get(run).data["actions"]]
        assert done == [("approve", {"wave": 2}), ("approve", {"accepted": [2]})]


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", range(20))
def test_workers_are_killed_again_and_again(store_text: str, tmp_path: Path, seed: int) -> None:
    """Two jobs over the same repositories, workers killed at random moments, one or both at once: of each job every
    wave is done before the next one begins, of each repository the first job before the second, each file once.
    """
    dice, faults = random.Random(seed), ("--fault", "drop-after=0.05", "--fault", "error-after=0.05")
    choices: list[list[Any]] = [[1, 30], [3, "50%"], [2, 5, 20]]
    sizes = choices[seed % 3]
    with in_waves(store_text, tmp_path, 100, set(), *SLOW, *faults, waves=sizes) as made:
        made.home.lines("second.jsonl", [{**item, "path": f"s{item['path']}"} for item in items(60, set())])
        given = json.loads((made.home.folder / "manifest.yaml").read_text())
        given["jobs"]["second"] = {"operation": "contents.put", "items": "second.jsonl"}
        made.home.write("manifest.yaml", json.dumps(given))
        made.worker()
        made.worker()
        with made.home.running(*RUN, "run", "--store", store_text) as waiting:
            for place, wanted in enumerate(sorted(dice.sample(range(1, 140), 5))):
                made.wait_for_effects(wanted, seconds=90.0)
                if not place:
                    made.shorten_grace()
                alive = [worker for worker in made.workers if worker.poll() is None]
                for victim in alive if place == 3 else [dice.choice(alive)]:
                    victim.kill()
                    made.worker()
            out, err = waiting.communicate(timeout=240.0)
        assert waiting.returncode == 0, out + err
        lines = [line for line in made.sandbox.journal() if line["method"] == "PUT" and line["effect"] is not None]
        names = [line["path"].rpartition("/")[2].partition(".")[0] for line in lines]
        first, second = ([int(each[len(mark) :]) for each in names if each.startswith(mark)] for mark in ("f", "sf"))
        assert keeps_to([each.end for each in Waves(shares(sizes)).until(100, 100)], first)
        assert keeps_to([each.end for each in Waves(shares(sizes)).until(60, 60)], second)
        places = {each: place for place, each in enumerate(names)}
        for number in range(60):
            last = max(places[f"f{other}"] for other in range(100) if other // 4 == number // 4)
            assert last < places[f"sf{number}"]


def shares(sizes: list[Any]) -> tuple[Share, ...]:
    """Sizes of waves as a manifest has them."""
    return tuple(share(size) for size in sizes)
