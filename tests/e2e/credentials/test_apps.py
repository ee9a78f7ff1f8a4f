"""The real command as an App: each owner's installation has a token and a budget of its own."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.canaries import watched
from tests.e2e.support.platform import Home, Ran, Served, served

OWNERS = ("org-1", "org-2", "org-3")
SEED: dict[str, Any] = {
    "apps": [
        {
            "slug": "fleet",
            "client_id": "Iv1.fleet",
            "public_keys": ["app.pub"],
            "installations": [
                {"prefix": "org-", "count": 3, "each": 12},
                {"organization": "acme-ops", "suspended": True},
                {"organization": "acme-eng", "repositories": ["closed"]},
            ],
        }
    ],
    "repositories": [
        {"organization": "acme-eng", "name": name, "private": True, "files": {"README.md": "# A"}}
        for name in ("closed", "other")
    ],
}
SIGN = """
import base64, sys
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key
key = load_pem_private_key(open(sys.argv[1], "rb").read(), None)
print(base64.b64encode(key.sign(sys.stdin.buffer.read(), PKCS1v15(), SHA256())).decode())
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A folder to work in."""
    return Home(tmp_path / "home")


@pytest.fixture(scope="module")
def keys() -> list[rsa.RSAPrivateKey]:
    """Two keys."""
    return [watched(rsa.generate_private_key(public_exponent=65537, key_size=2048)) for _ in range(2)]


def private(key: rsa.RSAPrivateKey) -> bytes:
    """As PEM."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


class Fleet:
    """A sandbox with an App, and a manifest that reads as it."""

    def __init__(self, home: Home, platform: Served, keys: list[rsa.RSAPrivateKey]) -> None:
        self.home, self.platform, self.keys = home, platform, keys
        self.app: dict[str, Any] = {"client_id": "Iv1.fleet", "private_key": "file:app.pem"}
        self.use_key(0)

    def use_key(self, which: int) -> None:
        """This key is the one that signs."""
        self.home.write("app.pem", private(self.keys[which])).chmod(0o600)

    def run(self, items: list[dict[str, str]], run_dir: str = "run", operation: str = "readme.get") -> Ran:
        """Read them."""
        jobs = {"reads": {"operation": operation, "credential": "fleet", "items": items}}
        credentials = {"fleet": {"app": self.app}}
        self.home.write(
            "manifest.yaml",
            json.dumps(
                {
                    "version": 1,
                    "platform": {"base_url": self.platform.base_url, "credentials": credentials},
                    "jobs": jobs,
                }
            ),
        )
        return self.home.run("run", "manifest.yaml", "--run-dir", run_dir, "--progress", "none")

    def results(self, run_dir: str = "run") -> list[dict[str, Any]]:
        """The lines of results."""
        lines = (self.home.folder / run_dir / "results.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def mints(self) -> list[int]:
        """The statuses of all mints."""
        return [line["status"] for line in self.platform.requests(path="access_tokens")]


@contextmanager
def fleet(home: Home, folder: Path, keys: list[rsa.RSAPrivateKey], *options: str) -> Iterator[Fleet]:
    """The sandbox knows the first key."""
    folder.mkdir()
    public = keys[0].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / "app.pub").write_bytes(public)
    with served(folder, *options, seed=SEED) as platform:
        yield Fleet(home, platform, keys)


def readmes(*owners: str, count: int = 12) -> list[dict[str, str]]:
    """Items of these owners, one owner after the other."""
    return [{"owner": owner, "repo": f"repo-{number:05d}"} for owner in owners for number in range(count)]


def test_each_installation_pays_for_its_own(home: Home, tmp_path: Path, keys) -> None:
    """Items sorted by owner drain all installations side by side: one token for each, none refused; what the App can't
    reach fails without being sent, and what is suspended stays to do."""
    with fleet(home, tmp_path / "platform", keys, "--rate-limit", "core=13/60") as it:
        nowhere = [{"owner": "acme-labs", "repo": "x"}]
        ran = it.run(readmes(*OWNERS) + nowhere)
        assert ran.exit_code == 1, ran
        results = it.results()
        assert [line["outcome"] for line in results].count("succeeded") == 36
        (failed,) = [line for line in results if line["outcome"] == "failed"]
        assert failed["error"]["code"] == "forbidden"
        assert "not installed in acme-labs" in failed["error"]["message"]
        assert it.mints() == [201, 201, 201]
        payers = [line["payer"] for line in it.platform.requests(path="/readme")]
        assert {payer: payers.count(payer) for payer in payers} == dict.fromkeys(set(payers), 12)
        assert len(set(payers)) == 3
        suspended = it.run([*readmes("org-1", count=1), {"owner": "acme-ops", "repo": "runbook"}], "suspended")
        assert suspended.exit_code == 4
        assert "suspended" in suspended.err
        (other,) = it.results("suspended")
        assert other["outcome"] in ("succeeded", "unchanged")


def test_every_installation_that_is_suspended_is_named(home: Home, tmp_path: Path, keys, monkeypatch) -> None:
    """Whoever has to see to them sees all of them at the end, not the first alone."""
    (app,) = SEED["apps"]
    suspended = [{"organization": name, "suspended": True} for name in ("acme-ops", "acme-labs")]
    monkeypatch.setitem(SEED, "apps", [{**app, "installations": suspended}])
    with fleet(home, tmp_path / "platform", keys) as it:
        ran = it.run([{"owner": owner, "repo": "x"} for owner in ("acme-ops", "acme-labs")])
        assert ran.exit_code == 4, ran
        assert "in acme-ops" in ran.out, ran
        assert "in acme-labs" in ran.out, ran


def test_a_wrong_key_sends_nothing_else(home: Home, tmp_path: Path, keys) -> None:
    """With a key that the platform does not know, two requests leave, and the run ends with 4."""
    with fleet(home, tmp_path / "platform", keys) as it:
        it.use_key(1)
        ran = it.run(readmes("org-1"))
        assert (ran.exit_code, [line["status"] for line in it.platform.requests()]) == (4, [401, 401]), ran
        assert "private key" in ran.err
        home.write("app.pem", b"no key").chmod(0o600)
        assert it.run(readmes("org-1"), "none").exit_code == 2
        it.use_key(0)
        (home.folder / "app.pem").chmod(0o644)
        opened = it.run(readmes("org-1"), "open")
        assert (opened.exit_code, "chmod 600" in opened.err) == (2, True)


def test_several_keys_and_tokens_that_come_late(home: Home, tmp_path: Path, keys) -> None:
    """Of several keys the one that is known is found; a new token that is refused at first is tried again."""
    with fleet(home, tmp_path / "platform", keys, "--mint-lag", "1.5") as it:
        home.write("old.pem", private(keys[1])).chmod(0o600)
        it.app["private_key"] = ["file:old.pem", "file:app.pem"]
        ran = it.run(readmes("org-1", "org-2"))
        assert ran.exit_code == 0, ran
        assert it.mints() == [201, 201]
        assert {line["status"] for line in it.platform.requests(path="/readme")} <= {200, 401, 403}


def test_a_program_signs(home: Home, tmp_path: Path, keys) -> None:
    """With `sign`, the key is a program's alone; an item whose organization has no README is the platform's to say."""
    with fleet(home, tmp_path / "platform", keys) as it:
        home.write("sign.py", SIGN)
        command = [sys.executable, str(home.folder / "sign.py"), str(home.folder / "app.pem")]
        it.app = {"client_id": "Iv1.fleet", "sign": f"command:{shlex.join(command)}"}
        ran = it.run(readmes("org-3", count=3))
        assert ran.exit_code == 0, ran


def test_an_operation_that_takes_no_app(home: Home, tmp_path: Path, keys) -> None:
    """The check refuses a job whose operation the platform gives to no App, before anything is sent."""
    with fleet(home, tmp_path / "platform", keys) as it:
        ran = it.run([{}], operation="license.get")
        assert ran.exit_code == 2
        assert "takes no tokens of Apps for license.get" in ran.err
        assert it.platform.requests() == []


def test_a_repository_that_was_not_selected(home: Home, tmp_path: Path, keys) -> None:
    """Where the App is installed for selected repositories, a private one of the others fails with that reason, and not
    as if it were not there, `missing: ok` or not; it is looked up once. What is public is read all the same."""
    with fleet(home, tmp_path / "platform", keys) as it:
        items = [{"owner": "acme-eng", "repo": repo} for repo in ("closed", "other", "hello-world")]
        jobs = {
            name: {"operation": operation, "credential": "fleet", "items": about, **more}
            for name, operation, about, more in (
                ("reads", "readme.get", items, {}),
                ("files", "contents.get", [{**items[1], "path": "README.md"}], {"missing": "ok"}),
            )
        }
        about = {"base_url": it.platform.base_url, "credentials": {"fleet": {"app": it.app}}}
        home.write("manifest.yaml", json.dumps({"version": 1, "platform": about, "jobs": jobs}))
        ran = home.run("run", "manifest.yaml", "--run-dir", "run", "--progress", "none")
        assert ran.exit_code == 1, ran
        failed = [line for line in it.results() if line["outcome"] != "succeeded"]
        assert [(line["item"]["repo"], line["error"]["code"]) for line in failed] == [("other", "forbidden")] * 2
        assert all(
            "for selected repositories, and other is none of them" in each["error"]["message"] for each in failed
        )
        assert len(it.platform.requests(path="/repos/acme-eng/other/installation")) == 1
