"""What befalls a world while a run goes on, from a seed: clocks that are wrong and jump, tokens that end, somebody else
who uses the same token, a disk that refuses, outages. Each seed has a few of them; `calm` has none.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import anyio
import anyio.lowlevel

from bulk.errors import RunStopped
from bulk.sandbox.settings import ExtraToken
from tests.simulation.world import TOKEN, World, now

DAY_S = 86_400.0
NUDGE_S = 0.7
"""The platform's own clock is set by no more than that while it works (seconds)."""
LIFE_S = 20.0
LIVES = 6
"""Tokens end after about that time (seconds), and that many of them do; the last one stays."""
ROTATED_S = 0.4
"""A token's file holds the next one that long before it ends (seconds)."""
MOST_FIRST_S = 30.0
"""Troubles begin within this time (seconds)."""


@dataclass(frozen=True, slots=True)
class Troubles:
    """What a seed has.

    Attributes:
        skew_s, platform_skew_s: how wrong the clocks are from the start (seconds).
        jumps: of this machine's clock: when (the loop's seconds), by how much. nudges: of the platform's.
        lives: when tokens end (seconds after the start); empty: the one token stays.
        takes: when somebody else takes how many requests of `core`.
        refusals: when the disk begins to refuse, and for how many writes.
        outages: when the platform says nothing but 5xx, begin and end.
    """

    KINDS: ClassVar = ("skew", "jumps", "tokens", "rival", "disk", "outages")

    skew_s: float = 0.0
    platform_skew_s: float = 0.0
    jumps: tuple[tuple[float, float], ...] = ()
    nudges: tuple[tuple[float, float], ...] = ()
    lives: tuple[float, ...] = ()
    takes: tuple[tuple[float, int], ...] = ()
    refusals: tuple[tuple[float, int], ...] = ()
    outages: tuple[tuple[float, float], ...] = ()

    @classmethod
    def of(cls, seed: int) -> "Troubles":
        """Those of a seed: each kind in a third of the seeds."""
        dice = random.Random(f"troubles {seed}")
        has = {kind: dice.random() < 1 / 3 for kind in cls.KINDS}

        def moments(most: int) -> list[float]:
            return sorted(dice.uniform(0.0, MOST_FIRST_S) for _ in range(dice.randint(1, most)))

        begins = moments(3)
        ends, end = [], 0.0
        for _ in range(LIVES):
            end += dice.uniform(0.2, 1.8) * LIFE_S
            ends.append(end)
        return cls(
            skew_s=dice.choice((-DAY_S, DAY_S, 600.0)) if has["skew"] else 0.0,
            platform_skew_s=dice.choice((-DAY_S, DAY_S, -600.0)) if has["skew"] else 0.0,
            jumps=tuple((at, dice.uniform(-DAY_S, DAY_S)) for at in moments(5)) if has["jumps"] else (),
            nudges=tuple((at, dice.uniform(-NUDGE_S, NUDGE_S)) for at in moments(3)) if has["jumps"] else (),
            lives=tuple(ends) if has["tokens"] else (),
            takes=tuple((at, dice.randint(1, 30)) for at in moments(12)) if has["rival"] else (),
            refusals=tuple((at, dice.choice((1, 2, 5, 100))) for at in moments(2)) if has["disk"] else (),
            outages=tuple((at, at + dice.uniform(0.5, 20.0)) for at in begins) if has["outages"] else (),
        )

    @property
    def tokens(self) -> tuple[str, ...]:
        """In the order in which they are used."""
        return (*(f"token-{number}" for number in range(len(self.lives))), TOKEN) if self.lives else (TOKEN,)

    @property
    def extra_tokens(self) -> tuple[ExtraToken, ...]:
        """Those that end."""
        return tuple(ExtraToken(token, "octoadmin", end) for token, end in zip(self.tokens, self.lives, strict=False))

    def credentials(self, folder: Path) -> dict[str, dict[str, str]]:
        """The manifest's, where the token is in a file; the first one is written."""
        if not self.lives:
            return {}
        _hold(folder / "token.txt", self.tokens[0])
        return {"credentials": {"default": f"file:{folder / 'token'}"}}

    async def befall(self, made: World) -> None:
        """All of them in their time, until cancelled."""
        made.clock.skew_s += self.skew_s
        made.disk = RefusingDisk(list(self.refusals))
        doings: list[tuple[float, int, Callable[[], object]]] = []
        for at, seconds in self.jumps:
            doings.append((at, 0, lambda seconds=seconds: _jump(made.clock, seconds)))  # type: ignore[misc]
        for at, seconds in self.nudges:
            doings.append((at, 1, lambda seconds=seconds: _jump(made.platform_clock, seconds)))  # type: ignore[misc]
        for at, token in zip(self.lives, self.tokens[1:], strict=False):
            doings.append((at - ROTATED_S, 2, lambda token=token: _hold(made.path / "token.txt", token)))  # type: ignore[misc]
        for at, count in self.takes:
            doings.append((at, 3, lambda count=count: _take(made, self.tokens, count)))  # type: ignore[misc]
        for at, _, do in sorted(doings, key=lambda doing: doing[:2]):
            await anyio.sleep(max(0.0, at - now()))
            made.network.note(f"trouble {at:.3f}")
            do()


class RefusingDisk:
    """A disk that is full now and then: no write goes through until so many were refused."""

    def __init__(self, refusals: list[tuple[float, int]]) -> None:
        self._refusals, self._left = refusals, 0

    async def __call__(self, call: Callable[[], None]) -> None:
        """What the recorder has written."""
        await anyio.lowlevel.checkpoint()
        if self._refusals and now() >= self._refusals[0][0]:
            self._left = self._refusals.pop(0)[1]
        if self._left:
            self._left -= 1
            raise RunStopped("ledger.db: database or disk is full")
        call()


def _jump(clock: object, seconds: float) -> None:
    clock.skew_s += seconds  # type: ignore[attr-defined]


def _hold(path: Path, token: str) -> None:
    path.write_text(token)
    path.chmod(0o600)


def _take(made: World, tokens: tuple[str, ...], count: int) -> None:
    """Somebody else takes `count`, with whichever of the tokens is good."""
    context, moment = made.sandbox.context, made.platform_clock.now()
    if context.budgets.is_off:
        return
    for text in tokens:
        token = context.state.token(text)
        if token is not None and (token.ends_at is None or moment < token.ends_at):
            window = context.budgets.window(token.payer, "core", moment)
            for _ in range(count):
                window.take(moment)
            return
