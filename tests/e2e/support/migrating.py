"""The example migration in a folder of its own, against a sandbox with its seed file, and how it is killed."""

import csv
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from examples import make_items

from tests.e2e.support.platform import Home, Served, served, wait_for

EXAMPLES = Path(make_items.__file__).parent
SECRET = "told-to-the-receiver"
PATIENCE_S = 120.0
"""How long a command may take on a machine that has other things to do (seconds); alone it takes 5."""


def rows(name: str) -> list[dict[str, str]]:
    """The lines of an items file of the example."""
    with (EXAMPLES / "items" / f"migration-{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


LOGINS = [row["login"] for row in rows("organizations")]


@contextmanager
def rehearsal(tmp_path: Path, *options: str) -> Iterator[tuple[Home, Served]]:
    """The example in a folder of its own, and a sandbox with its seed file."""
    home = Home(tmp_path / "home", variables={"HOOK_SECRET": SECRET})
    shutil.copytree(EXAMPLES, home.folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    manifest = home.folder / "migration.yaml"
    # the one change: on loopback, what was sent and is not there after a second never comes
    manifest.write_text(manifest.read_text().replace("limits:\n", "limits:\n  settle: 1s\n"))
    seed = str(home.folder / "sandbox" / "migration.yaml")
    with served(tmp_path / "sandbox", "--rate-limit", "off", "--seed-data", seed, *options) as sandbox:
        home.variables["BULK_BASE_URL"] = sandbox.base_url
        yield home, sandbox


def command(run_dir: str) -> tuple[str, ...]:
    """What a user types."""
    return ("run", "migration.yaml", "--run-dir", run_dir, "--progress", "none")


def answered(sandbox: Served) -> int:
    """Lines of the journal so far; the last one may be half there."""
    return sandbox.journal_path.read_bytes().count(b"\n")


def kill_after(home: Home, sandbox: Served, requests: int) -> None:
    """Start the command, or go on with it, and kill it after `requests` more requests."""
    wanted = answered(sandbox) + requests
    with home.running(*command("run")) as process:
        wait_for(lambda: answered(sandbox) >= wanted, process, PATIENCE_S)
        process.send_signal(signal.SIGKILL)
        _, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, err
