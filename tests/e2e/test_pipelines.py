"""Items that meet others of their run: superseded ones, and items made from another job's results."""

from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

from tests.e2e.support.judging import Line, effects, overlaps
from tests.e2e.support.platform import Home, Served, served, wait_for

FLEET = {"organization": "acme-fleet", "count": 40, "readme_bytes": 100}
COMMAND = ("run", "manifest.yaml", "--run-dir", "run")
SNAPSHOT = {
    "version": 0,
    "ref": "refs/heads/main",
    "sha": "0" * 39 + "1",
    "detector": {"name": "d", "version": "1", "url": "https://example.com/d"},
    "owner": "acme-fleet",
}


def snapshots(rounds: int, repositories: int) -> list[dict[str, Any]]:
    """`rounds` snapshots of each of `repositories`, round after round."""
    return [
        {
            "repo": f"repo-{number:05d}",
            "job": {"id": str(turn), "correlator": "build"},
            "scanned": f"2026-11-21T08:{turn:02}:00Z",
        }
        for turn in range(rounds)
        for number in range(repositories)
    ]


def test_superseded_snapshots_are_not_sent(tmp_path: Path) -> None:
    """Of each lane the last snapshot is sent, the others are `skipped` as `superseded`, and the run is a success."""
    home = Home(tmp_path)
    home.lines("items.jsonl", snapshots(5, 40))
    jobs = {"snapshots": {"operation": "snapshot.create", "items": "items.jsonl", "with": SNAPSHOT}}
    with served(tmp_path / "sandbox", seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, jobs)
        planned = home.run("plan", "manifest.yaml")
        assert "160 items are superseded by a later one" in " ".join(planned.out.split()), planned.out
        cut = home.run(*COMMAND, "--limit", "60")
        ran = home.run(*COMMAND)
        sent = sandbox.requests()
        again = home.run("retry", "run")
        assert (cut.exit_code, ran.exit_code, again.exit_code) == (0, 0, 0), cut.err + ran.err + again.err
        assert len(sandbox.requests()) == len(sent)
    lines = home.results("run")
    assert Counter(line["index"] for line in lines) == Counter(range(200))
    cut_sent = set(range(20, 60))
    for line in lines:
        is_sent = line["index"] >= 160 or line["index"] in cut_sent
        assert line["outcome"] == ("succeeded" if is_sent else "skipped"), line
        assert line["attempts"] == (1 if is_sent else 0)
        if not is_sent:
            assert line["error"]["code"] == "superseded"
    assert len(sent) == 80


COPY = {
    "owner": "item.owner",
    "repo": "item.repo",
    "path": "COPY.md",
    "message": "Copy the readme",
    "content": "result.content",
}


def copies(count: int, **more: Any) -> dict[str, Any]:
    """Read `count` readmes, and write each into a second file of its repository."""
    items = [{"owner": "acme-fleet", "repo": f"repo-{number:05d}", "id": f"r{number}"} for number in range(count)]
    return {
        "readmes": {"operation": "readme.get", "items": items},
        "copies": {"operation": "contents.put", "items": {"from": "readmes", "each": "item", "map": COPY}, **more},
    }


def test_items_from_the_results_of_another_job(tmp_path: Path) -> None:
    """What one job reads another writes, without a script; then nothing is left to do; the plan says so."""
    home = Home(tmp_path)
    with served(tmp_path / "sandbox", seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, copies(40))
        planned = home.run("plan", "manifest.yaml")
        assert "its items come from readmes; how many is not known yet" in " ".join(planned.out.split()), planned.out
        ran = home.run(*COMMAND)
        assert ran.exit_code == 0, ran.err
        again = home.run(*COMMAND)
        assert again.exit_code == 0, again.err
        assert len(effects(sandbox.journal())) == 40
        status = home.run("status", "run", "--json")
        other = home.run("run", "manifest.yaml", "--run-dir", "other")
        assert other.exit_code == 0, other.err
        assert len(effects(sandbox.journal())) == 40
    lines = [line for line in home.results("run") if line["job"] == "copies"]
    assert sorted(line["index"] for line in lines) == list(range(40))
    assert {line["item"]["repo"] for line in lines} == {f"repo-{number:05d}" for number in range(40)}
    assert {line["outcome"] for line in home.results("other") if line["job"] == "copies"} == {"unchanged"}
    assert '"items": 40' in status.out or '"items":40' in status.out, status.out
    assert (tmp_path / "run" / "from-copies.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_killed_pipeline_goes_on(tmp_path: Path) -> None:
    """Killed again and again, while it reads, makes or writes: in the end every file was written exactly once."""
    home = Home(tmp_path)
    options = ("--latency", "30")
    with served(tmp_path / "sandbox", *options, seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, copies(40), limits={"concurrency": 4, "settle": "1s"})
        for more in (10, 25, 10, 10):
            seen = len(sandbox.requests()) + more
            process = home.start(*COMMAND)
            wait_for(partial(_has_seen, sandbox, seen), process)
            process.kill()
            process.communicate()
        ran = home.run(*COMMAND)
        assert ran.exit_code == 0, ran.err
        journal = sandbox.journal()
    assert len(effects(journal)) == 40
    lines = [line for line in home.results("run") if line["job"] == "copies"]
    assert Counter(line["index"] for line in lines) == Counter(range(40))


def test_lanes_of_made_items_are_those_of_others(tmp_path: Path) -> None:
    """A made item never writes to a repository while another job does, in whatever case the two name it."""
    home = Home(tmp_path)
    others = [
        {"owner": "ACME-fleet", "repo": f"REPO-{number:05d}", "path": f"{turn}.txt", "content": "QQ=="}
        for turn in range(10)
        for number in range(8)
    ]
    jobs = copies(8)
    jobs["others"] = {"operation": "contents.put", "items": others, "with": {"message": "m"}}
    with served(tmp_path / "sandbox", "--latency", "20", seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, jobs)
        ran = home.run(*COMMAND)
        assert ran.exit_code == 0, ran.err
        journal = sandbox.journal()
    assert len(effects(journal)) == 88
    writes: dict[str, list[Line]] = defaultdict(list)
    for line in journal:
        if line["method"] == "PUT":
            writes["/".join(line["path"].lower().split("/")[:6])].append(line)
    assert len(writes) == 8
    assert not [pair for lines in writes.values() for pair in overlaps(lines)]


def test_bad_items_fail_and_the_others_are_done(tmp_path: Path) -> None:
    """An item that lacks what its operation needs is `failed` with `invalid_item`; the others are done (exit 1)."""
    home = Home(tmp_path)
    jobs = copies(4)
    jobs["readmes"]["items"].append({"owner": "acme-fleet", "repo": "no-such"})
    jobs["copies"]["needs_policy"] = "any-outcome"
    jobs["copies"]["items"]["map"] = {**COPY, "message": "item.id"}
    del jobs["readmes"]["items"][2]["id"]
    with served(tmp_path / "sandbox", seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, jobs)
        ran = home.run(*COMMAND)
        assert ran.exit_code == 1, ran.err
        retried = home.run("retry", "run")
        assert retried.exit_code == 1, retried.err
        assert len(effects(sandbox.journal())) == 3
    lines = {line["index"]: line for line in home.results("run") if line["job"] == "copies"}
    assert sorted(lines) == [0, 1, 2, 3]
    assert [lines[index]["outcome"] for index in range(4)] == ["succeeded", "succeeded", "failed", "succeeded"]
    bad = lines[2]
    assert bad["error"]["code"] == "invalid_item"
    assert "message" in bad["error"]["message"]
    assert bad["item"]["repo"] == "repo-00002"
    assert bad["attempts"] == 0


def test_a_failed_source_skips_what_is_made_from_it(tmp_path: Path) -> None:
    """Where the source has failures, the made items are skipped, and so is what needs them; a retry makes up for it."""
    home = Home(tmp_path)
    jobs = copies(3)
    jobs["readmes"]["items"].append({"owner": "acme-fleet", "repo": "no-such"})
    jobs["after"] = {
        "operation": "readme.get",
        "needs": ["copies"],
        "items": [{"owner": "acme-fleet", "repo": "repo-00001"}],
    }
    with served(tmp_path / "sandbox", seed={"repositories": FLEET}) as sandbox:
        home.manifest(sandbox.base_url, jobs)
        ran = home.run(*COMMAND)
        assert ran.exit_code == 1, ran.err
        assert effects(sandbox.journal()) == []
    found = Counter((line["job"], line["outcome"]) for line in home.results("run"))
    assert found[("copies", "skipped")] == 3
    assert found[("after", "skipped")] == 1


def test_lists_give_an_item_for_each_entry(tmp_path: Path) -> None:
    """`each: result` makes an item of every entry of a list; the made items may be reads and feed a third job."""
    home = Home(tmp_path)
    team = {"enterprise": "acme", "enterprise-team": "ent:platform"}
    one = {"enterprise": "item.enterprise", "enterprise-team": "item.enterprise-team", "org": "result.login"}
    jobs = {
        "teams": {"operation": "team-organization.list", "items": [team]},
        "gets": {"operation": "team-organization.get", "items": {"from": "teams", "each": "result", "map": one}},
        "more": {"operation": "team-organization.get", "items": {"from": "gets", "map": one}},
    }
    with served(tmp_path / "sandbox") as sandbox:
        home.manifest(sandbox.base_url, jobs)
        ran = home.run(*COMMAND, "--no-cache")
        assert ran.exit_code == 0, ran.err
    found = Counter(line["job"] for line in home.results("run"))
    assert found["teams"] == 1
    assert found["gets"] == found["more"] > 0


def _has_seen(sandbox: Served, requests: int) -> bool:
    return len(sandbox.requests()) >= requests
