"""Tokens of an hour from a program, for hours, on a machine whose clock is a day wrong and jumps: judged by what was
sent with which token, and by the platform's own clock.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from bulk.sandbox.settings import ExtraToken, RateLimit
from tests.simulation.credentials.test_refused_credential import of_token
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.world import HOURS, World, now, simulate, world
from tests.virtual_time import START

LIFE_S = 3_600.0
DAY_S = 86_400.0
AN_HOUR = 60
"""Requests (count)."""


def readmes(count: int) -> list[dict[str, str]]:
    """As many, each of another repository."""
    return [{"owner": "fleet", "repo": f"repo-{number:05d}"} for number in range(count)]


@dataclass(frozen=True, slots=True)
class Broker:
    """Where the program gets tokens from: a new one every `every_s` seconds, good for an hour. Its clock is the
    platform's.

    Attributes:
        says_end: the program prints when its token ends.
    """

    place: Path
    every_s: float
    says_end: bool
    hours: float

    @property
    def tokens(self) -> list[ExtraToken]:
        """All that it will ever have."""
        count = int(self.hours * HOURS / self.every_s) + 3
        return [ExtraToken(f"an-hour-{n}", "octoadmin", n * self.every_s + LIFE_S) for n in range(count)]

    def hold(self, token: ExtraToken) -> None:
        """From now on the program prints this one."""
        end = datetime.fromtimestamp(START + (token.seconds or 0.0), UTC).isoformat()
        self.place.write_text(f"{token.token}\n{end}\n" if self.says_end else f"{token.token}\n")

    async def run(self) -> None:
        """Hold one after the other."""
        for number, token in enumerate(self.tokens):
            await anyio.sleep(max(0.0, number * self.every_s - now()))
            self.hold(token)


async def _jump(made: World, hours: float, jumps: int) -> None:
    """This machine's clock is a day wrong, and is set `jumps` times."""
    dice = random.Random("jumps")
    made.clock.skew_s = DAY_S
    for moment in sorted(dice.uniform(0.0, hours * HOURS) for _ in range(jumps)):
        await anyio.sleep(max(0.0, moment - now()))
        made.clock.skew_s = dice.uniform(-DAY_S, DAY_S)


def spend_hours(folder: Path, hours: float, *, jumps: int, says_end: bool) -> str:
    """Read for hours; returns the figures."""

    async def main() -> str:
        broker = Broker(folder / "token.txt", 600.0 if says_end else 60.0, says_end, hours)
        limits = {"core": RateLimit(AN_HOUR, 3_600)}
        async with world(folder, limits=limits, tokens=broker.tokens) as made:
            broker.hold(broker.tokens[0])
            ends = {token.token: token.seconds or 0.0 for token in broker.tokens}
            late: list[Exchange] = []
            made.network.watchers.append(lambda each: late.append(each) if each.at >= ends[each.token] else None)
            made.environ = {"PATH": "/usr/bin:/bin"}
            credentials = {"default": f"command:cat {broker.place}"}
            work = {"reads": {"operation": "readme.get", "items": readmes(int(hours * 3 * AN_HOUR))}}
            manifest = made.write("run", work, {"max_duration": f"{hours:g}h"}, credentials=credentials)
            async with anyio.create_task_group() as group:
                group.start_soon(broker.run)
                group.start_soon(_jump, made, hours, jumps)
                report = await made.run(manifest)
                group.cancel_scope.cancel()
            assert report.exit_code == 3, (report.exit_code, now())
            assert now() >= hours * HOURS
            assert not late, [(each.at, each.token) for each in late[:5]]
            refused = [each for each in made.network.exchanges if each.status == 401]
            assert not refused
            used = {each.token for each in made.network.exchanges}
            assert len(used) >= hours
            for token in used:
                first, *others = of_token(made, token)
                assert all(first.ended_at is not None and each.at >= first.ended_at for each in others)
            sent = len(made.network.exchanges)
            return (
                f"{hours:g} h, {jumps} jumps: {sent:,} requests with {len(used)} tokens of an hour, 0 late, 0 refused"
            )

    return simulate(main, at_most_s=2 * hours * HOURS, tick_s=60.0)


@pytest.mark.parametrize("says_end", [True, False])
def test_tokens_are_renewed_before_they_end(folder: Path, says_end: bool, figure: Callable[[str], None]) -> None:
    """failures.md rows 33, 35: three hours with tokens of 60 minutes, whether their program says when they end or not;
    clocks a day wrong and jumping: nothing is sent with one that has ended, and there is no 401."""
    figure(spend_hours(folder, 3, jumps=5, says_end=says_end))


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("says_end", [True, False])
def test_a_day_of_tokens_that_end(folder: Path, says_end: bool, figure: Callable[[str], None]) -> None:
    """failures.md rows 33, 35: 24 simulated hours, clocks a day wrong, 20 jumps: nothing sent with an expired token, no
    401."""
    figure(spend_hours(folder, 24, jumps=20, says_end=says_end))


def test_a_program_without_another_token_ends_the_run(folder: Path) -> None:
    """failures.md rows 35, 36: the token ends and its program has no other: nothing is sent with it, exit 4."""

    async def main() -> None:
        broker = Broker(folder / "token.txt", HOURS, True, 0.0)
        limits = {"core": RateLimit(AN_HOUR, 3_600)}
        async with world(folder, limits=limits, tokens=broker.tokens) as made:
            broker.hold(broker.tokens[0])
            made.environ = {"PATH": "/usr/bin:/bin"}
            work = {"reads": {"operation": "readme.get", "items": readmes(300)}}
            credentials = {"default": f"command:cat {broker.place}"}
            report = await made.run(made.write("run", work, credentials=credentials))
            assert report.exit_code == 4
            assert "gave a token that has ended, at 20" in report.why
            assert "its source gives the same token again" in report.why
            assert "401" not in report.why
            assert 0.9 * LIFE_S < now() < LIFE_S + 61.0
            assert max(each.at for each in made.network.exchanges) < LIFE_S
            assert not [each for each in made.network.exchanges if each.status == 401]

    simulate(main, tick_s=60.0)


def test_a_program_with_other_tokens_that_have_ended_too_ends_the_run(folder: Path) -> None:
    """failures.md row 35: a program that goes on giving tokens that ended is not asked for ever: exit 4."""

    async def main() -> None:
        token = ExtraToken("an-hour-0", "octoadmin", LIFE_S)
        async with world(folder, limits={"core": RateLimit(AN_HOUR, 3_600)}, tokens=[token]) as made:
            broker = Broker(folder / "token.txt", HOURS, True, 0.0)
            broker.hold(token)
            made.environ = {"PATH": "/usr/bin:/bin"}
            work = {"reads": {"operation": "readme.get", "items": readmes(300)}}
            credentials = {"default": f"command:cat {broker.place}"}
            async with anyio.create_task_group() as group:
                group.start_soon(_give_ended, broker)
                report = await made.run(made.write("run", work, credentials=credentials))
                group.cancel_scope.cancel()
            assert report.exit_code == 4
            assert "gave a token that has ended, at 20" in report.why
            assert {each.token for each in made.network.exchanges} == {token.token}
            assert max(each.at for each in made.network.exchanges) < LIFE_S

    simulate(main, tick_s=60.0)


async def _give_ended(broker: Broker) -> None:
    """After a while, the program prints another token, one that has ended."""
    await anyio.sleep(LIFE_S / 2)
    broker.hold(ExtraToken("an-hour-1", "octoadmin", 60.0))
