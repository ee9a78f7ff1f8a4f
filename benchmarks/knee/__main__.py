"""Tries the rule for what may be in flight on simulated platforms, beside the rule that the engine had before.

Prints for each platform what share of the possible goodput both reach once they are steady, at how many times the
unloaded latency; when they got there, when the first 1,000 answers were there, and what was allowed on average. Good is
at least 0.9 of the goodput at no more than 3 times the latency; `!` marks what is not.

    python -m benchmarks.knee [--seed 1] [--random 60] [--group random] [--only WORDS] [--rules now] [--bad] [--jobs 1]
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from benchmarks.knee import before, scenarios
from benchmarks.knee.simulation import Measured, Rule, Simulation
from bulk.govern.concurrency.adaptive_limit import AdaptiveLimit

RULES: dict[str, Callable[[int], Rule]] = {"before": before.AdaptiveLimit, "now": AdaptiveLimit}
GROUPS = {"named": scenarios.named, "more": scenarios.more}


def measure(task: tuple[str, int, str], seed: int) -> Measured:
    """One run of (group, place in it, rule)."""
    group, place, rule = task
    scenario = (GROUPS[group]() if group in GROUPS else scenarios.at_random(seed))[place]
    return Simulation(scenario, RULES[rule], seed).run()


def text(found: Measured) -> str:
    """One cell of the table."""
    settled = "   -  " if found.settled_s is None else f"{found.settled_s:5.1f}s"
    first = "   -   " if found.first_s is None else f"{found.first_s:6.2f}s"
    mark = " " if found.is_good else "!"
    return f"{found.share:5.2f} {found.slowness:6.1f}x{mark} {settled} {first} {found.limit:6.1f}"


def main() -> None:
    """Measure, tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--random", type=int, default=60, help="how many platforms at random, up to 60")
    parser.add_argument("--only", default="", help="platforms whose name has these words")
    parser.add_argument("--group", default="", help="named, more or random")
    parser.add_argument("--rules", default="before,now")
    parser.add_argument("--bad", action="store_true", help="of those at random only what is not good")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    rules = given.rules.split(",")
    groups = {name: make() for name, make in GROUPS.items()}
    groups["random"] = scenarios.at_random(given.seed, given.random)
    chosen = {
        name: [place for place, each in enumerate(group) if given.only in each.name]
        for name, group in groups.items()
        if given.group in ("", name)
    }
    print(f"{'':60}" + "".join(f"{rule:>8}: share, latency, settled, 1,000, limit   " for rule in rules))
    with ProcessPoolExecutor(given.jobs) as pool:
        for name, places in chosen.items():
            tasks = [(name, place, rule) for place in places for rule in rules]
            found = dict(zip(tasks, pool.map(partial(measure, seed=given.seed), tasks), strict=True))
            for place in places:
                each = [found[name, place, rule] for rule in rules]
                if not given.bad or not all(one.is_good for one in each):
                    print(f"{groups[name][place].name:60.60}" + "   ".join(map(text, each)), flush=True)
            for rule in rules:
                good = sum(found[name, place, rule].is_good for place in places)
                print(f"{name}, {rule}: {good} of {len(places)} good", flush=True)


if __name__ == "__main__":
    main()
