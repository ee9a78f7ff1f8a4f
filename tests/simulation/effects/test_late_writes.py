"""A write that was sent again and whose first send is still on its way, when the process that knows of it is gone."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.simulation.schedules import SETTLE_S, TIMEOUT_S, put
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, late
from tests.simulation.world import now, simulate, world

LIMITS = {"request_timeout": TIMEOUT_S, "settle": SETTLE_S, "concurrency": 8}


@pytest.mark.parametrize("seconds", [8.0, SETTLE_S - 1.0])
def test_what_comes_next_waits_for_it_after_a_resume_too(folder: Path, seconds: float) -> None:
    """failures.md rows 7, 42: a file is put, late, and once more; the run is cut off when that is told, and goes on: it
    is deleted only once nothing can create it anew."""

    async def main() -> None:
        fates = iter((late(TIMEOUT_S + seconds),))
        async with world(folder, fate_of=lambda each: next(fates, FINE) if each.is_write else FINE) as made:
            delete = {"owner": "fleet", "repo": "repo-00000", "path": "a", "message": "Delete"}
            jobs: dict[str, Any] = {
                "puts": {"operation": "contents.put", "items": [put("repo-00000", "a", "a")]},
                "deletes": {"operation": "contents.delete", "items": [delete], "allow_overwrites": True},
            }
            manifest = made.write("run", jobs, LIMITS)
            await made.run_until_told(manifest)
            assert made.told_items == {("puts", 0)}
            assert len(made.effects()) == 1
            assert (await made.run(manifest)).exit_code == 0
            await anyio.sleep(60.0)
            assert len(made.effects()) == 2, made.effects()
            assert [line["outcome"] for line in made.lines(manifest)] == ["succeeded", "succeeded"]

    simulate(main)


def test_other_lanes_need_not_wait_after_a_resume(folder: Path) -> None:
    """An organization is created, late, and once more; the run is cut off when that is told, and goes on: what renames
    that organization waits, what renames another one does not (failures.md rows 7, 42)."""
    sent: dict[str, float] = {}

    def fate_of(exchange: Exchange) -> Fate:
        if exchange.method == "PATCH":
            sent.setdefault(exchange.path.rpartition("/")[2], now())
        if "readme" in exchange.path:
            return Fate(kind="slow", request_s=1.0)
        return next(fates, FINE) if exchange.is_write else FINE

    async def main() -> float:
        async with world(folder, fate_of=fate_of) as made:
            jobs: dict[str, Any] = {
                "make": {"operation": "organization.create", "items": [{"login": "fresh", "admin": "octoadmin"}]},
                "read": {
                    "operation": "readme.get",
                    "needs": ["make"],
                    "items": [{"owner": "acme-eng", "repo": "hello-world"}],
                },
                "rename": {
                    "operation": "organization.rename",
                    "needs": ["read"],
                    "items": [{"org": "fresh", "login": "stale"}, {"org": "acme-labs", "login": "acme-research"}],
                },
            }
            manifest = made.write("run", jobs, LIMITS)
            await made.run_until_told(manifest)
            assert made.told_items == {("make", 0)}
            resumed_at = now()
            assert (await made.run(manifest)).exit_code == 0
            return resumed_at

    fates = iter((late(TIMEOUT_S + SETTLE_S - 1.0),))
    resumed_at = simulate(main)
    assert sent["acme-labs"] - resumed_at < 3.0
    assert sent["fresh"] - resumed_at >= SETTLE_S
