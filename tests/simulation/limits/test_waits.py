"""`Retry-After` that concerns one thing alone: nothing else waits for it again and again."""

import itertools
from pathlib import Path

import pytest

from tests.hostile.budget_runs import Answer, BudgetPlatform, run
from tests.hostile.http.limits import Answers, Headers, Limits

WAIT_S = 600
ITEMS = 100


def limits() -> Limits:
    """Budgets that are right, and not what is waited for."""
    return Limits(5_000, 3_600, Headers.RIGHT, Answers.RIGHT)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("bad", [{7}, {7, *range(70, 80)}], ids=["one", "eleven"])
def test_some_repositories_hold_up_no_others(tmp_path: Path, status: int, bad: set[int]) -> None:
    """Some repositories are under maintenance, and each answer says to come back in ten minutes. All wait at first, as
    it may be about them; then those items alone. Eleven of a hundred took 3.8 days, and held up the others as long."""

    def instead(_: BudgetPlatform, path: str) -> Answer | None:
        is_bad = path in {f"/repos/acme/r{number}/readme" for number in bad}
        return (status, {"Retry-After": str(WAIT_S)}, {"message": "Come back later"}) if is_bad else None

    platform = BudgetPlatform(limits(), instead)
    ran = run(tmp_path, platform, ITEMS, {"failures": "100%"}, most_s=20 * WAIT_S)
    assert ran.outcomes.count("succeeded") == ITEMS - len(bad)
    good = [at for at, path in platform.sent if path.endswith("/readme") and path[13:-7] not in map(str, bad)]
    assert max(good) < 4 * WAIT_S
    for number in bad:  # and what was said is obeyed all the same
        moments = [at for at, path in platform.sent if path == f"/repos/acme/r{number}/readme"]
        assert len(moments) <= 12
        assert all(after - before >= WAIT_S for before, after in itertools.pairwise(moments))


@pytest.mark.parametrize("status", [429, 503])
def test_a_limit_of_the_question_for_limits_is_obeyed_once(tmp_path: Path, status: int) -> None:
    """Only `/rate_limit` is answered so, each time: after the first time a request looks whether it is about it. Fifty
    reads took seven hours."""

    def instead(_: BudgetPlatform, path: str) -> Answer | None:
        return (status, {"Retry-After": "3600"}, {"message": "Too many"}) if path == "/rate_limit" else None

    platform = BudgetPlatform(limits(), instead)
    ran = run(tmp_path, platform, 50, {}, most_s=30_000.0)
    assert ran.outcomes == ["succeeded"] * 50
    assert ran.ended_s < 3_700.0
    asked = [at for at, path in platform.sent if path == "/rate_limit"]
    assert all(after - before >= 3_600.0 for before, after in itertools.pairwise(asked))
