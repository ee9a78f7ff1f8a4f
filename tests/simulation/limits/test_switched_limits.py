"""Limits that an administrator turns off, and on again, while a run goes on."""

from pathlib import Path

import pytest

from tests.hostile.budget_runs import Answer, BudgetPlatform, Instead, readme, run
from tests.hostile.http.limits import Answers, Limits

LIMIT, WINDOW_S = 100, 60
ITEMS = 1_000


def switched(off_s: float, on_after: int = ITEMS) -> Instead:
    """Limits are off from that moment on (seconds after the first question), until `on_after` requests have come:
    answers name none, and `/rate_limit` is 404."""

    def instead(platform: BudgetPlatform, path: str) -> Answer | None:
        if platform.sent[-1][0] - platform.sent[0][0] < off_s or len(platform.paths()) > on_after:
            return None
        if path == "/rate_limit":
            return 404, {}, {"message": "Rate limiting is not enabled."}
        return 200, {}, readme(path)

    return instead


@pytest.mark.parametrize("pace", ["even", "burst"])
@pytest.mark.parametrize("off_s", [10.0, 70.0])
def test_limits_that_are_turned_off_hold_up_nothing(tmp_path: Path, off_s: float, pace: str) -> None:
    """What was left of the window is not a budget any more. A run that had begun under a limit kept to it for ever:
    this one took ten windows, where a new one took seconds."""
    platform = BudgetPlatform(Limits(LIMIT, WINDOW_S), switched(off_s))
    ran = run(tmp_path, platform, ITEMS, {"pace": pace}, most_s=900.0)
    assert ran.outcomes == ["succeeded"] * ITEMS
    assert ran.ended_s < off_s + 1.5 * WINDOW_S


def test_limits_that_are_turned_on_again_are_kept(tmp_path: Path) -> None:
    """The first headers that come again open a bucket: at most what was in flight then is refused."""
    platform = BudgetPlatform(Limits(LIMIT, WINDOW_S), switched(10.0, ITEMS // 2))
    ran = run(tmp_path, platform, ITEMS, {}, most_s=900.0)
    assert ran.outcomes == ["succeeded"] * ITEMS
    assert ran.ended_s > 4 * WINDOW_S
    assert sum(refused for _, _, refused in platform.limits.spent()) <= 16


def test_headers_that_stay_away_for_a_while_turn_no_limits_off(tmp_path: Path) -> None:
    """Where `/rate_limit` has been 404 from the first, headers are the only witness: a gateway takes them from a
    hundred answers of a window, and what this run has sent in it still counts."""
    platform = BudgetPlatform(Limits(LIMIT, WINDOW_S, answers=Answers.NOT_FOUND))

    def bare(platform: BudgetPlatform, path: str) -> Answer | None:
        if path == "/rate_limit" or not 30 < len(platform.paths()) <= 130 or not platform.limits.charge(platform.now()):
            return None
        return 200, {}, readme(path)

    platform.instead = bare
    ran = run(tmp_path, platform, 3 * LIMIT, {}, most_s=900.0)
    assert ran.outcomes == ["succeeded"] * 3 * LIMIT
    assert sum(refused for _, _, refused in platform.limits.spent()) == 0
