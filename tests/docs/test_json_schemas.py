"""docs/schemas/ says what each JSON output is: its files are current, strict and linked, and outputs keep to them."""

import json
import re
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from bulk.cli.app import commands
from bulk.cli.catalog import json_schemas
from bulk.report.render.json_data import MOMENT, as_data, is_moment
from tests.e2e.support.platform import Home, Served, served, wait_for

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "schemas"
FLEET = {"organization": "acme-fleet", "count": 40, "readme_bytes": 200}
READS = [{"owner": "acme-fleet", "repo": f"repo-{number:05d}"} for number in range(30)]
MISSING = {"owner": "acme-fleet", "repo": "nowhere", "id": "mine"}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A platform for all of them."""
    with served(
        tmp_path_factory.mktemp("sandbox"), "--rate-limit", "core=100000/3600", seed={"repositories": FLEET}
    ) as sandbox:
        yield sandbox


@pytest.fixture
def home(sandbox: Served, tmp_path: Path) -> Home:
    """A folder with a manifest of reads and writes, one of which fails."""
    home = Home(tmp_path)
    write = {"owner": "acme-fleet", "repo": "repo-00001", "path": "a", "message": "m", "content": "YQ=="}
    home.manifest(
        sandbox.base_url,
        {
            "readmes": {"operation": "readme.get", "items": [*READS, MISSING]},
            "files": {"operation": "contents.put", "items": [write]},
            "after": {"operation": "readme.get", "items": READS[:2], "needs": ["readmes"]},
        },
    )
    return home


def keeps_to(name: str, text: str) -> Any:
    """The JSON of an output, once it keeps to its schema and every moment in it looks as it should."""
    value = json.loads(text)
    Draft202012Validator(json.loads((FOLDER / f"{name}.schema.json").read_text())).validate(value)
    for key, moment in moments(value):
        assert moment is None or re.fullmatch(MOMENT, moment), f"{key}: {moment}"
    return value


def moments(value: Any) -> Iterator[tuple[str, Any]]:
    """Every member that is named like a moment, of what is ours: not of an item or a result."""
    if isinstance(value, dict):
        for key, each in value.items():
            if is_moment(key):
                yield key, each
            elif key not in ("item", "result", "old", "new", "example", "schema"):
                yield from moments(each)
    elif isinstance(value, list):
        for each in value:
            yield from moments(each)


@pytest.mark.parametrize("name", json_schemas.OUTPUTS)
def test_the_file_is_current_and_strict(name: str) -> None:
    """The file is what the code says; it is a JSON Schema, and allows no member that it does not name and describe."""
    text = (FOLDER / f"{name}.schema.json").read_text()
    assert text == json_schemas.as_text(name), "make reference writes it again"
    schema = json.loads(text)
    Draft202012Validator.check_schema(schema)
    for definition in schema["$defs"].values():
        assert definition["additionalProperties"] is False
        assert definition["description"]
        assert all(each["description"] for each in definition["properties"].values())


def test_there_are_no_other_files() -> None:
    """Each schema belongs to an output, and docs/interface.md links each."""
    names = {path.name.removesuffix(".schema.json") for path in FOLDER.iterdir()}
    assert names == set(json_schemas.OUTPUTS)
    interface = (ROOT / "docs" / "interface.md").read_text()
    assert {name for name in names if f"](schemas/{name}.schema.json)" not in interface} == set()


def test_a_field_without_documentation_fails() -> None:
    """A member that no schema names is refused, and so are epoch seconds and a moment without milliseconds."""
    good = as_data(_note())
    validator = Draft202012Validator(json_schemas.schema("log"))
    validator.validate(good)
    for bad in ({**good, "more": 1}, {**good, "at": 1_764_000_000.0}, {**good, "at": "2026-11-24T08:00:00Z"}):
        with pytest.raises(ValidationError):
            validator.validate(bad)


def _note() -> json_schemas.LogLine:
    return json_schemas.LogLine(at=1_795_507_200.1234, level="info", logger="bulk", message="m")


def test_a_moment_is_told_in_one_way() -> None:
    """Epoch seconds become RFC 3339 in UTC with milliseconds; one that no calendar has becomes null."""
    assert as_data({"at": 1_795_507_200.1234, "until": None, "count_at_once": 3, "items": 5}) == {
        "at": "2026-11-24T08:00:00.123Z",
        "until": None,
        "count_at_once": 3,
        "items": 5,
    }
    assert as_data({"reset_at": 1e30}) == {"reset_at": None}


def test_what_is_looked_at_keeps_to_its_schema(home: Home, sandbox: Served) -> None:
    """check, plan, rate-limit, credentials check, operations and one operation, as they are printed."""
    keeps_to("check", home.run("check", "manifest.yaml", "--json").out)
    planned = keeps_to("plan", home.run("plan", "manifest.yaml", "--json").out)
    assert planned["buckets"]
    keeps_to("rate-limit", home.run("rate-limit", "--json", "--base-url", sandbox.base_url).out)
    keeps_to("credentials", home.run("credentials", "check", "manifest.yaml", "--json").out)
    reached = keeps_to("credentials", home.run("credentials", "check", "manifest.yaml", "--probe", "--json").out)
    assert reached["owners"]
    listed = keeps_to("operations", home.run("operations", "--json").out)
    for name in ("contents.put", "webhook.create", "snapshot.create", "rate-limit.get"):
        assert name in {each["name"] for each in listed}
        keeps_to("operation", home.run("operations", name, "--json").out)


def test_a_run_keeps_to_its_schemas(home: Home) -> None:
    """The report that a run and a retry print, its files, its progress, and its status."""
    options = ("--progress", "json", "--json", "--no-cache")
    for command in (("run", "manifest.yaml", "--run-dir", "run"), ("retry", "run")):
        ran = home.run(*command, *options)
        assert ran.exit_code == 1, ran.err
        keeps_to("report", ran.out)
        progress = [line for line in ran.err.splitlines() if line.startswith("{")]
        assert [keeps_to("progress", line)["type"] for line in progress][-1] == "status"
    keeps_to("report", (home.folder / "run" / "report.json").read_text())
    assert keeps_to("report", home.run("report", "run", "--json").out)["exit_code"] == 1
    assert keeps_to("status", home.run("status", "run", "--json").out)["state"] == "complete"
    lines = home.run("report", "run", "--format", "jsonl").out.splitlines()
    assert {keeps_to("result", line)["outcome"] for line in lines} == {"succeeded", "failed", "skipped"}
    assert lines == sorted_lines((home.folder / "run" / "results.jsonl").read_text(), lines)


def test_a_log_keeps_to_its_schema(home: Home) -> None:
    """Lines of the log with `--log-format json`, here of a run that stops."""
    ran = home.run("run", "manifest.yaml", "--failures", "0", "--log-level", "info", "--log-format", "json")
    logged = [keeps_to("log", line) for line in ran.err.splitlines() if line.startswith("{")]
    assert any(line["message"].startswith("stopping: ") for line in logged), ran.err


def sorted_lines(text: str, like: Iterable[str]) -> list[str]:
    """The lines of a results file that are also in `like`, in its order: a retry leaves old ones."""
    there = set(text.splitlines())
    return [line for line in like if line in there]


def test_a_killed_run_is_told_as_one(sandbox: Served, tmp_path: Path) -> None:
    """After kill -9 the status is lost and stale everywhere, and no process is named as if it ran."""
    home = Home(tmp_path)
    many = [{"owner": "acme-fleet", "repo": f"nowhere-{number}"} for number in range(20_000)]
    home.lines("items.jsonl", many)
    home.manifest(sandbox.base_url, {"readmes": {"operation": "readme.get", "items": "items.jsonl"}})
    before = len(sandbox.requests())
    with home.start("run", "manifest.yaml", "--run-dir", "run", "--concurrency", "2") as process:
        results = tmp_path / "run" / "results.jsonl"  # the first status is committed with the first of them
        wait_for(lambda: results.is_file() and results.stat().st_size > 0, process)
        wait_for(lambda: len(sandbox.requests()) > before + 200, process)
        running = keeps_to("status", home.run("status", "run", "--json").out)
        assert (running["state"], running["is_stale"], running["exit_code"]) == ("running", False, None)
        process.send_signal(signal.SIGKILL)
        process.wait()
    killed = keeps_to("status", home.run("status", "run", "--json").out)
    assert (killed["state"], killed["is_stale"], killed["exit_code"]) == ("lost", True, 3)
    assert (killed["status"]["state"], killed["status"]["pid"]) == ("lost", None)
    keeps_to("report", home.run("report", "run", "--json").out)


def test_a_diff_keeps_to_its_schema(home: Home, sandbox: Served) -> None:
    """The summary and every kind of change."""
    kinds = set()
    for name, items in (("old", [*READS[:5], MISSING]), ("new", [*READS[2:8], {**READS[1], "media_type": "raw"}])):
        home.manifest(sandbox.base_url, {"readmes": {"operation": "readme.get", "items": items}}, name=f"{name}.yaml")
        home.run("run", f"{name}.yaml", "--run-dir", name)
    home.manifest(
        sandbox.base_url,
        {"readmes": {"operation": "readme.get", "items": [{**READS[0], "id": "mine"}]}},
        name="own.yaml",
    )
    home.run("run", "own.yaml", "--run-dir", "own")
    for pair in (("old", "new"), ("old", "own")):
        for line in home.run("diff", *pair, "--json").out.splitlines():
            kinds.add(keeps_to("diff", line)["kind"])
    assert kinds == {"summary", "added", "removed", "changed"}


BROKEN = """\
version: 1
platform: {base_url: https://code.example.com/api/v3}
limits: {reserve: many}
jobs:
  readmes:
    operation: readme.get
    items: [{owner: acme, rpeo: api}]
"""


@pytest.mark.parametrize("command", ["check", "plan", "run"])
def test_errors_of_a_manifest_are_objects(command: str, tmp_path: Path) -> None:
    """Each error has its code, file, line, field, message and remedy on standard output; people read the same."""
    home = Home(tmp_path)
    home.write("broken.yaml", BROKEN)
    ran = home.run(command, "broken.yaml", "--json")
    assert ran.exit_code == 2
    found = keeps_to("errors", ran.out)
    assert found["exit_code"] == 2
    (error,) = found["errors"]
    assert (error["code"], error["file"], error["line"], error["field"]) == (
        "invalid",
        "broken.yaml",
        3,
        "limits.reserve",
    )
    assert error["message"] in ran.err
    home.write("broken.yaml", BROKEN.replace("many", "5%"))
    found = keeps_to("errors", home.run(command, "broken.yaml", "--json").out)
    assert {(each["code"], each["field"], each["line"]) for each in found["errors"]} == {
        ("unknown", "rpeo", 7),
        ("missing", "repo", 7),
    }
    assert any("did you mean repo?" in each["remedy"].lower() for each in found["errors"])


def every_command() -> list[str]:
    """The commands that take --json."""
    return [
        name
        for name, command in commands.commands.items()
        if any("--json" in parameter.opts for parameter in command.params)
    ]


@pytest.mark.parametrize("name", every_command())
def test_errors_of_every_command_are_objects(name: str, tmp_path: Path) -> None:
    """What can't be done, and a command line that can't be read, is an object where --json is given, else none."""
    home = Home(tmp_path)
    wrong = {"operations": ["nothing.get"], "rate-limit": [], "diff": ["nowhere", "nowhere"]}.get(name, ["nowhere"])
    for arguments in ([*wrong, "--json"], ["--json", "--no-such-option"]):
        ran = home.run(name, *arguments)
        assert ran.exit_code in (2, 5), ran.err
        (error,) = keeps_to("errors", ran.out)["errors"]
        assert error["code"] in ("usage", "run_directory", "invalid")
        assert ran.err
    assert home.run(name, *wrong).out == ""


def test_a_run_that_is_refused_says_so_as_an_object(sandbox: Served, home: Home) -> None:
    """Where no report comes, the object does, with the exit code of the command."""
    home.variables["BULK_TOKEN"] = ""
    ran = home.run("run", "manifest.yaml", "--json")
    (error,) = keeps_to("errors", ran.out)["errors"]
    assert (ran.exit_code, error["code"]) == (2, "credential_missing")
