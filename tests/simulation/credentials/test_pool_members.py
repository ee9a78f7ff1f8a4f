"""What becomes of a pool when one of its members is refused, suspended, or told to wait: the others go on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bulk.sandbox.settings import ExtraToken, RateLimit
from tests.simulation.schedules import readmes
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer
from tests.simulation.world import World, now, simulate, world

FIRST, SECOND = "tok-of-the-first", "tok-of-the-second"
POOL: dict[str, Any] = {"a": "env:A", "b": "env:B", "default": {"pool": ["a", "b"]}}
ONE: dict[str, Any] = {"default": "env:A"}
SUSPENDED = b'{"message": "Sorry. Your account was suspended.", "documentation_url": "https://docs.example.com"}'
SLOWER = b'{"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}'


def reads(made: World, token: str) -> list[Exchange]:
    """READMEs that were asked for with a token."""
    return [each for each in made.network.exchanges if each.token == token and each.path.endswith("/readme")]


def from_then_on(fate: Fate, since: float = 0.2, until: float = 1e9) -> Callable[[Exchange], Fate]:
    """Fates of a platform that answers every README of the first token so for a while."""
    return lambda each: (
        fate if each.token == FIRST and each.path.endswith("/readme") and since < now() < until else FINE
    )


def ended(made: World) -> list[str]:
    """How the items of the newest run ended."""
    assert made.current is not None
    lines = (made.current / "results.jsonl").read_text().splitlines()
    return [line.partition('"outcome":"')[2].partition('"')[0] for line in lines]


def run(
    folder: Path,
    fate_of: Callable[[Exchange], Fate],
    judge: Callable[[World, int], None],
    *,
    other: str = "alice",
    sources: dict[str, Any] | None = None,
    count: int = 300,
    limit: int = 5_000,
) -> None:
    """Read READMEs with a pool whose members act for `octoadmin` and `other`; `judge` gets the exit code."""

    async def main() -> None:
        tokens = [ExtraToken(FIRST, "octoadmin", None), ExtraToken(SECOND, other, None)]
        async with world(folder, tokens=tokens, latency_ms=20.0, limits={"core": RateLimit(limit, 3600)}) as made:
            made.environ = {"A": FIRST, "B": SECOND}
            made.network.fate_of = fate_of
            jobs = {"reads": {"operation": "readme.get", "items": readmes(count)}}
            report = await made.run(made.write("run", jobs, {"concurrency": 8}, credentials=sources or POOL))
            judge(made, report.exit_code)

    simulate(main, tick_s=30.0)


@pytest.mark.parametrize(
    "refusal",
    [
        answer(401, b'{"message": "Bad credentials"}', "application/json"),
        answer(403, SUSPENDED, "application/json"),
    ],
    ids=["revoked", "suspended"],
)
def test_a_member_that_is_refused_hands_its_reads_over(folder: Path, refusal: Fate) -> None:
    """failures.md row 17: what it had under way begins anew with the other one; no item is left, and nothing more is
    sent with its token."""

    def judge(made: World, exit_code: int) -> None:
        assert exit_code == 0
        assert ended(made) == ["succeeded"] * 300
        heard = min(each.answered_at or 0.0 for each in reads(made, FIRST) if each.status in (401, 403))
        assert max(each.at for each in reads(made, FIRST)) <= heard
        assert now() < 10.0

    run(folder, from_then_on(refusal), judge)


def test_a_suspended_user_is_no_failed_item(folder: Path) -> None:
    """failures.md row 17: of a user who is suspended in mid-run no item fails: the run stops and can go on, exit 4."""

    def judge(made: World, exit_code: int) -> None:
        assert exit_code == 4
        assert set(ended(made)) == {"succeeded"}
        assert 0 < len(ended(made)) < 300

    run(folder, from_then_on(answer(403, SUSPENDED, "application/json")), judge, sources=ONE)


@pytest.mark.parametrize(
    "fate",
    [
        answer(403, SLOWER, "application/json"),
        answer(429, SLOWER, "application/json", Retry_After="40"),
    ],
    ids=["without a time", "Retry-After"],
)
def test_a_limit_of_one_member_holds_up_nobody_else(folder: Path, fate: Fate) -> None:
    """Reads that it had under way begin anew with the other one, instead of waiting for it with all workers."""

    def judge(made: World, exit_code: int) -> None:
        assert exit_code == 0
        assert ended(made) == ["succeeded"] * 300
        heard = min(each.answered_at or 0.0 for each in reads(made, FIRST) if each.status in (403, 429))
        assert not [each for each in reads(made, FIRST) if heard < each.at < heard + 40.0]
        assert max(each.at for each in reads(made, SECOND)) < 10.0

    run(folder, from_then_on(fate, until=30.0), judge)


def test_a_limit_of_one_token_is_its_users(folder: Path) -> None:
    """The other token of the same user is not used to go round it."""
    fate = answer(429, SLOWER, "application/json", Retry_After="40")

    def judge(made: World, exit_code: int) -> None:
        assert exit_code == 0
        assert ended(made) == ["succeeded"] * 300
        heard = min(each.answered_at or 0.0 for each in reads(made, FIRST) if each.status == 429)
        both = [*reads(made, FIRST), *reads(made, SECOND)]
        assert not [each.at for each in both if heard < each.at < heard + 40.0]

    run(folder, from_then_on(fate, until=30.0), judge, other="octoadmin")


def test_a_read_of_two_requests_does_not_wait_for_a_window(folder: Path) -> None:
    """A read that has to be sent again when its member has nothing left begins anew with the other one, at once."""
    lost = answer(502, is_passed_on=True)

    def judge(made: World, exit_code: int) -> None:
        assert exit_code == 0
        assert ended(made) == ["succeeded"] * 15
        assert max(each.at for each in reads(made, SECOND)) < 60.0

    run(
        folder,
        lambda each: lost if each.token == FIRST and each.path.endswith("/readme") and now() < 5.0 else FINE,
        judge,
        count=15,
        limit=20,
    )
