"""Latency, and writes that must not overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from bulk.sandbox.areas import rate_limit
from bulk.sandbox.areas.rulesets import rulesets
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.refusals import conflict
from bulk.sandbox.http.routes import Area, Route

if TYPE_CHECKING:
    from tests.sandbox.conftest import HandClock, Platform, Start


async def write(call: Call) -> Answer:
    """A write that no other of the same thing may overlap."""
    async with call.writing(call.params["thing"], conflict("busy")):
        return Answer(201, effect=f"wrote {call.params['thing']}")


TEST_AREAS = (
    rate_limit.AREA,
    rulesets.AREA,
    Area("Test", (Route("PUT", "/test/{thing}", write),)),
)


async def until_asleep(clock: HandClock, sleepers: int) -> None:
    """Come back when `sleepers` requests wait for the clock."""
    with anyio.fail_after(60):
        while clock.sleepers < sleepers:
            await anyio.lowlevel.checkpoint()


async def test_latency_of_every_request(start: Start, clock: HandClock) -> None:
    """Every answer takes the latency, refusals too; waiting requests hold up none."""
    platform = await start(clock=clock, latency_ms=40)
    statuses = []

    async def ask(path: str) -> None:
        statuses.append((await platform.ask("GET", path)).status)

    async with anyio.create_task_group() as group:
        for path in ("/rate_limit", "/nothing", "/orgs/acme-eng/rulesets"):
            group.start_soon(ask, path)
        await until_asleep(clock, 3)
        assert statuses == []
        clock.advance(0.04)
    assert sorted(statuses) == [200, 200, 404]
    assert [line["elapsed_ms"] for line in platform.journal()] == [40.0] * 3


async def test_a_write_is_in_progress_during_its_latency(start: Start, clock: HandClock) -> None:
    """While a write is in progress, a second of the same thing is refused; others go on, and so it does later."""
    platform: Platform = await start(clock=clock, latency_ms=40)
    statuses: dict[str, int] = {}

    async def put(name: str, thing: str) -> None:
        statuses[name] = (await platform.ask("PUT", f"/test/{thing}")).status

    async with anyio.create_task_group() as group:
        group.start_soon(put, "first", "a")
        await until_asleep(clock, 1)
        group.start_soon(put, "second", "a")
        group.start_soon(put, "other", "b")
        await until_asleep(clock, 3)
        clock.advance(0.04)
    assert statuses == {"first": 201, "second": 409, "other": 201}
    async with anyio.create_task_group() as group:
        group.start_soon(put, "third", "a")
        await until_asleep(clock, 1)
        clock.advance(0.04)
    assert statuses["third"] == 201
    effects = [line["effect"] for line in platform.journal() if line["effect"]]
    assert sorted(effects) == ["wrote a", "wrote a", "wrote b"]
