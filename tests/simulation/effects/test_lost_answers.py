"""Every operation that writes, times everything that can happen to the answer: the right outcome, exactly one effect.

The whole table of `writes.py` meets each of `LOSSES`; one write of each policy also meets what is rarer (`RARE`).
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bulk import operation
from bulk.sandbox.areas.contents import contents, readme
from bulk.sandbox.areas.served import AREAS
from tests.simulation import invariants
from tests.simulation.schedules import SETTLE_S, TIMEOUT_S
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, DROP_BEFORE, FINE, MUTE, TRUNCATE, Fate, answer, late
from tests.simulation.world import now, simulate, world
from tests.simulation.writes import SECRET, WRITES, Proof

POLL_INTERVAL_S = 60.0
"""Of the sandbox: how often notifications may be asked for (seconds)."""
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
    **{f"{status} after": (answer(status, is_passed_on=True),) for status in (408, 421, 425, 499, 503, 520)},
    "429 with a time after": (answer(429, Retry_After="2", is_passed_on=True),),
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
ALWAYS_LOST = (
    "snapshot",
    "attached to some",
    "attached to all",
    "default",
    "security",
    "security that can't be read",
    "product",
    "webhook changed, with its secret",
    "all read",
)
"""What is sent again until an answer arrives, or until it is done in the background: one of each kind."""
_WITHOUT_FILES = tuple(area for area in AREAS if area not in (contents.AREA, readme.AREA))


def test_every_operation_that_writes_has_its_row() -> None:
    """An operation that writes and is not in the table fails here, and so does a row of none."""
    writing = {name for name in operation.names() if not operation.find(name).is_read}
    assert {write.operation for write in WRITES.values()} == writing


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("write", WRITES)
def test_one_effect_and_the_right_outcome(folder: Path, write: str, loss: str) -> None:
    """failures.md rows 4, 5, 7, 24: whatever becomes of the answer, the effect is there once, the outcome is right."""
    run = _run(folder, write, LOSSES[loss])
    assert run.line["outcome"] == "succeeded", run.line
    assert run.seconds < _most_s(write)
    if loss in LOST_AFTER:
        if WRITES[write].proof is Proof.READ:
            assert (run.sends, run.note.partition(";")[0]) == (1, "the answer was lost")
        else:
            assert run.sends > 1


@pytest.mark.parametrize("loss", RARE)
@pytest.mark.parametrize("write", POLICIES)
def test_one_effect_whatever_else_happens(folder: Path, write: str, loss: str) -> None:
    """failures.md rows 4, 6, 7, 24: the same where it takes longer, happens again, or breaks within a head."""
    run = _run(folder, write, RARE[loss])
    assert run.line["outcome"] == "succeeded", run.line
    assert run.seconds < _most_s(write)


@pytest.mark.parametrize("write", ALWAYS_LOST)
def test_answers_that_are_always_lost(folder: Path, write: str) -> None:
    """failures.md rows 4, 78: applied once, it is `unknown` where only an answer could tell, and nowhere else."""
    run = _run(folder, write, itertools.repeat(DROP_AFTER))
    if WRITES[write].proof is Proof.REPEAT:
        assert (run.line["outcome"], run.line["error"]["code"], run.exit_code) == ("unknown", "unknown_outcome", 6)
    else:
        assert (run.line["outcome"], run.exit_code) == ("succeeded", 0)


def _most_s(write: str) -> float:
    """How long settling may take (seconds): three looks at notifications are two poll intervals apart."""
    return TIMEOUT_S + 2 * SETTLE_S + 2 * POLL_INTERVAL_S * (WRITES[write].operation == "notification.mark-read")


@dataclass(frozen=True, slots=True)
class Ran:
    """One item's end: its line, how often it was sent, how long the run took (virtual seconds)."""

    line: dict[str, Any]
    exit_code: int
    sends: int
    seconds: float

    @property
    def note(self) -> str:
        """What its result says of itself."""
        return self.line["result"].get("note") or ""


def _run(folder: Path, name: str, fates: Iterable[Fate]) -> Ran:
    """Run one write whose sends meet `fates` in turn. However it ends: one effect, and nothing is left behind."""
    write, left = WRITES[name], iter(fates)

    def fate_of(exchange: Exchange) -> Fate:
        return next(left, FINE) if exchange.is_write else FINE

    async def main() -> Ran:
        areas = AREAS if write.operation.startswith("contents.") else _WITHOUT_FILES
        async with world(folder, fate_of=fate_of, seed_data=write.seed_data, areas=areas) as made:
            invariants.watch(made)
            manifest = made.write("lost", {"job": {"operation": write.operation, "items": [write.item]}}, LIMITS)
            report = await made.run(manifest)
            (effect,) = made.effects()
            assert effect.startswith(write.effect)
            assert not made.violations
            invariants.nothing_leaked(made, made.runs[-1])
            invariants.nowhere(made.run_dir(manifest), SECRET)
            (line,) = made.lines(manifest)
            sends = sum(exchange.is_write for exchange in made.network.exchanges)
            return Ran(line, report.exit_code, sends, now())

    return simulate(main, tick_s=60.0)
