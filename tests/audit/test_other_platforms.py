"""Nights of another platform are not compared: an audit says so, and leaves the history as it is."""

import json
import sys

import pytest

from tests.audit.nights import Nights
from tests.audit.test_nights import KILLED
from tests.e2e.support.platform import Home, served


@pytest.fixture
def nights(tmp_path):
    """An audit of three files."""
    with served(tmp_path / "sandbox") as sandbox:
        found = Nights(Home(tmp_path), sandbox)
        found.write()
        yield found


def test_a_history_is_of_one_platform(nights):
    """Exit 5 before anything is sent, with both addresses; another history begins anew. A platform that only has got
    another address goes on with its nights when the history says so."""
    assert nights.audit().exit_code == 0
    other = nights.sandbox.base_url.replace("127.0.0.1", "localhost")
    asked, index = len(nights.sandbox.journal()), nights.folder / "audits/files/audit.json"
    kept = index.read_bytes()
    ran = nights.audit("--base-url", other)
    assert (ran.exit_code, nights.sandbox.base_url in ran.err, other in ran.err) == (5, True, True), ran.err
    assert (len(nights.sandbox.journal()), index.read_bytes()) == (asked, kept)
    code, found = nights.result("--base-url", other, "--history", "audits/other")
    assert (code, found["drift"]["is_first"]) == (0, True)
    index.write_text(json.dumps({**json.loads(kept), "base_url": other}))
    code, found = nights.result("--base-url", other)
    assert (code, found["drift"]["is_first"], len(found["nights"])) == (0, False, 2)


def test_a_night_that_was_killed_is_not_that_of_another_platform(nights):
    """A run that has read everything, and does not count yet, is given up if the next night is of another platform."""
    nights.home.write("killed.py", KILLED.format(step="_tables"))
    nights.home.run_any([sys.executable, "killed.py"])
    (pending,) = nights.folder.glob("audits/files/runs/*")
    asked = len(nights.sandbox.requests())
    ran = nights.audit("--base-url", nights.sandbox.base_url.replace("127.0.0.1", "localhost"))
    assert ran.exit_code == 0, ran.err
    assert len(nights.sandbox.requests()) > asked
    given_up, night = nights.history().nights
    assert (given_up.run, given_up.is_good, night.is_good) == (pending.name, False, True)
    assert nights.sandbox.base_url in given_up.why
