"""A FIFO or a device where a command expects a regular file: it is refused at once, and nothing waits for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.support.platform import Home, Served, served

HANGS_S = 30.0
"""A command that has not ended by then waits for the FIFO (seconds)."""
ITEMS: list[dict[str, object]] = [{"owner": "acme-eng", "repo": repo} for repo in ("hello-world", "no-such")]
REFUSALS = [
    ("results.jsonl", ("report", "run", "--format", "jsonl")),
    ("results.jsonl", ("verify", "run")),
    ("results.jsonl", ("diff", "run", "kept")),
    ("results.jsonl", ("sql", "run", "SELECT count(*) FROM items")),
    ("results.jsonl", ("tables", "run", "--to", "sqlite", "-o", "tables.db")),
    ("results.jsonl", ("watch", "run", "--events")),
    *((name, ("retry", "run")) for name in ("origin.json", "manifest.yaml", "check.json", "run.seal")),
    *((name, ("verify", "run")) for name in ("origin.json", "manifest.yaml", "check.json", "digests.json")),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A folder with a run of which an item failed."""
    folder = tmp_path_factory.mktemp("regular")
    with served(folder / "platform") as platform:
        yield _ran(Home(folder / "home"), platform)


def _ran(home: Home, platform: Served) -> Home:
    home.manifest(platform.base_url, {"reads": {"operation": "readme.get", "items": ITEMS}})
    ran = home.run("run", "manifest.yaml", "--run-dir", "kept")
    assert ran.exit_code == 1, ran.err
    return home


@pytest.mark.parametrize(("name", "command"), REFUSALS)
def test_a_fifo_in_a_run_directory_holds_up_no_command(made: Home, name: str, command: tuple[str, ...]) -> None:
    """failures.md row 59: the file is named with what it is, and the exit code is 5."""
    shutil.rmtree(made.folder / "run", ignore_errors=True)
    shutil.copytree(made.folder / "kept", made.folder / "run")
    (made.folder / "run" / name).unlink()
    os.mkfifo(made.folder / "run" / name, 0o600)
    with made.running(*command) as process:
        out, err = process.communicate(timeout=HANGS_S)
    assert "Traceback" not in err
    assert process.returncode == 5, err + out
    assert name in err + out
    assert "not a regular file" in err + out


OPTIONS = [
    ("fifo", ("serve", "--metrics-key")),
    ("/dev/zero", ("serve", "--metrics-key")),
    ("fifo", ("sandbox", "--seed-data")),
    ("/dev/zero", ("sandbox", "--seed-data")),
    ("fifo", ("sandbox", "--journal")),
]


@pytest.mark.parametrize(("place", "command"), OPTIONS)
def test_an_option_takes_no_fifo_and_no_device(tmp_path: Path, place: str, command: tuple[str, ...]) -> None:
    """failures.md row 59: the option and the file are named; exit 2."""
    home = Home(tmp_path / "home")
    home.folder.mkdir()
    os.mkfifo(home.folder / "fifo", 0o600)
    with home.running(*command, place) as process:
        _, err = process.communicate(timeout=HANGS_S)
    assert process.returncode == 2, err
    assert f"{command[-1]}" in err
    assert place in err
    assert "not a regular file" in err or "a pipe or a device that nobody reads" in err


def test_a_key_for_metrics_is_short(tmp_path: Path) -> None:
    """failures.md row 59: a large file is not a key, and is not read to its end; exit 2."""
    home = Home(tmp_path / "home")
    home.write("large", "")
    os.truncate(home.folder / "large", 1 << 40)
    ran = home.run("serve", "--metrics-key", "large")
    assert (ran.exit_code, "holds no key: it is longer than 4,096" in ran.err) == (2, True), ran.err
