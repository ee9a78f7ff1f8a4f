"""Budgets, refusals because of limits, and somebody else who spends from the same budget: nothing fails, nothing is
sent that must not be."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from bulk.sandbox.settings import RateLimit
from tests.simulation import invariants
from tests.simulation.schedules import put, readmes, snapshot
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer
from tests.simulation.world import PREFIX, TOKEN, World, now, simulate, world

JSON = "application/json"
WRITES = 16
PRIMARY = b'{"message": "API rate limit exceeded for user octoadmin."}'
SECONDARY = b'{"message": "You have exceeded a secondary rate limit."}'


def jobs(count: int) -> dict[str, Any]:
    """Reads, writes and snapshots."""
    return {
        "reads": {"operation": "readme.get", "items": readmes(count)},
        "puts": {
            "operation": "contents.put",
            "items": [put(f"repo-{n % 60:05d}", f"f{n}", "a") for n in range(WRITES)],
        },
        "snapshots": {
            "operation": "snapshot.create",
            "items": [snapshot(f"repo-{n % 60:05d}", f"build-{n}") for n in range(WRITES)],
        },
    }


def all_succeeded(made: World, manifest: Path, count: int) -> None:
    """Every item did, with one effect for each write."""
    lines = made.lines(manifest)
    assert len(lines) == count + 2 * WRITES
    assert {line["outcome"] for line in lines} == {"succeeded"}
    assert len(made.effects()) == len(set(made.effects())) == 2 * WRITES
    assert not made.violations, made.violations
    invariants.nothing_leaked(made, made.runs[-1])


def once(fate: Fate, where: str, times: int = 1) -> Any:
    """That fate for the first requests whose path holds `where`, `/rate_limit` apart."""
    left = times

    def fate_of(exchange: Exchange) -> Fate:
        nonlocal left
        if left and where in exchange.path and not exchange.path.endswith("/rate_limit"):
            left -= 1
            return fate
        return FINE

    return fate_of


@pytest.mark.parametrize("pace", ["even", "burst"])
def test_categories_are_spent_in_full_and_never_beyond(folder: Path, pace: str) -> None:
    """Two budgets that reset at their own times: none exceeded, each full window used to 99%, none waits for the
    other."""

    async def main() -> None:
        limits = {"core": RateLimit(100, 10), "dependency_snapshots": RateLimit(4, 4)}
        async with world(folder, limits=limits) as made:
            invariants.watch(made)
            manifest = made.write("run", jobs(380), {"pace": pace})
            assert (await made.run(manifest)).exit_code == 0
            all_succeeded(made, manifest, 380)
            invariants.budgets_were_kept(made)
            assert not [entry for entry in made.journal() if entry.status == 403]
            used = sum(entry.category == "core" for entry in made.journal() if entry.at < 40.0)
            assert used >= 0.99 * 400
            snapshots = [entry for entry in made.journal() if entry.category == "dependency_snapshots"]
            assert max(entry.at for entry in snapshots) < 17.0

    simulate(main)


THREE_WAYS = {
    "primary limit": (answer(403, PRIMARY, JSON), 0.0),
    "primary limit, budget of the header": (
        answer(
            403,
            PRIMARY,
            JSON,
            X_RateLimit_Limit="60",
            X_RateLimit_Remaining="0",
            X_RateLimit_Reset="1800000030",
            X_RateLimit_Resource="core",
        ),
        0.0,
    ),
    "primary limit with Retry-After": (answer(403, PRIMARY, JSON, Retry_After="7"), 7.0),
    "secondary limit with Retry-After": (answer(403, SECONDARY, JSON, Retry_After="7"), 7.0),
    "secondary limit without": (answer(403, SECONDARY, JSON), 60.0),
    "429 with Retry-After": (answer(429, b"", JSON, Retry_After="7"), 7.0),
    "429 without": (answer(429, SECONDARY, JSON), 60.0),
    "429 without a word": (answer(429, b"", JSON), 0.0),
    "unexplained 403": (answer(403, b"", JSON), 0.0),
    "503 with Retry-After": (answer(503, b"", JSON, Retry_After="7"), 7.0),
}


@pytest.mark.parametrize("where", ["readme", "contents/f", "snapshots"])
@pytest.mark.parametrize("kind", THREE_WAYS)
def test_a_limit_is_waited_for_and_no_item_fails(folder: Path, kind: str, where: str) -> None:
    """failures.md row 19: primary, secondary and unexplained refusals are told apart: as long as each asks for nothing
    is sent, and no item fails."""
    fate, silence_s = THREE_WAYS[kind]

    async def main() -> None:
        limits = {"core": RateLimit(1_000, 60), "dependency_snapshots": RateLimit(100, 60)}
        async with world(folder, limits=limits) as made:
            invariants.watch(made)
            made.network.fate_of = once(fate, where)
            manifest = made.write("run", jobs(16), {"concurrency": 8, "settle": "1s"})
            assert (await made.run(manifest)).exit_code == 0
            all_succeeded(made, manifest, 16)
            (hit,) = (each for each in made.network.exchanges if each.fate is fate)
            heard = hit.answered_at or 0.0
            asks = PREFIX + "/rate_limit"
            sent = [each.at for each in made.network.exchanges if each.at > heard + 1e-6 and each.path != asks]
            assert min(sent) >= heard + silence_s
            if silence_s == 7.0:
                everything = [each.at for each in made.network.exchanges if each.at > heard + 1e-6]
                assert min(everything) >= heard + 7.0

    simulate(main)


def test_a_limit_that_the_platform_does_not_name_is_waited_for(folder: Path) -> None:
    """`/rate_limit` is off, and yet a request is refused because of a limit: a minute of silence, no item fails."""

    async def main() -> None:
        async with world(folder) as made:
            fate = answer(403, PRIMARY, JSON)
            made.network.fate_of = once(fate, "readme")
            manifest = made.write("run", {"reads": {"operation": "readme.get", "items": readmes(5)}})
            assert (await made.run(manifest)).exit_code == 0
            (hit,) = (each for each in made.network.exchanges if each.fate is fate)
            sent = [each.at for each in made.network.exchanges if each.at > (hit.answered_at or 0.0) + 1e-6]
            assert min(at for at in sent) >= (hit.answered_at or 0.0)
            assert now() >= 60.0

    simulate(main)


ODD_LIMITS = {
    "nothing of ours": answer(200, b'{"resources": {"search": {"limit": 9, "remaining": 9, "reset": 1}}}', JSON),
    "errors": answer(500),
    "no JSON": answer(200, b"<html>"),
    "wrong types": answer(200, b'{"resources": {"core": {"limit": "many", "remaining": null}}}', JSON),
}


@pytest.mark.parametrize("odd", ODD_LIMITS)
def test_an_odd_rate_limit_holds_nothing_up(folder: Path, odd: str) -> None:
    """`/rate_limit` that can't be used governs nothing, and is not asked in a loop: the run succeeds."""

    async def main() -> None:
        async with world(folder) as made:
            fate = ODD_LIMITS[odd]
            made.network.fate_of = lambda each: fate if each.path.endswith("/rate_limit") else FINE
            manifest = made.write("run", jobs(60))
            assert (await made.run(manifest)).exit_code == 0
            all_succeeded(made, manifest, 60)
            assert now() < 30.0
            assert sum(each.path.endswith("/rate_limit") for each in made.network.exchanges) < 10

    simulate(main)


def test_unexplained_refusals_are_the_answer_at_the_fourth(folder: Path) -> None:
    """failures.md row 19: growing pauses of this item alone; one that is refused a fourth time is `forbidden`."""

    async def main() -> None:
        async with world(folder) as made:
            made.network.fate_of = lambda each: answer(403, b"") if "repo-00000" in each.path else FINE
            manifest = made.write("run", {"reads": {"operation": "readme.get", "items": readmes(30)}})
            assert (await made.run(manifest)).exit_code == 1
            line, *others = made.lines(manifest)
            assert (line["outcome"], line["error"]["code"], line["error"]["attempts"]) == ("failed", "forbidden", 4)
            assert {other["outcome"] for other in others} == {"succeeded"}
            assert 10.0 <= now() < 25.0
            last = max(each.at for each in made.network.exchanges if "repo-00029" in each.path)
            assert last < 1.0

    simulate(main, tick_s=5.0)


def test_a_limit_that_never_ends_ends_the_item(folder: Path) -> None:
    """failures.md row 78: a request that runs into a limit again and again ends as `rate_limited`, after 50 times."""

    async def main() -> None:
        async with world(folder) as made:
            limited = answer(429, SECONDARY, JSON, Retry_After="1")
            made.network.fate_of = lambda each: limited if "repo-00000" in each.path else FINE
            items = [*readmes(2), put("repo-00000", "a", "a")]
            manifest = made.write("run", {"puts": {"operation": "contents.put", "items": items[2:]}})
            assert (await made.run(manifest)).exit_code == 1
            (line,) = made.lines(manifest)
            assert (line["outcome"], line["error"]["code"]) == ("failed", "rate_limited")
            assert now() < 60.0

    simulate(main)


@pytest.mark.parametrize("reserve", ["0", "20%"])
def test_a_rival_is_left_its_reserve(folder: Path, reserve: str) -> None:
    """failures.md row 32: another client spends from the same token: hardly anything is refused, what is reserved is
    left, and nothing is sent in the category after a refusal until its reset."""

    async def main() -> None:
        async with world(folder, limits={"core": RateLimit(200, 20)}) as made:
            taken: list[int] = []
            token = made.sandbox.context.state.token(TOKEN)
            assert token is not None

            async def rival() -> None:
                while True:
                    await anyio.sleep(2.1)
                    window = made.sandbox.context.budgets.window(token.payer, "core", made.platform_clock.now())
                    taken.append(sum(window.take(made.platform_clock.now()) for _ in range(6)))

            manifest = made.write(
                "run", {"reads": {"operation": "readme.get", "items": readmes(500)}}, {"reserve": reserve}
            )
            async with anyio.create_task_group() as group:
                group.start_soon(rival)
                assert (await made.run(manifest)).exit_code == 0
                group.cancel_scope.cancel()
            entries = [entry for entry in made.journal() if entry.category == "core"]
            refused = [entry for entry in entries if entry.status == 403]
            assert {line["outcome"] for line in made.lines(manifest)} == {"succeeded"}
            assert sum(taken) > 50
            if reserve == "0":
                assert len(refused) <= 3
            else:
                assert not refused
                assert min(entry.remaining or 0 for entry in entries) >= 40 - 6
            for entry in refused:
                later = [each for each in entries if entry.at + 0.02 < each.at and each.remaining == 0]
                assert not [each for each in later if each.status == 403 and each.at < entry.at + 1.0]

    simulate(main)


@pytest.mark.parametrize(("each_look_s", "is_busy"), [(0.0, False), (0.05, True)])
def test_a_busy_process_has_fewer_in_flight(folder: Path, each_look_s: float, is_busy: bool) -> None:
    """Of 64 allowed: all where turns of the event loop are short; where they are long, hardly more than at first, and
    what waits says so."""

    async def main() -> None:
        async with world(folder) as made:
            made.clock.each_look_s = each_look_s
            allowed: list[int] = []
            obstacles: set[str] = set()

            def look(_: Exchange) -> Fate:
                governor = made.runs[-1].governor
                allowed.append(governor.concurrency.allowed)
                obstacles.add(governor.queue("default", "core").obstacle)
                return FINE

            made.network.fate_of = look
            manifest = made.write("run", jobs(400))
            assert (await made.run(manifest)).exit_code == 0
            most = max(allowed[200:])
            assert most < 24 if is_busy else most == 64
            assert ("concurrency, as this process is busy" in obstacles) is is_busy

    simulate(main)


def test_an_unasked_304_is_asked_once_more_without_conditions(folder: Path) -> None:
    """failures.md row 13: a 304 for which nothing is stored: one more request, fresh; a second one is a bad answer."""

    async def main() -> None:
        async with world(folder) as made:
            unasked = answer(304, b"")
            made.network.fate_of = once(unasked, "repo-00000")
            manifest = made.write("once", {"reads": {"operation": "readme.get", "items": readmes(1)}})
            assert (await made.run(manifest)).exit_code == 0
            assert len([each for each in made.network.exchanges if "readme" in each.path]) == 2
            made.network.fate_of = lambda each: unasked if "readme" in each.path else FINE
            manifest = made.write("ever", {"reads": {"operation": "readme.get", "items": readmes(1)}})
            assert (await made.run(manifest)).exit_code == 1
            assert made.lines(manifest)[0]["error"]["code"] == "bad_response"

    simulate(main)


def test_what_did_not_change_costs_nothing(folder: Path) -> None:
    """The same reads in a new run: conditional, all 304 and `unchanged` with their results, no budget used; once the
    stored bodies are of another token they are not used (failures.md row 37)."""

    async def main() -> None:
        async with world(folder, limits={"core": RateLimit(100, 3_600)}) as made:
            made.cache = folder / "cache"
            first = made.write("first", {"reads": {"operation": "readme.get", "items": readmes(60)}})
            assert (await made.run(first)).exit_code == 0
            again = made.write("again", {"reads": {"operation": "readme.get", "items": readmes(60)}})
            assert (await made.run(again)).exit_code == 0
            assert {line["outcome"] for line in made.lines(again)} == {"unchanged"}
            results = [[line["result"] for line in made.lines(manifest)] for manifest in (first, again)]
            assert results[0] == results[1]
            context = made.sandbox.context
            token = context.state.token(TOKEN)
            assert token is not None
            assert context.budgets.window(token.payer, "core", made.platform_clock.now()).remaining == 40
            made.environ["BULK_TOKEN"] = "sbx-org-owner"
            other = made.write("other", {"reads": {"operation": "readme.get", "items": readmes(60)}})
            assert (await made.run(other)).exit_code == 0
            assert {line["outcome"] for line in made.lines(other)} == {"succeeded"}

    simulate(main)


def redirect(location: str, status: int = 302) -> Fate:
    """A proxy leads elsewhere."""
    return answer(status, b"", Location=location)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirected_read_is_followed_on_the_platform(folder: Path, status: int) -> None:
    """failures.md row 9: up to five redirects on the same origin, each request from the budget; then it is a
    `bad_response` at once."""
    target = f"{PREFIX}/repos/fleet/repo-00001/readme"

    async def main() -> None:
        async with world(folder, limits={"core": RateLimit(100, 3_600)}) as made:
            made.network.fate_of = once(redirect(target, status), "repo-00000", 5)
            manifest = made.write("good", {"reads": {"operation": "readme.get", "items": readmes(1)}})
            assert (await made.run(manifest)).exit_code == 0
            sent = [each.path for each in made.network.exchanges if "readme" in each.path]
            assert sent == [f"{PREFIX}/repos/fleet/repo-00000/readme", target]
            bucket = made.runs[-1].governor.queue("default", "core").bucket
            assert bucket is not None
            assert bucket.sent - bucket.given_back == 2
            made.network.fate_of = lambda each: redirect(target, status) if "readme" in each.path else FINE
            manifest = made.write("ring", {"reads": {"operation": "readme.get", "items": readmes(1)}})
            assert (await made.run(manifest)).exit_code == 1
            (line,) = made.lines(manifest)
            assert (line["error"]["code"], line["error"]["message"]) == ("bad_response", "redirected too often")
            assert len([each for each in made.network.exchanges if "readme" in each.path]) == 2 + 6

    simulate(main)


@pytest.mark.parametrize("location", ["http://169.254.169.254/x", "https://example.com/api/v3/x", "file:///etc/passwd"])
def test_a_redirect_away_is_not_followed(folder: Path, location: str) -> None:
    """failures.md row 10: another origin is never asked, by reads neither. Where nothing else is answered, a page to
    log in stands before the platform, and no item is lost to it."""

    async def main() -> None:
        async with world(folder) as made:
            made.network.fate_of = lambda each: redirect(location) if "readme" in each.path else FINE
            manifest = made.write("run", {"reads": {"operation": "readme.get", "items": readmes(1)}})
            assert (await made.run(manifest)).exit_code == 3
            assert made.lines(manifest) == []
            readme = f"{PREFIX}/repos/fleet/repo-00000/readme"
            assert {each.path for each in made.network.exchanges} == {readme, f"{PREFIX}/rate_limit"}

    simulate(main)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirected_write_is_not_followed(folder: Path, status: int) -> None:
    """failures.md row 11: a write is never sent elsewhere: `bad_response`, and nothing was changed."""

    async def main() -> None:
        async with world(folder) as made:
            target = f"{PREFIX}/repos/fleet/repo-00001/contents/a"
            made.network.fate_of = lambda each: redirect(target, status) if each.is_write else FINE
            items = {"puts": {"operation": "contents.put", "items": [put("repo-00000", "a", "a")]}}
            manifest = made.write("run", items)
            assert (await made.run(manifest)).exit_code == 1
            (line,) = made.lines(manifest)
            assert (line["outcome"], line["error"]["code"]) == ("failed", "bad_response")
            assert not made.effects()
            assert sum(each.is_write for each in made.network.exchanges) == 1

    simulate(main)
