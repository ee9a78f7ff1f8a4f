"""What the platform says about limits and credentials is obeyed, by the real command."""

import sys
from pathlib import Path

import pytest

from tests.e2e.support.judging import arrived
from tests.e2e.support.platform import Home, served
from tests.e2e.support.programs import canned

FLEET = {"organization": "acme-fleet", "count": 200, "readme_bytes": 100}
READMES = {
    "readmes": {
        "operation": "readme.get",
        "items": [{"owner": "acme-fleet", "repo": f"repo-{number:05d}"} for number in range(200)],
    }
}
LOCK_OUT_AFTER = 5
"""Bad requests that lock a user out of the sandbox (count)."""
ON_THEIR_WAY_S = 0.15
"""Requests that had left before the answer with Retry-After was read arrive within this time (seconds)."""


def test_a_wrong_token_sends_one_request_and_locks_nobody_out(tmp_path: Path, figure) -> None:
    """A wrong token: one request, exit 4; a good token goes on at once (failures.md rows 16, 17)."""
    home = Home(tmp_path, token="not-a-token")
    with served(tmp_path / "sandbox", seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, READMES)
        wrong = home.run("run", "manifest.yaml", "--run-dir", "run")
        sent = sandbox.journal()
        home.token = "sbx-site-admin"
        good = home.run("run", "manifest.yaml", "--run-dir", "run")
        last = sandbox.requests()[-1]
    figure(f"{len(sent)} request with the wrong token, exit {wrong.exit_code}; then exit {good.exit_code}")
    assert wrong.exit_code == 4, wrong.err
    assert "refused the credential" in wrong.err
    assert wrong.err.splitlines()[-1] == "bulk resume run"
    assert len(sent) == 1
    assert "not-a-token" not in wrong.err + wrong.out
    assert good.exit_code == 0, good.err
    assert last["status"] == 200
    assert len(home.results("run")) == len(READMES["readmes"]["items"])


PROVIDER = """\
import pathlib, sys
here = pathlib.Path(__file__).parent
print((here / "tokens").read_text().splitlines()[0])
rest = (here / "tokens").read_text().splitlines()[1:]
(here / "tokens").write_text("\\n".join(rest))
"""


@pytest.mark.parametrize(
    ("second", "exit_code"), [("second-token", 0), ("junk-\x07", 4), ("first-token", 4)],
    ids=["renewed", "junk", "the same"],
)  # fmt: skip
def test_a_token_that_ends_is_renewed_once(second: str, exit_code: int, tmp_path: Path, figure) -> None:
    """A token that ends is asked for again, once; without a better one: exit 4 (failures.md rows 16, 36)."""
    home = Home(tmp_path)
    home.variables["BULK_TOKEN"] = ""
    home.write("provider.py", PROVIDER)
    home.write("tokens", f"first-token\n{second}\n")
    tokens = ("--token", "first-token=octoadmin:2", "--token", "second-token=octoadmin")
    with served(tmp_path / "sandbox", *tokens, "--latency", "100", seed={"repositories": FLEET}) as sandbox:
        credentials = {"default": f"command:{sys.executable} provider.py"}
        home.manifest(
            sandbox.base_url,
            {"readmes": {**READMES["readmes"], "items": READMES["readmes"]["items"][:120]}},
            platform={"base_url": sandbox.base_url, "credentials": credentials},
            limits={"concurrency": LOCK_OUT_AFTER - 1},
        )
        ran = home.run("run", "manifest.yaml", "--run-dir", "run", "--log-level", "debug")
        refused = [line for line in sandbox.journal() if line["status"] == 401]
        left = 120 - len(home.results("run"))
        home.write("tokens", "second-token\n")
        again = home.run("run", "manifest.yaml", "--run-dir", "run")
    figure(f"{len(refused)} requests refused, {left} items left")
    assert ran.exit_code == exit_code, ran.err
    # what was in flight when the token ended, and nothing after the first refusal was seen
    assert 0 < len(refused) < LOCK_OUT_AFTER
    assert bool(left) == bool(exit_code)
    assert "-token" not in ran.err + ran.out
    assert "junk" not in ran.err + ran.out
    assert again.exit_code == 0, again.err
    assert {line["outcome"] for line in home.results("run")} == {"succeeded"}


def test_a_lock_out_on_top_of_a_refusal_does_not_hide_it(tmp_path: Path, figure) -> None:
    """A token ends with many requests in flight: locked out or not, exit 4 at once (failures.md rows 17, 18)."""
    home = Home(tmp_path, token="short-lived")
    options = ("--token", "short-lived=octoadmin:5", "--latency", "500")
    with served(tmp_path / "sandbox", *options, seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, READMES, limits={"concurrency": 16})
        ran = home.run("run", "manifest.yaml", "--run-dir", "run")
        lines = sandbox.requests()
    last_good = max(arrived(line) for line in lines if line["status"] == 200)
    refused = [line for line in lines if line["status"] in (401, 403)]
    figure(f"{len(refused)} requests refused, {sum(line['status'] == 403 for line in refused)} of them as locked out")
    assert ran.exit_code == 4, ran.err
    assert any(line["status"] == 403 for line in refused)
    assert len(refused) <= 16
    assert max(map(arrived, refused)) - last_good < 1.0


def test_without_rate_limits_the_run_succeeds(tmp_path: Path) -> None:
    """`GET /rate_limit` answers 404, because limits are off: everything succeeds all the same."""
    home = Home(tmp_path)
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, READMES)
        ran = home.run("run", "manifest.yaml", "--run-dir", "run")
        statuses = {line["status"] for line in sandbox.journal() if "rate_limit" in line["path"]}
    assert ran.exit_code == 0, ran.err
    assert statuses == {404}
    assert {line["outcome"] for line in home.results("run")} == {"succeeded"}


@pytest.mark.parametrize("number", [1, 100], ids=["the first request", "amidst others"])
def test_retry_after_is_obeyed(number: int, tmp_path: Path, figure) -> None:
    """`Retry-After: 3` on a 429: nothing at all is sent for 3 s, then the item succeeds (failures.md row 19)."""
    home, log = Home(tmp_path), tmp_path / "requests.log"
    with canned("--log", str(log), "--refuse", str(number), "3") as base_url:
        home.manifest(base_url, READMES, limits={"concurrency": 4})
        ran = home.run("run", "manifest.yaml", "--run-dir", "run", "--no-cache")
    assert ran.exit_code == 0, ran.err
    lines = [line.split(" ") for line in log.read_text().splitlines()]
    times = [float(at) for at, path in lines if "rate_limit" not in path]
    refused_at = times[number - 1]
    later = [float(at) - refused_at for at, _ in lines if float(at) > refused_at + ON_THEIR_WAY_S]
    figure(f"nothing for {min(later):.3f} s after Retry-After: 3")
    assert 3.0 <= min(later) < 3.5
    assert len(times) == len(READMES["readmes"]["items"]) + 1
    assert {line["outcome"] for line in home.results("run")} == {"succeeded"}


@pytest.mark.parametrize("fault", ["limited", "unavailable"])
def test_refusals_for_now_cost_no_item(fault: str, tmp_path: Path) -> None:
    """429 and 503 pause everything for their Retry-After, and every item succeeds (failures.md rows 19, 24)."""
    home = Home(tmp_path)
    options = ("--fault", f"{fault}=0.01", "--fault-seed", "3", "--rate-limit", "core=100000/3600")
    with served(tmp_path / "sandbox", *options, seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, READMES, limits={"concurrency": 1})
        ran = home.run("run", "manifest.yaml", "--run-dir", "run")
        lines = sandbox.requests()
    assert ran.exit_code == 0, ran.err
    hit = [place for place, line in enumerate(lines) if line["fault"]]
    assert hit
    for place in hit:
        assert arrived(lines[place + 1]) - arrived(lines[place]) >= 1.0
    assert {line["outcome"] for line in home.results("run")} == {"succeeded"}
