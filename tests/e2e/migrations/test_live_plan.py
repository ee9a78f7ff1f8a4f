"""A live plan looks at every item with reads alone; once it is approved, exactly what it has seen is written."""

import base64
import json
import signal
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from bulk.operation import find, names
from tests.e2e.migrations.test_undo import put
from tests.e2e.support.platform import ADMIN, Home, Served, served, wait_for

FLEET = {"organization": "acme-fleet", "count": 60, "readme_bytes": 200}
FILES = 30


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A folder for a manifest."""
    return Home(tmp_path / "home")


def files(sandbox: Served, home: Home, count: int = FILES) -> Path:
    """A manifest that overwrites the README of some repositories and makes a file in each."""
    home.folder.mkdir(exist_ok=True)
    repos = [f"repo-{number:05d}" for number in range(count)]
    content = base64.b64encode(b"# Ours\n").decode()
    write = {"owner": "acme-fleet", "branch": "main", "message": "Ours", "content": content}
    return home.manifest(
        sandbox.base_url,
        {
            "readmes": {
                "operation": "contents.put",
                "items": [{**write, "repo": r, "path": "README.md"} for r in repos],
            },
            "new": {"operation": "contents.put", "items": [{**write, "repo": r, "path": "NEW.md"} for r in repos]},
        },
    )


def writes(sandbox: Served) -> list[dict[str, Any]]:
    """Requests that were not reads."""
    return [line for line in sandbox.journal() if line["method"] != "GET"]


def look(home: Home, *more: str) -> str:
    """`bulk plan --live`; what it prints."""
    planned = home.run("plan", "manifest.yaml", "--live", "-o", "F.plan", *more)
    assert planned.exit_code == 0, planned.err
    return planned.out


def test_what_was_approved_is_done_and_nothing_else(tmp_path: Path, home: Home) -> None:
    """Reads alone; without approval exit 8, with a changed byte exit 5; what somebody changed since is `stale`; the
    same plan again goes on with the first run; a manifest that changed is out of date."""
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        manifest = files(sandbox, home)
        shown = look(home)
        first = len(sandbox.requests())
        assert (writes(sandbox), first <= 3 * FILES + 2) == ([], True)
        assert [line.split() for line in shown.splitlines()[2:4]] == [
            ["readmes", "0", str(FILES), "0", "0", "0", "0", "0"],
            ["new", str(FILES), "0", "0", "0", "0", "0", "0"],
        ]
        refused = home.run("run", "F.plan", "--progress", "none")
        assert (refused.exit_code, "bulk approve F.plan" in refused.err, writes(sandbox)) == (8, True, [])
        plan = home.folder / "F.plan"
        text = plan.read_bytes()
        for place in (40, len(text) // 2, len(text) - 30):
            plan.write_bytes(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :])
            for command in (("approve", "F.plan"), ("run", "F.plan")):
                assert home.run(*command).exit_code in (2, 5), place
        plan.write_bytes(text)
        assert (plan.stat().st_mode & 0o777, b"Ours" in text, ADMIN.encode() in text) == (0o600, False, False)
        assert home.run("approve", "F.plan").exit_code == 0

        put(sandbox, "acme-fleet/repo-00003/contents/README.md", b"theirs\n")
        ran = home.run("run", "F.plan", "--progress", "none")
        assert ran.exit_code == 1, ran.err
        (run_dir,) = (home.folder / "runs").iterdir()
        ended = {(line["job"], line["index"]): line for line in home.results(f"runs/{run_dir.name}")}
        odd = {key: line["error"]["code"] for key, line in ended.items() if line["outcome"] != "succeeded"}
        assert odd == {("readmes", 3): "stale"}
        assert (run_dir.name.endswith(json.loads(text)["digest"][:12]), len(ended)) == (True, 2 * FILES)
        written = len(writes(sandbox))
        again = home.run("run", "F.plan", "--progress", "none")
        assert (again.exit_code, len(writes(sandbox))) == (1, written)

        manifest.write_text(manifest.read_text().replace("Ours", "Ours!"))
        for other in (home.folder / "runs").iterdir():
            other.rename(home.folder / "elsewhere")
        late = home.run("run", "F.plan", "--progress", "none")
        assert (late.exit_code, "the manifest changed" in late.err, len(writes(sandbox))) == (8, True, written)
        assert "or other --var or --job are given" in late.err


def test_a_plan_holds_for_its_platform_and_names_commands_that_can_be_copied(tmp_path: Path, home: Home) -> None:
    """BULK_BASE_URL beats the manifest, also where the plan is run: another platform is exit 8, and nothing is sent."""
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        files(sandbox, home).rename(home.folder / "a manifest.yaml")
        assert home.run("plan", "a manifest.yaml", "--live", "-o", "F 1.plan").exit_code == 0
        refused = home.run("run", "F 1.plan", "--progress", "none")
        assert (refused.exit_code, "bulk approve 'F 1.plan'" in refused.err) == (8, True), refused.err
        assert home.run("approve", "F 1.plan").exit_code == 0
        home.variables["BULK_BASE_URL"] = "http://127.0.0.1:1/api/v3"
        ran = home.run("run", "F 1.plan", "--progress", "none")
        assert (ran.exit_code, writes(sandbox)) == (8, []), ran.err
        assert f"was made for {sandbox.base_url}, and --base-url or BULK_BASE_URL names http://127.0.0.1:1" in ran.err
        assert f"bulk plan '{home.folder}/a manifest.yaml' --live -o 'F 1.plan'" in ran.err


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_look_that_a_signal_ends_says_so_by_its_exit_code(tmp_path: Path, home: Home, name: str) -> None:
    """It is that of the signal, as of a run; there is no plan."""
    with served(
        tmp_path / "sandbox", "--rate-limit", "off", "--latency", "300", seed={"repositories": FLEET}
    ) as sandbox:
        files(sandbox, home)
        with home.running("plan", "manifest.yaml", "--live", "-o", "f.plan") as process:
            wait_for(lambda: bool(sandbox.requests()), process)
            process.send_signal(getattr(signal, name))
            _, said = process.communicate()
            assert (process.returncode, f"interrupted by {name}" in said) == (128 + getattr(signal, name), True), said
    assert not (home.folder / "f.plan").exists()


def test_an_item_that_was_equal_is_not_overwritten(tmp_path: Path, home: Home) -> None:
    """What was as asked for when the plan was made, and is not any more, was changed by somebody else."""
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        files(sandbox, home, 3)
        assert home.run("run", "manifest.yaml", "--progress", "none", "--run-dir", "first").exit_code == 0
        assert "equal" in look(home)
        home.run("approve", "F.plan")
        put(sandbox, "acme-fleet/repo-00001/contents/NEW.md", b"theirs\n")
        assert home.run("run", "F.plan", "--progress", "none", "--run-dir", "second").exit_code == 1
        ended = [line["error"]["code"] if line["error"] else line["outcome"] for line in home.results("second")]
        assert sorted(ended) == ["stale", *["unchanged"] * 5]


def test_files_that_items_name_are_those_that_were_approved(tmp_path: Path, home: Home) -> None:
    """Other bytes in a file: exit 8, and nothing is written; the same bytes again: it runs."""
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        body = home.write("body", "one\n")
        item = {"owner": "acme-fleet", "repo": "repo-00001", "path": "a", "message": "m", "content_file": "body"}
        home.manifest(sandbox.base_url, {"files": {"operation": "contents.put", "items": [item]}})
        assert "create" in look(home)
        home.run("approve", "F.plan")
        body.write_text("two\n")
        ran = home.run("run", "F.plan", "--progress", "none")
        assert (ran.exit_code, "a file that an item names changed" in ran.err, writes(sandbox)) == (8, True, []), (
            ran.err
        )
        body.write_text("one\n")
        assert (home.run("run", "F.plan", "--progress", "none").exit_code, len(writes(sandbox))) == (0, 1)


def test_what_an_earlier_item_changes_needs_a_plan_of_its_own(tmp_path: Path, home: Home) -> None:
    """Of a file that is made, written over, deleted and made again the plan says that only the first can be done, and
    it is: what else were there could be somebody else's."""
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        home.folder.mkdir()
        place = {"owner": "acme-eng", "repo": "hello-world", "branch": "main", "path": "a", "message": "m"}
        steps = {"one": "MQ==", "two": "Mg==", "gone": "", "three": "Mw=="}
        jobs, needs = dict[str, Any](), list[str]()
        for name, content in steps.items():
            operation = "contents.put" if content else "contents.delete"
            item = {**place, "content": content} if content else place
            jobs[name], needs = {"operation": operation, "needs": needs, "items": [item]}, [name]
        home.manifest(sandbox.base_url, jobs)
        shown = look(home)
        assert [line.split()[1:] for line in shown.splitlines()[2:6]] == [
            ["1", "0", "0", "0", "0", "0", "0"],
            *[["0", "0", "0", "1", "0", "0", "0"]] * 3,
        ]
        assert shown.count("an earlier item of the manifest changes it first") == 2
        home.run("approve", "F.plan")
        assert home.run("run", "F.plan", "--progress", "none").exit_code == 1
        assert [line["method"] for line in writes(sandbox)] == ["PUT"]


def attachments(sandbox: Served, org: str, number: int) -> list[str]:
    """How far each repository of a configuration is."""
    url = f"{sandbox.base_url}/orgs/{org}/code-security/configurations/{number}/repositories"
    asking = urllib.request.Request(url, headers={"Authorization": f"Bearer {ADMIN}"})
    with urllib.request.urlopen(asking, timeout=60) as answer:
        return [each["status"] for each in json.load(answer)]


def test_repositories_that_somebody_else_has_attached_since_are_stale(tmp_path: Path, home: Home) -> None:
    """Of a selection, those that have the configuration are what the plan has seen."""
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        home.folder.mkdir()
        item = {"org": "acme-eng", "configuration_id": 2002, "scope": "selected"}
        selections = ([1001, 1002], [1001])
        for number, selected in enumerate(selections):
            items = [{**item, "selected_repository_ids": selected}]
            jobs = {"attach": {"operation": "organization-configuration.attach", "items": items}}
            home.manifest(sandbox.base_url, jobs, f"{number}.yaml")
        planned = home.run("plan", "0.yaml", "--live", "-o", "F.plan")
        assert planned.out.splitlines()[2].split() == ["attach", "0", "1", "0", "0", "0", "0", "0"], planned.err
        home.run("approve", "F.plan")
        assert home.run("run", "1.yaml", "--progress", "none").exit_code == 0
        wait_for(lambda: "attached" in attachments(sandbox, "acme-eng", 2002), sandbox.process)  # a moment later
        ran = home.run("run", "F.plan", "--yes", "--progress", "none", "--run-dir", "run")
        (ended,) = home.results("run")
        assert (ran.exit_code, ended["outcome"], ended["error"]["code"]) == (1, "skipped", "stale"), ran.err


@pytest.mark.parametrize("mode", ["ensure", "create"])
def test_a_file_where_nobody_can_see_the_place_is_pending(tmp_path: Path, home: Home, mode: str) -> None:
    """A repository or a branch that is not there is said; a new file in one that can be seen is `create`."""
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed={"repositories": FLEET}) as sandbox:
        home.folder.mkdir()
        write = {"owner": "acme-fleet", "path": "d/NEW.md", "message": "m", "content": "YQ==", "mode": mode}
        places = [{"repo": "repo-00001"}, {"repo": "nothing"}, {"repo": "repo-00002", "branch": "nothing"}]
        jobs = {"new": {"operation": "contents.put", "items": [{**write, **place} for place in places]}}
        home.manifest(sandbox.base_url, jobs)
        shown = look(home, "--diff", "3")
        assert shown.splitlines()[2].split() == ["new", "1", "0", "0", "0", "2", "0", "0"]
        assert shown.count("no such repository or branch, or no permission") == 2
        assert len(sandbox.requests()) <= 10  # what is pending is looked at twice: a run compares nothing of it


def test_every_operation_looks_with_reads_alone(tmp_path: Path, home: Home) -> None:
    """The examples of all operations that write, in one plan: 0 requests but GET; a second look costs no more."""
    writing = [name for name in names() if not find(name).is_read]
    with served(tmp_path / "sandbox", "--rate-limit", "core=5000/3600") as sandbox:
        home.folder.mkdir()
        jobs = {name.replace(".", "-"): {"operation": name, "items": [dict(find(name).example)]} for name in writing}
        home.manifest(sandbox.base_url, jobs)
        shown = look(home, "--diff", "100")
        sent = sandbox.journal()
        assert (len(writing) >= 20, {line["method"] for line in sent}) == (True, {"GET"}), shown
        spent = sum(line["status"] != 304 for line in sandbox.requests())
        look(home)
        more = sum(line["status"] != 304 for line in sandbox.requests()) - spent
        assert (more <= spent, shown.startswith(f"looked at {len(writing)} items")) == (True, True)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_ten_thousand_files(tmp_path: Path, home: Home, figure) -> None:
    """One read each, and two of a new file; the second look is free; 50 changed by hand after approval: 50 `stale`."""
    seed = {"repositories": {**FLEET, "count": 5_000}}
    with served(tmp_path / "sandbox", "--rate-limit", "off", seed=seed) as sandbox:
        files(sandbox, home, 5_000)
        began = time.monotonic()
        look(home)
        took_s, sent = time.monotonic() - began, sandbox.requests()
        assert (writes(sandbox), len(sent) <= 15_000) == ([], True)
        look(home)
        again = sandbox.requests()[len(sent) :]
        paid = sum(line["status"] not in (304, 404) for line in again)
        figure(f"10,000 files: {len(sent):,} reads in {took_s:.0f} s; again {len(again):,}, {paid} of them paid for")
        home.run("approve", "F.plan")
        for number in range(50):
            put(sandbox, f"acme-fleet/repo-{number:05d}/contents/README.md", b"theirs\n")
        ran = home.run("run", "F.plan", "--progress", "none", "--run-dir", "run", timeout_s=400)
        codes = [line["error"]["code"] for line in home.results("run") if line["error"]]
        assert (ran.exit_code, codes) == (1, ["stale"] * 50)
