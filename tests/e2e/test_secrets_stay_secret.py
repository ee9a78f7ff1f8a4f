"""No token is found anywhere but in memory and on the wire: a canary is searched for after whole runs."""

import contextlib
import gzip
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.canaries import forms
from tests.e2e.support.platform import Home, served, wait_for

CANARY = "canary+7f3a/9c51d2e84b0"
SECOND = "second+0b48/e2d15c9a3f7"
FLEET = {"organization": "acme-fleet", "count": 50, "readme_bytes": 100}

PROVIDER = """\
import json, os, pathlib, sys
path = pathlib.Path(__file__).with_name("seen.json")
path.write_text(json.dumps([dict(os.environ), pathlib.Path(f"/proc/{os.getppid()}/cmdline").read_text()]))
print(pathlib.Path(__file__).with_name("token.txt").read_text())
"""


def found(places: dict[str, bytes]) -> list[str]:
    """Where a canary is."""
    return [
        f"{name}: {form!r}"
        for name, data in places.items()
        for secret in (CANARY, SECOND)
        for form in forms(secret)
        if form in data
    ]


def files(*folders: Path) -> dict[str, bytes]:
    """What every file below these folders holds."""
    return {
        str(path): path.read_bytes()
        for folder in folders
        if folder.exists()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("is_good", [True, False], ids=["good", "refused"])
def test_tokens_are_nowhere(is_good: bool, tmp_path: Path) -> None:
    """No token is in a file, an output, an argv or a child's environment (failures.md rows 38, 62)."""
    home = Home(tmp_path / "home", token=CANARY)
    home.write("provider.py", PROVIDER)
    home.write("token.txt", SECOND)
    jobs: dict[str, Any] = {
        "readmes": {
            "operation": "readme.get",
            "items": [{"owner": "acme-fleet", "repo": f"repo-{number:05d}"} for number in range(50)],
        },
        "orgs": {
            "operation": "organization.create",
            "credential": "admin",
            "items": [{"login": f"new-{number}", "admin": "octoadmin"} for number in range(10)],
        },
    }
    tokens = [argument for token in (CANARY, SECOND) for argument in ("--token", f"{token}=octoadmin")]
    options = ("--latency", "50", *(tokens if is_good else ()))
    with served(tmp_path / "sandbox", *options, seed={"repositories": FLEET}) as sandbox:
        credentials = {"default": "env:BULK_TOKEN", "admin": f"command:{sys.executable} provider.py"}
        platform = {"base_url": sandbox.base_url, "credentials": credentials}
        home.manifest(sandbox.base_url, jobs, platform=platform, limits={"concurrency": 4})
        command = ("run", "manifest.yaml", "--run-dir", "run", "--log-level", "debug", "--cache", "kept")
        with home.running(*command) as process:
            wait_for(lambda: len(sandbox.journal()) >= (20 if is_good else 1), process)
            amidst = files(home.folder / "run", home.folder / "kept", home.folder / "cache")
            argv = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            out, err = process.communicate(timeout=60)
        assert process.returncode == (0 if is_good else 4), err
        places = {"stdout": out.encode(), "stderr": err.encode(), "argv": argv}
        for name, arguments in {
            "status": ("status", "run"),
            "report": ("report", "run"),
            "html": ("report", "run", "--format", "html"),
            "rate-limit": ("rate-limit", "--base-url", sandbox.base_url, "--log-level", "debug"),
            "plan": ("plan", "manifest.yaml", "--log-level", "debug"),
        }.items():
            ran = home.run(*arguments)
            places[name] = (ran.out + ran.err).encode()
    seen = (home.folder / "seen.json").read_bytes()
    behind = files(home.folder / "run", home.folder / "kept", home.folder / "cache")
    assert found(amidst) == []
    assert found({**places, **behind, "the child's environment": seen}) == []
    assert CANARY not in json.dumps(json.loads(seen))
    assert any(path.endswith("ledger.db-wal") for path in amidst)
    if is_good:
        assert any("kept" in path for path in behind)
        assert {line["outcome"] for line in home.results("run")} == {"succeeded"}


def test_a_token_in_the_manifest_is_refused_unread(tmp_path: Path) -> None:
    """A token written into the manifest is refused, not repeated; so is a file open to others (failures.md row 61)."""
    home = Home(tmp_path)
    job = {"x": {"operation": "rate-limit.get", "items": [{}]}}
    base_url = "http://127.0.0.1:9/api/v3"
    home.manifest(base_url, job, platform={"base_url": base_url, "credentials": {"default": CANARY}})
    inline = home.run("run", "manifest.yaml", "--run-dir", "run")
    assert inline.exit_code == 2
    assert "platform.credentials.default" in inline.err
    home.write("open.txt", CANARY).chmod(0o644)
    home.variables["BULK_TOKEN"] = ""
    home.manifest(base_url, job, platform={"base_url": base_url, "credentials": {"default": "file:open.txt"}})
    shared = home.run("run", "manifest.yaml", "--run-dir", "run")
    assert shared.exit_code == 2
    assert "open.txt" in shared.err
    assert found({"inline": (inline.out + inline.err).encode(), "shared": (shared.out + shared.err).encode()}) == []


def test_literal_secrets_of_items_files_are_nowhere(tmp_path: Path) -> None:
    """Secrets that stand in CSV, YAML or compressed items reach the platform, also after a kill, and no file of ours.

    They are in the user's own file and, of course, with the platform (failures.md row 62).
    """
    home = Home(tmp_path / "home")
    hooks = [{"org": "acme-eng", "url": f"https://hooks.example.com/{n}", "secret": f"{CANARY}{n}"} for n in range(30)]
    rows = "".join(f"{hook['org']},{hook['url']},{hook['secret']}\n" for hook in hooks[:10])
    home.write("items/hooks.csv", "org,config.url,config.secret\n" + rows)
    nested = [{"org": "acme-ops", "config": {"url": hook["url"], "secret": hook["secret"]}} for hook in hooks]
    home.write("items/hooks.yaml", "".join(f"- {json.dumps(item)}\n" for item in nested[10:20]))
    packed = b"".join(json.dumps(item).encode() + b"\n" for item in nested[20:])
    home.write("items/hooks.jsonl.gz", gzip.compress(packed))
    jobs = {
        kind: {"operation": "webhook.create", "items": f"items/hooks.{kind}", "with": {"events": ["push"]}}
        for kind in ("csv", "yaml", "jsonl.gz")
    }
    command = ("run", "manifest.yaml", "--run-dir", "run", "--log-level", "debug")
    with served(tmp_path / "sandbox", "--latency", "10") as sandbox:
        home.manifest(sandbox.base_url, jobs, limits={"settle": "1s"})
        with home.running(*command) as process:
            wait_for(lambda: len(sandbox.requests(path="/hooks")) >= 8, process)
            process.kill()
            _, killed = process.communicate(timeout=60)
        amidst = files(home.folder / "run", home.folder / "cache")
        ran = home.run(*command)
        assert ran.exit_code == 0, ran.err
    behind = files(home.folder / "run", home.folder / "cache")
    said = {"killed": killed.encode(), "ran": (ran.out + ran.err).encode()}
    assert found({**amidst, **behind, **said}) == []
    assert any(path.endswith("items-csv.jsonl") for path in amidst)
    with contextlib.closing(sqlite3.connect(tmp_path / "sandbox" / "state" / "state.db")) as database:
        held = [json.loads(row[0]) for row in database.execute("SELECT config_json FROM hooks WHERE id > 4001")]
    assert {config["url"]: config.get("secret") for config in held} == {hook["url"]: hook["secret"] for hook in hooks}
    assert len(held) == 30
