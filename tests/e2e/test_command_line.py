"""The command as a user meets it, each time a process of its own: help, completion, wrong command lines, endings."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.support.measured import measure
from tests.e2e.support.platform import BULK, start

COMMANDS = [
    "run", "plan", "rehearse", "approve", "check", "status", "report", "runs", "watch", "serve", "pause", "resume",
    "stop", "set", "retry", "diff", "audit", "schedule", "tables", "sql", "undo", "verify", "operations",
    "rate-limit", "credentials", "login", "init", "examples", "store", "worker", "submit", "export", "forget",
    "sandbox", "demo", "completion",
]  # fmt: skip
PARTS = {"audit": ("night",), "credentials": ("check",), "store": ("init",)}
"""Commands that have commands of their own, and one of those."""
HELP_S = 0.3


def bulk(*arguments: str, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run one command line and wait for its end."""
    with start(arguments, cwd or Path.cwd(), {**os.environ, **environ}) as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode is not None
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def test_help_lists_every_command_on_standard_output() -> None:
    """`bulk --help` shows each command with what it does, and exits 0."""
    done = bulk("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert [
        line.split()[0] for line in done.stdout.partition("Commands:\n")[2].split("\n\n")[0].splitlines()
    ] == COMMANDS
    assert "..." not in done.stdout.partition("Commands:")[2]


def test_help_comes_at_once(figure) -> None:
    """From `bulk --help` to its output it takes less than 0.3 s (best of five cold processes).

    Of a processor: it waits for nothing, but where others use the machine it may have to wait for them.
    """
    each = [measure([*BULK, "--help"], Path.cwd(), os.environ) for _ in range(5)]
    assert {one.exit_code for one in each} == {0}
    figure(f"{min(one.took_s for one in each):.2f} s, {min(one.used_s for one in each):.2f} s of a processor")
    assert min(one.used_s for one in each) < HELP_S


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    """`bulk COMMAND --help` exits 0 and shows the log's options, which every command has."""
    done = bulk(command, *PARTS.get(command, ()), "--help")
    assert done.returncode == 0
    assert "--log-level" in done.stdout


def test_without_a_command_the_help_is_shown() -> None:
    """`bulk` alone is a wrong command line: help on standard error, exit 2."""
    done = bulk()
    assert (done.returncode, done.stdout) == (2, "")
    assert "Commands:" in done.stderr


def test_version() -> None:
    """`bulk --version` names the version of the package, whether it is compiled, and the Python that runs it."""
    import platform
    from importlib.metadata import version

    from bulk import urls

    how = "interpreted" if urls.__file__.endswith(".py") else "compiled"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    assert bulk("--version").stdout == f"bulk {version('bulkops')} ({how}, {python})\n"


def test_version_imports_no_engine() -> None:
    """`bulk --version` decides whether it is compiled without importing anything that may be."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "bulk", "--version"], capture_output=True, text=True, check=True
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "bulk.cli.version" in imported
    assert not imported & {"bulk.engine", "bulk.urls", "bulk.model", "bulk.platform", "aiohttp", "asyncio"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["rnu"], "No such command 'rnu'"),
        (["run"], "Missing argument 'MANIFEST'"),
        (["run", "a.yaml", "--progress", "loud"], "'loud' is not one of"),
        (["run", "a.yaml", "--frobnicate"], "No such option"),
        (["run", "a.yaml", "--credential", "ghp_secret0123456789"], "write [NAME=]SOURCE"),
        (["run", "a.yaml", "--credential", "env:A", "--credential", "default=env:B"], "given twice"),
        (["operations", "contents.pt"], "did you mean contents.put"),
        (["operations", "--schema"], "needs the NAME"),
        (["operations", "contents.put", "--markdown", "--schema"], "give one of them"),
        (["diff", "somewhere"], "Missing argument 'RUN_B'"),
        (["report", "somewhere", "--format", "html", "--only", "failed"], "--only chooses items"),
        (["sandbox", "--fault", "meteor=1"], "the kinds are"),
        (["sandbox", "--rate-limit", "core"], "core=1000/5"),
        (["sandbox", "--token", "x"], "as in rehearsal=alice:90"),
        (["sandbox", "--fault", "drop-after=x"], "write --fault drop-after=0.05"),
        (["completion", "tcsh"], "'tcsh' is not one of"),
    ],
)
def test_a_wrong_command_line_exits_2(arguments: list[str], says: str, tmp_path: Path) -> None:
    """A wrong command line exits 2 with one clear message on standard error, and nothing of a typed token in it."""
    done = bulk(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert "ghp_secret" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_two_formats_are_refused(tmp_path: Path) -> None:
    """`--json` beside another format says which two were given, as JSON; the same one twice is not a conflict."""
    done = bulk("report", "somewhere", "--format", "csv", "--json", cwd=tmp_path)
    assert done.returncode == 2
    assert "--format csv was given" in json.loads(done.stdout)["errors"][0]["message"]
    assert bulk("report", "somewhere", "--format", "json", "--json", cwd=tmp_path).returncode == 5


@pytest.mark.parametrize("command", ["run", "plan", "check"])
def test_a_manifest_that_is_not_there_exits_2(command: str, tmp_path: Path) -> None:
    """A missing manifest is named; no run directory is made."""
    done = bulk(command, "nowhere.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nowhere.yaml" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["status", "report", "retry"])
def test_a_run_that_is_not_there_exits_5(command: str, tmp_path: Path) -> None:
    """A folder without a run is named, and nothing is made there."""
    (tmp_path / "empty").mkdir()
    done = bulk(command, "empty", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (5, "")
    assert "empty" in done.stderr
    assert list((tmp_path / "empty").iterdir()) == []
    (tmp_path / "file").write_text("x")
    for name, reason in (("nowhere", "there is no such folder"), ("file", "it is a file")):
        done = bulk(command, name, cwd=tmp_path)
        assert (done.returncode, f"{reason}; `bulk runs`" in done.stderr) == (5, True), done.stderr


@pytest.mark.parametrize("command", [["run"], ["check"], ["plan"], ["approve"], ["audit"], ["rehearse", "--offline"]])
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(command: list[str], tmp_path: Path) -> None:
    """A named pipe in place of a manifest or a plan is refused at once."""
    os.mkfifo(tmp_path / "pipe")
    done = bulk(*command, "pipe", cwd=tmp_path)
    assert (done.returncode, "pipe" in done.stderr, "is not a regular file" in done.stderr) == (2, True, True)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (["plan", "--live"], "-o"),
        (["run"], "--metrics"),
        (["audit"], "--out"),
        (["audit", "test", "m.yaml", "run"], "--out"),
    ],
)
def test_no_output_takes_the_place_of_something_else(command: list[str], option: str, tmp_path: Path) -> None:
    """A manifest, a folder and a pipe are refused as the file of a plan, of figures or of a night, before anything
    is sent: a slip of the hand destroys nothing."""
    text = (
        "# A manifest.\nversion: 1\nplatform: {base_url: 'http://127.0.0.1:9/api/v3'}\n"
        "jobs: {x: {operation: readme.get, items: [{owner: acme, repo: api}]}}\n"
    )
    (tmp_path / "m.yaml").write_text(text)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    manifest = [] if "m.yaml" in command else ["m.yaml"]
    for file in ("m.yaml", "folder", "pipe"):
        done = bulk(*command, *manifest, option, file, cwd=tmp_path, BULK_TOKEN="x")
        assert (done.returncode, option in done.stderr, file in done.stderr) == (2, True, True), done.stderr
    assert (tmp_path / "m.yaml").read_text() == text
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "m.yaml", "pipe"]


def test_operations_are_listed_for_people_and_for_programs() -> None:
    """`bulk operations` and its `--json` name the same operations."""
    rows = bulk("operations").stdout.splitlines()
    listed = json.loads(bulk("operations", "--json").stdout)
    assert [row.split()[0] for row in rows[1:]] == [each["name"] for each in listed]
    assert "contents.put" in {each["name"] for each in listed}


def test_operations_are_a_page_in_markdown() -> None:
    """`bulk operations --markdown` is the reference page, byte for byte, and with a NAME its section."""
    page = bulk("operations", "--markdown").stdout
    assert page == (Path(__file__).parents[2] / "docs" / "operations-reference.md").read_text()
    assert bulk("operations", "contents.put", "--markdown").stdout in page


def test_an_operation_has_a_schema() -> None:
    """`bulk operations NAME --schema` is JSON Schema that refuses unknown fields."""
    schema = json.loads(bulk("operations", "contents.put", "--schema").stdout)
    assert schema["title"] == "contents.put"
    assert "additionalProperties" in json.dumps(schema)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_each_shell(shell: str) -> None:
    """`bulk completion SHELL` prints a script that asks `bulk` itself."""
    done = bulk("completion", shell)
    assert done.returncode == 0
    assert "_BULK_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("bulk ", {"run", "check", "sandbox"}),
        ("bulk operations contents.", {"contents.get", "contents.put", "contents.delete"}),
        ("bulk report --format ", {"text", "json", "html", "csv", "jsonl"}),
        ("bulk status ", {"runs/one"}),
        ("bulk diff runs/one ", {"runs/one"}),
        ("bulk run --pro", {"--progress"}),
        ("bulk sandbox --fault drop", {"drop-before=", "drop-after="}),
        ("bulk init webhook.cr", {"webhook.create"}),
        ("bulk run --ye", {"--yes"}),
        ("bulk run m.yaml --job re", {"readmes", "repos"}),
        ("bulk plan m.yaml --var ", {"team=", "org="}),
        ("bulk check gone.yaml --job ", set()),
        ("bulk audit n", {"night", "notify"}),
        ("bulk audit m", {"m"}),
        ("bulk audit --hist", {"--history"}),
        ("bulk audit notify ", {"runs/one", "audits/a/runs/night"}),
        ("bulk audit test m.yaml ", {"runs/one", "audits/a/runs/night"}),
        ("bulk audit m.yaml --job re", {"readmes", "repos"}),
        ("bulk audit m.yaml --format ", {"text", "json", "sarif", "junit"}),
        ("bulk audit --overlap ", {"fail", "skip", "wait"}),
        ("bulk sql runs/one --", {"--json", "--csv"}),
        ("bulk sql ", {"runs/one", "audits/a"}),
    ],
)
def test_commands_operations_formats_and_runs_complete(words: str, expected: set[str], tmp_path: Path) -> None:
    """A shell is offered commands, options, choices, operations, run directories, a manifest's jobs and variables."""
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "one" / "ledger.db").touch()
    (tmp_path / "runs" / "no-run").mkdir()
    (tmp_path / "audits" / "a" / "runs" / "night").mkdir(parents=True)
    (tmp_path / "audits" / "a" / "audit.json").touch()
    (tmp_path / "audits" / "a" / "runs" / "night" / "ledger.db").touch()
    (tmp_path / "m.yaml").write_text("vars: {team: a, org: b}\njobs: {readmes: {}, repos: {}, hooks: {}}\n")
    count = len(words.split()) - (not words.endswith(" "))
    done = bulk(cwd=tmp_path, _BULK_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(count))
    offered = {line.partition(",")[2] for line in done.stdout.splitlines()}
    assert expected <= offered
    assert "runs/no-run" not in offered


def test_a_folder_whose_name_is_not_utf8_is_listed(tmp_path: Path) -> None:
    """`bulk runs` shows its bytes, in JSON too, and a shell is offered the other runs."""
    for name in (b"one", b"t\xffo"):
        (tmp_path / "runs" / os.fsdecode(name)).mkdir(parents=True)
        (tmp_path / "runs" / os.fsdecode(name) / "ledger.db").touch()
    listed = json.loads(bulk("runs", "--json", cwd=tmp_path).stdout)
    assert [(run["run_dir"], run["state"]) for run in listed] == [("runs/one", "damaged"), (r"runs/t\xffo", "damaged")]
    assert r"runs/t\xffo" in bulk("runs", cwd=tmp_path).stdout
    done = bulk(cwd=tmp_path, _BULK_COMPLETE="bash_complete", COMP_WORDS="bulk status runs/", COMP_CWORD="2")
    assert done.stdout.split() == ["plain,runs/one"]


def test_nothing_is_imported_before_a_signal_is_waited_for() -> None:
    """Neither package imports anything but itself, so that Ctrl-C meets `main` as soon as the interpreter has begun."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); began = {*sys.modules}; import bulk.cli; "
    code += "print(*sorted({*sys.modules} - began))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, str(Path(__file__).parents[2])], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["__future__", "bulk", "bulk.cli"]


@pytest.mark.parametrize(
    "modules", [("click",), ("bulk.cli.commands.run",), ("bulk.check.checking",), ("bulk.check.checking", "rich.cells")]
)
def test_a_signal_while_modules_are_imported_shows_no_traceback(modules: tuple[str, ...], tmp_path: Path) -> None:
    """Ctrl-C ends a command that has hardly begun as it ends any other: with one line and 130, a second one while that
    line is made, too."""
    program = (
        "import sys\n"
        "class Signal:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name in {modules!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Signal())\n"
        "from bulk.cli import main\n"
        "sys.exit(main(['check', 'm.yaml']))\n"
    )
    (tmp_path / "m.yaml").write_text(
        "version: 1\nplatform: {base_url: 'https://code.example.com/api/v3'}\n"
        "jobs: {x: {operation: readme.get, items: [{owner: acme, repo: api}]}}\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.strip()) == (130, "bulk: interrupted by SIGINT")


@pytest.mark.parametrize("arguments", [["operations", "contents.put"], ["--help"], ["run", "--help"], ["--version"]])
def test_a_reader_that_goes_away_is_no_error(arguments: list[str]) -> None:
    """When nobody reads standard output, a command ends quietly with its own exit code (failures.md row 41)."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "bulk", *arguments],
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_are_no_error(closed: str) -> None:
    """With standard output or error closed a command does its work and keeps its exit code (failures.md row 41)."""
    command = f"{sys.executable} -m bulk operations contents.put {closed}"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("place", "mode", "why"),
    [("/dev/full", "w", "No space left on device"), ("/dev/null", "r", "Bad file descriptor")],
    ids=["full", "not open for writing"],
)
@pytest.mark.parametrize(
    "line",
    [
        "operations contents.put",
        "operations --json",
        "run --help",
        "--version",
        "serve --port 0",
        "sandbox",
        "completion bash",
    ],
)
def test_standard_output_that_can_not_be_written_is_told(line: str, place: str, mode: str, why: str) -> None:
    """Results that can't be written end the command with an error that says so, instead of being lost silently or
    blamed on something else (Linux: /dev/full)."""
    with open(place, mode) as out:
        done = subprocess.run(
            [sys.executable, "-m", "bulk", *line.split()], stdout=out, stderr=subprocess.PIPE, text=True, check=False
        )
    told = f"bulk: standard output can't be written: {why}; send it to another place\n"
    assert (done.returncode, done.stderr) == (5, told)


def test_the_demo_keeps_nothing_where_something_is(tmp_path: Path) -> None:
    """`bulk demo --keep` refuses a folder that holds something, and leaves it as it is."""
    (tmp_path / "mine.txt").touch()
    done = bulk("demo", "--keep", str(tmp_path))
    assert done.returncode == 2
    assert "not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_any_encoding_will_do() -> None:
    """A terminal that knows ASCII alone gets escaped characters instead of an error."""
    done = bulk("operations", "contents.put", "--json", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert json.loads(done.stdout)["name"] == "contents.put"


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 0), (signal.SIGTERM, 0)])
def test_the_sandbox_says_where_it_is_and_ends_on_a_signal(number: signal.Signals, exit_code: int) -> None:
    """The first line of `bulk sandbox` is its base URL; a signal ends it cleanly."""
    with subprocess.Popen(
        [sys.executable, "-m", "bulk", "sandbox", "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        process.send_signal(number)
        rest, errors = process.communicate(timeout=60)
    assert first.startswith("http://127.0.0.1:")
    assert first.endswith("/api/v3\n")
    assert (process.returncode, rest, errors) == (exit_code, "", "")
