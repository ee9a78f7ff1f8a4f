"""The plan and what is shown while a run goes on, in real time; `python -m benchmarks.forecast` has ten scenarios."""

import json
from pathlib import Path

import pytest

from tests.e2e.support.forecasting import LIVE_SHARE, PLAN_S, Scenario, files, measure, readmes, repositories
from tests.e2e.support.platform import Home, served

SCENARIOS = (
    Scenario("windows", ("--rate-limit", "core=60/2"), {"reads": readmes(150)}, spent=30),
    Scenario("a lane", ("--rate-limit", "off", "--latency", "40"), {"writes": files([30, 2, 2])}),
)


@pytest.mark.soak
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_plan_is_what_happens(scenario: Scenario, tmp_path: Path) -> None:
    """The run ends within a second of its plan, half-way the end that is shown is off by a tenth of what is left (or by
    a quarter of a second), and never do more items wait than are left."""
    told = measure(scenario, tmp_path, 200)
    assert abs(told.plan_error_s) <= PLAN_S, told
    assert all(count <= left for count, left in told.waits)
    when, predicted = min(told.live, key=lambda each: abs(each[0] - told.began_at - told.took_s / 2))
    assert predicted is not None
    assert abs(predicted - told.ended_at) <= max(LIVE_SHARE * (told.ended_at - when), 0.25), told


@pytest.mark.soak
@pytest.mark.parametrize("latency_ms", ["0", "150"])
def test_an_untouched_window_shows_its_length_at_any_time(latency_ms: str, tmp_path: Path) -> None:
    """Whenever in a second the limits are asked for, also where the answer comes in the next one: 8 seconds are 8."""
    home = Home(tmp_path)
    with served(tmp_path / "sandbox", "--latency", latency_ms, "--rate-limit", "core=5/8") as sandbox:
        home.manifest(sandbox.base_url, {"a": {"operation": "readme.get", "items": repositories(0, 20)}})
        plans = [json.loads(home.run("plan", "manifest.yaml", "--json").out) for _ in range(6)]
    assert {plan["buckets"][0]["window_s"] for plan in plans} == {8.0}


def test_a_plan_measures_the_platform(tmp_path: Path) -> None:
    """The plan takes its latency from what the platform's answers took, and says from when on it holds where answers
    are lost; a bucket of which somebody has spent shows its length when its next window begins."""
    home = Home(tmp_path)
    with served(tmp_path / "sandbox", "--latency", "100", "--rate-limit", "core=5/3") as sandbox:
        item = {"owner": "acme-eng", "repo": "hello-world"}
        reads = [{**item, "path": f"F{number}"} for number in range(20)]
        home.manifest(sandbox.base_url, {"a": {"operation": "contents.get", "items": reads}})
        home.run("run", "manifest.yaml", "--run-dir", "run", "--limit", "1")
        plan = json.loads(home.run("plan", "manifest.yaml", "--json").out)
    assert 0.1 <= plan["latency_s"] <= 0.3
    assert plan["buckets"][0]["window_s"] == 3.0
    assert plan["buckets"][0]["is_window_seen"]
    assert plan["least_finish_at"] <= plan["most_finish_at"] <= plan["lossy_finish_at"]
