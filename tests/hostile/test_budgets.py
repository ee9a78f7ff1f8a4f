"""Budgets of which something wrong is said: nothing stalls, nothing is sent beyond what can be known, all is used.

`python -m tests.hostile.budgets` prints the whole matrix.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile import budgets
from tests.hostile.budget_runs import LIMITED, Answer, BudgetPlatform, Instead, readme, run
from tests.hostile.budgets import Cell, Used, told, use
from tests.hostile.http.limits import Answers, Headers, Limits

USED = 0.99
LOOKS = 6
"""Where no witness is right, at most this many requests find out how long a window is, and when it ends."""
TRIED = (
    Answers.RIGHT, Answers.LATE_A_LITTLE, Answers.LATE, Answers.FROZEN, Answers.NOT_FOUND, Answers.BROKEN,
    Answers.MISSING, Answers.HANGS, Answers.RESETS, Answers.HANGS_LATER, Answers.RESETS_LATER,
)  # fmt: skip
VAIN_S = {Answers.BROKEN: 6.5, Answers.HANGS: 10.0}
"""What is waited for before the first request (seconds): five vain questions, or one without an answer."""
OFTEN_WRONG = (Headers.WRONG, Headers.ZERO, Headers.FAR, Headers.PAST)
MISTAKES = (Answers.NONSENSE, Answers.SAME)


def holds(used: Used) -> None:
    """What every pair owes."""
    cell = used.cell
    assert not used.is_stalled, told(used)
    if cell.is_knowable:
        assert used.share >= USED, told(used)
        assert used.refused == 0, told(used)
    elif cell.headers in (Headers.ABSENT, Headers.LATE) and cell.answers in (Answers.LATE_A_LITTLE, Answers.LATE):
        assert used.share >= USED, told(used)
        assert used.refused <= LOOKS, told(used)


@pytest.mark.parametrize("answers", TRIED)
@pytest.mark.parametrize("headers", budgets.HEADERS)
def test_every_pair(headers: Headers, answers: Answers) -> None:
    """T1, T2: right, absent, late or wrong headers, `/rate_limit` right, late, frozen or not to be had: no stall, and
    where one of them is right at least 99% of each window is used and nothing is refused."""
    holds(use(Cell(headers, answers, limit=100, windows=6)))


@pytest.mark.parametrize("headers", OFTEN_WRONG)
def test_headers_that_are_nonsense_hold_up_nothing(headers: Headers) -> None:
    """Nothing left though requests are served, an end most of an hour away, one long ago, all of that in turn: what a
    right `/rate_limit` says is used to the last request."""
    used = use(Cell(headers, Answers.RIGHT, windows=8))
    assert used.share >= USED, told(used)
    assert used.refused == 0, told(used)


@pytest.mark.parametrize("is_even", [True, False])
@pytest.mark.parametrize("answers", [Answers.IDLE, Answers.SPENT, Answers.BUSY, Answers.SMALL])
@pytest.mark.parametrize("headers", [Headers.RIGHT, Headers.NAMELESS])
@pytest.mark.parametrize("windows", [12, pytest.param(20, marks=pytest.mark.soak)])
def test_the_numbers_of_another_category_hold_up_nothing(windows, headers, answers, is_even) -> None:
    """`/rate_limit` exchanges two categories, idle, spent, smaller, or with one request left: another limit, another
    end. What right headers say, with a category or without, is all used, at the price of a look or two."""
    used = use(Cell(headers, answers, windows=windows, is_even=is_even))
    assert used.share >= USED, told(used)
    assert not used.is_stalled, told(used)
    assert used.refused <= 2, told(used)


def test_a_vain_look_before_an_end_puts_off_no_later_one() -> None:
    """A request that looks within the first window, because the numbers are another category's, is refused: later
    windows are begun at their ends all the same. A second of each was lost."""
    used = use(Cell(Headers.RIGHT, Answers.IDLE, latency_s=0.01))
    assert used.share >= USED, told(used)


def test_an_empty_window_that_never_begins_is_looked_at() -> None:
    """`/rate_limit` says that nothing is left until a minute from now, whenever it is asked: one request looks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Limits, "_of_another", lambda _, now: {"limit": 300, "remaining": 0, "reset": int(now) + 60})
        used = use(Cell(Headers.RIGHT, Answers.SPENT, windows=8))
    assert used.share >= USED, told(used)
    assert used.refused == 0, told(used)


def test_a_refused_look_does_not_open_a_window_by_its_own_headers() -> None:
    """Headers that always name an end three seconds away cost one vain look, and after that are not believed."""
    used = use(Cell(Headers.SOON, Answers.RIGHT, windows=8, is_even=False))
    assert used.share >= USED, told(used)
    assert used.refused == 1, told(used)


@pytest.mark.parametrize("answers", MISTAKES)
@pytest.mark.parametrize("is_even", [True, False])
def test_nonsense_of_rate_limit_holds_up_nothing(answers: Answers, is_even: bool) -> None:
    """More left than the limit, ends in the past and far ahead, a limit of 0: what right headers say is used."""
    used = use(Cell(Headers.RIGHT, answers, windows=8, is_even=is_even))
    assert not used.is_stalled, told(used)
    assert used.share >= USED, told(used)
    assert used.refused <= 2, told(used)


@pytest.mark.parametrize("window_s", [1, 2])
@pytest.mark.parametrize(("headers", "answers"), [(Headers.RIGHT, Answers.NOT_FOUND), (Headers.ABSENT, Answers.RIGHT)])
def test_short_windows(headers: Headers, answers: Answers, window_s: int) -> None:
    """Windows of one and two seconds are used in full as well."""
    holds(use(Cell(headers, answers, limit=40, window_s=window_s, windows=10)))


@pytest.mark.soak
@pytest.mark.parametrize("is_even", [True, False])
@pytest.mark.parametrize("is_grid", [True, False])
@pytest.mark.parametrize("headers", budgets.HEADERS)
def test_twenty_windows_of_every_pair(
    headers: Headers, is_grid: bool, is_even: bool, figure: Callable[[str], None]
) -> None:
    """The same over 20 windows, which begin with their first request or at fixed moments, at both paces."""
    for answers in (*TRIED, Answers.FORBIDDEN):
        used = use(Cell(headers, answers, is_grid=is_grid, is_even=is_even))
        figure(told(used))
        holds(used)


@pytest.mark.parametrize("answers", TRIED)
@pytest.mark.parametrize("headers", budgets.HEADERS)
def test_a_whole_run_ends_in_every_pair(tmp_path: Path, headers: Headers, answers: Answers) -> None:
    """T1: every item of a run over two windows succeeds, in the time that the budget takes where it can be known."""
    platform = BudgetPlatform(Limits(20, 10, headers, answers))
    ran = run(tmp_path, platform, 30, {}, most_s=300.0)
    assert ran.report.exit_code == 0
    assert ran.outcomes == ["succeeded"] * 30
    if headers is Headers.RIGHT or answers is Answers.RIGHT:
        assert ran.ended_s < 10.0 + VAIN_S.get(answers, 0.0) + 1.5
        assert sum(refused for _, _, refused in platform.limits.spent()) == 0


def test_what_others_spent_before_the_run_is_no_riddle(tmp_path: Path) -> None:
    """19 of 20 are gone when the run begins: one request, then the next window; nobody goes to see in between."""
    limits = Limits(20, 10)
    platform = BudgetPlatform(limits)
    spend_first(platform, 19)
    ran = run(tmp_path, platform, 15, {}, most_s=60.0)
    assert ran.report.exit_code == 0
    assert [each[1:] for each in limits.spent()] == [(20, 0), (14, 0)]


def spend_first(platform: BudgetPlatform, count: int) -> None:
    """Somebody else takes `count` before the first answer of `/rate_limit`."""

    def instead(found: BudgetPlatform, path: str) -> Answer | None:
        if path == "/rate_limit" and len(found.sent) == 1:
            for _ in range(count):
                found.limits.charge(found.now())
        return None

    platform.instead = instead


# -- T19: whose budget is it?

FOREIGN = {
    "X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "56", "X-RateLimit-Used": "4",
    "X-RateLimit-Reset": "1800003660", "X-RateLimit-Resource": "core",
}  # fmt: skip
NAMELESS = {name: value for name, value in FOREIGN.items() if name != "X-RateLimit-Resource"}
FOREIGN_ANSWERS: dict[str, Answer] = {
    "a 404 to a lost token": (404, FOREIGN, {"message": "Not Found"}),
    "a forbidden one": (403, FOREIGN, {"message": "Must have admin rights to Repository."}),
    "a gateway's error": (502, FOREIGN, {"message": "Bad gateway"}),
    "another category, not named": (200, NAMELESS, {}),
    "another category, named": (200, {**FOREIGN, "X-RateLimit-Resource": "search"}, {}),
    "no limit": (404, {**FOREIGN, "X-RateLimit-Limit": "0", "X-RateLimit-Remaining": "0"}, {"message": "Not Found"}),
}


def once(answer: Answer, times: int = 1) -> Instead:
    """That answer to the eighth request, or to `times` from there on, and a README where it is a 200."""
    said = 0

    def instead(platform: BudgetPlatform, path: str) -> Answer | None:
        nonlocal said
        if said == times or path == "/rate_limit" or len(platform.paths()) < 8:
            return None
        said += 1
        status, headers, body = answer
        return status, headers, body or readme(path)

    return instead


@pytest.mark.parametrize("why", FOREIGN_ANSWERS)
def test_headers_of_somebody_elses_budget_never_count(tmp_path: Path, why: str) -> None:
    """T19: an answer that carries the limits of the address, of a gateway or of another category leaves the budget as
    it was: 200 reads of a limit of 5,000 take seconds, not a window."""
    platform = BudgetPlatform(Limits(5_000, 3_600), once(FOREIGN_ANSWERS[why]))
    ran = run(tmp_path, platform, 200, {}, most_s=7_200.0)
    assert ran.ended_s < 60.0
    assert ran.outcomes.count("succeeded") >= 199


def test_many_headers_without_a_category_that_are_of_another_one_hold_up_nothing(tmp_path: Path) -> None:
    """Forty answers in a row name the limits of another category, and no category, where headers and `/rate_limit` have
    agreed before: they are not believed, and 200 reads take seconds."""
    platform = BudgetPlatform(Limits(5_000, 3_600), once(FOREIGN_ANSWERS["another category, not named"], 40))
    ran = run(tmp_path, platform, 200, {}, most_s=7_200.0)
    assert ran.outcomes == ["succeeded"] * 200
    assert ran.ended_s < 60.0


# -- what is said of a budget changes in mid-window


def _served(platform: BudgetPlatform, path: str, **told: int) -> Answer:
    """What the platform answers, with headers that say something else."""
    is_served = platform.limits.charge(platform.now())
    headers = dict(platform.limits.headers(platform.now()))
    names = {name.lower().removeprefix("x-ratelimit-"): name for name in headers}
    headers.update({names[field]: str(value) for field, value in told.items()})
    return (200, headers, readme(path)) if is_served else (403, headers, LIMITED)


def _lowered(platform: BudgetPlatform, path: str) -> Answer | None:
    """From the tenth request of each window on, the limit is below what was used."""
    is_early = path == "/rate_limit" or len(platform.paths()) % 20 < 10
    return None if is_early else _served(platform, path, limit=8, remaining=0)


def _away(platform: BudgetPlatform, path: str) -> Answer | None:
    """The end that headers name moves away with each answer."""
    return None if path == "/rate_limit" else _served(platform, path, reset=int(platform.now()) + 3_500)


def _moving(platform: BudgetPlatform, path: str) -> Answer | None:
    """Nothing is ever left, says `/rate_limit`, and the end moves away each time it is asked."""
    if path != "/rate_limit":
        return None
    asked = sum(each == "/rate_limit" for _, each in platform.sent)
    entry = {"limit": 20, "used": 20, "remaining": 0, "reset": int(platform.now()) + 10 * asked}
    return 200, {}, {"resources": {"core": entry}}


@pytest.mark.parametrize(("says", "most_s"), [(_lowered, 60.0), (_away, 60.0), (_moving, 1_200.0)])
def test_what_is_said_changes_in_mid_window(tmp_path: Path, says: Instead, most_s: float) -> None:
    """Headers that lower the limit below what was used, and ends that move away: every item succeeds, nothing is sent
    beyond the budget, and where only one of two witnesses errs the run takes as long as it has to."""
    platform = BudgetPlatform(Limits(20, 10), says)
    ran = run(tmp_path, platform, 100, {}, most_s=most_s)
    assert ran.outcomes == ["succeeded"] * 100
    assert sum(refused for _, _, refused in platform.limits.spent()) == 0


@pytest.mark.parametrize("answers", [Answers.RIGHT, Answers.NOT_FOUND])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("limit", [20, 60])
def test_limits_that_a_gateway_adds_are_not_the_platforms(
    tmp_path: Path, limit: int, is_first: bool, answers: Answers
) -> None:
    """Each answer has two of each header, the gateway's of another limit or the same: what agrees with what is used
    counts, before or behind them, and a run takes as long as it has to."""

    def instead(found: BudgetPlatform, path: str) -> Answer | None:
        told = {"limit": limit, "remaining": 0, "reset": int(found.now()) + 3_000}
        added = {f"x-ratelimit-{name}": str(value) for name, value in told.items()}
        if path == "/rate_limit":
            return None
        status, own, body = _served(found, path)
        return status, {**added, **own} if is_first else {**own, **added}, body

    platform = BudgetPlatform(Limits(20, 10, answers=answers), instead)
    ran = run(tmp_path, platform, 50, {}, most_s=60.0)
    assert ran.outcomes == ["succeeded"] * 50
    assert sum(refused for _, _, refused in platform.limits.spent()) == 0


@pytest.mark.parametrize(("status", "least_s"), [(502, 0.0), (503, 3_600.0)])
def test_maintenance_is_waited_for_as_long_as_it_says(tmp_path: Path, status: int, least_s: float) -> None:
    """One 503 with Retry-After holds up the whole run for an hour, and then it goes on as ever; one 502 does not."""
    platform = BudgetPlatform(Limits(20, 10), once((status, {"Retry-After": "3600"}, {"message": "maintenance"})))
    ran = run(tmp_path, platform, 100, {}, most_s=least_s + 100.0)
    assert ran.outcomes == ["succeeded"] * 100
    assert ran.ended_s >= least_s


# -- T12: a budget that can't suffice


@pytest.mark.parametrize(
    ("limit", "limits", "said"),
    [
        (0, {}, "limit of default/core is 0 requests"),
        (20, {"reserve": 20}, "limits.reserve keeps 20 of the 20 requests of default/core"),
        (20, {"reserve": 1_000}, "limits.reserve keeps 1,000 of the 20 requests"),
        (20, {"reserve": "99%"}, "limits.reserve keeps 20 of the 20 requests"),
    ],
)
def test_a_budget_with_room_for_nothing_is_refused(
    tmp_path: Path, limit: int, limits: dict[str, object], said: str
) -> None:
    """T12: exit code 2 and the reason, and nothing but `/rate_limit` was sent."""
    platform = BudgetPlatform(Limits(limit, 10))
    ran = run(tmp_path, platform, 5, limits, most_s=60.0)
    assert ran.report.exit_code == 2
    assert said in ran.report.why
    assert platform.paths() == []


@pytest.mark.parametrize(
    ("headers", "answers"),
    [(Headers.RIGHT, Answers.RIGHT), (Headers.ABSENT, Answers.RIGHT), (Headers.RIGHT, Answers.NOT_FOUND)],
)
@pytest.mark.parametrize(("limit", "reserve"), [(0, 0), (5, 6)])
def test_a_limit_that_becomes_too_small_stops_the_run(
    tmp_path: Path, headers: Headers, answers: Answers, limit: int, reserve: int
) -> None:
    """T12: the second window has room for nothing: exit code 3 with the reason instead of waiting for ever."""
    platform = BudgetPlatform(Limits(20, 10, headers, answers, limit_at={1: limit}))
    ran = run(tmp_path, platform, 60, {"reserve": reserve}, most_s=400.0)
    assert ran.report.exit_code == 3
    assert ("is 0 requests" if limit == 0 else "limits.reserve keeps 6 of the 5") in ran.report.why


def zero(*, of: range) -> Instead:
    """`/rate_limit` names a limit of 0 in its answers with those numbers (from 1)."""

    def instead(platform: BudgetPlatform, path: str) -> Answer | None:
        number = sum(asked == "/rate_limit" for _, asked in platform.sent)
        if path != "/rate_limit" or number not in of:
            return None
        entry = {"limit": 0, "used": 0, "remaining": 0, "reset": int(platform.now()) + 10}
        return 200, {}, {"resources": {"core": entry}}

    return instead


@pytest.mark.parametrize("of", [range(1, 2), range(2, 3), range(5, 6), range(4, 10_000)])
def test_a_single_witness_does_not_stop_a_run(tmp_path: Path, of: range) -> None:
    """T12: one answer with a limit of 0, or all of `/rate_limit` from the fourth on, while headers say otherwise."""
    platform = BudgetPlatform(Limits(20, 10), zero(of=of))
    ran = run(tmp_path, platform, 50, {}, most_s=120.0)
    assert ran.report.exit_code == 0
    assert ran.outcomes == ["succeeded"] * 50


@pytest.mark.parametrize("answers", [Answers.NOT_FOUND, Answers.MISSING, Answers.BROKEN, Answers.HANGS_LATER])
def test_a_limit_of_nothing_that_nobody_repeats_is_forgotten(tmp_path: Path, answers: Answers) -> None:
    """T12: the first answer of `/rate_limit` names a limit of 0, and no other one names any: the run does not wait for
    ever, asking three times a second, but goes by what the headers say."""
    platform = BudgetPlatform(Limits(20, 10, answers=answers), zero(of=range(1, 2)))
    ran = run(tmp_path, platform, 30, {}, most_s=120.0)
    assert ran.outcomes == ["succeeded"] * 30
    assert len(platform.sent) - len(platform.paths()) < 30
