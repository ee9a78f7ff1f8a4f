"""`bulk rehearse` against what then really happens, and what it says of wrong words."""

import re
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import orjson
import pytest

from bulk.cli.catalog.json_schemas import schema
from bulk.clock import Clock
from bulk.report.render.formatting import duration
from tests.e2e.support.platform import Home, served

FLEET = {"organization": "acme-fleet", "count": 1_000, "readme_bytes": 100}


def test_the_end_is_the_real_one(tmp_path: Path) -> None:
    """650 reads, 200 in 4 seconds: budgets bind, and latencies are learnt from a trial of 20; within 15%, as the
    machine has other things to do."""
    home = Home(tmp_path / "home")
    home.folder.mkdir()
    home.lines("repos.jsonl", [{"owner": "acme-fleet", "repo": f"repo-{n:05d}"} for n in range(650)])
    quiet = ("--progress", "none", "--no-cache")
    jobs = {"readmes": {"operation": "readme.get", "items": "repos.jsonl"}}
    seed = {"repositories": FLEET}
    with served(tmp_path / "trial", "--rate-limit", "off", seed=seed) as sandbox:
        home.manifest(sandbox.base_url, jobs)
        assert home.run("run", "manifest.yaml", "--limit", "20", "--run-dir", "trial", *quiet).exit_code == 0
    with served(tmp_path / "sandbox", "--rate-limit", "core=200/4", seed=seed) as sandbox:
        home.manifest(sandbox.base_url, jobs)
        sent = len(sandbox.requests())
        told = home.run("rehearse", "manifest.yaml", "--from", "trial", "--budget", "core=200/4")
        assert (told.exit_code, len(sandbox.requests())) == (0, sent), told.err
        found = re.match(r"ends after (?:([\d.]+) min )?([\d.]+) s", told.out)
        assert found, told.out
        expected = float(found[1] or 0) * 60 + float(found[2])
        assert "limit: core, 4 windows, 150 requests to spare in the last" in told.out
        assert home.run("run", "manifest.yaml", "--run-dir", "run", *quiet, timeout_s=120).exit_code == 0
        real = home.report("run")["active_s"]
        assert abs(real - expected) <= 0.15 * real, (real, expected)


def test_a_program_can_read_it(tmp_path: Path) -> None:
    """`--json` says what the text says, as its schema describes it; what the sandbox runs has a report of its own."""
    home = Home(tmp_path)
    home.lines("repos.jsonl", [{"owner": "acme", "repo": f"repo-{n}"} for n in range(300)])
    home.manifest("http://127.0.0.1:9/api/v3", {"readmes": {"operation": "readme.get", "items": "repos.jsonl"}})
    options = ("rehearse", "manifest.yaml", "--offline", "--budget", "core=200/60", "--what-if", "--seeds", "3")
    text, told = home.run(*options).out, home.run(*options, "--json")
    found = orjson.loads(told.out)
    jsonschema.Draft202012Validator(schema("rehearsal")).validate(found)
    course = found["course"]
    assert (course["limit"], course["windows"], course["to_spare"], course["exit_code"]) == ("core", 2, 100, 0)
    assert f"ends after {duration(course['ends_s'])} (3 rehearsals" in text
    assert [job["name"] for job in course["jobs"]] == ["readmes"]
    assert sorted(found["what_if"]) == ["1% of the answers lost", "a second token", "concurrency 16"]
    refused = home.run("rehearse", "manifest.yaml", "--sandbox", "--json")
    assert (refused.exit_code, orjson.loads(refused.out)["exit_code"]) == (2, 2)


@pytest.mark.parametrize(("begin_after_s", "windows"), [(-3_600, 6), (6_000, 4), (40_000, 3)])
def test_hours_change_what_is_left_to_others(tmp_path: Path, begin_after_s: int, windows: int) -> None:
    """3,000 reads, 1,000 in an hour: half of it from some hour on, so that more windows are needed."""
    home = Home(tmp_path)
    home.lines("repos.jsonl", [{"owner": "acme", "repo": f"repo-{n}"} for n in range(3_000)])
    jobs = {"readmes": {"operation": "readme.get", "items": "repos.jsonl"}}
    first, behind = (
        f"{datetime.fromtimestamp(Clock.now() + s, UTC):%H:%M}" for s in (begin_after_s, begin_after_s + 36_000)
    )
    hours = {f"{first}-{behind} UTC": {"reserve": "50%"}}
    home.manifest("http://127.0.0.1:9/api/v3", jobs, limits={"pace": "burst", "hours": hours})
    told = home.run("rehearse", "manifest.yaml", "--offline", "--budget", "core=1000/3600")
    assert f"ends after {windows - 1} h" in told.out, told.out + told.err
    assert f"limit: core, {windows} windows" in told.out


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--budget", "core=many"), "write CATEGORY=N/SECONDS"),
        (("--fault", "fire=1%"), "the kinds are drop-after, unavailable"),
        (("--budget", "core=5/3601"), "expected a whole number from 1 to 3,600, got '3601'"),
        (("--budget", "cores=5/60"), "no job of the manifest needs that category; they need core"),
        (("--fault", "drop-after=3"), "write KIND=SHARE"),
        (("--fault", "fire=0.01"), "the kinds are drop-after, unavailable"),
        (("--assume", "nothing=3"), "the manifest has no job of that name"),
        (("--assume", "r=3"), "its items stand in the manifest"),
        (("--assume", "r=10000001"), "expected a whole number from 0 to 10,000,000"),
        (("--assume", "r=²"), "got '²'; write JOB=COUNT"),
        (("--budget", "core=²/5"), "got '²'; write CATEGORY=N/SECONDS"),
        (("--budget", f"core={'9' * 5_000}/5"), "expected a whole number from 1 to 1,000,000,000"),
        (("--credentials", "²"), "²: there is no such file"),
        (("--credentials", "9" * 5_000), "expected a number from 1"),
        (("--from", "nowhere"), "is not a run directory"),
        (("--probe",), "leave one of them out"),
        (("--credentials", "0"), "expected a number from 1"),
        (("--credentials", "none.yaml"), "none.yaml"),
        (("--sandbox",), "is for virtual time, and --sandbox runs for real: leave one"),
    ],
)
def test_wrong_words_are_named(tmp_path: Path, option: tuple[str, str], words: str) -> None:
    """With what was expected; nothing is sent."""
    home = Home(tmp_path)
    home.manifest("http://127.0.0.1:9/api/v3", {"r": {"operation": "rate-limit.get", "items": [{}]}})
    told = home.run("rehearse", "manifest.yaml", "--offline", *option)
    assert (told.exit_code in (2, 5), words in " ".join(told.err.split())) == (True, True), told.err


def test_a_share_may_be_a_number_and_results_may_give_no_items(tmp_path: Path) -> None:
    """As `bulk sandbox --fault` takes it; items from standard input are refused with the way out."""
    home = Home(tmp_path)
    lists = {"operation": "webhook.list", "items": [{"org": "acme"}]}
    hooks = {"operation": "webhook.get", "items": {"from": "lists", "map": {"org": "item.org", "hook_id": "result.id"}}}
    home.manifest("http://127.0.0.1:9/api/v3", {"lists": lists, "hooks": hooks})
    told = home.run("rehearse", "manifest.yaml", "--offline", "--fault", "unavailable=0.02", "--assume", "hooks=0")
    assert (told.exit_code, "requests: core 1\n" in told.out) == (0, True), told.out + told.err
    home.manifest("http://127.0.0.1:9/api/v3", {"lists": {**lists, "items": "-"}}, "stdin.yaml")
    for command in (("rehearse", "stdin.yaml", "--offline"), ("plan", "stdin.yaml", "--live")):
        told = home.run(*command, stdin='{"org":"acme"}\n')
        assert (told.exit_code, "put them into a file" in told.err) == (2, True), told.err


def test_a_probe_sends_ten_reads_and_learns_from_them(tmp_path: Path) -> None:
    """They are charged: what is left of one budget does not last for the run, and that of a second token does."""
    home = Home(tmp_path / "home")
    home.folder.mkdir()
    items = [{"owner": "acme-fleet", "repo": f"repo-{n:05d}"} for n in range(40)]
    gone = [{"owner": "acme-fleet", "repo": f"gone-{n}"} for n in range(3)]
    seed = {"repositories": FLEET}
    with served(tmp_path / "sandbox", "--rate-limit", "core=30/60", "--latency", "300", seed=seed) as sandbox:
        write = {"owner": "acme-fleet", "repo": "repo-00000", "path": "A", "message": "m", "content": ""}
        jobs = {
            "files": {"operation": "contents.put", "items": [write]},
            "readmes": {"operation": "readme.get", "items": items, "needs": ["files"]},
        }
        home.manifest(sandbox.base_url, jobs)
        told = home.run("rehearse", "manifest.yaml", "--probe", "--credentials", "2", "--seeds", "1")
        alone = home.run("rehearse", "manifest.yaml", "--seeds", "1")
        sent = [line["path"] for line in sandbox.requests() if not line["path"].endswith("/rate_limit")]
        home.manifest(sandbox.base_url, jobs | {"readmes": {"operation": "readme.get", "items": gone}})
        in_vain = home.run("rehearse", "manifest.yaml", "--probe")
        home.token = "no-token-of-the-platform"
        refused = home.run("rehearse", "manifest.yaml", "--probe")
    assert "3 of its reads failed, and nothing is learnt from those" in in_vain.out, in_vain
    assert (refused.exit_code, "refused the credential" in refused.err) == (4, True), refused
    assert told.exit_code == 0, told.err
    assert len(sent) == 10
    assert all(path.endswith("/readme") for path in sent)
    assert "--probe sent 10 requests" in told.out
    assert "latencies are learnt from 1 run, 10 items" in told.out
    assert "2 tokens with a budget each" in told.out
    # of 60, the probe took ten, 40 are for the READMEs and two for the write
    assert "limit: core, 1 window, 8 requests to spare" in told.out
    assert "limit: core, 2 windows" in alone.out


@pytest.mark.parametrize("vendor", ["service", "github"])
def test_a_manifest_is_tried_on_a_sandbox_that_has_what_it_names(tmp_path: Path, vendor: str) -> None:
    """Without a platform, a seed file or a token: what is right succeeds, what the platform would refuse is told, with
    the run's exit code; what a job creates is not there before; nothing says how to go on."""
    home = Home(tmp_path / "home", "")
    home.folder.mkdir()
    write = {"owner": "own", "path": "CODEOWNERS", "message": "m", "content": "", "branch": "main"}
    jobs = {
        "new": {"operation": "organization.create", "items": [{"login": "made", "admin": "octoadmin"}]},
        "teams": {
            "operation": "team-organization.assign",
            "needs": ["new"],
            "items": [{"enterprise": "acme", "enterprise-team": "ent:wizards", "org": "made"}],
        },
        "files": {
            "operation": "contents.put",
            "needs": ["new"],
            "items": [{**write, "repo": "a"}, {**write, "owner": "made", "repo": "b"}],
        },
        "wrong": {"operation": "contents.put", "items": [{**write, "repo": "a", "branch": "nowhere"}]},
    }
    home.manifest("https://code.invalid/api/v3", jobs, platform={"base_url": "https://code.invalid", "vendor": vendor})
    told = home.run("rehearse", "manifest.yaml", "--sandbox")
    assert told.exit_code == 1, told.err
    (run_dir,) = (home.folder / "runs").iterdir()
    assert run_dir.name.startswith("manifest-sandbox-")
    ended = {(line["job"], line["index"]): line["outcome"] for line in home.results(f"runs/{run_dir.name}")}
    assert ended.pop(("wrong", 0)) == "failed"
    assert set(ended.values()) == {"succeeded"}
    assert len(ended) == 4
    assert "Go on" not in told.out
    assert "bulk retry" not in told.err


@pytest.mark.parametrize(
    ("items", "words"),
    [("-", "items from standard input can't be tried"), ([{"owner": "a", "rep": "b"}], "did you mean repo or ref?")],
)
def test_what_can_not_be_tried_leaves_nothing(tmp_path: Path, items: object, words: str) -> None:
    """Exit 2, the reason, and no run directory."""
    home = Home(tmp_path / "home", "")
    home.folder.mkdir()
    home.manifest("https://code.invalid/api/v3", {"readmes": {"operation": "readme.get", "items": items}})
    told = home.run("rehearse", "manifest.yaml", "--sandbox")
    assert (told.exit_code, words in " ".join(told.err.split())) == (2, True), told.err
    assert not (home.folder / "runs").exists()
