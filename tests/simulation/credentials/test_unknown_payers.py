"""A pool whose members may not ask `GET /user`, as tokens of installations: nobody says who pays for them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from bulk.sandbox.http.budgets import Window
from bulk.sandbox.settings import ExtraToken, RateLimit
from tests.simulation.credentials.test_pool_members import FIRST, POOL, SECOND, ended, reads
from tests.simulation.schedules import readmes
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer
from tests.simulation.world import PREFIX, World, now, simulate, world

FORBIDDEN = b'{"message": "Resource not accessible by integration", "documentation_url": "https://docs.example.com"}'
HOUR_S = 3_600
FLEET = "repositories:\n  - {organization: fleet, count: 500, readme_bytes: 120}\n"


def nobody_says(exchange: Exchange) -> Fate:
    """What befalls an exchange: the question whose token it is is refused, as it is to an installation."""
    return answer(403, FORBIDDEN, "application/json") if exchange.path == f"{PREFIX}/user" else FINE


def run(folder: Path, count: int, windows: Sequence[Window], *, concurrency: int = 8) -> tuple[float, World]:
    """Read READMEs with a pool of two tokens, each of which has one of `windows`, or both the same; return how long it
    took (virtual seconds)."""

    async def main() -> tuple[float, World]:
        tokens = [ExtraToken(FIRST, "octoadmin", None), ExtraToken(SECOND, ("alice", "octoadmin")[-len(windows)], None)]
        limits = {"core": RateLimit(windows[0].limit, windows[0].seconds)}
        async with world(folder, tokens=tokens, latency_ms=20.0, limits=limits, seed_data=FLEET) as made:
            made.environ = {"A": FIRST, "B": SECOND}
            made.network.fate_of = nobody_says
            context = made.sandbox.context
            for name, window in zip((FIRST, SECOND), windows, strict=False):
                token = context.state.token(name)
                assert token is not None
                window.started_at = int(made.platform_clock.now()) if window.used else None
                context.budgets._windows[token.payer, "core"] = window
            jobs = {"reads": {"operation": "readme.get", "items": readmes(count)}}
            manifest = made.write("run", jobs, {"concurrency": concurrency}, credentials=POOL)
            report = await made.run(manifest)
            assert report.exit_code == 0, [line for line in made.lines(manifest) if line["outcome"] != "succeeded"][:2]
            assert ended(made) == ["succeeded"] * count
            return now(), made

    return simulate(main, tick_s=30.0, at_most_s=5.0 * HOUR_S)


def refused(made: World) -> int:
    """How many reads the platform refused."""
    return sum(each.status in (403, 429) for token in (FIRST, SECOND) for each in reads(made, token))


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        (Window("core", 100, HOUR_S), Window("core", 400, HOUR_S), 480),
        (Window("core", 400, HOUR_S), Window("core", 100, HOUR_S), 480),
        (Window("core", 200, 600), Window("core", 200, HOUR_S), 390),
        (Window("core", 200, HOUR_S), Window("core", 200, HOUR_S), 390),
        (Window("core", 200, HOUR_S), Window("core", 200, 600), 390),
        (Window("core", 200, HOUR_S, 195), Window("core", 400, HOUR_S), 390),
    ],
    ids=["less and more", "more and less", "other windows", "alike", "longer and shorter", "used up by others"],
)
def test_members_whose_answers_differ_are_separate(folder: Path, first: Window, second: Window, count: int) -> None:
    """Both budgets are used, and none beyond: what the two tokens are told can't be said of one payer."""
    took_s, made = run(folder, count, [first, second])
    assert refused(made) <= 1
    assert took_s < 90.0


@pytest.mark.parametrize("concurrency", [2, 32])
def test_members_of_one_payer_are_not_overspent(folder: Path, concurrency: int) -> None:
    """Two tokens of one user, of whom nobody says so, have his budget once."""
    took_s, made = run(folder, 350, [Window("core", 200, 600)], concurrency=concurrency)
    assert refused(made) <= 1
    assert 590.0 < took_s < 640.0
