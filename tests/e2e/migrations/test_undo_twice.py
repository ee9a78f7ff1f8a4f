"""A run is taken back twice: what is already as it was before the run is unchanged, and what others have made stays."""

import json
from pathlib import Path
from typing import Any

from tests.e2e.support.platform import Home, served
from tests.e2e.support.state_dump import Key, dump, without

QUIET = ("--progress", "none")
FILE = {"owner": "acme-eng", "repo": "hello-world", "branch": "main", "message": "m"}
TEAM = {"enterprise": "acme", "enterprise-team": "ent:platform"}
ORGANIZATIONS = ("acme-eng", "acme-ops", "acme-labs")
SCANNING = "secret_scanning_enabled_for_new_repositories"
OFF: set[Key] = {("security",)}
"""What a dump shows otherwise where a setting was never set than where it was set to off."""

HOOKS = tuple({"org": "acme-eng", "config": {"url": f"https://u.example.com/{name}"}} for name in "abc")

BEFORE = {
    "guide": {"operation": "contents.put", "items": [{**FILE, "path": "guide.md", "content": "Zw=="}]},
    "hooks": {"operation": "webhook.create", "items": HOOKS},
    "teams": {"operation": "team-organization.add", "items": [{**TEAM, "organization_slugs": ORGANIZATIONS[:2]}]},
}


def everything(numbers: list[int]) -> dict[str, Any]:
    """Jobs with every operation that can be taken back; the webhooks with these numbers are changed."""
    changed, configured, deleted = ({"org": "acme-eng", "hook_id": number} for number in numbers)
    moved = {"org": "acme-labs", "login": "acme-research", "wait": True}
    items = {
        "contents.put": [
            {**FILE, "path": "new.md", "content": "bmV3"},
            {**FILE, "path": "README.md", "content": "bmV3"},
        ],
        "contents.delete": [{**FILE, "path": "guide.md"}],
        "webhook.create": [{"org": "acme-ops", "config": {"url": "https://u.example.com/d"}}],
        "webhook.update": [{**changed, "events": ["fork"], "drop_secret": True}],
        "webhook.update-config": [{**configured, "url": "https://u.example.com/e", "drop_secret": True}],
        "webhook.delete": [deleted],
        "organization-configuration.update": [{"org": "acme-eng", "configuration_id": 2003, "description": "ours"}],
        "enterprise-security.update": [
            {"enterprise": "acme", "secret_scanning_enabled_for_new_repositories": True, "wait": True}
        ],
        "team-organization.unassign": [{**TEAM, "org": "acme-eng"}],
        "team-organization.remove": [{**TEAM, "organization_slugs": ["acme-ops"]}],
        "team-organization.assign": [{**TEAM, "org": "acme-labs"}],
        "organization.rename": [moved],
    }
    jobs = {name.replace(".", "-"): {"operation": name, "items": given} for name, given in items.items()}
    jobs["organization-rename"]["needs"] = ["team-organization-assign"]
    return jobs


def test_what_was_taken_back_before_is_unchanged(tmp_path: Path) -> None:
    """Whatever it was: a second undo of the same run changes nothing more and fails nowhere; only what somebody else
    has made of a file since is a conflict, and stays."""
    home = Home(tmp_path / "home")
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        home.manifest(sandbox.base_url, BEFORE)
        assert home.run("run", "manifest.yaml", "--run-dir", "before", "--yes", *QUIET).exit_code == 0
        numbers = [line["result"]["id"] for line in home.results("before") if line["job"] == "hooks"]
        home.manifest(sandbox.base_url, everything(numbers), limits={"settle": "1s"})
        ran = home.run("run", "manifest.yaml", "--run-dir", "run", "--yes", *QUIET)
        assert ran.exit_code == 0, ran.out + ran.err
        assert {line["outcome"] for line in home.results("run")} == {"succeeded"}
        for name, outcome in (("once", "succeeded"), ("twice", "unchanged")):
            assert home.run("undo", "run", "-o", f"{name}.yaml", *QUIET).exit_code == 0
            ran = home.run("run", f"{name}.yaml", "--run-dir", name, "--yes", *QUIET)
            told = [(line["job"], line["outcome"], line["error"]) for line in home.results(name)]
            assert [line for line in told if line[1] != outcome] == [], json.dumps(told, indent=1)
            after = dump(sandbox.folder / "state")
        home.manifest(
            sandbox.base_url,
            {"theirs": {"operation": "contents.put", "items": [{**FILE, "path": "README.md", "content": "dGhlaXJz"}]}},
            "theirs.yaml",
        )
        assert home.run("run", "theirs.yaml", "--run-dir", "theirs", *QUIET).exit_code == 0
        theirs = dump(sandbox.folder / "state")
        assert theirs != after
        assert home.run("run", "once.yaml", "--run-dir", "thrice", "--yes", *QUIET).exit_code == 1
        wrong = [(line["item"]["path"], line["error"]["code"]) for line in home.results("thrice") if line["error"]]
        assert wrong == [("README.md", "conflict")]
        assert dump(sandbox.folder / "state") == theirs


def changes_of_changes(number: int) -> dict[str, Any]:
    """Jobs that change each thing more than once; the webhook with this number is changed."""
    hook = {"org": "acme-eng", "hook_id": number}
    url = "https://u.example.com/"
    configuration = {"org": "acme-eng", "configuration_id": 2003}
    secure = {"enterprise": "acme", "wait": True}
    made = {"from": "made", "map": {"org": "item.org", "hook_id": "result.id"}}
    items: dict[str, tuple[str, Any]] = {
        "files": (
            "contents.put",
            [
                {**FILE, "path": path, "content": content}
                for path in ("new.md", "README.md", "gone.md", "same.md")
                for content in ("Zmlyc3Q=", "c2FtZQ==" if path == "same.md" else "c2Vjb25k")
            ],
        ),
        "deleted": ("contents.delete", [{**FILE, "path": path} for path in ("guide.md", "gone.md")]),
        "again": ("contents.put", [{**FILE, "path": "guide.md", "content": "YWdhaW4="}]),
        "updated": (
            "webhook.update",
            [
                {**hook, "events": ["fork"], "config": {"url": f"{url}1"}, "drop_secret": True},
                {**hook, "events": ["issues"], "active": False, "drop_secret": True},
            ],
        ),
        "configured": (
            "webhook.update-config",
            [{**hook, "url": f"{url}{place}", "content_type": "json", "drop_secret": True} for place in (2, 3)],
        ),
        "made": ("webhook.create", [{"org": "acme-ops", "config": {"url": f"{url}made"}}]),
        "changed": ("webhook.update", made),
        "settings": (
            "organization-configuration.update",
            [
                {**configuration, "description": "first"},
                {**configuration, "description": "second", "secret_scanning": "enabled"},
            ],
        ),
        "security": (
            "enterprise-security.update",
            [
                {**secure, SCANNING: True, "dependabot_alerts_enabled_for_new_repositories": True},
                {**secure, SCANNING: False},
                {**secure, SCANNING: True},
            ],
        ),
        "left": ("team-organization.remove", [{**TEAM, "organization_slugs": ["acme-ops", "acme-eng"]}]),
        "joined": ("team-organization.add", [{**TEAM, "organization_slugs": ["acme-ops", "acme-labs"]}]),
        "unassigned": ("team-organization.unassign", [{**TEAM, "org": "acme-labs"}, {**TEAM, "org": "acme-ops"}]),
    }  # fmt: skip
    jobs = {name: {"operation": operation, "items": given} for name, (operation, given) in items.items()}
    for job in jobs.values():
        job["allow_overwrites"] = True
    jobs["changed"]["with"] = {"events": ["fork"], "drop_secret": True}
    order = ("files", "deleted", "again"), ("updated", "configured"), ("left", "joined", "unassigned")
    for first, *others in order:
        for name in others:
            jobs[name]["needs"], first = [first], name
    return jobs


def test_what_a_run_has_changed_more_than_once_is_taken_back_at_once(tmp_path: Path) -> None:
    """There is one item for each thing: it expects what the last change left, and restores what was there before the
    first one. So a second undo of the same run finds everything unchanged, as of what was changed once."""
    home = Home(tmp_path / "home")
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        same = [{**FILE, "path": "same.md", "content": "c2FtZQ=="}]
        there = {**BEFORE, "same": {"operation": "contents.put", "items": same}}
        home.manifest(sandbox.base_url, there)
        assert home.run("run", "manifest.yaml", "--run-dir", "before", "--yes", *QUIET).exit_code == 0
        number = next(line["result"]["id"] for line in home.results("before") if line["job"] == "hooks")
        before = without(dump(sandbox.folder / "state"), OFF)
        home.manifest(sandbox.base_url, changes_of_changes(number), limits={"settle": "1s"})
        ran = home.run("run", "manifest.yaml", "--run-dir", "run", "--yes", *QUIET)
        assert ran.exit_code == 0, ran.out + ran.err
        assert {line["outcome"] for line in home.results("run")} == {"succeeded"}
        for name, outcomes in (("once", {"succeeded"}), ("twice", {"unchanged"})):
            assert home.run("undo", "run", "-o", f"{name}.yaml", *QUIET).exit_code == 0
            ran = home.run("run", f"{name}.yaml", "--run-dir", name, "--yes", *QUIET)
            told = [(line["job"], line["item"], line["outcome"], line["error"]) for line in home.results(name)]
            assert [line for line in told if line[2] not in outcomes] == [], json.dumps(told, indent=1)
            assert without(dump(sandbox.folder / "state"), OFF) == before
