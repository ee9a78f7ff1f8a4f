"""Each command does what interface.md says, against a real platform: what it sends, prints and leaves behind."""

import base64
import csv
import gzip
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.e2e.support.platform import BULK, Home, Served, served, wait_for

FLEET = {"organization": "acme-fleet", "count": 500, "readme_bytes": 300}
COMMAND = ("run", "manifest.yaml", "--run-dir", "run")
LATENCY_MS = 20


def repositories(count: int) -> list[dict[str, Any]]:
    """`count` items."""
    return [{"owner": "acme-fleet", "repo": f"repo-{number:05d}"} for number in range(count)]


def readmes(count: int, **fields: Any) -> dict[str, Any]:
    """A job of `count` reads."""
    return {"readmes": {"operation": "readme.get", "items": repositories(count), **fields}}


def put(path: str, content: bytes) -> dict[str, Any]:
    """A job that writes one file."""
    item = {"owner": "acme-eng", "repo": "hello-world", "path": path, "content": base64.b64encode(content).decode()}
    return {"operation": "contents.put", "items": [item], "with": {"message": f"Write {path}"}}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A platform for all of them."""
    folder = tmp_path_factory.mktemp("sandbox")
    with served(
        folder, "--latency", str(LATENCY_MS), "--rate-limit", "core=100000/3600", seed={"repositories": FLEET}
    ) as sandbox:
        yield sandbox


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty folder."""
    return Home(tmp_path)


def test_plan_asks_for_the_limits_and_nothing_else(home: Home, sandbox: Served) -> None:
    """`bulk plan`: items, requests, longest lane and finish; only `GET /rate_limit` is sent, nothing is written."""
    files = [{**item, "path": "A", "content": "QQ=="} for item in repositories(3)]
    files += [{**repositories(1)[0], "path": f"B{number}", "content": "QQ=="} for number in range(4)]
    jobs = {**readmes(20), "files": {"operation": "contents.put", "items": files, "with": {"message": "m"}}}
    home.manifest(sandbox.base_url, jobs)
    before = len(sandbox.journal())
    text, data = home.run("plan", "manifest.yaml"), home.run("plan", "manifest.yaml", "--json")
    sent = sandbox.journal()[before:]
    assert (text.exit_code, data.exit_code) == (0, 0), text.err
    assert {(line["method"], line["path"]) for line in sent} == {("GET", "/api/v3/rate_limit")}
    assert "acme-fleet/repo-00000" in text.out
    assert "acme-fleet/repo-00000" in data.out
    assert json.loads(data.out)
    assert [path.name for path in home.folder.iterdir()] == ["manifest.yaml"]


@pytest.mark.parametrize(
    ("fault", "said_of_it"), [("drop-before", ""), ("html", "status 502: "), ("unavailable", "status 503: ")]
)
def test_a_plan_without_an_answer_about_limits(home: Home, tmp_path: Path, fault: str, said_of_it: str) -> None:
    """Nothing ever answers `GET /rate_limit`, or a gateway does with 5xx, which a run passes by: the plan, and the
    rehearsal, count with no limits, and say so. Where nothing can be sent, no platform is there (exit 3)."""
    home.manifest("http://127.0.0.1:9/api/v3", readmes(20))
    assert home.run("plan", "manifest.yaml").exit_code == 3
    seed = {"repositories": {"organization": "acme-fleet", "count": 20, "readme_bytes": 100}}
    with served(tmp_path / "mute", "--fault", f"rate_limit:{fault}=1", seed=seed) as mute:
        home.manifest(mute.base_url, readmes(20))
        text, data = home.run("plan", "manifest.yaml"), home.run("plan", "manifest.yaml", "--json")
        rehearsed = home.run("rehearse", "manifest.yaml")
        assert home.run("rate-limit", "--base-url", mute.base_url).exit_code == 3
        assert home.run("run", "manifest.yaml").exit_code == 0
    note = f"limits not known: GET /rate_limit did not tell those of default ({said_of_it}"
    assert (text.exit_code, "Budget core: 20 requests, limits not known." in text.out) == (0, True), text.err
    for said in (text, rehearsed):
        assert (said.exit_code, note in " ".join(said.out.split())) == (0, True), said.err
    (bucket,) = json.loads(data.out)["buckets"]
    assert (bucket["is_known"], bucket["limit"]) == (False, None)


def test_check_sends_nothing_and_opens_no_credential(home: Home, sandbox: Served) -> None:
    """`bulk check`: offline, no credential is opened or run, nothing is written; counts as text and JSON."""
    credentials = {"default": "file:not-there", "other": "command:touch opened"}
    platform = {"base_url": sandbox.base_url, "credentials": credentials}
    home.manifest(sandbox.base_url, {"a": readmes(7)["readmes"], "b": {**readmes(2)["readmes"], "credential": "other"}},
                  platform=platform)  # fmt: skip
    home.variables["BULK_TOKEN"] = ""
    before = len(sandbox.journal())
    text, data = home.run("check", "manifest.yaml"), home.run("check", "manifest.yaml", "--json")
    assert (text.exit_code, data.exit_code) == (0, 0), text.err
    assert [job["items"] for job in json.loads(data.out)["jobs"]] == [7, 2]
    assert len(sandbox.journal()) == before
    assert [path.name for path in home.folder.iterdir()] == ["manifest.yaml"]


def test_a_missing_credential_is_told_before_anything_is_sent(home: Home, sandbox: Served) -> None:
    """A credential whose source has nothing: exit 2, the source is named, nothing is sent or left (interface.md §4)."""
    home.variables["BULK_TOKEN"] = ""
    home.manifest(sandbox.base_url, readmes(3))
    before = len(sandbox.journal())
    ran = home.run(*COMMAND)
    assert ran.exit_code == 2
    assert "BULK_TOKEN" in ran.err
    assert len(sandbox.journal()) == before
    assert home.run("run", "manifest.yaml").exit_code == 2
    assert not [path for path in home.folder.iterdir() if path.name.startswith("run")]


def test_status_during_a_run_and_after_it(home: Home, sandbox: Served) -> None:
    """`bulk status` reads where a run stands while another process runs it, and when it is over."""
    home.manifest(sandbox.base_url, readmes(500), limits={"concurrency": 4})
    status: dict[str, Any] = {}

    def is_shown() -> bool:
        ran = home.run("status", "run", "--json")
        status.update(json.loads(ran.out) if ran.exit_code == 0 else {})
        return bool(status) and 0 < sum(status["jobs"][0]["outcomes"].values()) < 500

    with home.running(*COMMAND) as process:
        wait_for(is_shown, process)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert (status["state"], status["epoch"]["pid"]) == ("running", process.pid)
    assert status["left"] == 500 - status["jobs"][0]["outcomes"]["succeeded"]
    after = json.loads(home.run("status", "run", "--json").out)
    assert after["state"] == "complete"
    assert after["jobs"][0]["outcomes"]["succeeded"] == 500
    assert "500" in home.run("status", "run").out


def test_a_report_in_every_format(home: Home, sandbox: Served) -> None:
    """`bulk report` as text, json, html, csv and jsonl: the same items and outcomes in each, and `--only`."""
    items = [*repositories(4), {"owner": "acme-fleet", "repo": "nothing"}]
    home.manifest(sandbox.base_url, {"readmes": {"operation": "readme.get", "items": items}})
    ran = home.run(*COMMAND)
    assert ran.exit_code == 1, ran.err
    reports = {form: home.run("report", "run", "--format", form) for form in ("text", "json", "html", "csv", "jsonl")}
    assert {form: report.exit_code for form, report in reports.items()} == dict.fromkeys(reports, 0)
    assert json.loads(reports["json"].out) == home.report("run")
    assert reports["html"].out.lower().startswith("<!doctype html>")
    rows = list(csv.DictReader(io.StringIO(reports["csv"].out)))
    assert Counter(row["outcome"] for row in rows) == {"succeeded": 4, "failed": 1}
    lines = [json.loads(line) for line in reports["jsonl"].out.splitlines()]
    assert sorted(lines, key=lambda line: line["index"]) == sorted(home.results("run"), key=lambda line: line["index"])
    assert "not_found" in reports["text"].out
    only = [
        json.loads(line) for line in home.run("report", "run", "--format", "jsonl", "--only", "failed").out.splitlines()
    ]
    assert [line["error"]["code"] for line in only] == ["not_found"]
    assert only[0]["index"] == 4
    assert (home.folder / "run" / "report.html").read_text() == reports["html"].out


def test_retry_runs_what_failed_and_replaces_its_lines(home: Home, sandbox: Served) -> None:
    """`bulk retry`: only what failed is run again, and each item has one line, the new one."""
    paths = ["README.md", "later/one.txt", "later/two.txt", "docs/guide.md"]
    items = [{"owner": "acme-eng", "repo": "hello-world", "path": path} for path in paths]
    home.manifest(sandbox.base_url, {"files": {"operation": "contents.get", "items": items}})
    assert home.run(*COMMAND).exit_code == 1
    first = {line["index"]: line for line in home.results("run")}
    assert [first[index]["outcome"] for index in range(4)] == ["succeeded", "failed", "failed", "succeeded"]
    home.manifest(sandbox.base_url, {"one": put("later/one.txt", b"1")}, name="one.yaml")
    assert home.run("run", "one.yaml", "--run-dir", "one").exit_code == 0
    before = len(sandbox.requests())
    ran = home.run("retry", "run")
    sent = sandbox.requests()[before:]
    second = {line["index"]: line for line in home.results("run")}
    assert ran.exit_code == 1, ran.err
    assert sorted(line["path"].rpartition("/contents/")[2] for line in sent) == ["later/one.txt", "later/two.txt"]
    assert [second[index]["outcome"] for index in range(4)] == ["succeeded", "succeeded", "failed", "succeeded"]
    assert (second[0], second[3]) == (first[0], first[3])
    assert len(home.results("run")) == 4


def test_a_limited_run_goes_on_without_the_limit(home: Home, sandbox: Served) -> None:
    """`--limit 10` is complete for those items; without it the same run goes on with the others."""
    home.manifest(sandbox.base_url, readmes(30))
    first = home.run(*COMMAND, "--limit", "10")
    assert first.exit_code == 0, first.err
    assert Counter(line["index"] for line in home.results("run")) == Counter(range(10))
    before = len(sandbox.requests())
    second = home.run(*COMMAND)
    assert second.exit_code == 0, second.err
    assert len(sandbox.requests()) == before + 20
    assert Counter(line["index"] for line in home.results("run")) == Counter(range(30))


def test_items_from_standard_input_can_be_resumed(home: Home, sandbox: Served) -> None:
    """Items from standard input are kept in the run directory: the resume needs no standard input."""
    home.manifest(sandbox.base_url, readmes(0, items="-"))
    text = "".join(json.dumps(item) + "\n" for item in repositories(60))
    first = home.run(*COMMAND, "--max-duration", "0.15s", "--concurrency", "1", stdin=text)
    assert first.exit_code == 3, first.err
    second = home.run(*COMMAND)
    assert second.exit_code == 0, second.err
    assert Counter(line["index"] for line in home.results("run")) == Counter(range(60))
    assert {line["item"]["repo"] for line in home.results("run")} == {item["repo"] for item in repositories(60)}


ONE = '{"owner":"acme-fleet","repo":"repo-00001","id":"a"}'
TWO = '{"owner":"acme-fleet","repo":"repo-00002","id":"b"}'


def test_items_of_every_format(home: Home, sandbox: Served) -> None:
    """CSV, JSON, YAML, JSON lines (BOM, CRLF) and gzip give the same items; `id` comes back with each result."""
    files = {
        "items.csv": b"owner,repo,id\nacme-fleet,repo-00001,a\nacme-fleet,repo-00002,b\n",
        "items.json": f"[{ONE},\n {TWO}]".encode(),
        "items.yaml": f"- {ONE}\n- {TWO}\n".encode(),
        "items.jsonl": f"\ufeff{ONE}\r\n{TWO}".encode(),
        "items.ndjson.gz": gzip.compress(f"{ONE}\n{TWO}".encode()),
        "items.csv.zst": zstandard.compress(b"owner,repo,id\nacme-fleet,repo-00001,a\nacme-fleet,repo-00002,b\n"),
    }
    for name, content in files.items():
        home.write(name, content)
    jobs = {name: {"operation": "readme.get", "items": name} for name in files}
    home.manifest(sandbox.base_url, jobs)
    ran = home.run(*COMMAND)
    assert ran.exit_code == 0, ran.err
    assert Counter((line["job"], line["index"], line["id"], line["item"]["repo"]) for line in home.results("run")) == {
        (name, *item): 1 for name in files for item in ((0, "a", "repo-00001"), (1, "b", "repo-00002"))
    }


def test_saved_files_are_the_decoded_bytes(home: Home, sandbox: Served) -> None:
    """`save` writes the decoded bytes of a file below `saved/`, also when it is unchanged in the next run."""
    home.manifest(sandbox.base_url, readmes(5, save="readmes/{owner}/{repo}.md"))
    for run, outcome in (("one", "succeeded"), ("two", "unchanged")):
        ran = home.run("run", "manifest.yaml", "--run-dir", run)
        assert ran.exit_code == 0, ran.err
        for line in home.results(run):
            saved = (home.folder / run / "saved" / "readmes" / "acme-fleet" / f"{line['item']['repo']}.md").read_bytes()
            assert line["outcome"] == outcome
            assert saved == base64.b64decode(line["result"]["content"])
            assert hashlib.sha1(b"blob %d\0%b" % (len(saved), saved)).hexdigest() == line["result"]["sha"]


def test_a_cache_belongs_to_one_token(home: Home, sandbox: Served) -> None:
    """What was read with one token is not used with another, nor with `--no-cache` (failures.md row 37)."""
    home.manifest(sandbox.base_url, readmes(5))
    statuses = {}
    for run, token, more in (
        ("first", home.token, ()),
        ("again", home.token, ()),
        ("without", home.token, ("--no-cache",)),
        ("other", "sbx-org-owner", ()),
    ):
        home.token, before = token, len(sandbox.requests())
        ran = home.run("run", "manifest.yaml", "--run-dir", run, *more)
        assert ran.exit_code == 0, ran.err
        statuses[run] = {line["status"] for line in sandbox.requests()[before:]}
    assert statuses == {"first": {200}, "again": {304}, "without": {200}, "other": {200}}


def test_the_vendor_s_names_are_in_headers_and_media_types(home: Home) -> None:
    """With `--vendor github` the same engine serves a platform whose headers and media types are named so."""
    with served(home.folder / "sandbox", "--vendor", "github", seed={"repositories": FLEET}) as github:
        home.manifest(github.base_url, readmes(3, **{"with": {"media_type": "raw"}}, save="{repo}.md"))
        ran = home.run(*COMMAND, "--vendor", "github")
    assert ran.exit_code == 0, ran.err
    lines = home.results("run")
    assert all(line["request_id"] for line in lines)
    for line in lines:
        saved = (home.folder / "run" / "saved" / f"{line['item']['repo']}.md").read_bytes()
        assert hashlib.sha256(saved).hexdigest() == line["result"]["sha256"]


def test_jobs_wait_for_what_they_need(home: Home, sandbox: Served) -> None:
    """A job starts when those it needs have succeeded; where one failed, its items are skipped, and say why."""
    bad = {"operation": "contents.get", "items": [{"owner": "acme-eng", "repo": "hello-world", "path": "nowhere"}]}
    jobs = {
        "last": {**put("needs/last.txt", b"3"), "needs": ["first"]},
        "first": put("needs/first.txt", b"1"),
        "bad": bad,
        "skipped": {**put("needs/never.txt", b"4"), "needs": ["bad"]},
        "anyway": {**put("needs/anyway.txt", b"5"), "needs": ["bad"], "needs_policy": "any-outcome"},
    }
    home.manifest(sandbox.base_url, jobs)
    before = len(sandbox.requests())
    ran = home.run(*COMMAND)
    commits = [line["effect"].split()[2] for line in sandbox.requests()[before:] if line["effect"]]
    results = {line["job"]: line for line in home.results("run")}
    assert ran.exit_code == 1, ran.err
    assert sorted(commits) == ["needs/anyway.txt", "needs/first.txt", "needs/last.txt"]
    assert commits.index("needs/first.txt") < commits.index("needs/last.txt")
    assert {job: line["outcome"] for job, line in results.items()} == {
        "first": "succeeded", "last": "succeeded", "bad": "failed", "skipped": "skipped", "anyway": "succeeded",
    }  # fmt: skip
    assert results["skipped"]["error"]["code"] == "dependency_failed"
    assert results["skipped"]["attempts"] == 0


def test_the_buckets_of_a_credential(home: Home, sandbox: Served) -> None:
    """`bulk rate-limit` shows every bucket as a table and as JSON, and needs no manifest."""
    text = home.run("rate-limit", "--base-url", sandbox.base_url)
    data = json.loads(home.run("rate-limit", "--base-url", sandbox.base_url, "--json").out)
    assert text.exit_code == 0, text.err
    assert "dependency_snapshots" in text.out
    assert {bucket["category"]: bucket["limit"] for bucket in data}["core"] == 100_000


def test_the_environment_names_the_platform(home: Home, sandbox: Served) -> None:
    """Without `platform` in the manifest, BULK_BASE_URL and BULK_TOKEN do; the command line beats both."""
    home.write("manifest.yaml", json.dumps({"version": 1, "jobs": readmes(2)}))
    nothing = home.run(*COMMAND)
    assert nothing.exit_code == 2
    assert "BULK_BASE_URL" in nothing.err
    home.variables["BULK_BASE_URL"] = "http://127.0.0.1:9/api/v3"
    ran = home.run(*COMMAND, "--base-url", sandbox.base_url)
    assert ran.exit_code == 0, ran.err


def test_closed_output_does_not_stop_a_run(home: Home, sandbox: Served) -> None:
    """With standard output and error closed a run goes to its end and keeps its exit code (failures.md row 41)."""
    home.manifest(sandbox.base_url, readmes(10))
    ran = home.run_any(["/bin/sh", "-c", 'exec "$@" >&- 2>&-', "sh", *BULK, *COMMAND])
    assert (ran.exit_code, ran.out, ran.err) == (0, "", "")
    assert len(home.results("run")) == 10
