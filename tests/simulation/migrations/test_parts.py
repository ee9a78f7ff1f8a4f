"""A write that was refused and done in part, then done by a retry: the undo takes back the part as well."""

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.simulation.migrations.platform_state import FLAGS, LINK, SEED_DATA, Platform, PlatformState
from tests.simulation.migrations.undoing import written_undo
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer
from tests.simulation.world import World, simulate, world

LIMITS = {"settle": "2s"}
REFUSED = answer(422, b'{"message":"Refused"}', "application/json")
FIRST, SECOND, _ = FLAGS
TEAM = {"enterprise": "acme", "enterprise-team": "ent:security"}
_SCANS_NO_SECRETS = """UPDATE configurations SET description = 'Before',
settings_json = json_remove(settings_json, '$.secret_scanning') WHERE id = 2003"""
CONFIGURATION = {"org": "acme-eng", "configuration_id": 2003}


def _settings(**settings: Any) -> str:
    return f"UPDATE enterprise_security SET settings_json = '{json.dumps(settings)}'"


def _assigned(*organizations: int) -> tuple[str, ...]:
    rows = ", ".join(f"(502, {organization})" for organization in organizations)
    return ("DELETE FROM team_organizations WHERE team_id = 502", f"INSERT INTO team_organizations VALUES {rows}")


def _described(description: str, secrets: str) -> tuple[str, ...]:
    changed = f"json_set(settings_json, '$.secret_scanning', '{secrets}')"
    return (f"UPDATE configurations SET description = '{description}', settings_json = {changed} WHERE id = 2003",)


def _hook(content_type: str, event: str, path: str = "hook") -> tuple[str, ...]:
    config = json.dumps({"url": f"http://127.0.0.1:9/{path}", "content_type": content_type, "insecure_ssl": "0"})
    return (f"UPDATE hooks SET config_json = '{config}', events_json = '[\"{event}\"]' WHERE id = 4001",)


@dataclass(frozen=True)
class Part:
    """A write, with statements that put the platform into a state.

    Attributes:
        before: what stands there before. part: what the refused write leaves.
        theirs: what somebody else makes of it before the retry; the undo goes back to `left`.
        is_told: the part is known as ours.
    """

    operation: str
    item: dict[str, Any]
    before: tuple[str, ...]
    part: tuple[str, ...]
    theirs: tuple[str, ...]
    left: tuple[str, ...]
    is_told: bool = False


PARTS = {
    "settings": Part(
        "enterprise-security.update",
        {"enterprise": "acme", FIRST: True, SECOND: True, LINK: "https://ours.example.com"},
        (_settings(**{FIRST: False, SECOND: False, LINK: "https://before.example.com"}),),
        (_settings(**{FIRST: True, SECOND: False, LINK: "https://before.example.com"}),),
        (_settings(**{FIRST: True, SECOND: False, LINK: "https://theirs.example.com"}),),
        (_settings(**{FIRST: False, SECOND: False, LINK: "https://theirs.example.com"}),),
        is_told=True,
    ),
    "assignments": Part(
        "team-organization.add",
        {**TEAM, "organization_slugs": ["acme-eng", "acme-ops", "acme-labs"]},
        _assigned(103),
        _assigned(101, 103),
        _assigned(101),
        ("DELETE FROM team_organizations WHERE team_id = 502",),
        is_told=True,
    ),
    "removals": Part(
        "team-organization.remove",
        {**TEAM, "organization_slugs": ["acme-eng", "acme-ops", "acme-labs"]},
        _assigned(101, 102),
        _assigned(102),
        _assigned(102, 103),
        _assigned(101, 102, 103),
        is_told=True,
    ),
    "a configuration": Part(
        "organization-configuration.update",
        {**CONFIGURATION, "description": "Ours", "secret_scanning": "enabled"},
        _described("Before", "not_set"),
        _described("Ours", "not_set"),
        _described("Ours", "disabled"),
        (_SCANS_NO_SECRETS,),
    ),
    "a webhook": Part(
        "webhook.update",
        {
            "org": "acme-ops",
            "hook_id": 4001,
            "events": ["fork"],
            "config": {"url": "http://127.0.0.1:9/hook", "content_type": "form"},
            "drop_secret": True,
        },
        _hook("json", "push"),
        _hook("form", "push"),
        _hook("form", "star"),
        _hook("json", "star"),
    ),
    "a webhook's configuration": Part(
        "webhook.update-config",
        {
            "org": "acme-ops",
            "hook_id": 4001,
            "url": "http://127.0.0.1:9/ours",
            "content_type": "form",
            "drop_secret": True,
        },
        _hook("json", "push"),
        _hook("form", "push"),
        _hook("form", "push", "theirs"),
        _hook("json", "push", "theirs"),
    ),
}


def _put(made: World, statements: tuple[str, ...]) -> PlatformState:
    with made.sandbox.context.state.transaction() as db:
        for statement in statements:
            db.execute(statement)
    return Platform(made).look()


def _refuses(made: World, part: tuple[str, ...], times: int = 1) -> None:
    """The first writes are refused, and leave a part."""
    fates = iter([REFUSED] * times)

    def fate_of(exchange: Exchange) -> Fate:
        return next(fates, FINE) if exchange.is_write else FINE

    def leave(exchange: Exchange) -> None:
        if exchange.is_write and exchange.fate is REFUSED:
            _put(made, part)

    made.network.fate_of = fate_of
    made.network.listeners.append(leave)


async def _done_in_part(made: World, part: Part, *, times: int = 1) -> Path:
    """Run a manifest of one item that is refused `times` times and of which the first try does a part; return it."""
    _refuses(made, part.part, times=times)
    manifest = made.write("run", {"job": {"operation": part.operation, "items": [part.item]}}, LIMITS)
    assert (await made.run(manifest)).exit_code == (1 if part.is_told else 6)
    return manifest


async def _undo(made: World, manifest: Path) -> None:
    """Write the undo of a run and run it."""
    out = manifest.with_name("undo.yaml")
    await written_undo(made, made.run_dir(manifest), out, random.Random(1))
    assert (await made.run(out)).exit_code == 0, made.lines(out)


@pytest.mark.parametrize("overwrites", [False, True], ids=["retry", "retry --overwrite"])
@pytest.mark.parametrize("what", PARTS)
def test_a_part_is_taken_back_with_the_rest(folder: Path, what: str, overwrites: bool) -> None:
    """Whether the retry compares or overwrites: what stood there before the first write comes back."""
    part = PARTS[what]

    async def main() -> None:
        async with world(folder, seed_data=SEED_DATA) as made:
            before = _put(made, part.before)
            manifest = await _done_in_part(made, part)
            report = await made.retry(manifest, overwrites=overwrites)
            if report.exit_code == 6:  # whether that was somebody else can't be told: it is listed
                assert (overwrites, part.is_told) == (False, False)
                return
            assert report.exit_code == 0
            await _undo(made, manifest)
            assert Platform(made).look() == before

    simulate(main)


@pytest.mark.parametrize("what", PARTS)
def test_what_somebody_else_had_set_comes_back_and_not_what_was_there_before(folder: Path, what: str) -> None:
    """`retry --overwrite` has written over it, so that the undo puts it back; a part that was ours goes."""
    part = PARTS[what]

    async def main() -> None:
        async with world(folder, seed_data=SEED_DATA) as made:
            _put(made, part.before)
            manifest = await _done_in_part(made, part)
            _put(made, part.theirs)
            assert (await made.retry(manifest, overwrites=True)).exit_code == 0
            await _undo(made, manifest)
            found = Platform(made).look()
            _put(made, part.left)
            assert found == Platform(made).look()

    simulate(main)


@pytest.mark.parametrize("what", [what for what, part in PARTS.items() if part.is_told])
def test_what_was_refused_again_is_still_done_in_part(folder: Path, what: str) -> None:
    """The retry knows of the part and names it; the next retry does the rest, and the undo takes back all."""
    part = PARTS[what]

    async def main() -> None:
        async with world(folder, seed_data=SEED_DATA) as made:
            before = _put(made, part.before)
            manifest = await _done_in_part(made, part, times=3)
            (first,) = made.lines(manifest)
            for overwrites in (True, False):
                assert (await made.retry(manifest, overwrites=overwrites)).exit_code == 1
                (line,) = made.lines(manifest)
                assert (line["outcome"], line["result"]) == ("failed", first["result"])
            assert (await made.retry(manifest, overwrites=True)).exit_code == 0
            await _undo(made, manifest)
            assert Platform(made).look() == before

    simulate(main)


@pytest.mark.parametrize("what", [what for what, part in PARTS.items() if part.is_told])
def test_a_part_outlives_a_kill_in_the_middle_of_its_retry(folder: Path, what: str) -> None:
    """failures.md row 42: the intent of the write that overwrites has what was there before both writes."""
    part = PARTS[what]

    async def main() -> None:
        async with world(folder, seed_data=SEED_DATA) as made:
            before = _put(made, part.before)
            manifest = await _done_in_part(made, part)
            with anyio.CancelScope() as scope:
                made.network.watchers.append(lambda exchange: scope.cancel() if exchange.is_write else None)
                await made.retry(manifest, overwrites=True)
            assert scope.cancelled_caught
            await anyio.sleep(60.0)
            assert (await made.run(manifest)).exit_code == 0
            await _undo(made, manifest)
            assert Platform(made).look() == before

    simulate(main)
