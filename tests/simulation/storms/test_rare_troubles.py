"""What hardly ever happens: no memory in the middle of the work, names in every script."""

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from bulk.execute.item_runner import FileContents
from bulk.execute.recorder import Recorder
from bulk.ledger.ledger import Ledger
from bulk.platform.transport import Transport
from tests.simulation import invariants
from tests.simulation.schedules import Expected, Schedule, put, snapshot
from tests.simulation.world import simulate, world

LIMITS = {"request_timeout": 5, "settle": 2, "concurrency": 4}
ITEMS = 6

PLACES: dict[str, tuple[Any, str]] = {
    "an item is made ready": (FileContents, "load"),
    "an answer is read": (Transport, "_answer"),
    "an outcome is handed over": (Recorder, "record"),
    "a group is committed": (Ledger, "commit"),
}


def no_memory(real: Callable[..., Any], nth: int) -> Callable[..., Any]:
    """`real`, which raises MemoryError the n-th time."""
    left = nth

    def call(*args: Any, **more: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            raise MemoryError
        return real(*args, **more)

    return call


@pytest.mark.interpreted
@pytest.mark.parametrize("nth", [1, 4])
@pytest.mark.parametrize("place", PLACES)
def test_no_memory_is_as_good_as_killed(folder: Path, place: str, nth: int) -> None:
    """MemoryError anywhere ends the run loud; resumed, each effect is there exactly once (failures.md row 44)."""
    owner, name = PLACES[place]

    async def main() -> None:
        async with world(folder) as made:
            schedule = Schedule()
            schedule.job("puts", "contents.put")
            schedule.job("snapshots", "snapshot.create")
            for number in range(ITEMS):
                repo = f"repo-{number % 3:05d}"
                done = Expected("succeeded", effect=f"commit fleet/{repo} f{number}")
                schedule.expect("puts", put(repo, f"f{number}", "a"), done)
                done = Expected("succeeded", effect=f"snapshot fleet/{repo} build-{number} detector")
                schedule.expect("snapshots", snapshot(repo, f"build-{number}"), done)
            manifest = made.write("run", schedule.jobs, LIMITS)
            broken = mock.patch.object(owner, name, no_memory(getattr(owner, name), nth))
            with broken, pytest.RaisesGroup(MemoryError, flatten_subgroups=True, allow_unwrapped=True):
                await made.run(manifest)
            assert (await made.run(manifest)).exit_code == 0
            invariants.every_item_ended_once_and_right(made, manifest, schedule.expected)
            invariants.every_effect_is_there_once(made, schedule.expected)
            invariants.nothing_leaked(made, made.runs[-1])

    simulate(main)


NAMES = (
    unicodedata.normalize("NFC", "é.txt"),
    unicodedata.normalize("NFD", "é.txt"),
    "שלום.md",
    "👩‍🚀.md",
    "zero\u200bwidth",
    "A.txt",
    "a.txt",
)


def test_paths_keep_their_bytes(folder: Path) -> None:
    """Composed and decomposed, right to left, emoji, invisible marks, upper and lower case: each path is its own file,
    byte for byte, in one lane with the repository in any case (failures.md row 56)."""

    async def main() -> None:
        async with world(folder) as made:
            items = [put("REPO-00000" if number % 2 else "repo-00000", name, name) for number, name in enumerate(NAMES)]
            manifest = made.write("run", {"puts": {"operation": "contents.put", "items": items}}, LIMITS)
            assert (await made.run(manifest)).exit_code == 0
            assert len({name.encode() for name in NAMES}) == len(made.effects()) == len(NAMES)
            invariants.files_hold(made, {("repo-00000", name): name.encode() for name in NAMES})
            invariants.lanes_never_overlap(made)

    simulate(main)
