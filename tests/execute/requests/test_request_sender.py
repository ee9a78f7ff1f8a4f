"""One request until it is decided: how often it is tried, what counts, and what an item gets in the end."""

import random
from pathlib import Path
from typing import Any

import pytest

from bulk.execute.requests.context import Tried, outcome_of
from bulk.execute.requests.patience import (
    LIMITED_TRIES,
    PAUSE_FIRST_S,
    PAUSE_MOST_S,
    READ_TRIES,
    TRIES_IN_TROUBLE,
    UNEXPLAINED_TRIES,
    Patience,
)
from bulk.execute.requests.retry_budget import WRONG_MOST_S
from bulk.model import ErrorCode, Failure, FailureKind, Reply
from bulk.platform.bodies.body_reader import ROOM_BYTES
from bulk.platform.classification import Verdict, VerdictKind
from bulk.sandbox.settings import RateLimit
from bulk.status import RunStatus, Silence, Wait
from tests.simulation.schedules import snapshot
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, FINE, Fate, answer
from tests.simulation.world import simulate, world

LOST = Tried(failure=Failure(kind=FailureKind.LOST, code=ErrorCode.CONNECTION, message="lost"))
JSON = "application/json"
NOT_SENT = Tried(failure=Failure(kind=FailureKind.NOT_SENT, code=ErrorCode.CONNECTION, message="not sent"))


def tried(kind: VerdictKind, status: int = 500) -> Tried:
    """An answer with that verdict."""
    return Tried(reply=Reply(status=status, headers={}), verdict=Verdict(kind, message="why"))


class Served:
    """How often the platform served anybody: all that patience asks of the governor."""

    def __init__(self) -> None:
        self.served = (0, 0)


def tries_until_over(first: Tried, served: Served, grows: bool, *, fails: int = 0, most: int = 10_000) -> int:
    """How often `first` may come again before patience is over."""
    patience, count = Patience(served, first, 0.0), 1  # type: ignore[arg-type]  # it asks for nothing else
    while not patience.is_over and count < most:
        served.served = (served.served[0] + grows, served.served[1] + 1 + fails)
        patience.note(first, 0.0)
        count += 1
    return count


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("first", "grows", "count"),
    [
        (tried(VerdictKind.SERVER_ERROR), True, READ_TRIES),
        (tried(VerdictKind.SERVER_ERROR), False, TRIES_IN_TROUBLE),
        (tried(VerdictKind.BAD_RESPONSE), True, READ_TRIES),
        (LOST, True, READ_TRIES),
        (LOST, False, TRIES_IN_TROUBLE),
        (NOT_SENT, True, 10_000),
        (tried(VerdictKind.UNEXPLAINED, 403), True, UNEXPLAINED_TRIES),
        (tried(VerdictKind.LIMITED_PRIMARY, 403), True, LIMITED_TRIES),
        (tried(VerdictKind.UNAUTHORIZED, 401), False, LIMITED_TRIES),
    ],
)
def test_how_often_a_read_is_tried(first: Tried, grows: bool, count: int) -> None:
    """At most six failures while the platform serves others, many more while it serves nobody; what never left does
    not count; limits and unexplained refusals have counts of their own."""
    assert tries_until_over(first, Served(), grows) == count


@pytest.mark.interpreted
@pytest.mark.parametrize(("fails", "count"), [(0, READ_TRIES), (1, 10), (3, 19), (8, 42), (19, TRIES_IN_TROUBLE)])
def test_a_platform_that_serves_a_few_costs_nobody_a_read(fails: int, count: int) -> None:
    """failures.md row 25: each try counts as far as others were served meanwhile; `fails`: for each who was."""
    first = tried(VerdictKind.SERVER_ERROR)
    assert tries_until_over(first, Served(), grows=True, fails=fails) == count


@pytest.mark.interpreted
def test_pauses_grow_to_a_cap_and_are_jittered() -> None:
    """Doubling from 0.2 s to 30 s, then jittered by up to a half; short where the governor does the waiting."""
    patience, dice = Patience(Served(), LOST, 0.0), random.Random(1)  # type: ignore[arg-type]
    wait_reasons = [patience.pause_s(dice) for _ in range(12)]
    for number, pause in enumerate(wait_reasons):
        most = min(PAUSE_MOST_S, PAUSE_FIRST_S * 2.0**number)
        assert most / 2 <= pause <= most
    patience.note(tried(VerdictKind.LIMITED_SECONDARY, 429), 0.0)
    assert patience.pause_s(dice) < 0.02


@pytest.mark.interpreted
def test_refusals_without_a_reason_are_counted_together() -> None:
    """Whatever comes between them, the fourth refusal without a reason is the answer."""
    served, unexplained = Served(), tried(VerdictKind.UNEXPLAINED, 403)
    patience = Patience(served, unexplained, 0.0)  # type: ignore[arg-type]
    for number in range(2, UNEXPLAINED_TRIES + 1):
        patience.note(LOST, 0.0)
        assert not patience.is_over
        patience.note(unexplained, 0.0)
        assert patience.is_over == (number == UNEXPLAINED_TRIES)


@pytest.mark.parametrize(
    ("fate", "least_s", "most_s"),
    [(answer(200, b"{}"), WRONG_MOST_S, WRONG_MOST_S + 60.0), (answer(502), 600.0, 1_800.0)],
    ids=["wrong", "out of order"],
)
def test_a_last_read_ends_sooner_by_a_wrong_answer_than_in_an_outage(
    folder: Path, fate: Fate, least_s: float, most_s: float
) -> None:
    """The last item of a run, beside which nobody is served: a wrong answer that stays ends it within three minutes,
    and an outage of ten minutes never does.
    """

    def fate_of(exchange: Exchange) -> Fate:
        return fate if "repo-00001/readme" in exchange.path else FINE

    async def main() -> None:
        async with world(folder, fate_of=fate_of) as made:
            items = [READ, {**READ, "repo": "repo-00001"}]
            manifest = made.write("run", {"reads": {"operation": "readme.get", "items": items}})
            assert (await made.run(manifest)).exit_code == 1
            (line,) = (line for line in made.lines(manifest) if line["outcome"] == "failed")
            assert least_s <= line["elapsed_ms"] / 1_000.0 <= most_s
            assert line["attempts"] >= READ_TRIES

    simulate(main)


@pytest.mark.parametrize(
    ("fate", "least_s", "most_s"),
    [(answer(201, b"{}", JSON), WRONG_MOST_S, WRONG_MOST_S + 60.0), (answer(502), 600.0, 1_800.0)],
    ids=["wrong", "out of order"],
)
def test_a_last_write_ends_sooner_by_a_wrong_answer_than_in_an_outage(
    folder: Path, fate: Fate, least_s: float, most_s: float
) -> None:
    """failures.md row 78: the same of a write that nothing reads back, beside which nobody is served: nobody knows
    whether it was done."""

    async def main() -> None:
        async with world(folder, fate_of=lambda each: fate if each.method == "POST" else FINE) as made:
            manifest = made.write("run", {"snapshots": {"operation": "snapshot.create", "items": [snapshot("a", "b")]}})
            assert (await made.run(manifest)).exit_code == 6
            (line,) = made.lines(manifest)
            assert line["outcome"] == "unknown"
            assert least_s <= line["elapsed_ms"] / 1_000.0 <= most_s

    simulate(main)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (VerdictKind.ACCEPTED, ErrorCode.CONNECTION),
        (VerdictKind.LIMITED_PRIMARY, ErrorCode.RATE_LIMITED),
        (VerdictKind.LIMITED_SECONDARY, ErrorCode.RATE_LIMITED),
        (VerdictKind.LOCKED_OUT, ErrorCode.FORBIDDEN),
        (VerdictKind.BAD_RESPONSE, ErrorCode.BAD_RESPONSE),
    ],
)
def test_what_an_item_gets_that_has_no_better_answer(kind: VerdictKind, code: ErrorCode) -> None:
    """Each kind of last answer has its stable code, and the status that came with it."""
    outcome = outcome_of(tried(kind, 403))
    assert outcome.error is not None
    assert (outcome.error.code, outcome.http_status) == (code, 403)


@pytest.mark.parametrize("code", [ErrorCode.FORBIDDEN, ErrorCode.NOT_FOUND])
def test_a_refusal_without_a_reason_keeps_the_code_of_its_status(code: ErrorCode) -> None:
    """A 403 is about permission; a 404 of a front end, when it is believed at last, says that nothing is there."""
    outcome = outcome_of(Tried(Reply(status=403, headers={}), Verdict(VerdictKind.UNEXPLAINED, code, "why")))
    assert outcome.error is not None
    assert outcome.error.code is code


def test_a_failure_without_an_answer_keeps_its_code() -> None:
    """What the transport said is what the item gets."""
    outcome = outcome_of(LOST)
    assert outcome.error is not None
    assert (outcome.error.code, outcome.http_status) == (ErrorCode.CONNECTION, None)


READ: dict[str, Any] = {"owner": "fleet", "repo": "repo-00000"}


@pytest.mark.parametrize(
    "fate",
    [answer(500), answer(200, b"{"), answer(200, b""), DROP_AFTER, Fate(answer_cut=900), answer(204, b"")],
    ids=["500", "broken JSON", "empty", "lost", "truncated", "204"],
)
@pytest.mark.parametrize("times", [1, 4])
def test_a_read_goes_well_in_the_end(folder: Path, fate: Fate, times: int) -> None:
    """Whatever a read meets at first, it is asked again; the line counts its sends."""
    left = times

    def fate_of(exchange: Exchange) -> Fate:
        nonlocal left
        if "readme" in exchange.path and left:
            left -= 1
            return fate
        return FINE

    async def main() -> None:
        async with world(folder, fate_of=fate_of) as made:
            manifest = made.write("run", {"reads": {"operation": "readme.get", "items": [READ]}})
            assert (await made.run(manifest)).exit_code == 0
            (line,) = made.lines(manifest)
            assert (line["outcome"], line["attempts"]) == ("succeeded", times + 1)

    simulate(main)


@pytest.mark.parametrize("redirects", [1, 5, 6])
def test_errors_on_the_way_of_a_redirect_are_met_again(folder: Path, redirects: int) -> None:
    """failures.md row 9: an error behind a redirect is tried again from the beginning, redirects included."""
    base = "/api/v3/repos/fleet/repo-{:05d}/readme"
    errors = 2

    def fate_of(exchange: Exchange) -> Fate:
        nonlocal errors
        if "readme" not in exchange.path:
            return FINE
        number = int(exchange.path.split("repo-")[1][:5])
        if number < redirects:
            return answer(302, b"", Location=base.format(number + 1))
        if errors:
            errors -= 1
            return answer(502)
        return FINE

    async def main() -> None:
        async with world(folder, fate_of=fate_of) as made:
            manifest = made.write("run", {"reads": {"operation": "readme.get", "items": [READ]}})
            report = await made.run(manifest)
            asked = len([each for each in made.network.exchanges if "readme" in each.path])
            if redirects <= 5:
                assert report.exit_code == 0
                assert asked == 3 * (redirects + 1)
            else:
                assert report.exit_code == 1
                assert asked == 6

    simulate(main)


def test_the_status_tells_of_a_poll_interval(folder: Path) -> None:
    """While a list may not be polled yet, the status says which, until when, and how many wait for it."""

    class Watching(Silence):
        def update(self, status: RunStatus) -> None:
            seen.extend((status.at, wait) for wait in status.waits if wait.what.startswith("poll interval"))

    seen: list[tuple[float, Wait]] = []

    async def main() -> None:
        async with world(folder) as made:
            manifest = made.write("run", {"job": {"operation": "notification.list", "items": [{}, {}, {"all": True}]}})
            assert (await made.run(manifest, display=Watching())).exit_code == 0

    simulate(main)
    assert {wait.what for _, wait in seen} == {"poll interval of /notifications"}
    assert {wait.count for _, wait in seen} == {2, 1}
    assert all(wait.until is not None and at < wait.until <= at + 60.0 for at, wait in seen)


def test_an_item_with_a_long_answer_steps_aside_before_its_next_request(folder: Path) -> None:
    """Two pages that don't fit into memory together: who waits an hour for the permit for its next page lets the other
    one's page in.
    """
    page = b" " * (ROOM_BYTES + 1) + b"[]"

    def fate_of(exchange: Exchange) -> Fate:
        path, _, query = exchange.path.partition("?")
        if "/hooks" not in path:
            return FINE
        if "page=2" in query:
            return answer(200, b"[]", JSON)
        link = {"Link": f'<http://127.0.0.1:8080{path}?page=2>; rel="next"'} if "/long/" in path else {}
        return answer(200, page, JSON, is_passed_on=True, **link)

    async def main() -> None:
        async with world(folder, fate_of=fate_of, limits={"core": RateLimit(2, 3_600)}) as made:
            items = [{"org": "long"}, {"org": "short"}]
            manifest = made.write("run", {"lists": {"operation": "webhook.list", "items": items}}, {"pace": "burst"})
            assert (await made.run(manifest)).exit_code == 0
            waited = {line["item"]["org"]: line["elapsed_ms"] for line in made.lines(manifest)}
            assert waited["short"] < 1_000 < 3_000_000 < waited["long"]

    simulate(main)
