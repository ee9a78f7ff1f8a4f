"""What is shown while a run goes on, against what then happens: when it ends, what waits and how much of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bulk.sandbox.settings import RateLimit
from bulk.status import RunStatus, Silence
from tests.simulation.schedules import put, readmes, snapshot
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_BEFORE, FINE, Fate, answer
from tests.simulation.world import simulate, world

AT = (0.25, 0.5, 0.75)
SHARE, LEAST_S = 0.10, 0.1
"""How far the end that is shown may be off, of what is left, and what a status a quarter of a second old may miss."""


class Watching(Silence):
    """A display that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[RunStatus] = []

    def update(self, status: RunStatus) -> None:
        """Keep it."""
        self.told.append(status)


@dataclass(frozen=True)
class Case:
    """One run. `limits`: of the platform; None: off. `paused_s`: one request is answered 503, to come back then."""

    jobs: Mapping[str, Any]
    limits: Mapping[str, RateLimit] | None = None
    latency_ms: float = 50.0
    of_manifest: Mapping[str, Any] = field(default_factory=dict)
    paused_s: int = 0
    every: int = 0

    def fate_of(self, exchange: Exchange) -> Fate:
        """What befalls an exchange."""
        if exchange.path.endswith("/rate_limit"):
            return FINE
        if self.paused_s and exchange.number == 40:
            return answer(503, retry_after=str(self.paused_s))
        return DROP_BEFORE if self.every and exchange.number % self.every == 0 else FINE


def puts(*each: int) -> dict[str, Any]:
    """New files, so many in each of some repositories."""
    items = [put(f"repo-{number:05d}", f"f{file}", "a") for number, count in enumerate(each) for file in range(count)]
    return {"operation": "contents.put", "items": items}


def reads(count: int, **fields: Any) -> dict[str, Any]:
    """Reads."""
    return {"operation": "readme.get", "items": readmes(count), **fields}


def snapshots(count: int) -> dict[str, Any]:
    """Snapshots."""
    items = [snapshot(f"repo-{number % 60:05d}", f"build-{number}") for number in range(count)]
    return {"operation": "snapshot.create", "items": items}


CORE, SNAPSHOTS = "core", "dependency_snapshots"
CASES = {
    "full": Case({"reads": reads(450)}, {CORE: RateLimit(100, 10)}),
    "burst": Case({"reads": reads(350)}, {CORE: RateLimit(100, 10)}, of_manifest={"pace": "burst"}),
    "reserve": Case({"reads": reads(250)}, {CORE: RateLimit(100, 10)}, of_manifest={"reserve": 40}),
    "two": Case({"reads": reads(350), "snaps": snapshots(70)}, {CORE: RateLimit(80, 10), SNAPSHOTS: RateLimit(20, 8)}),
    "hot lane": Case({"writes": puts(100, *[4] * 20)}),
    "needs": Case({"writes": puts(*[5] * 20), "reads": reads(230, needs=["writes"])}, {CORE: RateLimit(100, 10)}),
    "latency": Case({"reads": reads(900)}, latency_ms=200.0, of_manifest={"concurrency": 16}),
    "closed": Case({"reads": reads(200)}, latency_ms=100.0, paused_s=60, of_manifest={"concurrency": 2}),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_shown_is_so(folder: Path, name: str) -> None:
    """At 25, 50 and 75% of the time the end that is shown is off by at most a tenth of what is left; no end is ever
    shown that lies before the reopening of what is closed; and never do more items wait than are left."""
    case, display = CASES[name], Watching()

    async def main() -> None:
        async with world(folder, limits=case.limits, latency_ms=case.latency_ms, fate_of=case.fate_of) as made:
            manifest = made.write("run", case.jobs, dict(case.of_manifest))
            assert (await made.run(manifest, display=display)).exit_code == 0

    simulate(main)
    *told, last = [status for status in display.told if status.state in ("running", "complete")]
    for status in told:
        left = sum((job.items or 0) - job.done for job in status.jobs)
        assert all(0 < wait.count <= max(1, left) for wait in status.waits), status
        assert all(bucket.waiting <= left for bucket in status.buckets), status
        opens = [bucket.opens_at or 0.0 for bucket in status.buckets if bucket.closed_because and bucket.waiting]
        opens += [wait.until or 0.0 for wait in status.waits if "Retry-After" in wait.what]
        assert status.finish_at is None or status.finish_at >= max(opens, default=0.0) - 0.3, status
    took_s = last.at - told[0].started_at
    for share in AT:
        status = min(told, key=lambda each: abs(each.at - told[0].started_at - share * took_s))
        assert status.finish_at is not None
        left_s = last.at - status.at
        assert abs(status.finish_at - last.at) <= SHARE * left_s + LEAST_S, (share, took_s, left_s, status)


def test_where_answers_are_lost_the_end_moves_with_them(folder: Path) -> None:
    """With one answer in fifty lost, no status shows an end that has passed, and half-way it is off by a quarter."""
    case, display = Case({"writes": puts(*[12] * 20)}, every=50, latency_ms=80.0), Watching()

    async def main() -> None:
        async with world(folder, latency_ms=case.latency_ms, fate_of=case.fate_of) as made:
            manifest = made.write("run", case.jobs, {"concurrency": 8})
            assert (await made.run(manifest, display=display)).exit_code == 0

    simulate(main)
    *told, last = [status for status in display.told if status.state in ("running", "complete")]
    assert all(status.finish_at is None or status.finish_at >= status.at - 0.6 for status in told)
    middle = min(told, key=lambda each: abs(each.at - (told[0].started_at + last.at) / 2))
    assert middle.finish_at is not None
    assert abs(middle.finish_at - last.at) <= 0.25 * (last.at - middle.at) + LEAST_S


@pytest.mark.parametrize("counts", [(45, 30, 10), (40, 40, 40), (5, 60)], ids=str)
def test_installations_are_counted_with(folder: Path, counts: tuple[int, ...]) -> None:
    """Each installation of an App has a budget of its own, and the one that is done last decides the end."""
    display = Watching()
    made_of = [{"prefix": "org-", "count": len(counts), "each": max(counts)}]
    seed = json.dumps({"apps": [{"slug": "fleet", "client_id": "Iv1.fleet", "installations": made_of}]})

    async def main() -> None:
        async with world(folder, limits={CORE: RateLimit(10, 30)}, latency_ms=20.0, seed_data=seed) as made:
            key = made.path / "app.pem"
            key.write_bytes((made.path / "platform" / "fleet.private-key.pem").read_bytes())
            key.chmod(0o600)
            items = [
                {"owner": f"org-{owner}", "repo": f"repo-{number:05d}"}
                for owner, count in enumerate(counts, start=1)
                for number in range(count)
            ]
            app = {"app": {"client_id": "Iv1.fleet", "private_key": "file:app.pem"}}
            jobs = {"reads": {"operation": "readme.get", "credential": "fleet", "items": items}}
            manifest = made.write("run", jobs, credentials={"fleet": app})
            assert (await made.run(manifest, display=display)).exit_code == 0

    simulate(main)
    *told, last = [status for status in display.told if status.state in ("running", "complete")]
    took_s = last.at - told[0].started_at
    assert took_s > 60.0
    for share in AT:
        status = min(told, key=lambda each: abs(each.at - told[0].started_at - share * took_s))
        assert status.finish_at is not None
        left_s = last.at - status.at
        assert abs(status.finish_at - last.at) <= SHARE * left_s + LEAST_S, (share, took_s, left_s, status)
