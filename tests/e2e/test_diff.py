"""`bulk diff` as a user meets it: the same audit twice, and what happened in between."""

import json

import pytest

from tests.e2e.support.platform import Home, served

GUIDE = {"owner": "acme-eng", "repo": "hello-world", "path": "docs/guide.md"}
README = {"owner": "acme-eng", "repo": "hello-world", "path": "README.md"}
GONE = {"owner": "acme-ops", "repo": "runbook", "path": "README.md"}
ABSENT = {"owner": "acme-eng", "repo": "hello-world", "path": "CODEOWNERS"}


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """A home with the runs `a` and `b` of one audit, and `write`, which changed a file between them."""
    folder = tmp_path_factory.mktemp("diff")
    home = Home(folder)
    with served(folder / "sandbox") as sandbox:
        jobs = {"files": {"operation": "contents.get", "items": [GUIDE, README, GONE]}}
        audit = home.manifest(sandbox.base_url, jobs, "audit.yaml")
        assert home.run("run", str(audit), "--run-dir", "a").exit_code == 0
        put = {**GUIDE, "message": "Say more", "content": "TW9yZQ=="}
        change = home.manifest(sandbox.base_url, {"write": {"operation": "contents.put", "items": [put]}}, "write.yaml")
        assert home.run("run", str(change), "--run-dir", "write").exit_code == 0
        jobs = {"files": {"operation": "contents.get", "items": [ABSENT, README, GUIDE]}}
        home.manifest(sandbox.base_url, jobs, "audit.yaml")
        assert home.run("run", str(audit), "--run-dir", "b").exit_code == 1
    return home


def test_two_audits_are_compared(audited):
    """Only what was changed is a change, field by field; an unchanged read from the cache is the same."""
    ran = audited.run("diff", "a", "b", "--json")
    assert (ran.exit_code, ran.err) == (0, "")
    summary, *changes = map(json.loads, ran.out.splitlines())
    assert [summary[name] for name in ("same", "added", "removed", "changed")] == [1, 1, 1, 1]
    assert [(each["kind"], each["item"]) for each in changes] == [
        ("added", ABSENT),
        ("removed", GONE),
        ("changed", GUIDE),
    ]
    assert changes[0]["new"]["error"]["code"] == "not_found"
    assert {"result.sha", "result.size", "result.content"} <= {field["field"] for field in changes[2]["fields"]}


def test_the_text_is_for_people(audited):
    """Counts, then each kind; standard error stays empty, the exit code 0 also where something failed."""
    ran = Home(audited.folder, variables={"COLUMNS": "80"}).run("diff", "a", "b")
    assert (ran.exit_code, ran.err) == (0, "")
    assert "3 items before, 3 now: 1 added, 1 removed, 1 changed, 1 the same." in ran.out
    assert ran.out.index("Added") < ran.out.index("Removed") < ran.out.index("Changed")
    assert max(map(len, ran.out.splitlines())) <= 80


def test_fields_are_ignored_and_nothing_is_left_behind(audited):
    """`--ignore` is repeatable; a comparison writes nothing into the runs."""
    before = sorted(path.name for path in (audited.folder / "a").iterdir())
    ran = audited.run("diff", "a", "b", "--ignore", "result", "--ignore", "error.message", "--all")
    assert "Not compared: error.message, result." in ran.out
    assert "1 added, 1 removed, 2 the same." in ran.out
    assert sorted(path.name for path in (audited.folder / "a").iterdir()) == before


def test_runs_of_different_manifests_are_noted(audited):
    """They are compared all the same, and the note stands before the counts of the jobs."""
    ran = audited.run("diff", "a", "write")
    assert ran.exit_code == 0
    assert "Note: These are runs of different manifests: audit and write." in ran.out


@pytest.mark.parametrize(
    ("arguments", "exit_code", "says"),
    [
        (["a", "nowhere"], 5, "nowhere is not a run directory"),
        (["sandbox", "b"], 5, "sandbox is not a run directory"),
        (["a", "b", "--ignore", "size"], 2, "--ignore size: expected a field such as result.updated_at"),
    ],
)
def test_what_can_not_be_compared_is_said(audited, arguments, exit_code, says):
    """A foreign directory and a wrong field are told in one line, with nothing on standard output."""
    ran = audited.run("diff", *arguments)
    assert (ran.exit_code, ran.out) == (exit_code, "")
    assert says in ran.err


def test_the_exit_code_says_that_something_changed(audited):
    """With `--exit-code` 7 where something changed and 0 where nothing did; without it always 0."""
    assert audited.run("diff", "a", "b", "--exit-code").exit_code == 7
    assert audited.run("diff", "a", "a", "--exit-code").exit_code == 0


def test_what_may_be_missing_is_no_failure(audited, tmp_path):
    """`missing: ok`: an absent file has succeeded, for nothing the second time; an unseen repository fails."""
    home = Home(tmp_path)
    with served(tmp_path / "sandbox") as sandbox:
        nowhere = {**ABSENT, "repo": "nowhere"}
        job = {"operation": "contents.get", "items": [ABSENT, nowhere], "missing": "ok"}
        audit = home.manifest(sandbox.base_url, {"owners": job})
        assert home.run("run", str(audit), "--run-dir", "a").exit_code == 1
        absent, unseen = map(json.loads, (tmp_path / "a" / "results.jsonl").read_text().splitlines())
        if absent["index"]:
            absent, unseen = unseen, absent
        assert (absent["outcome"], absent["missing"], absent["result"]) == ("succeeded", True, None)
        assert (unseen["outcome"], unseen["error"]["code"], "missing" in unseen) == ("failed", "not_found", False)
        assert home.run("run", str(audit), "--run-dir", "b").exit_code == 1
        asked = [line["status"] for line in sandbox.requests(path="hello-world")]
        assert asked == [200, 304]
        wrong = home.manifest(sandbox.base_url, {"hooks": {"operation": "webhook.list", "items": [], "missing": "ok"}})
        refused = home.run("check", str(wrong))
        assert refused.exit_code == 2
        assert "webhook.list can't prove that something is not there; these can: contents.get" in refused.err
