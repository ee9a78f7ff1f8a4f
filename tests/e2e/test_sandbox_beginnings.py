"""A sandbox tells a newcomer everything that the next command needs, and can stand in for a cloud edition."""

import fcntl
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bulk.clock import Clock
from bulk.storage.scratch import NEW_S, PREFIX
from tests.e2e.support.platform import Home, served, wait_for

TOKEN = "sbx-site-admin"


def started(*options: str) -> tuple[str, list[str]]:
    """What `bulk sandbox` says: its first line, and the lines on standard error."""
    command = [sys.executable, "-m", "bulk", "sandbox", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline().strip()
        process.terminate()
        rest, said = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, "")
    return first, said.splitlines()


@pytest.mark.parametrize("vendor", ["service", "github"])
def test_it_says_what_to_export(vendor: str) -> None:
    """Tokens with their users, and `export` lines that a shell takes as they are, stand on standard error."""
    base_url, said = started("--vendor", vendor)
    exports = [shlex.split(line)[1] for line in said if line.startswith("export ")]
    wanted = [f"BULK_BASE_URL={base_url}", f"BULK_TOKEN={TOKEN}"]
    assert exports == (wanted if vendor == "service" else [*wanted, f"BULK_VENDOR={vendor}"])
    tokens = [line.split()[0] for line in said if line.startswith("  ")]
    assert tokens == [
        TOKEN,
        *(f"sbx-{name}" for name in ["org-owner", "member", "fine-grained", "installation", "read-only"]),
    ]


def test_quiet_says_the_base_url_alone() -> None:
    """`--quiet` says nothing on standard error."""
    base_url, said = started("--quiet")
    assert base_url.endswith("/api/v3")
    assert said == []


def test_a_cloud_edition_has_no_path(tmp_path: Path) -> None:
    """With `--base-path /` the base URL is the host alone: items, pages, redirects and downloads work there too."""
    with served(tmp_path / "sandbox", "--base-path", "/") as sandbox:
        assert sandbox.base_url.count("/") == 2
        home = Home(tmp_path)
        jobs = {
            "readmes": {
                "operation": "readme.get",
                "items": [{"owner": "acme-eng", "repo": "hello-world"}],
                "save": "{repo}.json",
            },
            "hooks": {"operation": "webhook.list", "items": [{"org": "acme-ops"}]},
            "file": {
                "operation": "contents.put",
                "items": [{"owner": "acme-eng", "repo": "hello-world", "path": "A", "content": "QQ==", "message": "m"}],
            },
        }
        home.manifest(sandbox.base_url, jobs)
        ran = home.run("run", "manifest.yaml", "--run-dir", "run")
        assert ran.exit_code == 0, ran.err
        assert [line["outcome"] for line in home.results("run")] == ["succeeded"] * 3
        paths = {line["path"] for line in sandbox.journal()}
        assert "/repos/acme-eng/hello-world/readme" in paths
        assert not any(path.startswith("/api/v3") for path in paths)


def test_a_base_path_that_can_not_be_is_refused() -> None:
    """It ends with exit 2 and the way out."""
    command = [sys.executable, "-m", "bulk", "sandbox", "--base-path", "/a/../b"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False, timeout=60)
    assert done.returncode == 2
    assert "--base-path '/a/../b': write a plain path, as in /api/v3, or / for none" in done.stderr


def test_what_a_killed_sandbox_leaves_goes_with_the_next(tmp_path: Path) -> None:
    """The folder of its state, where no directory was named for it."""
    place = tmp_path / "tmp"
    place.mkdir()
    home = Home(tmp_path, variables={"TMPDIR": str(place)})
    for _ in range(2):
        with home.running("sandbox", "--quiet") as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("http")
        (left,) = place.iterdir()
        assert left.name.startswith(PREFIX)
        os.utime(left, (Clock().now() - 2 * NEW_S,) * 2)


def test_a_sandbox_ends_with_the_command_that_needs_it(tmp_path: Path) -> None:
    """Also where that is killed: the sandbox ends as it does by a signal, and deletes its folder."""
    place = tmp_path / "tmp"
    place.mkdir()
    home = Home(tmp_path, variables={"TMPDIR": str(place)})
    home.manifest("https://code.invalid/api/v3", {"limits": {"operation": "rate-limit.get", "items": [{}]}})
    with home.running("rehearse", "manifest.yaml", "--sandbox") as process:
        wait_for((tmp_path / "runs").exists, process)
        (folder,) = (each.parent for each in place.glob("*/repositories"))
    held = os.open(folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)  # the sandbox holds it as long as it lives
    os.close(held)
    assert not folder.exists()
