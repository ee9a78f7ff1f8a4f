"""What a kind of credential costs: CPU time of an item with a token, as an App, and with a pool, in turns.

    python -m benchmarks.compared.kinds

Prints a table of its own. What a process takes before and after its items is left out: of each pair of runs, one of
them with few items, the difference counts.
"""

import statistics
import sys
from collections.abc import Iterator
from typing import Any

from benchmarks.compared.credentials import APP, Bench, Row, apps, main

ITEMS, FEW, ROUNDS = 10_000, 200, 5
MEMBERS = 3
MOST = {"a pool": 1.25, "an App, fifty owners": 1.1}
"""What an item may take, of one with a token, where a member or one of fifty budgets is chosen for each item."""
MOST_ELSE = 1.05


def _credentials(bench: Bench, tokens: list[str]) -> dict[str, dict[str, Any]]:
    """Each kind, as the credential `reader`."""
    for token in tokens:
        (bench.folder / token).write_text(token)
        (bench.folder / token).chmod(0o600)
    files = {token: f"file:{token}" for token in tokens}
    return {
        "a token": {"reader": f"file:{tokens[0]}"},
        "an App, one owner": {"reader": {"app": APP}},
        "an App, fifty owners": {"reader": {"app": APP}},
        f"a pool of {MEMBERS}": {**files, "reader": {"pool": tokens}},
    }


def kinds(bench: Bench) -> Iterator[Row]:
    """Reads with each of them, in turns."""
    users = [f"user-{number}" for number in range(MEMBERS)]
    seed: dict[str, Any] = {
        "users": [{"login": user} for user in users],
        "tokens": [{"token": f"token-of-{user}", "user": user, "scopes": ["repo"]} for user in users],
    }
    credentials = _credentials(bench, [f"token-of-{user}" for user in users])
    took: dict[str, list[float]] = {kind: [] for kind in credentials}
    for _ in range(ROUNDS):
        for kind, credential in credentials.items():
            owners = 50 if "fifty" in kind else 1
            limit = ITEMS // 2 if "pool" in kind else 4 * ITEMS  # so that every member is used
            cpu_s: list[float] = []
            for count in (FEW, ITEMS):
                wanted = [
                    {"owner": f"org-{number % owners + 1}", "repo": f"repo-{number // owners:05d}"}
                    for number in range(count)
                ]
                with bench.sandbox("--rate-limit", f"core={limit}/3600", seed=apps(ITEMS // owners, owners, **seed)):
                    code, _ = bench.run(wanted, credential)
                if code or bench.outcomes() != {"succeeded": count}:
                    raise SystemExit(f"{kind}: exit code {code}, {dict(bench.outcomes())}")
                cpu_s.append(bench.cpu_s)
            took[kind].append(1e6 * (cpu_s[1] - cpu_s[0]) / (ITEMS - FEW))
    plain = took["a token"]
    for kind, each in took.items():
        ratios = [one / other for one, other in zip(each, plain, strict=True)]
        ratio = statistics.median(ratios)
        figure = f"{ratio:.3f} ({min(ratios):.3f} to {max(ratios):.3f}); CPU µs each {statistics.median(each):.0f}"
        most = next((most for name, most in MOST.items() if kind.startswith(name)), MOST_ELSE)
        yield f"an item with {kind}, of one with a token", figure, f"<= {most:g}", ratio <= most


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], {"kinds": kinds}))
