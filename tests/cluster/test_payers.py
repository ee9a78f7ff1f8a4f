"""Apps and pools in a run that two workers share: each payer has one budget, whoever spends it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.cluster.cluster import run_arguments
from tests.e2e.credentials.test_apps import OWNERS, fleet, keys, readmes
from tests.e2e.credentials.test_pools import SEED, USERS
from tests.e2e.support.platform import Home, served

__all__ = ["keys"]
LIMIT, WINDOW_S, ROUNDS = 30, 3, 4
"""Requests of each installation in a window, its length (seconds), and how often each repository is read."""


def test_each_installation_is_one_payer(store_text: str, tmp_path: Path, keys) -> None:
    """Workers make tokens of their own for each installation and spend one budget together: no request is refused, and
    what the App can't reach fails without being sent."""
    home = Home(tmp_path / "home")
    with fleet(home, tmp_path / "platform", keys, "--rate-limit", f"core={LIMIT}/{WINDOW_S}") as it:
        home.write("credentials.yaml", json.dumps({"fleet": {"app": it.app}}))
        found = [item for number in range(ROUNDS) for item in readmes(*OWNERS)]
        items = [{**item, "id": str(number)} for number, item in enumerate(found)]
        items.append({"owner": "acme-labs", "repo": "x", "id": "nowhere"})
        jobs = {"reads": {"operation": "readme.get", "credential": "fleet", "items": items}}
        home.manifest(it.platform.base_url, jobs, limits={"concurrency": 4, "request_timeout": "5s"})
        options = ("--store", store_text, "--base-url", it.platform.base_url, "--credentials", "credentials.yaml")
        with home.running("worker", *options), home.running("worker", *options):
            ran = home.run(*run_arguments(store_text, "--credentials", "credentials.yaml"))
        assert ran.exit_code == 1, ran.err
        each = 12 * ROUNDS
        assert Counter(line["outcome"] for line in home.results("run")) == {"succeeded": 3 * each, "failed": 1}
        lines = it.platform.requests(path="/readme")
        assert Counter(line["status"] for line in lines) == {200: 3 * each}
        assert set(Counter(line["payer"] for line in lines).values()) == {each}
        assert len(it.mints()) > 3, "both have worked"


def test_tokens_of_one_user_are_one_payer(store_text: str, tmp_path: Path) -> None:
    """Two workers with a pool of three users, two tokens each, spend three budgets, none of them beyond its limit."""
    home = Home(tmp_path / "home")
    members = [token["token"] for token in SEED["tokens"]]
    for name in members:
        home.write(f"{name}.txt", name).chmod(0o600)
    sources: dict[str, Any] = {name: f"file:{name}.txt" for name in members}
    home.write("credentials.yaml", json.dumps({**sources, "readers": {"pool": members}}))
    with served(tmp_path / "platform", "--rate-limit", "core=31/90", seed=SEED) as platform:
        items = [{"owner": "fleet", "repo": f"repo-{number:05d}"} for number in range(62)]
        jobs = {"reads": {"operation": "readme.get", "credential": "readers", "items": items}}
        home.manifest(platform.base_url, jobs, limits={"concurrency": 4, "request_timeout": "5s"})
        options = ("--store", store_text, "--base-url", platform.base_url, "--credentials", "credentials.yaml")
        with home.running("worker", *options), home.running("worker", *options):
            ran = home.run(*run_arguments(store_text, "--credentials", "credentials.yaml"))
        assert ran.exit_code == 0, ran.err
        lines = platform.requests()
        assert {line["status"] for line in lines} == {200}
        used = Counter(line["user"] for line in lines)
        assert set(used) == set(USERS)
        assert max(used.values()) <= 31, used
