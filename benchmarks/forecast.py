"""What the plan and the live display predict against what then happens, in real time against `bulk sandbox`.

    python -m benchmarks.forecast [SCENARIO ...]

Each scenario plans a manifest and runs it, in processes of their own. Without faults the plan must be within 5% or a
second of the real end; with faults the end must lie in the range that the plan prints. At 25, 50 and 75% of the time
the end that is shown must be off by at most a tenth of what is left. It takes about five minutes.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.harness.measuring import row
from tests.e2e.support.forecasting import (
    AT,
    LIVE_SHARE,
    PLAN_S,
    PLAN_SHARE,
    Scenario,
    Told,
    files,
    measure,
    readmes,
    snapshots,
)

REPOSITORIES = 2_400

SCENARIOS = (
    Scenario("full", ("--rate-limit", "core=300/8"), {"reads": readmes(1_000)}),
    Scenario("half used", ("--rate-limit", "core=300/8"), {"reads": readmes(950)}, spent=150),
    Scenario("nearly empty", ("--rate-limit", "core=300/10"), {"reads": readmes(700)}, spent=290),
    Scenario(
        "two categories",
        ("--rate-limit", "core=200/6", "--rate-limit", "dependency_snapshots=60/8", "--latency", "30"),
        {"reads": readmes(700), "snapshots": snapshots(200)},
    ),
    Scenario("one hot lane", ("--rate-limit", "off", "--latency", "60"), {"writes": files([140, *[5] * 20])}),
    Scenario(
        "1% lost answers",
        ("--rate-limit", "core=400/10", "--latency", "40", "--fault", "drop-after=0.01", "--fault-seed", "3"),
        {"writes": files([20] * 20), "reads": readmes(600)},
        is_faulty=True,
    ),
    Scenario(
        "200 ms latency", ("--rate-limit", "off", "--latency", "200"), {"reads": readmes(2_400)}, {"concurrency": 32}
    ),
    Scenario("limits off", ("--rate-limit", "off", "--latency", "50"), {"reads": readmes(2_000)}, {"concurrency": 6}),
    Scenario("a reserve", ("--rate-limit", "core=300/8"), {"reads": readmes(700)}, {"reserve": 100}),
    Scenario(
        "two jobs with needs",
        ("--rate-limit", "core=250/8", "--latency", "80"),
        {"writes": files([10] * 20), "reads": readmes(600, needs=["writes"])},
    ),
)


def classify(scenario: Scenario, told: Told) -> bool:
    """Print the scenario's row; whether all of it holds."""
    errors = [told.live_error(share) for share in AT]
    is_live_right = all(abs(error) <= LIVE_SHARE for error in errors)
    within_s = max(PLAN_S, PLAN_SHARE * told.took_s)
    is_plan_right = told.is_in_range if scenario.is_faulty else abs(told.plan_error_s) <= within_s
    least, most, lossy = (at - told.planned_at for at in (told.least_at, told.most_at, told.lossy_at))
    shown = ", ".join(f"{100 * error:+.0f}%" for error in errors)
    waits = sum(count > left for count, left in told.waits)
    row(
        f"forecast: {scenario.name}",
        f"took {told.took_s:.2f} s, plan {least:.2f} to {most:.2f} s (lossy {lossy:.2f} s), off by "
        f"{told.plan_error_s:+.2f} s; live off by {shown} of what was left; {waits} counts too large",
        "in range; live 10%" if scenario.is_faulty else "5% or 1 s; live 10%",
        is_plan_right and is_live_right and not waits,
    )
    return is_plan_right and is_live_right and not waits


def main() -> int:
    """Run the scenarios one after the other; exit 1 where one does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="SCENARIO")
    given = parser.parse_args()
    chosen = [scenario for scenario in SCENARIOS if not given.names or scenario.name in given.names]
    is_good = True
    for scenario in chosen:
        with tempfile.TemporaryDirectory(prefix="bulk-forecast-") as folder:
            is_good = classify(scenario, measure(scenario, Path(folder), REPOSITORIES)) and is_good
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
