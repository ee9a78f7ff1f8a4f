"""Every operation that writes, times everything that can happen to the answer: the right outcome, exactly one effect.

The whole table of `writes.py` meets each of `LOSSES`; one write of each policy also meets what is rarer (`RARE`).
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from bulk import operation
from bulk.sandbox import contents, readme
from bulk.sandbox.areas import AREAS
from tests.simulation import invariants
from tests.simulation.exchanges import Exchange
from tests.simulation.fates import DROP_AFTER, DROP_BEFORE, FINE, MUTE, TRUNCATE, Fate, answer, late
from tests.simulation.schedules import SETTLE_S, TIMEOUT_S
from tests.simulation.world import now, simulate, world
from tests.simulation.writes import SECRET, WRITES

LIMITS = {"request_timeout": TIMEOUT_S, "settle": SETTLE_S}
LOST_AFTER = ("after", "502 after", "truncated")
LOSSES: dict[str, tuple[Fate, ...]] = {
    "before": (DROP_BEFORE,),
    "after": (DROP_AFTER,),
    "502 after": (answer(502, is_passed_on=True),),
    "truncated": (TRUNCATE,),
    "late": (late(TIMEOUT_S + 6.0),),
}
RARE: dict[str, tuple[Fate, ...]] = {
    "502 before": (answer(502),),
    "late, then before": (late(TIMEOUT_S + 6.0), DROP_BEFORE),
    "never answered": (MUTE,),
    "before, then after": (DROP_BEFORE, DROP_AFTER),
    "after, three times": (DROP_AFTER, DROP_AFTER, DROP_AFTER),
    "cut in the head": (Fate(kind="cut", request_cut=40),),
    "cut in the answer's head": (Fate(kind="cut", answer_cut=60),),
}
POLICIES = (
    "new file",
    "deleted blob",
    "snapshot",
    "organization",
    "rename",
    "attached to some",
    "webhook",
    "webhook changed, with its secret",
    "deleted webhook",
    "all read",
    "thread read",
)
"""A write of each of operations.md's policies, and of each way to find out."""
_WITHOUT_FILES = tuple(area for area in AREAS if area not in (contents.AREA, readme.AREA))


def test_every_operation_that_writes_has_its_row() -> None:
    """An operation that writes and is not in the table fails here, and so does a row of none."""
    writing = {name for name in operation.names() if not operation.find(name).is_read}
    assert {write.operation for write in WRITES.values()} == writing


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("write", WRITES)
def test_one_effect_and_the_right_outcome(folder: Path, write: str, loss: str) -> None:
    """failures.md rows 4, 5, 7, 24: whatever becomes of the answer, the effect is there once, the outcome is right."""
    sends, note = _run(folder, write, LOSSES[loss])
    if loss in LOST_AFTER:
        if WRITES[write].is_read_back:
            assert (sends, note.partition(";")[0]) == (1, "the answer was lost")
        else:
            assert sends > 1


@pytest.mark.parametrize("loss", RARE)
@pytest.mark.parametrize("write", POLICIES)
def test_one_effect_whatever_else_happens(folder: Path, write: str, loss: str) -> None:
    """failures.md rows 4, 6, 7, 24: the same where it takes longer, happens again, or breaks within a head."""
    _run(folder, write, RARE[loss])


def _run(folder: Path, name: str, fates: Sequence[Fate]) -> tuple[int, str]:
    """Run one write whose sends meet `fates` in turn; returns how often it was sent, and what its result says."""
    write, left = WRITES[name], iter(fates)

    def fate_of(exchange: Exchange) -> Fate:
        return next(left, FINE) if exchange.is_write else FINE

    async def main() -> tuple[int, str]:
        areas = AREAS if write.operation.startswith("contents.") else _WITHOUT_FILES
        async with world(folder, fate_of=fate_of, seed_data=write.seed_data, areas=areas) as made:
            invariants.watch(made)
            manifest = made.write("lost", {"job": {"operation": write.operation, "items": [write.item]}}, LIMITS)
            report = await made.run(manifest)
            (line,) = made.lines(manifest)
            assert (line["outcome"], report.exit_code) == ("succeeded", 0), line
            (effect,) = made.effects()
            assert effect.startswith(write.effect)
            assert not made.violations
            invariants.nothing_leaked(made, made.runs[-1])
            invariants.nowhere(made.run_dir(manifest), SECRET)
            assert now() < TIMEOUT_S + 2 * SETTLE_S
            return sum(exchange.is_write for exchange in made.network.exchanges), line["result"].get("note") or ""

    return simulate(main)
