"""How much of answers may be in memory: bounded, and nobody waits for ever."""

import random

import anyio
import pytest

from bulk.platform.bodies.memory_budget import MemoryBudget
from tests.virtual_time import run_virtual

TOTAL = 100


@pytest.mark.parametrize("seed", range(20))
def test_the_room_is_bounded_and_everybody_gets_in(seed: int) -> None:
    """Items that take several times, whatever sizes, hold no more than there is room for and one that goes beyond."""
    dice = random.Random(seed)
    memory_budget, held, ended = MemoryBudget(TOTAL), dict[int, int](), list[int]()

    async def item(number: int) -> None:
        await anyio.sleep(dice.random())
        for _ in range(dice.randint(1, 4)):
            size = dice.randint(1, 2 * TOTAL)
            await memory_budget.take(number, size)
            held[number] = held.get(number, 0) + size
            assert held[number] == memory_budget._held[number]
            assert memory_budget.used_bytes == sum(memory_budget._held.values())
            assert memory_budget.used_bytes - memory_budget._held.get(memory_budget._beyond, 0) <= TOTAL
            await anyio.sleep(dice.random())
        held.pop(number)
        memory_budget.give(number)
        ended.append(number)

    async def scenario() -> None:
        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(item, number)

    run_virtual(scenario)
    assert len(ended) == 50
    assert memory_budget.used_bytes == 0


def test_who_is_cancelled_while_waiting_leaves_nothing_behind() -> None:
    """One that waits and is cancelled takes no room, and the next one's turn comes."""
    memory_budget = MemoryBudget(TOTAL)

    async def scenario() -> None:
        await memory_budget.take("in", TOTAL)
        await memory_budget.take("beyond", TOTAL)
        with anyio.move_on_after(1) as scope:
            await memory_budget.take("given up", TOTAL)
        assert scope.cancelled_caught
        async with anyio.create_task_group() as group:
            group.start_soon(memory_budget.take, "next", TOTAL)
            await anyio.sleep(1)
            assert "next" not in memory_budget
            memory_budget.give("beyond")
        assert "next" in memory_budget
        assert "given up" not in memory_budget

    run_virtual(scenario)
    assert memory_budget.used_bytes == 2 * TOTAL


def test_what_is_passed_on_is_held_by_the_other() -> None:
    """Room that was taken for a body belongs to its item from then on."""
    memory_budget = MemoryBudget(TOTAL)
    assert memory_budget.take_nowait("body", 60)
    memory_budget.pass_on("body", "item")
    memory_budget.give("body")
    assert memory_budget.used_bytes == 60
    assert not memory_budget.take_nowait("other", 41)
    memory_budget.give("item")
    assert memory_budget.take_nowait("other", 41)


def test_who_is_beyond_steps_aside_before_it_waits_for_others() -> None:
    """Items of several answers, with fewer permits than items: who waits for a permit keeps nobody from the room."""
    memory_budget, permits, ended = MemoryBudget(TOTAL), anyio.Semaphore(2), list[int]()

    async def item(number: int) -> None:
        for _ in range(3):
            memory_budget.step_aside(number)
            async with permits:
                await anyio.sleep(0.1)
                await memory_budget.take(number, 2 * TOTAL)
        memory_budget.give(number)
        ended.append(number)

    async def scenario() -> None:
        with anyio.fail_after(100):
            async with anyio.create_task_group() as group:
                for number in range(10):
                    group.start_soon(item, number)

    run_virtual(scenario)
    assert len(ended) == 10
