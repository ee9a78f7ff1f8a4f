"""Random migrations, run, killed and taken back, seed after seed: what is left is what was listed, and what others did.

A seed that fails says how it is replayed (`undoing.py`).
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.simulation.migrations.platform_state import LABS, Key
from tests.simulation.migrations.undoing import Undoing, pass_seed
from tests.simulation.migrations.work import Migration
from tests.simulation.schedules import put
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, DROP_BEFORE, FINE, Fate, answer

SEEDS, SOAK_SEEDS, TOGETHER = 120, 20_000, 20
"""A seed takes less than a fifth of a second: a platform, a run, the undo, its run and a retry of that."""

Things: TypeAlias = dict[tuple[str, int], tuple[Key, ...]]
TEAM = {"enterprise": "acme", "enterprise-team": "ent:security"}
LIMITED = answer(429, b'{"message":"Slow down"}', "application/json", Retry_After="1")


@pytest.mark.parametrize("first", range(0, SEEDS, TOGETHER))
def test_what_a_run_did_is_taken_back(folder: Path, first: int, figure: Callable[[str], None]) -> None:
    """Several jobs and operations, random states before, killed or stopped at random, lost answers: things are as
    before but for what was listed, and what somebody else has changed since is refused and stays."""
    passed = [pass_seed(seed, folder / str(seed)) for seed in range(first, first + TOGETHER)]
    items, written = sum(one.items for one in passed), sum(one.written for one in passed)
    kills, refused = sum(one.kills for one in passed), sum(one.refused for one in passed)
    assert (written > 0, refused > 0) == (True, True)
    figure(f"{TOGETHER} seeds, {items} items, {written} taken back, {refused} refused, {kills} kills: 0 broken")


def _passed(folder: Path, jobs: dict[str, Any], *things: Key) -> Undoing:
    """Run these jobs of one item each, which change these things, take them back, and compare."""
    migration = Migration(random.Random(0), jobs, {(job, 0): (thing,) for job, thing in zip(jobs, things, strict=True)})
    undoing = Undoing(1, folder, migration)
    undoing.play()
    return undoing


def test_files_of_an_organization_that_is_renamed_come_back(folder: Path) -> None:
    """While the manifest is written the organization still bears its new name: the bytes are read under that."""
    item = put("tools", "README.md", "new", LABS)
    rename = {"operation": "organization.rename", "needs": ["files"], "items": [{"org": LABS, "login": "acme-new"}]}
    jobs = {"files": {"operation": "contents.put", "items": [item]}, "rename": rename}
    found = _passed(folder, jobs, ("file", "tools", "README.md"), ("login", "103"))
    assert (found.passed.written, found.passed.listed, found.passed.left) == (2, 0, 0)


def test_a_webhook_that_was_changed_and_deleted(folder: Path) -> None:
    """It comes back under another number, as it was when it was deleted: that the change stays is listed."""
    hook = {"org": "acme-ops", "hook_id": 4001}
    jobs = {
        "change": {"operation": "webhook.update", "items": [{**hook, "events": ["fork"], "drop_secret": True}]},
        "delete": {"operation": "webhook.delete", "needs": ["change"], "items": [hook]},
    }
    thing = ("hook", "102", "http://127.0.0.1:9/hook")
    found = _passed(folder, jobs, thing, thing)
    assert (found.passed.written, found.passed.listed) == (1, 1)
    assert "under another number" in (folder / "undo.txt").read_text()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("code_scanning_options", {"allow_advanced": True}),
        ("code_scanning_default_setup_options", {"runner_type": "labeled", "runner_label": "large"}),
    ],
)
def test_options_of_a_configuration_that_had_none(folder: Path, field: str, value: dict[str, Any]) -> None:
    """They are given back as null, which the platform takes for them."""
    item = {"org": "acme-eng", "configuration_id": 2003, field: value}
    jobs = {"change": {"operation": "organization-configuration.update", "items": [item]}}
    found = _passed(folder, jobs, ("configuration", "2003"))
    assert (found.passed.written, found.passed.listed, found.passed.left) == (1, 0, 0)
    assert not (folder / "undo.txt").exists()
    (line,) = found.stage.world.lines(folder / "undo.yaml")
    assert line["outcome"] == "succeeded"
    assert line["result"][field] is None


@pytest.mark.parametrize("status", [400, 403, 409, 422])
def test_a_file_that_comes_back_although_that_was_refused(folder: Path, status: int) -> None:
    """It holds what it held before, so that its item has succeeded, whatever the platform has said to it."""
    item = {"owner": LABS, "repo": "tools", "path": "README.md", "message": "Delete"}
    jobs = {"delete": {"operation": "contents.delete", "items": [item]}}
    migration = Migration(random.Random(0), jobs, {("delete", 0): (("file", "tools", "README.md"),)})
    undoing = Undoing(1, folder, migration)
    refused = [answer(status, b'{"message":"Refused"}', "application/json", is_passed_on=True)]

    def fate_of(exchange: Exchange) -> Fate:
        return refused.pop() if exchange.method == "PUT" and refused else FINE

    undoing.stage.world.network.fate_of = fate_of
    assert undoing.play().left == 0
    assert not refused
    (line,) = undoing.stage.world.lines(folder / "undo.yaml")
    assert line["outcome"] == "succeeded"
    assert f"status {status}" in line["result"]["note"]


@pytest.mark.parametrize("first", [DROP_BEFORE, LIMITED], ids=["lost", "limited"])
def test_what_was_refused_and_never_done_is_not_listed(folder: Path, first: Fate) -> None:
    """Its first send was in doubt for a while, and no reading has shown it: the item failed, and changed nothing."""
    jobs = {
        "file": {"operation": "contents.put", "items": [put("tools", "README.md", "new", LABS)]},
        "hook": {"operation": "webhook.create", "items": [{"org": LABS, "config": {"url": "http://127.0.0.1:9/new"}}]},
        "team": {"operation": "team-organization.assign", "items": [{**TEAM, "org": LABS}]},
    }
    things: Things = {(job, 0): (("none",),) for job in jobs}
    undoing = Undoing(1, folder, Migration(random.Random(0), jobs, things))
    refused = answer(403, b'{"message":"Refused"}', "application/json")
    seen: set[str] = set()

    def fate_of(exchange: Exchange) -> Fate:
        is_first = exchange.path not in seen
        seen.add(exchange.path)
        return FINE if not exchange.is_write else first if is_first else refused

    undoing.stage.world.network.fate_of = fate_of
    assert undoing.play().written == 0
    assert not (folder / "undo.txt").exists()


@pytest.mark.parametrize("lost", [1, 2])
def test_a_file_whose_answer_was_lost_comes_back(folder: Path, lost: int) -> None:
    """No answer names the commit before its write; at the commit before the first write of the repository it had the
    bytes, and git's name for them shows that."""
    names = ("README.md", "a", "b")
    made = {"operation": "contents.put", "items": [put("tools", name, f"before {name}", LABS) for name in names]}
    jobs = {"files": {"operation": "contents.put", "items": [put("tools", name, "after", LABS) for name in names]}}
    things: Things = {("files", index): (("file", "tools", name),) for index, name in enumerate(names)}
    undoing = Undoing(1, folder, Migration(random.Random(0), jobs, things))
    stage, writes = undoing.stage, list[str]()
    stage.start(lambda: stage.world.run(stage.world.write("made", {"made": made})))
    stage.wait_end()

    def fate_of(exchange: Exchange) -> Fate:
        writes.extend([exchange.path] * exchange.is_write)
        return DROP_AFTER if exchange.is_write and len(writes) == lost + 1 else FINE

    stage.world.network.fate_of = fate_of
    passed = undoing.play()
    assert (passed.written, passed.listed, passed.left) == (3, 0, 0)
    assert not (folder / "undo.txt").exists()


def test_a_file_that_nobody_could_see_is_not_deleted(folder: Path) -> None:
    """Looked at under a name that its organization only got later, and written with a lost answer: it stays."""
    assert pass_seed(5_190, folder).listed > 0


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("first", range(1_000, 1_000 + SOAK_SEEDS, 200))
def test_what_a_run_did_is_taken_back_for_long(folder: Path, first: int) -> None:
    """The same for 20,000 seeds."""
    for seed in range(first, first + 200):
        pass_seed(seed, folder / str(seed))
