"""The loop whose time jumps calls what asyncio's own loop calls, in the same order, and at the same times."""

import asyncio
import random
import selectors
from typing import Any

import pytest

from bulk.engine.rehearsal.virtual_time import TURN_S
from tests.virtual_time import VirtualLoop


class _Jumping(selectors.DefaultSelector):
    """Instead of waiting, time passes."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "a deadlock"
        self.now += TURN_S
        self.now += timeout
        return []


class _Slow(asyncio.SelectorEventLoop):
    """Asyncio's own turns on such time."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def _called(loop: asyncio.AbstractEventLoop, seed: int) -> list[tuple[int, float]]:
    """What is called in which order, and when: timers, of which many are cancelled, and calls that make others."""
    dice = random.Random(seed)
    called: list[tuple[int, float]] = []
    handles: list[asyncio.Handle] = []
    delays = (1.0, 2.0, 3.0, 50.0)

    def call(number: int) -> None:
        called.append((number, loop.time()))
        for _ in range(dice.randrange(3) if len(handles) < 2_000 else 0):
            if dice.random() < 0.3:
                handles.append(loop.call_soon(call, len(handles)))
            else:
                handles.append(loop.call_later(dice.choice((0.0, 1.0, 2.0, 2.5)), call, len(handles)))
        for handle in dice.sample(handles, dice.randrange(3)):
            handle.cancel()

    handles += [loop.call_later(dice.choice(delays), call, number) for number in range(300)]
    for handle in dice.sample(handles, 180):
        handle.cancel()
    with pytest.raises(AssertionError, match="deadlock"):
        loop.run_forever()
    loop.close()
    return called


@pytest.mark.parametrize("seed", range(5))
def test_the_order_is_that_of_asyncio(seed: int) -> None:
    """Of timers of the same time, too, and after cancelled ones were thrown away."""
    found = _called(VirtualLoop(is_alone=True), seed)
    assert len(found) > 500
    assert found == _called(_Slow(), seed)


def test_a_call_that_fails_is_told() -> None:
    """The loop goes on, and its handler of exceptions hears of the call and of when it was due."""
    loop, told = VirtualLoop(is_alone=True), list[dict[str, Any]]()

    def fail() -> None:
        raise ValueError("a flaw")

    loop.set_exception_handler(lambda _, about: told.append(about))
    loop.call_soon(fail)
    loop.call_later(3_600.0, fail)
    loop.call_later(7_200.0, loop.stop)
    loop.run_forever()
    assert [str(about["exception"]) for about in told] == ["a flaw", "a flaw"]
    assert all(repr(about["handle"]) and "fail" in about["message"] for about in told)
    assert loop.time() == pytest.approx(7_200.0)
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon(fail)
