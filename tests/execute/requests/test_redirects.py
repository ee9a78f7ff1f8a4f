"""What lies behind a redirect: what is found there counts, and that nothing is found does not."""

from pathlib import Path
from typing import Any

import pytest

from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer
from tests.simulation.world import PREFIX, simulate, world

JSON = "application/json"
FILE = {"owner": "acme-eng", "repo": "hello-world", "path": "README.md", "message": "Away with it"}
TEAM = {"enterprise": "acme", "enterprise-team": "ent:platform", "org": "acme-eng"}
DELETIONS: dict[str, tuple[dict[str, Any], str]] = {
    "contents.delete": (FILE, "/contents/README.md"),
    "team-organization.unassign": (TEAM, "/organizations/acme-eng"),
    "organization-configuration.delete": ({"org": "acme-eng", "configuration_id": 2002}, "/configurations/2002"),
    "webhook.delete": ({"org": "acme-ops", "hook_id": 4001}, "/hooks"),
}


def leads_to(target: str, path: str, times: int) -> Any:
    """The first reads of that path are led elsewhere; whoever writes it is told that it is not there."""
    left = times

    def fate_of(exchange: Exchange) -> Fate:
        nonlocal left
        found = exchange.path.partition("?")[0]
        if exchange.is_write and exchange.method == "DELETE" and found.endswith("/hooks/4001"):
            return answer(404, b'{"message": "Not Found"}', JSON)
        if found.endswith("/nothing"):
            return answer(200, b"[]", JSON)
        if not exchange.is_write and found.endswith(path) and left:
            left -= 1
            return answer(303, b"", Location=f"{PREFIX}{target}")
        return FINE

    return fate_of


@pytest.mark.parametrize("target", ["/nowhere", "/nothing"], ids=["404", "an empty list"])
@pytest.mark.parametrize("operation", DELETIONS)
def test_nothing_behind_a_redirect_is_not_absence(folder: Path, operation: str, target: str) -> None:
    """What is to be deleted is never taken for gone because a redirect leads to where nothing is: it is looked for
    again, and where the redirect stays the item is failed (failures.md row 9)."""
    item, path = DELETIONS[operation]

    async def main() -> None:
        async with world(folder, fate_of=leads_to(target, path, 1_000)) as made:
            manifest = made.write("run", {"job": {"operation": operation, "items": [item]}}, {"settle": "2s"})
            assert (await made.run(manifest)).exit_code == 1
            (line,) = made.lines(manifest)
            assert line["outcome"] == "failed"
            assert line["error"]["code"] != "not_found"
            assert made.effects() == []

    simulate(main)


@pytest.mark.parametrize("operation", [each for each in DELETIONS if each != "webhook.delete"])
def test_a_redirect_that_is_over_does_no_harm(folder: Path, operation: str) -> None:
    """Led astray once, the read is repeated, and the item is done as ever."""
    item, path = DELETIONS[operation]

    async def main() -> None:
        async with world(folder, fate_of=leads_to("/nowhere", path, 1)) as made:
            manifest = made.write("run", {"job": {"operation": operation, "items": [item]}})
            assert (await made.run(manifest)).exit_code == 0
            assert made.lines(manifest)[0]["outcome"] == "succeeded"
            assert len(made.effects()) == 1

    simulate(main)
