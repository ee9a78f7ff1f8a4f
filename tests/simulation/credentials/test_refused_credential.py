"""The life of a refused credential: tokens that end, are refused, are renewed, or whose user is locked out."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from bulk.report.fold import Report
from bulk.sandbox.settings import ExtraToken
from tests.simulation import invariants
from tests.simulation.schedules import put, readmes
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, MUTE, Fate, answer
from tests.simulation.world import PREFIX, World, now, simulate, world

SHORT = "tok-that-ends"
NEXT = "tok-that-follows"
LOCKED = answer(
    403,
    b'{"message": "Maximum number of login attempts exceeded. Please try again later."}',
    "application/json",
)
REFUSED = answer(401, b'{"message": "Bad credentials"}', "application/json")


def puts(count: int) -> list[dict[str, Any]]:
    """Writes, a lane each."""
    return [put(f"repo-{number:05d}", "a", "a") for number in range(count)]


def jobs(count: int) -> dict[str, Any]:
    """Reads and writes of the default credential."""
    return {
        "reads": {"operation": "readme.get", "items": readmes(count)},
        "puts": {"operation": "contents.put", "items": puts(min(count, 60))},
    }


def of_token(made: World, token: str) -> list[Exchange]:
    """What was sent with it."""
    return [exchange for exchange in made.network.exchanges if exchange.token == token]


@pytest.mark.parametrize(("latency_ms", "ends_s"), [(2.0, 0.06), (40.0, 0.3)])
def test_nothing_more_leaves_after_the_first_401(folder: Path, latency_ms: float, ends_s: float) -> None:
    """failures.md row 17: a token ends with many requests in flight: exit 4, what was in flight is the last; a resume
    with a good token does the rest."""

    async def main() -> None:
        async with world(folder, tokens=[ExtraToken(SHORT, "octoadmin", ends_s)], latency_ms=latency_ms) as made:
            made.environ["BULK_TOKEN"] = SHORT
            manifest = made.write("run", jobs(700), {"concurrency": 64})
            report = await made.run(manifest)
            assert report.exit_code == 4
            assert now() < 10.0
            assert any(exchange.status == 401 for exchange in of_token(made, SHORT))
            invariants.nothing_after_the_first_401(made, SHORT)
            invariants.nothing_leaked(made, made.runs[-1])
            made.environ["BULK_TOKEN"] = "sbx-site-admin"
            assert (await made.run(manifest)).exit_code == 0
            assert len(made.lines(manifest)) == 760
            assert len(made.effects()) == len(set(made.effects())) == 60

    simulate(main)


@pytest.mark.parametrize("ends_s", [0.101 + number * 0.0031 for number in range(5)])
def test_nothing_more_leaves_whenever_the_token_ends(folder: Path, ends_s: float) -> None:
    """failures.md row 17: the same at other moments, while connections are made and intents are written."""

    async def main() -> None:
        async with world(folder, tokens=[ExtraToken(SHORT, "octoadmin", ends_s)], latency_ms=3.0) as made:
            made.environ["BULK_TOKEN"] = SHORT
            made.network.connect = lambda: 0.02 if now() < 0.08 else 0.15
            manifest = made.write("run", jobs(400), {"concurrency": 64})
            assert (await made.run(manifest)).exit_code == 4
            invariants.nothing_after_the_first_401(made, SHORT)

    simulate(main)


def test_nothing_more_leaves_while_intents_are_written(folder: Path) -> None:
    """failures.md row 17: permits that wait for a slow disk are worth nothing once a 401 has come."""

    async def slow(call: Callable[[], None]) -> None:
        await anyio.sleep(0.05)
        call()

    async def main() -> None:
        async with world(folder, tokens=[ExtraToken(SHORT, "octoadmin")], latency_ms=3.0) as made:
            made.environ["BULK_TOKEN"] = SHORT
            writes: list[float] = []

            def fate_of(exchange: Exchange) -> Fate:
                if exchange.is_write:
                    writes.append(exchange.at)
                return REFUSED if writes and exchange.at > writes[0] + 0.01 else FINE

            made.network.fate_of = fate_of
            made.disk = slow
            manifest = made.write("run", jobs(400), {"concurrency": 64})
            assert (await made.run(manifest)).exit_code == 4
            invariants.nothing_after_the_first_401(made, SHORT)
            invariants.nothing_leaked(made, made.runs[-1])
            assert any(each.is_write for each in of_token(made, SHORT))

    simulate(main)


async def _run_and_renew(made: World, folder: Path, *, concurrency: int, after_s: float) -> tuple[Path, Report]:
    """Run with a token of a file, which holds the next token `after_s` seconds later."""
    del made.environ["BULK_TOKEN"]
    place = folder / "token"
    place.write_text(SHORT)
    place.chmod(0o600)
    manifest = made.write("run", jobs(420), {"concurrency": concurrency}, credentials={"default": f"file:{place}"})

    async def rotate() -> None:
        await anyio.sleep(after_s)
        place.write_text(NEXT)

    async with anyio.create_task_group() as group:
        group.start_soon(rotate)
        report = await made.run(manifest)
    return manifest, report


def test_a_renewal_does_not_wait_for_limits_that_never_come(folder: Path) -> None:
    """failures.md rows 16, 35: a 401 comes while `/rate_limit` is asked in vain: the credential is renewed at once,
    and the run goes on with the next token."""

    async def main() -> None:
        tokens = [ExtraToken(SHORT, "octoadmin", 10.6), ExtraToken(NEXT, "octoadmin", None)]
        async with world(folder, tokens=tokens, latency_ms=30.0) as made:
            made.network.fate_of = lambda exchange: MUTE if "/rate_limit" in exchange.path else FINE
            manifest, report = await _run_and_renew(made, folder, concurrency=4, after_s=10.5)
            assert (report.exit_code, len(made.lines(manifest))) == (0, 480)
            refused = min(each.at for each in of_token(made, SHORT) if each.status == 401)
            assert any(exchange.at < refused + 0.5 for exchange in of_token(made, NEXT))
            invariants.nothing_after_the_first_401(made, SHORT)
            invariants.nothing_leaked(made, made.runs[-1])

    simulate(main)


def test_a_renewed_token_is_tried_by_one_request_alone(folder: Path) -> None:
    """failures.md rows 16, 35: the first 401 freezes the credential, its file is read again once, one request goes
    first; no item fails."""

    async def main() -> None:
        tokens = [ExtraToken(SHORT, "octoadmin", 0.3), ExtraToken(NEXT, "octoadmin", None)]
        async with world(folder, tokens=tokens, latency_ms=30.0) as made:
            manifest, report = await _run_and_renew(made, folder, concurrency=32, after_s=0.25)
            assert report.exit_code == 0
            assert len(made.lines(manifest)) == 480
            invariants.nothing_after_the_first_401(made, SHORT)
            first, *others = of_token(made, NEXT)
            assert first.ended_at is not None
            assert min(each.at for each in others) >= first.ended_at
            refused = [each for each in of_token(made, SHORT) if each.status == 401]
            assert 1 <= len(refused) <= 32

    simulate(main)


def test_a_renewed_token_that_is_refused_too_ends_the_run(folder: Path) -> None:
    """failures.md row 16: renewed once, not for ever: the second 401 is the last word."""

    async def main() -> None:
        async with world(folder, tokens=[ExtraToken(SHORT, "octoadmin", 0.1)], latency_ms=20.0) as made:
            del made.environ["BULK_TOKEN"]
            place = folder / "token"
            place.write_text(SHORT)
            place.chmod(0o600)
            manifest = made.write("run", jobs(420), credentials={"default": f"file:{place}"})

            async def rotate() -> None:
                await anyio.sleep(0.05)
                place.write_text("no-such-token")

            async with anyio.create_task_group() as group:
                group.start_soon(rotate)
                report = await made.run(manifest)
            assert report.exit_code == 4
            assert len(of_token(made, "no-such-token")) == 1

    simulate(main)


@pytest.mark.parametrize("kind", ["wrong", "ended"])
def test_a_lock_out_after_401_does_not_keep_the_run_alive(folder: Path, kind: str) -> None:
    """failures.md rows 17, 18: the answers still under way say "locked out": the credential is refused all the same."""

    async def main() -> None:
        async with world(folder, tokens=[ExtraToken(SHORT, "octoadmin", 0.2)], latency_ms=30.0) as made:
            made.environ["BULK_TOKEN"] = SHORT if kind == "ended" else "no-such-token"
            heard = 0

            def fate_of(exchange: Exchange) -> Fate:
                nonlocal heard
                if now() < 0.2:
                    return FINE
                heard += 1
                return FINE if heard == 1 else LOCKED

            made.network.fate_of = fate_of
            report = await made.run(made.write("run", jobs(700), {"concurrency": 64}))
            assert report.exit_code == 4
            assert now() < 10.0

    simulate(main)


def lock_out(made: World, token: str, begin: float, end: float) -> Callable[[Exchange], Fate]:
    """Fates of a platform that rejects one token for a while."""
    return lambda exchange: LOCKED if exchange.token == token and begin < now() < end else FINE


def test_a_lock_out_is_waited_for_and_tried_by_one_request(folder: Path) -> None:
    """failures.md row 18: a quarter of an hour of silence, one request, twice as long when it is refused again; another
    credential goes on meanwhile, and no item fails."""

    async def main() -> None:
        tokens = [ExtraToken(SHORT, "octoadmin", None), ExtraToken(NEXT, "alice", None)]
        async with world(folder, tokens=tokens, latency_ms=20.0) as made:
            made.environ = {"MINE": SHORT, "OTHER": NEXT}
            made.network.fate_of = lock_out(made, SHORT, 0.2, 1_500.0)
            both = jobs(420)
            both["others"] = {"operation": "readme.get", "items": readmes(420), "credential": "other"}
            sources = {"default": "env:MINE", "other": "env:OTHER"}
            manifest = made.write("run", both, {"concurrency": 32}, credentials=sources)
            report = await made.run(manifest)
            assert report.exit_code == 0
            sent = [exchange.at for exchange in of_token(made, SHORT)]
            heard = min(each.answered_at or 0.0 for each in of_token(made, SHORT) if each.status == 403)
            tries = [at for at in sent if heard + 0.001 < at < 2_000.0]
            assert len(tries) == 1
            assert 900.0 <= tries[0] - heard < 901.0
            after = min(at for at in sent if at > 2_000.0)
            assert 1_800.0 <= after - tries[0] < 1_801.0
            assert max(each.at for each in of_token(made, NEXT) if "readme" in each.path) < 10.0

    simulate(main, tick_s=30.0)


def test_an_error_page_proves_no_token(folder: Path) -> None:
    """failures.md row 16: where limits are off, the first request of an unproven token meets a proxy's 502: still only
    one goes at a time, so that a wrong token makes no storm of refusals."""

    async def main() -> None:
        async with world(folder, latency_ms=10.0) as made:
            made.environ["BULK_TOKEN"] = "no-such-token"
            rate_limit = f"{PREFIX}/rate_limit"

            def fate_of(exchange: Exchange) -> Fate:
                if exchange.path == rate_limit:
                    return answer(404, b"{}", "application/json")
                return answer(502) if now() < 0.1 else FINE

            made.network.fate_of = fate_of
            report = await made.run(made.write("run", jobs(300), {"concurrency": 64}))
            assert report.exit_code == 4
            assert sum(exchange.status == 401 for exchange in made.network.exchanges) == 1

    simulate(main)


def run_of_seed(folder: Path, seed: int) -> int:
    """A run whose token ends at a random moment; how many requests were refused (seed in the message if one left)."""
    dice = random.Random(f"401 {seed}")

    async def main() -> int:
        ending = ExtraToken(SHORT, "octoadmin", dice.uniform(0.02, 0.25))
        async with world(folder, tokens=[ending], latency_ms=dice.choice((1.0, 5.0, 20.0, 60.0)), seed=seed) as made:
            made.environ["BULK_TOKEN"] = SHORT
            made.network.connect = lambda: dice.uniform(0.001, 0.1)
            work = {
                "reads": {"operation": "readme.get", "items": readmes(dice.randint(20, 150))},
                "puts": {"operation": "contents.put", "items": [put(f"repo-{n:05d}", "a", "a") for n in range(30)]},
            }
            manifest = made.write("run", work, {"concurrency": dice.choice((1, 4, 16, 64))})
            report = await made.run(manifest)
            refused = sum(exchange.status == 401 for exchange in made.network.exchanges)
            assert report.exit_code == (4 if refused else 0), seed
            invariants.nothing_after_the_first_401(made, SHORT)
            invariants.nothing_leaked(made, made.runs[-1])
            return refused

    return simulate(main)


def test_nothing_leaves_after_the_first_401(folder: Path) -> None:
    """failures.md row 17: in 12 random schedules, most of which meet a 401."""
    assert sum(run_of_seed(folder / str(seed), seed) > 0 for seed in range(12)) >= 6


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_nothing_leaves_after_the_first_401_in_a_thousand(folder: Path) -> None:
    """failures.md row 17: the same in 1,000 random schedules."""
    assert sum(run_of_seed(folder / str(seed), seed) > 0 for seed in range(1_000, 2_000)) >= 500
