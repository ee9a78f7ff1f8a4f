"""Webhooks and notifications with the real engine: secrets, poll intervals, a moment that is fixed."""

import base64
import json
from itertools import pairwise
from pathlib import Path

import pytest

from bulk.errors import Interrupted
from bulk.sandbox.areas.notifications import Polls
from bulk.sandbox.clock import parse_iso
from tests.simulation import invariants
from tests.simulation.schedules import SETTLE_S, TIMEOUT_S
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, FINE, Fate, answer
from tests.simulation.world import World, now, simulate, world
from tests.simulation.writes import HOOK, SECRET, URL
from tests.virtual_time import START

LIMITS = {"request_timeout": TIMEOUT_S, "settle": SETTLE_S}


@pytest.mark.parametrize("place", ["env:HOOK", "file:secret"])
def test_a_secret_goes_from_its_place_to_the_platform(folder: Path, place: str) -> None:
    """What `env:` and `file:` hold arrives, and stays out of every file of the run."""

    async def main() -> None:
        async with world(folder) as made:
            made.environ["HOOK"] = SECRET
            (folder / "secret").write_text(SECRET + "\n")
            (folder / "secret").chmod(0o600)
            config = {"url": URL, "secret": place}
            items = [{"org": "acme-eng", "config": config, "active": False}, {**HOOK, "config": config, "name": "web"}]
            jobs = {
                "make": {"operation": "webhook.create", "items": items[:1]},
                "change": {"operation": "webhook.update", "items": items[1:]},
            }
            manifest = made.write("secrets", jobs)
            assert (await made.run(manifest)).exit_code == 0
            rows = made.sandbox.context.state.db.execute("SELECT config_json FROM hooks ORDER BY id").fetchall()
            assert [json.loads(row[0])["secret"] for row in rows] == [SECRET, SECRET]
            made_line = made.lines(manifest)[1]
            assert made_line["item"]["config"] == {"url": config["url"]}
            assert made_line["result"]["config"]["secret"] == "********"
            invariants.nowhere(made.run_dir(manifest), SECRET)

    simulate(main)


def test_a_secret_that_comes_back_in_an_error(folder: Path) -> None:
    """A platform that repeats the secret in its refusal, plain or in Base64, does not bring it into any file."""
    repeated = f"{SECRET} is too weak, {base64.b64encode(b'it:' + SECRET.encode()).decode()} too"
    refusal = answer(422, json.dumps({"message": repeated}).encode(), "application/json")

    async def main() -> None:
        async with world(folder, fate_of=lambda exchange: refusal if exchange.is_write else FINE) as made:
            made.environ["HOOK"] = SECRET
            item = {**HOOK, "config": {"url": URL, "secret": "env:HOOK"}}
            manifest = made.write("echo", {"job": {"operation": "webhook.update", "items": [item]}})
            assert (await made.run(manifest)).exit_code == 1
            assert "*** is too weak" in made.lines(manifest)[0]["error"]["message"]
            invariants.nowhere(made.run_dir(manifest), SECRET)

    simulate(main)


def test_a_missing_secret_fails_its_item_alone(folder: Path) -> None:
    """Nothing of that item is sent, the message names field and variable, and a retry takes it up."""

    async def main() -> None:
        async with world(folder) as made:
            config = {"url": URL, "secret": "env:HOOK"}
            items = [{**HOOK, "config": config}, {**HOOK, "active": False, "drop_secret": True}]
            manifest = made.write("missing", {"job": {"operation": "webhook.update", "items": items}})
            assert (await made.run(manifest)).exit_code == 1
            first, second = made.lines(manifest)
            assert (first["outcome"], first["error"]["code"]) == ("failed", "invalid_item")
            assert first["error"]["message"] == "config.secret: the environment variable HOOK is not set"
            assert (second["outcome"], len(made.effects())) == ("succeeded", 1)
            made.environ["HOOK"] = SECRET
            assert (await made.retry(manifest)).exit_code == 0

    simulate(main)


def test_polls_keep_their_distance(folder: Path) -> None:
    """Lists of one credential are polled one at a time, the interval apart; other work does not wait for them."""

    async def main() -> None:
        async with world(folder) as made:
            jobs = {
                "polls": {"operation": "notification.list", "items": [{"all": True}, {}, {"participating": True}]},
                "others": {"operation": "thread.get", "items": [{"thread_id": number} for number in (1, 2, 3)]},
            }
            manifest = made.write("polls", jobs)
            assert (await made.run(manifest)).exit_code == 0
            journal = made.journal()
            polls = [entry.at for entry in journal if entry.path.endswith("/notifications")]
            others = [entry.at for entry in journal if "/threads/" in entry.path]
            assert len(polls) == 3
            assert all(60.0 <= later - earlier < 62.0 for earlier, later in pairwise(polls))
            assert max(others) < 5.0
            assert now() < 130.0

    simulate(main)


def test_the_interval_is_obeyed_as_it_grows(folder: Path) -> None:
    """Where others load the platform, the next poll waits as long as the newest answer said."""

    async def main() -> None:
        async with world(folder) as made:
            polls = made.sandbox.context.get(Polls)
            for _ in range(25):
                polls.note(made.platform_clock.now())
            manifest = made.write("load", {"job": {"operation": "notification.list", "items": [{}, {"all": True}]}})
            assert (await made.run(manifest)).exit_code == 0
            first, second = (entry.at for entry in made.journal() if entry.path.endswith("/notifications"))
            assert 180.0 <= second - first < 182.0

    simulate(main)


def test_a_run_that_waits_for_a_poll_can_be_stopped(folder: Path) -> None:
    """Waiting for the next poll ends with the run, and a resume goes on with what is left."""

    async def main() -> None:
        async with world(folder) as made:
            items = [{}, {"all": True}]
            manifest = made.write("stop", {"job": {"operation": "notification.list", "items": items}})
            made.on_told = lambda: made.runs[-1].stop(Interrupted("SIGINT", 130))
            assert (await made.run(manifest)).exit_code == 130
            assert now() < 30.0
            made.on_told = lambda: None
            assert (await made.run(manifest)).exit_code == 0
            assert len(made.lines(manifest)) == 2

    simulate(main)


@pytest.mark.parametrize("skew_s", [0.0, 86_400.0, -86_400.0])
def test_the_moment_is_that_of_the_first_start(folder: Path, skew_s: float) -> None:
    """By the platform's clock, whatever this machine's says; a retry an hour later asks for the same moment."""
    refusals = iter([answer(404, b'{"message":"No"}', "application/json")])

    def fate_of(exchange: Exchange) -> Fate:
        return next(refusals, FINE) if exchange.is_write else FINE

    async def main() -> None:
        async with world(folder, fate_of=fate_of) as made:
            made.clock.skew_s = skew_s
            await made.clock.sleep(100.0)
            manifest = made.write("moment", {"all": {"operation": "notification.mark-read", "items": [{}]}})
            assert (await made.run(manifest)).exit_code == 1
            await made.clock.sleep(3_600.0)
            assert (await made.retry(manifest)).exit_code == 0
            (line,) = made.lines(manifest)
            assert abs(parse_iso(line["result"]["last_read_at"]) - (START + 100.0)) <= 2.0

    simulate(main)


@pytest.mark.parametrize("years", [-50, 74])
@pytest.mark.parametrize(
    ("operation", "item"), [("notification.mark-read", {}), ("thread.mark-read", {"thread_id": 1})]
)
def test_clocks_that_are_years_apart_mark_nothing(
    folder: Path, operation: str, item: dict[str, int], years: int
) -> None:
    """One of the two clocks is wrong, and nobody knows which: the item fails and says so, nothing is sent; once the
    clocks agree, a retry marks."""

    async def main() -> None:
        async with world(folder) as made:
            made.platform_clock.skew_s = years * 365 * 86_400.0
            manifest = made.write("moment", {"all": {"operation": operation, "items": [item]}})
            assert (await made.run(manifest)).exit_code == 1
            (line,) = made.lines(manifest)
            assert line["error"]["code"] == "invalid_item"
            assert "clocks" in line["error"]["message"]
            assert not any(exchange.is_write for exchange in made.network.exchanges)
            made.platform_clock.skew_s = 0.0
            assert (await made.retry(manifest)).exit_code == 0

    simulate(main)


def test_news_after_the_start_stay_unread(folder: Path) -> None:
    """A lost answer and a long way back: what came meanwhile is not marked by the repeat."""

    async def main() -> None:
        made: World

        def fate_of(exchange: Exchange) -> Fate:
            if exchange.is_write and exchange.number < 10:
                state = made.sandbox.context.state
                state.db.execute("UPDATE threads SET updated_at = ? WHERE id = 1", (made.platform_clock.now() + 3.0,))
                return DROP_AFTER
            return FINE

        async with world(folder, fate_of=fate_of) as made:
            jobs = {
                "all": {"operation": "notification.mark-read", "items": [{}]},
                "one": {"operation": "thread.mark-read", "items": [{"thread_id": 1}], "needs": ["all"]},
            }
            manifest = made.write("news", jobs, LIMITS)
            await made.run(manifest)
            everything, one = made.lines(manifest)
            assert everything["outcome"] == "succeeded"
            assert (one["outcome"], one["error"]["code"]) == ("skipped", "superseded")
            rows = made.sandbox.context.state.db.execute("SELECT id FROM threads WHERE unread").fetchall()
            assert [row[0] for row in rows] == [1]

    simulate(main)
