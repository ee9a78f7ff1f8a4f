"""Three runs of snapshots with one memory of what was sent: the second, of other content, meets a way to be wrong.

The third sends the first content again, or the second one: what it calls unchanged, because the same was sent before,
has to be what the platform has. `python -m tests.hostile.commands.snapshots` tries all ways.
"""

import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from bulk.engine import commands
from tests.hostile.http.limits import Answers, Headers, Limits
from tests.hostile.platform import Platform
from tests.hostile.store.seeds import seeded
from tests.hostile.virtual import ended, in_virtual_time, killed, lines_of, service_of, write_manifest
from tests.hostile.ways import WAYS
from tests.hostile.wrong import Guest, Way

NIGHT_S, AT_MOST_S = 86_400.0, 40_000.0
TOGETHER = 10
"""So many ways are tried in one run (count)."""
RIGHT = Way("plain")


def item_of(number: int, content: str) -> dict[str, Any]:
    """A snapshot of a place of its own."""
    return {
        "owner": "acme",
        "repo": "api",
        "version": 0,
        "job": {"id": content, "correlator": f"way {chr(97 + number // 26)}{chr(97 + number % 26)}"},
        "sha": "a" * 40,
        "ref": "refs/heads/trunk",
        "detector": {"name": "finder", "version": "1.0", "url": "https://finder.example.test"},
        "scanned": "2026-11-24T00:00:00Z",
        "manifests": {"lock": {"name": content}},
    }


@dataclass(slots=True)
class Tried:
    """What came of one way.

    Attributes:
        outcomes: of the three runs; "" where the item has none. taken: the content that the platform took then.
    """

    way: Way
    contents: tuple[str, ...]
    outcomes: list[str]
    taken: list[str]

    def broken(self) -> list[str]:
        """What does not hold, in words."""
        return [
            f"{content} is {outcome}, and the platform has {taken or 'nothing'}"
            for content, outcome, taken in zip(self.contents, self.outcomes, self.taken, strict=True)
            if outcome in ("succeeded", "unchanged") and content != taken
        ]


def try_ways(ways: Sequence[Way], again: str, killed_s: float = 0.0) -> list[Tried]:
    """Send the first content, the second in these ways, and at last `again`; the second run is killed after so long."""
    contents = ("first", "second", again)

    async def main() -> list[Tried]:
        guests = {f"w{number}": _guest(number) for number in range(len(ways))}
        tried = [Tried(way, contents, [], []) for way in ways]
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            path, service = Path(folder), service_of(guests)
            for night, content in enumerate(contents):
                for guest, way in zip(guests.values(), ways, strict=True):
                    guest.begin(way if night == 1 else RIGHT)
                jobs = {
                    name: {
                        "operation": "snapshot.create", "items": [item_of(number, content)], "skip_unchanged": "exact",
                    }
                    for number, name in enumerate(guests)
                }  # fmt: skip
                manifest, environ = write_manifest(path / str(night), jobs)
                run_dir, cache = path / str(night) / "run", path / "cache"
                run = partial(commands.run_manifest, manifest, run_dir=run_dir)
                if killed_s and night == 1:
                    await killed(run, service, environ, run_dir, killed_s, cache)
                else:
                    _, trouble = await ended(run, service, environ, AT_MOST_S, cache)
                    assert not trouble, trouble
                await anyio.sleep(NIGHT_S)
                lines = lines_of(run_dir / "results.jsonl")
                for number, (name, guest) in enumerate(guests.items()):
                    line = lines.get(name, [{"outcome": ""}])[0]
                    tried[number].outcomes.append(line["outcome"])
                    tried[number].taken.append(_taken(guest, number))
        return tried

    return in_virtual_time(main)


def _guest(number: int) -> Guest:
    return Guest(Platform(seeded(), Limits(5_000, 3_600, Headers.RIGHT, Answers.RIGHT)), RIGHT)


def _taken(guest: Guest, number: int) -> str:
    item = item_of(number, "")
    key = ("snapshot", 601, item["job"]["correlator"], item["detector"]["name"])
    found = guest.platform.state.get(key, math.inf)
    return "" if found is None else str(found.get("manifests", {}).get("lock", {}).get("name", "another"))


def fitting() -> list[Way]:
    """The ways that can befall a write alone; nothing in an answer says to which snapshot it belongs."""
    ways = (way for way in WAYS if way.on != "read" and way.limits is None and not way.meddles)
    return [way for way in ways if way.kind != "foreign"]


def main() -> int:
    """1 where something does not hold."""
    wrong, ways = 0, fitting()
    for again in ("first", "second"):
        for begin in range(0, len(ways), TOGETHER):
            for tried in try_ways(ways[begin : begin + TOGETHER], again):
                wrong += bool(tried.broken())
                said = "; ".join(tried.broken())
                sys.stdout.write(f"{tried.way.name:<48} {again:<6} {'/'.join(tried.outcomes)} {said}\n")
                sys.stdout.flush()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
