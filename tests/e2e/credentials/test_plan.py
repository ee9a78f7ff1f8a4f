"""`bulk plan` with pools and Apps: what each payer has, and which one decides the end."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.support.platform import Home, served

APP = {
    "slug": "fleet",
    "client_id": "Iv1.fleet",
    "installations": [{"prefix": "org-", "count": 2, "each": 40}, {"organization": "acme-ops", "suspended": True}],
}
USERS = ["dora", "emil"]
TOKENS = [{"token": f"{user}-{n}", "user": user, "scopes": ["repo"]} for user in USERS for n in (1, 2)]


def test_each_payer_is_planned_with(tmp_path: Path) -> None:
    """Two installations have budgets of their own, and the one with more items decides the end; where the App is not
    installed or suspended is said beforehand. A pool has what its payers have together: four tokens, two payers."""
    home = Home(tmp_path / "home")
    seed = {"users": [{"login": user} for user in USERS], "tokens": TOKENS, "apps": [APP]}
    with served(tmp_path / "platform", "--rate-limit", "core=10/60", seed=seed) as platform:
        key = next((platform.folder / "state").glob("*.private-key.pem"))
        home.write("app.pem", key.read_bytes()).chmod(0o600)
        members = [f"member-{number}" for number in range(len(TOKENS))]
        for member, token in zip(members, TOKENS, strict=True):
            home.write(member, str(token["token"])).chmod(0o600)
        owned = [("org-1", 30), ("org-2", 5), ("acme-ops", 2), ("acme-labs", 3)]
        items = [{"owner": owner, "repo": f"repo-{n:05d}"} for owner, count in owned for n in range(count)]
        credentials: dict[str, object] = {member: f"file:{member}" for member in members}
        credentials |= {
            "fleet": {"app": {"client_id": "Iv1.fleet", "private_key": "file:app.pem"}},
            "readers": {"pool": members},
        }
        jobs = {
            "app": {"operation": "readme.get", "credential": "fleet", "items": items},
            "pool": {"operation": "readme.get", "credential": "readers", "items": items[:30]},
        }
        about = {"base_url": platform.base_url, "credentials": credentials}
        home.write("m.yaml", json.dumps({"version": 1, "platform": about, "jobs": jobs}))
        ran = home.run("plan", "m.yaml", "--json")
        assert ran.exit_code == 0, ran
        plan = json.loads(ran.out)
        for bucket in plan["buckets"]:  # what there is, and no figure that was made to forecast the end
            own = [each for each in plan["payers"] if each["credential"] == bucket["credential"]]
            for name in ("limit", "remaining"):
                assert bucket[name] == sum(each[name] for each in own), (bucket, own)
        told = {(each["credential"], each["payer"]): each for each in plan["payers"]}
        assert {key: (each["requests"], each["limit"], each["hourly"]) for key, each in told.items()} == {
            ("fleet", "org-1"): (30, 10, 600),
            ("fleet", "org-2"): (5, 10, 600),
            ("readers", "member-0"): (None, 10, 600),
            ("readers", "member-2"): (None, 10, 600),
        }
        windows = {bucket["credential"]: bucket["most_windows"] for bucket in plan["buckets"]}
        assert windows == {"fleet": 3, "readers": 2}
        notes = " ".join(plan["notes"])
        assert "not installed in acme-labs: 3 items would fail" in notes
        assert "in acme-ops" in notes
        assert "suspended" in notes
        assert "4 tokens of 2 payers" in notes
        text = home.run("plan", "m.yaml").out
        assert "2 payers, 1,200 requests an hour together" in text
        assert "- org-1: 30 requests; 10 of 10 left" in text
        sent = {line["path"].rpartition("/")[2] for line in platform.requests()}
        assert sent <= {"installations", "user", "access_tokens", "installation"}


def test_a_rehearsal_has_the_budgets_of_a_pool(tmp_path: Path) -> None:
    """Two payers of a pool have 20 requests in a window together: 70 reads take four windows, not a second."""
    home = Home(tmp_path / "home")
    seed = {"users": [{"login": user} for user in USERS], "tokens": TOKENS}
    with served(tmp_path / "platform", "--rate-limit", "core=10/600", seed=seed) as platform:
        members = [f"member-{number}" for number in range(len(TOKENS))]
        for member, token in zip(members, TOKENS, strict=True):
            home.write(member, str(token["token"])).chmod(0o600)
        credentials: dict[str, object] = {member: f"file:{member}" for member in members}
        credentials["readers"] = {"pool": members}
        items = [{"owner": "acme", "repo": f"repo-{number}"} for number in range(70)]
        jobs = {"pool": {"operation": "readme.get", "credential": "readers", "items": items}}
        about = {"base_url": platform.base_url, "credentials": credentials}
        home.write("m.yaml", json.dumps({"version": 1, "platform": about, "jobs": jobs}))
        ran = home.run("rehearse", "m.yaml")
        assert ran.exit_code == 0, ran
        assert "limit: core, 4 windows" in ran.out, ran.out
        home.write("member-0", "no-token-of-the-platform").chmod(0o600)
        ran = home.run("plan", "m.yaml")
        told = "refused its member 'member-0' (401); the others go on" in " ".join(ran.out.split())
        assert (ran.exit_code, told) == (0, True), ran
        for member in members:
            home.write(member, "no-token-of-the-platform").chmod(0o600)
        ran = home.run("plan", "m.yaml")
        assert (ran.exit_code, "refused every member of the pool 'readers' (401)" in ran.err) == (4, True), ran
