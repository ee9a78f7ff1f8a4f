"""What a command writes for its user: the place is tried before anything is sent, and all of it arrives or nothing."""

from pathlib import Path

import pytest

from tests.e2e.support.platform import BULK, Home, Ran, served

LONG = "x" * 252
"""A name that a file may have, and the file beside it that is renamed to it may not."""
ITEM = {"owner": "acme-eng", "repo": "hello-world", "path": "docs/new.md", "message": "m", "content": "eA=="}
QUIET = ("--progress", "none")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A folder for the commands."""
    home = Home(tmp_path / "home")
    home.folder.mkdir()
    return home


def on_full_disk(home: Home, *arguments: str) -> Ran:
    """Run a command that can make no file longer than 1,024 bytes.

    A tracer of its coverage would meet that, too, and so would bytecode, half of which would be used by others.
    """
    shell = 'unset COVERAGE_PROCESS_CONFIG; export PYTHONDONTWRITEBYTECODE=1; ulimit -f 1; exec "$@"'
    return home.run_any(["bash", "-c", shell, "bash", *BULK, *arguments])


def names(home: Home) -> list[str]:
    """What lies in the folder."""
    return sorted(str(path.relative_to(home.folder)) for path in home.folder.rglob("*"))


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("plan", "put.yaml", "--live"), "-o"),
        (("audit", "read.yaml", *QUIET), "--out"),
        (("run", "put.yaml", "--run-dir", "run", *QUIET), "--metrics"),
    ],
    ids=["plan", "audit", "metrics"],
)
@pytest.mark.parametrize(
    ("name", "why"),
    [
        (LONG, "can't be written"),
        ("nowhere/x", "nowhere is not a folder"),
        (".", "is a folder"),
        ("/dev/full", "is not a"),
    ],
    ids=["long", "nowhere", "folder", "device"],
)
def test_a_place_is_tried_before_anything_is_sent(
    tmp_path: Path, home: Home, command: tuple[str, ...], option: str, name: str, why: str
) -> None:
    """Exit 2, and nothing was sent for what could not be written down."""
    with served(tmp_path / "sandbox") as sandbox:
        home.manifest(sandbox.base_url, {"put": {"operation": "contents.put", "items": [ITEM]}}, "put.yaml")
        where = {name: ITEM[name] for name in ("owner", "repo")}
        home.manifest(sandbox.base_url, {"read": {"operation": "readme.get", "items": [where]}}, "read.yaml")
        ran = home.run(*command, option, name)
        assert (ran.exit_code, f"{option} {name}: " in ran.err, why in ran.err) == (2, True, True), ran.err
        assert sandbox.requests() == []
    assert not list(home.folder.rglob("*.part"))


@pytest.mark.parametrize(
    "command",
    [
        ("examples",),
        ("examples", "."),
        ("init", "readme.get", "contents.put", "webhook.create", "-o", "new/below"),
        ("schedule", "read.yaml", "--cron", "30 2 * * *", "--emit", "kubernetes", "--out", "new/below"),
    ],
    ids=" ".join,
)
def test_a_full_disk_leaves_no_half(home: Home, command: tuple[str, ...]) -> None:
    """The command fails and leaves nothing; with space it works at the second time."""
    if command[0] == "schedule":
        home.manifest(
            "https://code.example.com/api/v3", {"read": {"operation": "readme.get", "items": []}}, "read.yaml"
        )
    before = names(home)
    ran = on_full_disk(home, *command)
    assert (ran.exit_code in (2, 5), "File too large" in ran.err, ran.out) == (True, True, ""), ran.err
    assert names(home) == before
    again = home.run(*command)
    assert again.exit_code == 0, again.err
    assert all((home.folder / line).stat().st_size for line in again.out.splitlines())
    assert not list(home.folder.rglob(".arriving*"))


def test_half_a_key_is_not_kept(home: Home) -> None:
    """A key that did not fit on the disk is not taken for one at the next start."""
    ran = home.run_any(["bash", "-c", 'ulimit -f 0; exec "$@"', "bash", *BULK, "serve", "--metrics-key", "key"])
    assert (ran.exit_code, "key can't be used: File too large" in ran.err) == (2, True), ran.err
    assert names(home) == []


def test_half_an_undo_goes_on(tmp_path: Path, home: Home) -> None:
    """Neither the manifest nor the list is there when one of them did not fit; the same command goes on with space."""
    organizations = [{"login": f"made-{number:02d}", "admin": "octoadmin"} for number in range(40)]
    hook = {"org": "acme-eng", "config": {"url": "https://hooks.example.com"}, "events": ["push"]}
    jobs = {
        "orgs": {"operation": "organization.create", "items": organizations},
        "hooks": {"operation": "webhook.create", "items": [hook]},
    }
    with served(tmp_path / "sandbox", "--rate-limit", "off") as sandbox:
        home.manifest(sandbox.base_url, jobs)
        assert home.run("run", "manifest.yaml", "--run-dir", "run", "--yes", *QUIET).exit_code == 0
        ran = on_full_disk(home, "undo", "run", "-o", "undo.yaml", *QUIET)
        assert (ran.exit_code, "the same command goes on" in ran.err) == (2, True), ran.err
        assert not [path for path in home.folder.iterdir() if path.name.startswith("undo.") and path.is_file()]
        again = home.run("undo", "run", "-o", "undo.yaml", *QUIET)
        assert (again.exit_code, "cannot be undone 40, listed in undo.txt" in again.out) == (0, True), again.err
        assert len((home.folder / "undo.txt").read_text().splitlines()) == 41
        assert not list((home.folder / "undo.d").glob("*.part"))


def test_a_report_that_can_not_be_printed_hides_no_work_left(tmp_path: Path, home: Home) -> None:
    """Exit 5 where the run is complete; where work is left, the exit code and the last line are those of the run."""
    with served(tmp_path / "sandbox") as sandbox:
        where = {name: ITEM[name] for name in ("owner", "repo")}
        items = [{**where, "id": str(number)} for number in range(50)]
        jobs = {
            "read": {"operation": "contents.get", "items": [{**each, "path": f"none/{each['id']}"} for each in items]}
        }
        home.manifest(sandbox.base_url, jobs, limits={"failures": 3, "concurrency": 1})
        for name, more in (("stopped", ()), ("complete", ("--failures", "100%"))):
            line = ["run", "manifest.yaml", "--run-dir", name, *QUIET, *more]
            ran = home.run_any(["bash", "-c", '"$@" > /dev/full', "bash", *BULK, *line])
            assert "standard output can't be written: No space left on device" in ran.err
            assert ran.exit_code == (3 if name == "stopped" else 5), ran.err
            assert (ran.err.splitlines()[-1] == f"bulk resume {name}") == (name == "stopped"), ran.err


def test_a_report_that_can_not_be_kept_hides_no_work_left(tmp_path: Path, home: Home) -> None:
    """Exit 5 where the run is complete; where work is left, the exit code and the last line are those of the run."""
    with served(tmp_path / "sandbox") as sandbox:
        where = {name: ITEM[name] for name in ("owner", "repo")}
        items = [{**where, "path": f"none/{number}"} for number in range(50)]
        read = {"read": {"operation": "contents.get", "items": items}}
        home.manifest(sandbox.base_url, read, limits={"failures": 3, "concurrency": 1})
        assert home.run("run", "manifest.yaml", "--run-dir", "run", *QUIET).exit_code == 3
        (home.folder / "run/report.html").unlink()
        (home.folder / "run/report.html").mkdir()
        for options, exit_code in (((), 3), (("--failures", "100%"), 5)):
            ran = home.run("resume", "run", *QUIET, *options)
            assert "the report can't be written" in ran.err
            assert ran.exit_code == exit_code, ran.err
            assert (ran.err.splitlines()[-1] == "bulk resume run") == (exit_code == 3), ran.err


def test_a_schedule_overwrites_nothing(home: Home) -> None:
    """What somebody has edited stays (exit 2); the same command twice is the same."""
    home.manifest("https://code.example.com/api/v3", {"read": {"operation": "readme.get", "items": []}}, "read.yaml")
    command = ("schedule", "read.yaml", "--cron", "30 2 * * *", "--emit", "systemd", "--out", "units")
    first, second = home.run(*command), home.run(*command)
    assert (first.exit_code, second.exit_code, first.out) == (0, 0, second.out), second.err
    timer = home.folder / first.out.splitlines()[0]
    timer.write_text("mine")
    refused = home.run(*command)
    assert (refused.exit_code, f"units/{timer.name} exists already and has other content" in refused.err) == (2, True)
    assert timer.read_text() == "mine"
