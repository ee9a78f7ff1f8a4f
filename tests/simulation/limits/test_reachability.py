"""A platform that can't be reached, does not answer, or answers with errors for a while: nothing is lost by it."""

import socket
from pathlib import Path

import pytest

from tests.simulation import invariants
from tests.simulation.schedules import Expected, Schedule, put, readmes, snapshot
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, DROP_BEFORE, FINE, MUTE, TRIP_S, Fate, answer
from tests.simulation.world import World, now, simulate, world

UNREACHABLE = {
    "DNS fails": socket.gaierror(-3, "Temporary failure in name resolution"),
    "refused": ConnectionRefusedError(111, "Connection refused"),
    "reset": ConnectionResetError(104, "Connection reset by peer"),
}


def mixed(count: int = 8) -> Schedule:
    """A few items of each kind."""
    schedule = Schedule()
    for name, operation in (("reads", "readme.get"), ("puts", "contents.put"), ("snapshots", "snapshot.create")):
        schedule.job(name, operation)
    schedule.job("orgs", "organization.create")
    for number in range(count):
        repo = f"repo-{number:05d}"
        schedule.expect("reads", {"owner": "fleet", "repo": repo}, Expected("succeeded"))
        done = Expected("succeeded", effect=f"commit fleet/{repo} a")
        schedule.expect("puts", put(repo, "a", repo), done)
        done = Expected("succeeded", effect=f"snapshot fleet/{repo} build detector")
        schedule.expect("snapshots", snapshot(repo, "build"), done)
        done = Expected("succeeded", effect=f"organization made-{number} created")
        schedule.expect("orgs", {"login": f"made-{number}", "admin": "octoadmin"}, done)
    return schedule


async def all_is_done(made: World, schedule: Schedule, manifest: Path) -> None:
    """The run's every promise."""
    invariants.every_item_ended_once_and_right(made, manifest, schedule.expected)
    invariants.every_effect_is_there_once(made, schedule.expected)
    invariants.lanes_never_overlap(made)
    invariants.nothing_leaked(made, made.runs[-1])
    assert not made.violations, made.violations


@pytest.mark.parametrize("trouble", UNREACHABLE)
def test_an_unreachable_platform_stops_the_run_and_fails_no_item(folder: Path, trouble: str) -> None:
    """failures.md rows 1, 2: nothing is sent, exit 3 within ten seconds, and a resume does it all."""

    async def main() -> None:
        async with world(folder) as made:
            schedule = mixed()

            def fail() -> float:
                raise UNREACHABLE[trouble]

            made.network.connect = fail
            manifest = made.write("run", schedule.jobs, {"unreachable": "30s"})
            report = await made.run(manifest)
            assert report.exit_code == 3
            assert 5.0 <= now() < 10.0
            assert not made.network.exchanges
            assert not made.lines(manifest)
            tries = sum("not connected" in line for line in made.network.trace)
            assert tries < 60
            made.network.connect = lambda: TRIP_S
            assert (await made.run(manifest)).exit_code == 0
            await all_is_done(made, schedule, manifest)

    simulate(main)


@pytest.mark.parametrize("fate", [MUTE, DROP_BEFORE, DROP_AFTER], ids=lambda fate: fate.kind)
def test_a_platform_that_takes_requests_and_never_answers_stops_the_run(folder: Path, fate: Fate) -> None:
    """failures.md rows 2, 6: not `/rate_limit` alone says so, a request that goes first does; no item has failed, and a
    resume does it all."""

    async def main() -> None:
        async with world(folder) as made:
            schedule = mixed()
            made.network.fate_of = lambda _: fate
            limits = {"unreachable": "30s", "request_timeout": "5s", "settle": "2s"}
            manifest = made.write("run", schedule.jobs, limits)
            report = await made.run(manifest)
            assert report.exit_code == 3
            assert now() < 60.0
            assert not made.lines(manifest)
            made.network.fate_of = lambda _: FINE
            assert (await made.run(manifest)).exit_code == 0
            await all_is_done(made, schedule, manifest)

    simulate(main)


@pytest.mark.parametrize("fate", [MUTE, DROP_BEFORE], ids=lambda fate: fate.kind)
@pytest.mark.parametrize("begins", [0, 2])
def test_limits_that_are_never_told_stop_nothing(folder: Path, begins: int, fate: Fate) -> None:
    """failures.md row 2: `/rate_limit` alone is not answered, from the first question on or later: all is done."""
    asked = 0

    def fate_of(exchange: Exchange) -> Fate:
        nonlocal asked
        asked += "rate_limit" in exchange.path
        return fate if "rate_limit" in exchange.path and asked > begins else FINE

    async def main() -> None:
        async with world(folder, fate_of=fate_of) as made:
            schedule = mixed()
            manifest = made.write("run", schedule.jobs, {"unreachable": "5s"})
            assert (await made.run(manifest)).exit_code == 0
            await all_is_done(made, schedule, manifest)
            assert now() < 20.0

    simulate(main)


def test_a_platform_that_comes_back_in_time_costs_nothing(folder: Path) -> None:
    """failures.md row 2: refused for a while in the middle of the run: it goes on, no item failed, no budget lost."""

    async def main() -> None:
        async with world(folder) as made:
            schedule = mixed()

            def connect() -> float:
                if 0.05 < now() < 100.0:
                    raise UNREACHABLE["refused"]
                return TRIP_S

            made.network.connect = connect
            made.network.fate_of = lambda exchange: Fate(answer_cut=0) if 0.04 < now() < 0.06 else FINE
            manifest = made.write("run", schedule.jobs, {"unreachable": "5m"})
            assert (await made.run(manifest)).exit_code == 0
            await all_is_done(made, schedule, manifest)
            assert 100.0 < now() < 110.0

    simulate(main)


def test_answers_that_never_come_free_their_slot(folder: Path) -> None:
    """failures.md row 6: requests that hang or drip are given up after their own deadline; the others go on."""

    async def main() -> None:
        async with world(folder) as made:
            schedule = mixed()
            hung = (MUTE, Fate(kind="drip", drip_s=1.0))
            made.network.fate_of = lambda each: FINE if each.number % 4 else hung[each.number // 4 % 2]
            manifest = made.write("run", schedule.jobs, {"request_timeout": "5s", "settle": "2s"})
            assert (await made.run(manifest)).exit_code == 0
            await all_is_done(made, schedule, manifest)
            assert now() < 120.0
            for exchange in made.network.exchanges:
                assert exchange.ended_at is not None
                assert exchange.ended_at - exchange.at < 5.1

    simulate(main)


def test_an_outage_of_ten_minutes_costs_no_item(folder: Path) -> None:
    """failures.md rows 24, 25: ten minutes of 5xx: concurrency falls to 1 and recovers within a minute, no item is
    lost, nothing is done twice."""

    async def main() -> None:
        async with world(folder, latency_ms=300.0) as made:
            schedule = mixed(10)
            begins_s, ends_s = 0.7, 600.7

            def fate_of(exchange: Exchange) -> Fate:
                status = (500, 502, 503, 504)[exchange.number % 4]
                return answer(status, is_passed_on=exchange.number % 3 == 0) if begins_s < now() < ends_s else FINE

            made.network.fate_of = fate_of
            limits: list[tuple[float, int]] = []

            def note(exchange: Exchange) -> None:
                limits.append((now(), made.runs[-1].governor.concurrency.allowed))

            made.network.watchers.append(note)
            manifest = made.write("run", schedule.jobs, {"concurrency": 32, "settle": "2s"})
            report = await made.run(manifest)
            await all_is_done(made, schedule, manifest)
            assert report.exit_code == 0
            assert min(limit for at, limit in limits if at < ends_s) == 1
            in_outage = [at for at, _ in limits if begins_s + 60 < at < ends_s]
            assert len(in_outage) < 600 * 3
            assert now() < ends_s + 60.0

    simulate(main)


def test_a_page_of_the_proxy_is_never_shown_raw(folder: Path) -> None:
    """failures.md row 24: what can't be read ends as a typed error, without a tag of the page."""

    async def main() -> None:
        async with world(folder) as made:
            bad = {"owner": "fleet", "repo": "repo-00000"}
            good = [{"owner": "fleet", "repo": f"repo-{number:05d}"} for number in range(1, 60)]
            made.network.fate_of = lambda exchange: answer(502) if "repo-00000" in exchange.path else FINE
            manifest = made.write("run", {"reads": {"operation": "readme.get", "items": [bad, *good]}})
            report = await made.run(manifest)
            line = made.lines(manifest)[0]
            assert report.exit_code == 1
            assert (line["outcome"], line["error"]["code"], line["error"]["http_status"]) == (
                "failed",
                "server_error",
                502,
            )
            assert "<" not in line["error"]["message"]
            assert all(other["outcome"] == "succeeded" for other in made.lines(manifest)[1:])

    simulate(main)


@pytest.mark.parametrize(("pages", "exit_code"), [(7, 0), (1_000_000, 3)])
def test_web_pages_in_the_place_of_first_answers(folder: Path, pages: int, exit_code: int) -> None:
    """failures.md row 2: nothing but pages, as of a portal, ends the run before an item is lost to them; a few do not,
    and what `/rate_limit` says alone does not either."""
    page, answered = answer(200, b"<html>Log in</html>", "text/html"), 0

    def fate_of(exchange: Exchange) -> Fate:
        nonlocal answered
        answered += "rate_limit" not in exchange.path
        return page if answered <= pages or "rate_limit" in exchange.path else FINE

    async def main() -> None:
        async with world(folder, fate_of=fate_of) as made:
            manifest = made.write("run", {"reads": {"operation": "readme.get", "items": readmes(60)}})
            assert (await made.run(manifest)).exit_code == exit_code
            assert len(made.lines(manifest)) == (60 if exit_code == 0 else 0)
            assert now() < 30.0

    simulate(main)


LOG_IN = answer(200, b"<html>Log in</html>", "text/html")
TO_LOG_IN = answer(302, b"", Location="https://login.example.com/saml?SAMLRequest=x")
TO_LOG_IN_HERE = answer(303, b"<html>Log in</html>", "text/html", Location="/login?return_to=x")
OF_A_PROXY = answer(407, b"<html>Log in at the proxy</html>", "text/html")
OF_A_NETWORK = answer(511, b"<html>Log in to the network</html>", "text/html")


@pytest.mark.parametrize(
    "page",
    [LOG_IN, TO_LOG_IN, TO_LOG_IN_HERE, OF_A_PROXY, OF_A_NETWORK],
    ids=["page", "elsewhere", "below", "proxy", "network"],
)
@pytest.mark.parametrize(("ends_s", "exit_code"), [(100.0, 0), (1_000_000.0, 3)])
def test_web_pages_in_the_middle_of_a_run_are_an_outage(
    folder: Path, ends_s: float, exit_code: int, page: Fate
) -> None:
    """failures.md row 2: a page to log in that answers for the platform for a while, or to which it redirects, costs no
    item; one that stays ends the run after `limits.unreachable`, and a resume does the rest."""
    is_over = False

    async def main() -> None:
        nonlocal is_over
        async with world(folder) as made:
            schedule = mixed(20)
            made.network.fate_of = lambda _: page if 0.05 < now() < ends_s and not is_over else FINE
            manifest = made.write("run", schedule.jobs, {"unreachable": "5m", "settle": "2s"})
            assert (await made.run(manifest)).exit_code == exit_code
            assert all(line["outcome"] == "succeeded" for line in made.lines(manifest))
            assert ends_s < now() < ends_s + 30.0 if exit_code == 0 else 300.0 < now() < 320.0
            assert len(made.network.exchanges) < 400
            is_over = True
            assert exit_code == 0 or (await made.run(manifest)).exit_code == 0
            await all_is_done(made, schedule, manifest)

    simulate(main)


NOBODY_HERE = {
    "a page": answer(404, b"<html>default backend - 404</html>", "text/html"),
    "a text": answer(404, b"404 page not found\n", "text/plain"),
    "another status": answer(400, b"<h1>Bad Request - Invalid Hostname</h1>", "text/html"),
}


@pytest.mark.parametrize("said", NOBODY_HERE.values(), ids=NOBODY_HERE)
def test_a_front_end_that_has_lost_its_way_costs_no_item(folder: Path, said: Fate) -> None:
    """failures.md row 2: for ten seconds it says itself that there is no such place, without the platform's message.
    The same said of some items alone is believed after a few tries."""

    async def main() -> None:
        async with world(folder) as made:
            exchanges = made.network.exchanges
            made.network.fate_of = lambda exchange: (
                said if (len(exchanges) > 20 and now() < 10.0) or "repo-00007" in exchange.path else FINE
            )
            manifest = made.write("run", {"reads": {"operation": "readme.get", "items": readmes(60)}})
            assert (await made.run(manifest)).exit_code == 1
            failed = [line for line in made.lines(manifest) if line["outcome"] == "failed"]
            assert [line["item"]["repo"] for line in failed] == ["repo-00007"]
            assert "or something before it did" in failed[0]["error"]["message"]
            assert failed[0]["error"]["code"] in ("not_found", "validation_failed")

    simulate(main)


@pytest.mark.parametrize("page", [LOG_IN, TO_LOG_IN], ids=["page", "elsewhere"])
def test_web_pages_for_some_items_alone_are_no_outage(folder: Path, page: Fate) -> None:
    """failures.md row 2: while `/rate_limit` is answered, items that are answered with pages fail, each by itself."""

    async def main() -> None:
        async with world(folder) as made:
            made.network.fate_of = lambda exchange: page if "repo-0000" in exchange.path else FINE
            manifest = made.write("run", {"reads": {"operation": "readme.get", "items": readmes(60)}})
            assert (await made.run(manifest)).exit_code == 1
            outcomes = [line["outcome"] for line in made.lines(manifest)]
            assert (outcomes[:10], set(outcomes[10:])) == (["failed"] * 10, {"succeeded"})

    simulate(main)
