"""404 soon after a creation: waited for where the run itself has just made the thing, and nowhere else."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer
from tests.simulation.world import now, simulate, world

SETTLE_S = 15.0
LIMITS = {"request_timeout": 5, "settle": SETTLE_S}
MISSING = answer(404, b'{"message": "Not Found"}', "application/json")

EMPTY = answer(200, b"[]", "application/json")

MADE: dict[str, tuple[dict[str, Any], str]] = {
    "an organization": (
        {
            "make": {"operation": "organization.create", "items": [{"login": "Fresh", "admin": "octoadmin"}]},
            "use": {"operation": "webhook.list", "needs": ["make"], "items": [{"org": "fresh"}]},
        },
        "/orgs/fresh/",
    ),
    "a webhook": (
        {
            "make": {
                "operation": "webhook.create",
                "items": [{"org": "fleet", "config": {"url": "http://127.0.0.1:9/hook"}}],
            },
            "use": {
                "operation": "webhook.get",
                "items": {"from": "make", "each": "result", "map": {"org": "item.org", "hook_id": "result.id"}},
            },
        },
        "/hooks/",
    ),
}


def _webhook(operation: str, **more: Any) -> tuple[dict[str, Any], str]:
    """The jobs that make a webhook and use it."""
    item = {"org": "item.org", "hook_id": "result.id"}
    use = {"operation": operation, "items": {"from": "make", "each": "result", "map": item}, **more}
    return {"make": MADE["a webhook"][0]["make"], "use": use}, "/orgs/fleet/hooks"


MADE_AND_LISTED = {
    "what may be missing": _webhook("webhook.get", missing="ok"),
    "its configuration": _webhook("webhook.get-config", missing="ok"),
    "what is removed": _webhook("webhook.delete"),
}


def use(folder: Path, what: str, hidden_s: float, is_cut_off: bool = False) -> tuple[dict[str, Any], float, int]:
    """Create a thing that the platform hides for `hidden_s`, and use it: its line, how long it took, the reads of it.

    Args:
        is_cut_off: another process of the run goes on when the creation has been told.
    """

    async def main() -> tuple[dict[str, Any], float, int]:
        jobs, named = (MADE | MADE_AND_LISTED)[what]
        seen: list[float] = []

        def fate_of(exchange: Exchange) -> Fate:
            if exchange.is_write or named not in exchange.path.casefold() or not made.effects():
                return FINE
            seen.append(now())
            if now() - seen[0] >= hidden_s:
                return FINE
            return EMPTY if exchange.path.partition("?")[0].endswith(named) else MISSING

        async with world(folder) as made:
            made.network.fate_of = fate_of
            written = {name: about for name, about in jobs.items() if isinstance(about["items"], list)}
            manifest = made.write("run", written, LIMITS)
            if len(written) < len(jobs):
                _add(manifest, {name: about for name, about in jobs.items() if name not in written})
            if is_cut_off:
                await made.run_until_told(manifest)
                assert made.told_items == {("make", 0)}
                assert not [line for line in made.lines(manifest) if line["job"] == "use"]
            await made.run(manifest)
            (line,) = [line for line in made.lines(manifest) if line["job"] == "use"]
            return line, seen[-1] - seen[0], len(seen)

    return simulate(main)


def _add(manifest: Path, jobs: dict[str, Any]) -> None:
    text = json.loads(manifest.read_text())
    text["jobs"].update(jobs)
    manifest.write_text(json.dumps(text))


@pytest.mark.parametrize("is_cut_off", [False, True])
@pytest.mark.parametrize("what", MADE)
def test_what_was_just_made_is_waited_for(folder: Path, what: str, is_cut_off: bool) -> None:
    """Hidden for 6 s after its creation, it is found by its name or its id, also by the process that goes on with the
    run (failures.md rows 21, 42)."""
    line, took_s, reads = use(folder, what, 6.0, is_cut_off)
    assert line["outcome"] == "succeeded", line
    assert 6.0 <= took_s <= 8.1
    assert reads <= 10


@pytest.mark.parametrize("is_cut_off", [False, True])
@pytest.mark.parametrize("what", MADE_AND_LISTED)
def test_a_list_that_lacks_what_was_just_made_is_not_believed(folder: Path, what: str, is_cut_off: bool) -> None:
    """A copy whose list lags shows nothing of it: neither does a read with `missing: ok` end as missing, nor a removal
    as unchanged (failures.md rows 21, 42)."""
    line, took_s, _ = use(folder, what, 6.0, is_cut_off)
    assert (line["outcome"], line.get("missing")) == ("succeeded", None), line
    assert 6.0 <= took_s <= SETTLE_S + 0.5


def test_what_is_still_not_listed_is_missing(folder: Path) -> None:
    """When the settle time is over, the list is believed (failures.md row 21)."""
    line, took_s, _ = use(folder, "what may be missing", hidden_s=1_000.0)
    assert (line["outcome"], line.get("missing")) == ("succeeded", True), line["error"]
    assert SETTLE_S - 0.5 <= took_s <= SETTLE_S + 0.5


@pytest.mark.parametrize("what", MADE)
def test_only_within_the_settle_time(folder: Path, what: str) -> None:
    """What is not there when the settle time is over is `not_found` (failures.md row 21)."""
    line, took_s, _ = use(folder, what, hidden_s=1_000.0)
    assert (line["outcome"], line["error"]["code"]) == ("failed", "not_found")
    assert SETTLE_S - 0.5 <= took_s <= SETTLE_S + 0.5


def test_what_was_not_made_is_not_waited_for(folder: Path) -> None:
    """Any other 404 is the answer at once, also while something new is waited for (failures.md row 21)."""

    async def main() -> None:
        async with world(folder) as made:
            jobs = {
                "make": {"operation": "organization.create", "items": [{"login": "fresh", "admin": "octoadmin"}]},
                "use": {"operation": "webhook.list", "needs": ["make"], "items": [{"org": "no-such-organization"}]},
            }
            manifest = made.write("run", jobs, LIMITS)
            await made.run(manifest)
            assert made.lines(manifest)[1]["error"]["code"] == "not_found"
            assert now() < 2.0
            assert len([each for each in made.network.exchanges if "no-such" in each.path]) == 1

    simulate(main)
