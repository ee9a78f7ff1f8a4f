"""An error names options of the command that was given, or whole commands with options that those have."""

import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from bulk.cli import main
from bulk.engine.rehearsal.measured import measured
from bulk.errors import RunDirectoryError
from tests.cli.all_commands import all_commands
from tests.e2e.support.platform import Home, served

OPTIONS = {
    " ".join(words): {name for option in command.params if isinstance(option, click.Option) for name in option.opts}
    | {"--help"}
    for words, command in all_commands()
}
OPTIONS["audit"] = OPTIONS["audit night"]
ON_RUNS = (
    "status run", "report run", "watch run --progress none", "pause run", "stop run", "resume run", "retry run",
    "set run concurrency=1", "diff run run", "tables run --to sqlite --out t.db", "sql run SELECT", "verify run",
    "verify run --live", "undo run -o u.yaml", "audit notify run", "audit test m.yaml run", "approve run --wave 1",
    "rehearse m.yaml --offline --budget core=9/9 --from run", "run m.yaml --run-dir run --progress none",
)  # fmt: skip
ON_MANIFESTS = (
    "check m.yaml", "plan m.yaml", "plan m.yaml --live", "rehearse m.yaml", "credentials check m.yaml",
    "run m.yaml --run-dir new", "audit m.yaml", "schedule m.yaml --cron * --emit cron",
)  # fmt: skip
ON_STORES = (
    "store init x",
    "store upgrade x",
    "status run --store x",
    "worker --store x --base-url https://a.b/api/v3",
)


def strange_options(command: str, said: str) -> list[str]:
    """The options in what was said that neither `command` has nor the command that stands before them."""
    own = max((name for name in OPTIONS if f"{command} ".startswith(f"{name} ")), key=len)
    found = []
    for line in said.splitlines():
        for option in re.finditer(r"(?<![\w-])--?[a-z][a-z-]*", line):
            before = line[: option.start()].rpartition("bulk ")[2] if "bulk " in line[: option.start()] else ""
            named = max((name for name in OPTIONS if f"{before} ".startswith(f"{name} ")), key=len, default=own)
            if option[0] not in OPTIONS[named] | OPTIONS[own]:
                found.append(f"{command}: {option[0]} in: {line}")
    return found


def spoilt(name: str, content: bytes) -> Callable[[Path], object]:
    """What gives a file of the run this content."""
    return lambda run: (run / name).write_bytes(content)


def without(name: str) -> Callable[[Path], None]:
    """What takes a file of the run away."""
    return lambda run: (run / name).unlink()


def make_file(run: Path) -> None:
    """A file in the place of the run directory."""
    shutil.rmtree(run)
    run.touch()


def make_foreign(run: Path) -> None:
    """A folder of something else."""
    make_file(run)
    run.unlink()
    run.mkdir()
    (run / "thesis.tex").touch()


def changed(statement: str) -> Callable[[Path], None]:
    """What changes the ledger so."""

    def change(run: Path) -> None:
        with sqlite3.connect(run / "ledger.db") as connection:
            connection.execute(statement)
        connection.close()

    return change


SPOILT: dict[str, Callable[[Path], object]] = {
    "complete": lambda run: None,
    "no folder": shutil.rmtree,
    "a file": make_file,
    "foreign": make_foreign,
    "newer": changed("PRAGMA user_version = 999"),
    "no ledger": without("ledger.db"),
    "no database": spoilt("ledger.db", b"x" * 5_000),
    "no seal": without("run.seal"),
    "no results": without("results.jsonl"),
    "short results": spoilt("results.jsonl", b"{}\n"),
    "other operation": changed("UPDATE jobs SET operation = 'third.party'"),
    "no jobs": changed("DELETE FROM jobs"),
    "odd head": changed("UPDATE links SET head = 1"),
    "no origin": without("origin.json"),
    "bad origin": spoilt("origin.json", b"{"),
    "other manifest": spoilt("manifest.yaml", b"version: 1\n"),
    "other check": spoilt("check.json", b"{}"),
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the directory of a run that is complete and of which an item has failed; its platform is gone."""
    folder = tmp_path_factory.mktemp("begun")
    home = Home(folder)
    with served(folder / "sandbox") as sandbox:
        items = [{"owner": "acme-eng", "repo": repo} for repo in ("hello-world", "nowhere")]
        home.manifest(sandbox.base_url, {"reads": {"operation": "readme.get", "items": items}}, "m.yaml")
        assert home.run("run", "m.yaml", "--run-dir", "run", "--progress", "none").exit_code == 1
    return folder


@pytest.fixture
def folder(begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in which commands are given."""
    shutil.copytree(begun / "run", tmp_path / "run")
    shutil.copy(begun / "m.yaml", tmp_path / "m.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", SPOILT)
def test_what_is_said_of_a_run_directory(folder: Path, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Whatever command meets it, and whatever has become of it."""
    strange = []
    shutil.move(folder / "run", folder / "kept")
    for command in ON_RUNS:
        if name in ("complete", "other check") and "--live" in command:
            continue  # they would look for the platform, which is gone
        shutil.rmtree(folder / "run") if (folder / "run").is_dir() else (folder / "run").unlink(missing_ok=True)
        shutil.copytree(folder / "kept", folder / "run")
        SPOILT[name](folder / "run")
        assert main(command.split()) != 70
        strange += strange_options(command, capfd.readouterr().err)
    assert strange == []


def test_a_line_that_no_rehearsal_can_read_is_damage(folder: Path) -> None:
    """What an earlier run tells of the platform is learnt from lines of JSON."""
    results = folder / "run/results.jsonl"
    results.write_bytes(b"\xff" + results.read_bytes()[1:])
    with pytest.raises(RunDirectoryError, match="damaged"):
        measured([folder / "run"])


def test_a_path_that_the_system_refuses_is_no_bug(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A name is too long for the system, as a folder may be closed to this user: exit 2, and 5 of a run directory."""
    name = "x" * 300
    for command in (*ON_RUNS, f"run m.yaml --run-dir {name}/run"):
        exit_code = main([name if word == "run" and place else word for place, word in enumerate(command.split())])
        said = capfd.readouterr().err
        assert (exit_code, f"{name}" in said, "File name too long" in said) == (5, True, True), (command, said)
    for command in (*ON_MANIFESTS, "run m.yaml", "approve m.yaml", "runs m.yaml", "serve --runs m.yaml --port 0"):
        exit_code = main([name if word == "m.yaml" else word for word in command.split()])
        assert exit_code == 2, (command, capfd.readouterr().err)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "version: 1\njobs: {a: {operation: readme.get, items: []}}\n",
        "version: 2\n",
        "version: 1\nvars: {a: b}\nplatform: {base_url: 'https://${c}/api/v3'}\njobs: {}\n",
        "version: 1\nplatform: {base_url: 'https://a/api/v3'}\njobs: {a: {operation: readme.get, credential: admin}}\n",
    ],
    ids=["none", "nowhere", "version", "variable", "credential"],
)
def test_what_is_said_of_a_manifest(folder: Path, text: str | None, capfd: pytest.CaptureFixture[str]) -> None:
    """Whatever command reads a manifest that can't be used, its message names options of that command only."""
    strange = []
    (folder / "m.yaml").unlink() if text is None else (folder / "m.yaml").write_text(text)
    for command in ON_MANIFESTS:
        assert main(command.split()) in (2, 5)
        strange += strange_options(command, capfd.readouterr().err)
    assert strange == []


def test_what_is_said_of_a_store(capfd: pytest.CaptureFixture[str]) -> None:
    """Commands that take it as an argument have no option of that name."""
    strange = []
    for command in ON_STORES:
        assert main(command.split()) == 2
        strange += strange_options(command, capfd.readouterr().err)
    assert strange == []
