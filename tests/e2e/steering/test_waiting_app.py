"""An App that has to wait before the first item can be sent: the run is stopped all the same."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.canaries import watched
from tests.e2e.support.platform import Home, Process, wait_for
from tests.e2e.support.programs import canned

HOUR_S = 3_600


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """What the platform was asked."""
    return tmp_path / "asked.log"


@pytest.fixture
def base_url(log: Path) -> Iterator[str]:
    """A platform that answers the first question of an App with: come again in an hour."""
    with canned("--log", str(log), "--refuse", "1", str(HOUR_S)) as base_url:
        yield base_url


@pytest.fixture
def home(tmp_path: Path, base_url: str) -> Home:
    """A manifest that reads as an App."""
    home = Home(tmp_path / "home")
    key = watched(rsa.generate_private_key(public_exponent=65537, key_size=2048))
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    home.write("app.pem", pem).chmod(0o600)
    credentials = {"fleet": {"app": {"client_id": "Iv1.fleet", "private_key": "file:app.pem"}}}
    job = {"operation": "readme.get", "credential": "fleet", "items": [{"owner": "acme-eng", "repo": "hello-world"}]}
    about = {"base_url": base_url, "credentials": credentials}
    home.write("manifest.yaml", json.dumps({"version": 1, "platform": about, "jobs": {"reads": job}}))
    return home


@contextmanager
def begun(home: Home, log: Path, *options: str) -> Iterator[Process]:
    """A run that waits."""
    with home.running("run", "manifest.yaml", "--run-dir", "run", *options) as process:
        wait_for(lambda: log.exists() and "/app/installations" in log.read_text(), process)
        yield process


@pytest.mark.parametrize("options", [(), ("--now",)])
def test_a_run_whose_app_waits_is_stopped(home: Home, log: Path, options: tuple[str, ...]) -> None:
    """`bulk stop` ends a run that has sent nothing yet because its App was told to wait for an hour: exit 3, and the
    command that goes on."""
    with begun(home, log) as process:
        stopped = home.run("stop", "run", *options)
        _, err = process.communicate(timeout=60)
    assert (stopped.exit_code, process.returncode) == (0, 3), stopped.err + err
    assert stopped.err.splitlines()[-1] == err.splitlines()[-1] == "bulk resume run"
    report = home.report("run")
    assert [action["verb"] for action in report["actions"]] == ["stop"]
    assert json.loads(home.run("status", "run", "--json").out)["state"] == "stopped"


def test_a_signal_ends_it_too(home: Home, log: Path) -> None:
    """SIGTERM ends such a run like any other, with a report (exit 143)."""
    with begun(home, log) as process:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert err.splitlines()[-1] == "bulk resume run"
    assert home.report("run")["exit_code"] == 143


def test_its_time_limit_holds(home: Home, log: Path) -> None:
    """`--max-duration` counts while the App waits (exit 3)."""
    with begun(home, log, "--max-duration", "1s") as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "max_duration" in out
