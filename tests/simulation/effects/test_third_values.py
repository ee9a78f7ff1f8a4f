"""Somebody else changes the same thing between a write whose answer was lost and the look that settles it."""

import json
from pathlib import Path
from typing import Any

import pytest

from bulk_jobs.shared.files import blobs
from tests.simulation import invariants
from tests.simulation.schedules import put
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, DROP_BEFORE, FINE, Fate, answer
from tests.simulation.wire.memory import Memory
from tests.simulation.witness import Witness
from tests.simulation.world import World, simulate, world
from tests.simulation.writes import HOOK, SECRET

LIMITS = {"settle": "2s"}
DELETE = {"owner": "fleet", "repo": "repo-00000", "path": "README.md", "message": "Delete"}
WRITES: dict[str, tuple[str, dict[str, Any], str]] = {
    "contents.put": ("a", put("repo-00000", "a", "ours"), "commit fleet/repo-00000 a "),
    "contents.delete": ("README.md", DELETE, "commit fleet/repo-00000 README.md "),
}
REFUSED = {
    f"{status}, {when}": answer(status, b'{"message":"Refused"}', "application/json", is_passed_on=when == "applied")
    for status in (409, 422)
    for when in ("applied", "not applied")
}
LAGS = pytest.mark.parametrize("lags", [False, True], ids=["fresh", "lagging"])


def meets(made: World, fate: Fate, *, lags: bool) -> None:
    """The first write meets this fate; `lags`: the first look after it shows what was there before."""
    fates, stale = iter((fate,)), iter([Fate(kind="stale", stale_s=60.0)] * lags)
    has_written = False
    made.network.memory = Memory()

    def fate_of(exchange: Exchange) -> Fate:
        nonlocal has_written
        has_written = has_written or exchange.is_write
        return next(fates, FINE) if exchange.is_write else next(stale, FINE) if has_written else FINE

    made.network.fate_of = fate_of


@LAGS
@pytest.mark.parametrize("fate", [DROP_AFTER, DROP_BEFORE], ids=["applied", "not applied"])
@pytest.mark.parametrize("operation", WRITES)
def test_what_somebody_else_wrote_is_told_and_not_overwritten(
    folder: Path, operation: str, fate: Fate, lags: bool
) -> None:
    """The outcome is unknown, with what was found, whether ours was applied before or not; a retry looks and leaves it,
    and only `--overwrite` writes once more (failures.md rows 4, 7)."""
    _told_and_not_overwritten(folder, operation, fate, is_applied=fate is DROP_AFTER, lags=lags)


@LAGS
@pytest.mark.parametrize(
    ("operation", "refused"),
    [(name, refused) for name in WRITES for refused in REFUSED if "422" not in refused or name == "contents.put"],
)
def test_what_somebody_else_wrote_after_a_refusal_is_not_overwritten(
    folder: Path, operation: str, refused: str, lags: bool
) -> None:
    """A refusal may be untrue: what stands there when the operation looks again may be newer than our own write."""
    _told_and_not_overwritten(folder, operation, REFUSED[refused], is_applied="not" not in refused, lags=lags)


def _rival(made: World, fate: Fate, path: str) -> Witness:
    """Somebody who writes that file right after each write of ours that meets `fate`."""
    witness = Witness(made)

    def write(exchange: Exchange) -> None:
        if exchange.is_write and exchange.fate is fate:
            witness.write("repo-00000", path, "theirs")

    made.network.listeners.append(write)
    return witness


def _told_and_not_overwritten(folder: Path, operation: str, fate: Fate, *, is_applied: bool, lags: bool) -> None:
    path, item, effect = WRITES[operation]

    async def main() -> None:
        async with world(folder) as made:
            meets(made, fate, lags=lags)
            _rival(made, fate, path)
            manifest = made.write("run", {"job": {"operation": operation, "items": [item]}}, LIMITS)
            before = [effect] * is_applied
            for turn in (made.run, made.retry, made.retry):
                assert (await turn(manifest)).exit_code == 6
                (line,) = made.lines(manifest)
                assert (line["outcome"], line["error"]["code"]) == ("unknown", "unknown_outcome")
                assert "--overwrite" in line["error"]["message"]
                assert line["result"]["found"] not in (None, line["result"].get("before"), line["result"].get("wanted"))
                assert [each[: len(effect)] for each in made.effects()] == before, json.dumps(made.effects())
            assert (await made.retry(manifest, overwrites=True)).exit_code == 0
            assert len(made.effects()) == len(before) + 1
            (line,) = made.lines(manifest)
            assert line["outcome"] == "succeeded"

    simulate(main)


@pytest.mark.parametrize("mode", ["replace", "ensure"])
@pytest.mark.parametrize("fate", [DROP_AFTER, DROP_BEFORE], ids=["applied", "not applied"])
def test_a_retry_that_overwrites_nothing_leaves_the_doubt(folder: Path, fate: Fate, mode: str) -> None:
    """An item that replaces one blob alone is refused by what somebody else wrote, whatever `--overwrite` says: whether
    it was done before that is as unknown as it was. Where all is as asked for by then, it was done, and is not
    unchanged, so that an undo takes it back."""

    async def main() -> None:
        async with world(folder) as made:
            meets(made, fate, lags=False)
            witness = _rival(made, fate, "a")
            witness.write("repo-00000", "a", "before")
            only = {"mode": mode, "sha": blobs.blob_sha(b"before")} if mode == "replace" else {}
            item = put("repo-00000", "a", "ours", **only)
            manifest = made.write("run", {"job": {"operation": "contents.put", "items": [item]}}, LIMITS)
            assert (await made.run(manifest)).exit_code == 6
            done = len(made.effects())
            if mode == "replace":
                for overwrites in (True, False, True):
                    assert (await made.retry(manifest, overwrites=overwrites)).exit_code == 6
                    (line,) = made.lines(manifest)
                    assert (line["outcome"], "was lost" in line["error"]["message"]) == ("unknown", True)
            witness.write("repo-00000", "a", "ours")
            assert (await made.retry(manifest, overwrites=mode == "ensure")).exit_code == 0
            (line,) = made.lines(manifest)
            assert (line["outcome"], "was lost" in line["result"]["note"]) == ("succeeded", True)
            assert len(made.effects()) == done

    simulate(main)


HOOK_CONFIG = {"url": "http://127.0.0.1:9/hooks/ours", "content_type": "form"}
SETTINGS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a webhook": (
        "webhook.update",
        {**HOOK, "events": ["push", "fork"], "drop_secret": True},
        "UPDATE hooks SET events_json = '[\"star\"]' WHERE id = 4001",
    ),
    "a webhook, with its secret": (
        "webhook.update",
        {**HOOK, "events": ["push", "fork"], "config": {**HOOK_CONFIG, "secret": SECRET}},
        "UPDATE hooks SET events_json = '[\"star\"]' WHERE id = 4001",
    ),
    "a webhook's configuration": (
        "webhook.update-config",
        {**HOOK, **HOOK_CONFIG, "secret": SECRET},
        "UPDATE hooks SET config_json = json_set(config_json, '$.url', 'http://127.0.0.1:9/theirs') WHERE id = 4001",
    ),
    "a configuration": (
        "organization-configuration.update",
        {"org": "acme-eng", "configuration_id": 2003, "description": "Ours"},
        "UPDATE configurations SET description = 'Theirs' WHERE id = 2003",
    ),
}


@LAGS
@pytest.mark.parametrize("fate", [DROP_AFTER, DROP_BEFORE], ids=["applied", "not applied"])
@pytest.mark.parametrize("what", SETTINGS)
def test_what_somebody_else_has_set_is_told_and_not_overwritten(
    folder: Path, what: str, fate: Fate, lags: bool
) -> None:
    """The same for what may be repeated freely, because updating twice is updating once: not over somebody else's."""
    operation, item, statement = SETTINGS[what]

    async def main() -> None:
        async with world(folder) as made:
            meets(made, fate, lags=lags)

            def rival(exchange: Exchange) -> None:
                if exchange.is_write and exchange.fate is fate:
                    made.sandbox.context.state.db.execute(statement)

            made.network.listeners.append(rival)
            manifest = made.write("run", {"job": {"operation": operation, "items": [item]}}, LIMITS)
            before = int(fate is DROP_AFTER)
            for turn in (made.run, made.retry):
                assert (await turn(manifest)).exit_code == 6
                (line,) = made.lines(manifest)
                assert (line["outcome"], line["error"]["code"]) == ("unknown", "unknown_outcome")
                assert "--overwrite" in line["error"]["message"]
                assert set(line["result"]) == {"wanted", "before", "found"}
                assert len(made.effects()) == before
            assert (await made.retry(manifest, overwrites=True)).exit_code == 0
            assert made.lines(manifest)[0]["outcome"] == "succeeded"
            assert len(made.effects()) == before + 1
            invariants.nowhere(made.run_dir(manifest), SECRET)

    simulate(main)
