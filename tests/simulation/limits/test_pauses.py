"""What an item waits for where no budget, lane or list holds it up: the status says it, and until when."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bulk.status import RunStatus, Silence, Wait
from tests.simulation.schedules import OWNER, put
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_BEFORE, FINE, Fate, answer
from tests.simulation.wire.memory import Memory
from tests.simulation.world import simulate, world

REPO = "repo-00000"
LIMITS = {"request_timeout": 5, "settle": 15}
DELETE = {"owner": OWNER, "repo": REPO, "path": "a", "message": "Delete"}
BUSY = answer(422, b'{"message": "Another operation is in progress"}', "application/json")
MISSING = answer(404, b'{"message": "Not Found"}', "application/json")
LATE = Fate(kind="late", request_s=12.0)
READ = {"operation": "readme.get", "items": [{"owner": OWNER, "repo": REPO}]}
PUT = {"operation": "contents.put", "items": [put(REPO, "a", "one")]}
MADE = {"operation": "organization.create", "items": [{"login": "fresh", "admin": "octoadmin"}]}

Fates = Callable[[Exchange, int], Fate]
"""What befalls an exchange that is the so manieth of its kind, reads and writes counted apart."""

PAUSES: dict[str, tuple[dict[str, Any], Fates]] = {
    "next try of a read": ({"reads": READ}, lambda _, number: answer(502) if number < 5 else FINE),
    "next look at what takes its time": (
        {"first": PUT, "again": {**PUT, "needs": ["first"]}},
        lambda each, _: FINE if each.is_write else Fate(kind="stale", stale_s=15.0),
    ),
    "just created, not visible yet": (
        {"makes": MADE, "reads": {"operation": "webhook.list", "items": [{"org": "fresh"}], "needs": ["makes"]}},
        lambda each, number: MISSING if "/orgs/fresh/" in each.path and number < 6 else FINE,
    ),
    "an earlier write may still arrive": (
        {"puts": PUT, "deletes": {"operation": "contents.delete", "items": [DELETE], "needs": ["puts"]}},
        lambda each, number: LATE if each.is_write and number == 0 else FINE,
    ),
    "next try after a conflict or a lost answer": (
        {"puts": PUT},
        lambda each, number: DROP_BEFORE if each.is_write and number < 5 else FINE,
    ),
    "next try of what the platform is busy with": (
        {"makes": MADE},
        lambda each, number: BUSY if each.is_write and number < 6 else FINE,
    ),
}


@pytest.mark.parametrize("why", PAUSES)
def test_the_status_says_why_and_until_when(folder: Path, why: str) -> None:
    """Each kind of pause is told while it lasts, by its own words, and no other kind is."""
    jobs, fate_of = PAUSES[why]
    seen: list[tuple[float, Wait]] = []

    class Watching(Silence):
        def update(self, status: RunStatus) -> None:
            seen.extend((status.at, wait) for wait in status.waits if wait.what in PAUSES)

    async def main() -> None:
        asked = {False: 0, True: 0}

        def fate(exchange: Exchange) -> Fate:
            number = asked[exchange.is_write]
            asked[exchange.is_write] += "rate_limit" not in exchange.path
            return fate_of(exchange, number)

        async with world(folder, fate_of=fate) as made:
            made.network.memory = Memory()
            manifest = made.write("run", jobs, LIMITS)
            assert (await made.run(manifest, display=Watching())).exit_code == 0

    simulate(main)
    assert {wait.what for _, wait in seen} == {why}
    assert all(wait.count == 1 and wait.until is not None and at - 0.1 <= wait.until <= at + 30.0 for at, wait in seen)
