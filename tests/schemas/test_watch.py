"""The whole suite is under watch: a violation fails its test, in whatever process the sandbox was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from bulk.sandbox import Settings, running
from bulk.sandbox.http.observing import VARIABLE
from bulk.sandbox.settings import SettingError
from tests.schemas.checker import VIOLATIONS
from tests.schemas.watch import ROOT

TEST = '''"""Asks a sandbox, in this process or in one of its own."""
import json, subprocess, sys, urllib.request
from bulk.sandbox import Settings, running


def ask(base_url):
    """One request."""
    headers = {"User-Agent": "tests", "Authorization": "Bearer sbx-site-admin"}
    with urllib.request.urlopen(urllib.request.Request(base_url + "/rate_limit", headers=headers)) as reply:
        return json.load(reply)


async def test_in_this_process(anyio_backend):
    """Passes by itself."""
    import anyio.to_thread
    async with running(Settings()) as sandbox:
        assert await anyio.to_thread.run_sync(ask, sandbox.base_url)


def test_in_a_process_of_its_own():
    """Passes by itself."""
    command = [sys.executable, "-m", "bulk", "sandbox", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert ask(process.stdout.readline().strip())
        process.terminate()


def test_without_a_sandbox():
    """Passes always."""
'''
CONFTEST = '''"""What tests/conftest.py does, with schemas that are made wrong on purpose."""
from tests.conftest import _watched_sandboxes, anyio_backend, pytest_runtest_call, pytest_runtest_teardown
from tests.schemas import watch

watch.MODULE = "tests.schemas.wrong"
'''


def test_a_violation_fails_the_test_that_caused_it(tmp_path: Path) -> None:
    """Under wrong schemas the tests fail that got such an answer, whichever process gave it, and no other."""
    (tmp_path / "test_asking.py").write_text(TEST)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "anyio_mode=auto", "--rootdir=."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("GET /rate_limit (2022-11-28, json) answered 200: Object contains unknown field") >= 2


async def test_an_observer_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that can't be imported, or has no `observe`, is said at the start."""
    for name in ("tests.schemas.missing", "json"):
        monkeypatch.setenv(VARIABLE, name)
        with pytest.raises(SettingError, match=f"{VARIABLE}={name}"):
            async with running(Settings()):
                pass


async def test_nobody_observes_unless_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the variable an answer is nobody's business: nothing is noted, whatever it is."""
    path = tmp_path / "violations.txt"
    monkeypatch.setenv(VIOLATIONS, str(path))
    monkeypatch.delenv(VARIABLE)
    async with (
        running(Settings()) as sandbox,
        aiohttp.ClientSession() as session,
        session.get(sandbox.base_url + "/rate_limit") as reply,
    ):
        assert reply.status == 200
    assert not path.exists()
