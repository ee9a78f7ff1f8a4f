"""What becomes of items that write with a pool whose member can't go on: the other members do them, each once."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bulk.sandbox.settings import ExtraToken, RateLimit
from bulk.status import Display, RunStatus, Silence
from tests.simulation.schedules import put, readmes
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer
from tests.simulation.world import World, now, simulate, world

FIRST, SECOND = "tok-of-the-first", "tok-of-the-second"
POOL: dict[str, Any] = {"a": "env:A", "b": "env:B", "default": {"pool": ["a", "b"], "writes": True}}
REVOKED = answer(401, b'{"message": "Bad credentials"}', "application/json")
SLOWER = answer(
    429,
    b'{"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}',
    "application/json",
    Retry_After="600",
)
REPOSITORIES, FILES_EACH = 12, 5
WINDOW_S = 60
SEED = """\
users:
  - {login: dave, name: Dave Dorn, email: dave@acme.example, site_admin: true, enterprise_owner: true}
organizations:
  - {login: fleet, owners: [octoadmin, dave]}
repositories:
  - {organization: fleet, count: 60, readme_bytes: 60}
"""
_TEAM = {"enterprise": "acme", "enterprise-team": "ent:platform"}


def files() -> list[dict[str, Any]]:
    """Files in a few repositories, whose items are done one at a time."""
    numbers = range(REPOSITORIES * FILES_EACH)
    return [put(f"repo-{number % REPOSITORIES:05d}", f"new-{number}.txt", str(number)) for number in numbers]


def run(
    folder: Path,
    fate_of: Callable[[Exchange], Fate],
    judge: Callable[[World, int], None],
    jobs: dict[str, Any] | None = None,
    limit: int = 5_000,
    display: Display | None = None,
) -> None:
    """Write with a pool whose members act for two users; `judge` gets the exit code."""

    async def main() -> None:
        tokens = [ExtraToken(FIRST, "octoadmin", None), ExtraToken(SECOND, "dave", None)]
        limits = {"core": RateLimit(limit, WINDOW_S)}
        async with world(folder, tokens=tokens, latency_ms=20.0, limits=limits, seed_data=SEED) as made:
            made.environ = {"A": FIRST, "B": SECOND}
            made.network.fate_of = fate_of
            wanted = jobs or {"files": {"operation": "contents.put", "items": files()}}
            manifest = made.write("run", wanted, {"concurrency": 16}, credentials=POOL)
            report = await made.run(manifest, display=display or made.display())
            judge(made, report.exit_code)

    simulate(main, tick_s=10.0)


def writes(made: World) -> Counter[str]:
    """How often each write was carried out."""
    return Counter(
        f"{each.method} {each.path}"
        for each in made.network.exchanges
        if each.method in ("PUT", "POST") and each.status in (200, 201)
    )


def from_then_on(fate: Fate, method: str = "") -> Callable[[Exchange], Fate]:
    """Fates of a platform that answers every request of the first token so, from a moment on, or those of a method."""
    return lambda each: (
        fate if each.token == FIRST and now() > 0.3 and "/repos/" in each.path and method in ("", each.method) else FINE
    )


@pytest.mark.parametrize("fate", [REVOKED, SLOWER], ids=["revoked", "told to wait"])
@pytest.mark.parametrize("method", ["", "PUT"], ids=["all", "writes"])
def test_what_a_member_can_not_write_the_other_one_writes(folder: Path, fate: Fate, method: str) -> None:
    """failures.md row 17: no lane waits for the member, none is left, and every file is written once."""

    def judge(made: World, exit_code: int) -> None:
        assert exit_code == 0
        assert len(writes(made)) == len(files())
        assert set(writes(made).values()) == {1}
        assert {each.token for each in made.network.exchanges} >= {FIRST, SECOND}
        assert now() < 60.0

    run(folder, from_then_on(fate, method), judge)


def test_what_shares_a_call_goes_on_with_the_other_member(folder: Path) -> None:
    """failures.md row 17: assignments that share a call which is refused with the member are made by the other one."""
    items = [{**_TEAM, "org": name} for name in ("acme-ops", "acme-labs")]

    def judge(made: World, exit_code: int) -> None:
        assert exit_code == 0
        refused = [each for each in made.network.exchanges if each.status == 401]
        assert refused
        assert {each.token for each in refused} == {FIRST}

    def fate_of(each: Exchange) -> Fate:
        return REVOKED if each.token == FIRST and "/organizations/" in each.path else FINE

    run(folder, fate_of, judge, {"teams": {"operation": "team-organization.assign", "items": items}})


def test_no_item_waits_for_a_window_while_another_member_has_requests(folder: Path) -> None:
    """An item that has only looked goes on with whoever has requests left, also where that member's next window has
    just begun: 60 files, of two requests each, in windows of 2 × 40 requests take one new window."""

    def judge(made: World, exit_code: int) -> None:
        assert exit_code == 0
        assert set(writes(made).values()) == {1}
        assert now() < 1.5 * WINDOW_S

    run(folder, lambda _: FINE, judge, limit=40)


class Watching(Silence):
    """A display that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[RunStatus] = []

    def update(self, status: RunStatus) -> None:
        """Keep it."""
        self.told.append(status)


def test_the_end_that_is_shown_counts_the_budgets_of_a_pool(folder: Path) -> None:
    """300 reads in windows of 2 × 40 requests take four, and the end that is shown says so from the first one on."""
    display = Watching()
    jobs = {"reads": {"operation": "readme.get", "items": readmes(300)}}
    seen: list[float] = []

    def judge(_: World, exit_code: int) -> None:
        assert exit_code == 0
        *told, last = [status for status in display.told if status.state in ("running", "complete")]
        for share in (0.25, 0.5, 0.75):
            at = told[0].started_at + share * (last.at - told[0].started_at)
            status = min(told, key=lambda each: abs(each.at - at))
            assert status.finish_at is not None
            seen.append(status.finish_at - last.at)

    run(folder, lambda _: FINE, judge, jobs, limit=40, display=display)
    assert all(abs(off_s) <= 3.0 for off_s in seen), seen


HOOKS = {"operation": "webhook.create", "items": [{"org": "fleet", "config": {"url": "http://127.0.0.1:9/hook"}}]}
ONCE: dict[str, dict[str, Any]] = {
    "rename": {"operation": "organization.rename", "items": [{"org": "acme-labs", "login": "acme-lab"}]},
    "rename, waited for": {
        "operation": "organization.rename",
        "items": [{"org": "acme-labs", "login": "acme-lab", "wait": True}],
    },
    "organization": {"operation": "organization.create", "items": [{"login": "acme-new", "admin": "octoadmin"}]},
    "webhook": HOOKS,
}


@pytest.mark.parametrize("name", ONCE)
@pytest.mark.parametrize("is_done", [False, True], ids=["not done", "done"])
def test_what_must_not_be_done_twice_is_settled_with_another_member(folder: Path, name: str, is_done: bool) -> None:
    """failures.md row 17: a creation or a rename that was refused with 401, and may have been done all the same, is
    looked for with the other member; it is done once, and the run goes on to its end."""
    refused = answer(401, b'{"message": "Bad credentials"}', "application/json", is_passed_on=is_done)

    def judge(made: World, exit_code: int) -> None:
        assert exit_code == 0
        assert len([effect for effect in made.effects() if "fleet/" not in effect]) == 1, made.effects()
        tokens = [each.token for each in made.network.exchanges if each.is_write]
        assert tokens == [FIRST, *([] if is_done else [SECOND])]

    run(folder, lambda each: refused if each.token == FIRST and each.is_write else FINE, judge, {"it": ONCE[name]})


def test_a_read_that_is_refused_after_a_write_is_asked_by_another_member(folder: Path) -> None:
    """failures.md row 17: where a write was taken, and the read that has to follow it is refused with 401, the write is
    settled with the other member: it is not sent again."""
    seen: list[str] = []

    def fate_of(each: Exchange) -> Fate:
        is_after = each.token == FIRST and bool(seen)
        if each.is_write:
            seen.append(each.path)
        return REVOKED if is_after else FINE

    def judge(made: World, exit_code: int) -> None:
        assert exit_code == 0
        assert len(made.effects()) == 1, made.effects()
        assert len([each for each in made.network.exchanges if each.is_write]) == 1

    run(folder, fate_of, judge, {"it": ONCE["rename, waited for"]})
