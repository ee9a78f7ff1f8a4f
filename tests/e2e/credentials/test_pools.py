"""The real command with a pool of users: one payer after the other is drained, and tokens of one user are one."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.platform import Home, served

USERS = ("dora", "drew", "dina")
SEED: dict[str, Any] = {
    "users": [{"login": user} for user in USERS],
    "tokens": [{"token": f"{user}-{n}", "user": user, "scopes": ["repo"]} for user in USERS for n in (1, 2)],
    "repositories": {"organization": "fleet", "count": 100},
}


OLD = {"owner": "acme-eng", "repo": "hello-world"}
"""It last changed long ago, so that its date is worth something."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A folder to work in, with a file for each token."""
    made = Home(tmp_path / "home")
    for token in SEED["tokens"]:
        made.write(f"{token['token']}/token.txt", token["token"]).chmod(0o600)
    return made


def manifest(home: Home, base_url: str, count: int, credentials: dict[str, Any], **more: str) -> None:
    """Reads `count` READMEs with the credential `readers`."""
    items = [{"owner": "fleet", "repo": f"repo-{number:05d}"} for number in range(count)] or [OLD]
    platform = {"base_url": base_url, "credentials": credentials, **more}
    media = {"media_type": "raw"}  # as JSON, a README has a URL that is good once, so that it is another each time
    jobs = {"reads": {"operation": "readme.get", "credential": "readers", "with": media, "items": items}}
    home.write("manifest.yaml", json.dumps({"version": 1, "platform": platform, "jobs": jobs}))


def test_payers_are_drained_one_after_the_other(home: Home, tmp_path: Path) -> None:
    """Three users with two tokens each are three budgets: all of them are used, none beyond, the second only when the
    first is empty."""
    with served(tmp_path / "platform", "--rate-limit", "core=31/90", seed=SEED) as platform:
        members = [token["token"] for token in SEED["tokens"]]
        credentials: dict[str, Any] = {name: f"file:{name}/token.txt" for name in members}
        manifest(home, platform.base_url, 80, {**credentials, "readers": {"pool": members}})
        options = ("--progress", "none", "--no-cache", "--concurrency", "4")
        ran = home.run("run", "manifest.yaml", "--run-dir", "run", *options)
        assert ran.exit_code == 0, ran
        reads = platform.requests(path="/readme")
        assert {line["status"] for line in reads} == {200}
        used = Counter(line["user"] for line in reads)
        # one request of each token asks whose it is
        assert [used[user] for user in USERS] == [29, 29, 22]
        order = [line["user"] for line in reads]
        assert order.index("drew") >= 29 - 4


def test_members_that_see_less_are_named(home: Home, tmp_path: Path) -> None:
    """Where one member lacks a scope that another has, a run says so: which of them reads an item is chance."""
    home.write("less/token.txt", "less-token").chmod(0o600)
    less = {"token": "less-token", "user": "drew", "scopes": ["gist"]}
    with served(tmp_path / "platform", seed={**SEED, "tokens": [*SEED["tokens"], less]}) as platform:
        for members, is_said in ((["dora-1", "less"], True), (["dora-1", "drew-1"], False)):
            sources: dict[str, Any] = {name: f"file:{name}/token.txt" for name in members}
            manifest(home, platform.base_url, 4, {**sources, "readers": {"pool": members}})
            ran = home.run("run", "manifest.yaml", "--run-dir", f"run-{is_said}", "--progress", "none")
            assert ran.exit_code == 0, ran
            assert ("do not see the same" in ran.err) is is_said, ran.err
            assert ("is not_found to 'less'" in ran.err) is is_said


def test_answers_outlive_a_token(home: Home, tmp_path: Path) -> None:
    """With another token of the same user every answer is unchanged, and with one of another user none is; where the
    manifest names the identity itself, the date tells, unless `--exact` forbids that."""
    with served(tmp_path / "platform", "--vendor", "github", seed=SEED) as platform:
        found = {}
        for name, run in (("dora-1", "first"), ("dora-2", "second"), ("drew-1", "other")):
            source: dict[str, Any] = {"readers": f"file:{name}/token.txt"}
            manifest(home, platform.base_url, 20, source, vendor="github")
            ran = home.run("run", "manifest.yaml", "--run-dir", run, "--progress", "none")
            assert ran.exit_code == 0, ran
            lines = [json.loads(line) for line in (home.folder / run / "results.jsonl").read_text().splitlines()]
            found[run] = Counter((line["outcome"], line.get("unchanged_by")) for line in lines)
        assert found["first"] == found["other"] == Counter({("succeeded", None): 20})
        assert {outcome for outcome, _ in found["second"]} == {"unchanged"}
    with served(tmp_path / "service", seed=SEED) as platform:
        for name, options, run in (("dora-1", (), "a"), ("drew-1", (), "b"), ("drew-2", ("--exact",), "c")):
            named: dict[str, Any] = {"readers": {"token": f"file:{name}/token.txt", "identity": "robots"}}
            manifest(home, platform.base_url, 0, named)
            assert home.run("run", "manifest.yaml", "--run-dir", run, "--progress", "none", *options).exit_code == 0
            lines = [json.loads(line) for line in (home.folder / run / "results.jsonl").read_text().splitlines()]
            found[run] = Counter((line["outcome"], line.get("unchanged_by")) for line in lines)
        assert found["b"] == Counter({("unchanged", "date"): 1})
        assert found["c"] == Counter({("succeeded", None): 1})
