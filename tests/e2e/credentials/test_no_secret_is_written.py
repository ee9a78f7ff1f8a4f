"""Keys, JSON web tokens and tokens of a run as an App: the platform echoes some, and nothing written has any."""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.canaries import JWT_HEAD, forms, keys_in, spellings_of, watched
from tests.cluster.cluster import run_arguments
from tests.e2e.support.platform import Home, served
from tests.store.postgres import dumped, everything_in

MEMBER = "pool-member+4d1f/77a0e9c3b52"
"""The token of a member of a pool."""
ENCODED = base64.b64encode(MEMBER.encode()).decode()


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    """The App's key."""
    return watched(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def echoes(key: rsa.RSAPrivateKey, media: str = "raw") -> dict[str, str]:
    """What READMEs hold: the App's own key and the member's token, in every spelling. As JSON, the platform puts them
    into Base64: asked for so are those that are written plainly or in Base64, or whose lines end otherwise."""
    raw = MEMBER.encode()
    told = [text.decode() for text in spellings_of(key).values()]
    told += [
        MEMBER,
        raw.hex(),
        quote(MEMBER),
        "".join(f"\\u{ord(c):04x}" for c in MEMBER),
        ENCODED,
        base64.b64encode(json.dumps({"token": MEMBER}).encode()).decode(),
        base64.b64encode(ENCODED.encode()).decode(),
        base64.b64encode(quote(MEMBER, safe="").encode()).decode(),
    ]
    readmes = {f"echo-{number}": f"before {text} behind" for number, text in enumerate(told)}
    plain = ("PRIVATE KEY", MEMBER, ENCODED)
    return {name: text for name, text in readmes.items() if media == "raw" or any(each in text for each in plain)}


def seed(key: rsa.RSAPrivateKey, folder: Path) -> dict[str, Any]:
    """A platform that knows the App, the member, and what echoes."""
    folder.mkdir()
    (folder / "app.pub").write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    app = {"slug": "fleet", "client_id": "Iv1.fleet", "public_keys": ["app.pub"]}
    files = echoes(key).items()
    return {
        "users": [{"login": "dora"}],
        "tokens": [{"token": MEMBER, "user": "dora", "scopes": ["repo"]}],
        "apps": [{**app, "installations": [{"organization": "acme-eng"}]}],
        "repositories": [
            {"organization": "acme-eng", "name": name, "files": {"README.md": text}} for name, text in files
        ],
    }


def jobs_of(home: Home, key: rsa.RSAPrivateKey) -> tuple[dict[str, Any], dict[str, Any]]:
    """The credentials, whose files are written, and jobs that read every README as JSON and raw, as App and as pool."""
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    home.write("app.pem", pem).chmod(0o600)
    home.write("token.txt", MEMBER).chmod(0o600)
    credentials = {
        "fleet": {"app": {"client_id": "Iv1.fleet", "private_key": "file:app.pem"}},
        "member": "file:token.txt",
        "readers": {"pool": ["member"]},
    }
    jobs = {
        f"{credential}-{media}": {
            "operation": "readme.get",
            "credential": credential,
            "with": {"media_type": media},
            "items": [{"owner": "acme-eng", "repo": name} for name in echoes(key, media)],
        }
        for credential in ("fleet", "readers")
        for media in ("json", "raw")
    }
    return credentials, jobs


def found_in(data: bytes, key: rsa.RSAPrivateKey) -> list[str]:
    """What is in it of the key, the member's token, a JSON web token, or a token of an installation."""
    marks = [
        *forms(MEMBER),
        *forms(ENCODED),
        *forms(quote(MEMBER, safe="")),
        JWT_HEAD.encode(),
        b"ghs_",
        b"PRIVATE KEY",
    ]
    return [*(repr(mark) for mark in marks if mark in data), *keys_in(data, [key])]


def test_neither_a_run_directory_nor_a_log_has_them(tmp_path: Path, key: rsa.RSAPrivateKey) -> None:
    """Run directory, cache, log and output of a run whose answers echo them (failures.md rows 62, 63)."""
    home = Home(tmp_path / "home")
    with served(tmp_path / "platform", "--vendor", "github", seed=seed(key, tmp_path / "platform")) as platform:
        credentials, jobs = jobs_of(home, key)
        about = {"base_url": platform.base_url, "vendor": "github", "credentials": credentials}
        home.manifest(platform.base_url, jobs, platform=about)
        ran = home.run("run", "manifest.yaml", "--run-dir", "run", "--log-level", "debug", "--cache", "kept")
    assert ran.exit_code == 0, ran.err
    assert Counter(line["outcome"] for line in home.results("run")) == {
        "succeeded": 2 * len(echoes(key)) + 2 * len(echoes(key, "json"))
    }
    places = {"output": ran.out.encode(), "log": ran.err.encode()}
    for folder in ("run", "kept"):
        places |= {str(path): path.read_bytes() for path in (home.folder / folder).rglob("*") if path.is_file()}
    assert {name: found for name, data in places.items() if (found := found_in(data, key))} == {}
    assert any("kept" in name for name in places)


def test_no_store_has_them(store_text: str, tmp_path: Path, key: rsa.RSAPrivateKey) -> None:
    """Every value of every table of the store, a dump of it, and what is exported of it, after a run of two workers as
    App and as pool (failures.md rows 62, 63)."""
    home = Home(tmp_path / "home")
    with served(tmp_path / "platform", "--vendor", "github", seed=seed(key, tmp_path / "platform")) as platform:
        credentials, jobs = jobs_of(home, key)
        home.write("credentials.yaml", json.dumps(credentials))
        home.manifest(platform.base_url, jobs, platform={"base_url": platform.base_url, "vendor": "github"})
        options = ("--store", store_text, "--base-url", platform.base_url, "--credentials", "credentials.yaml")
        with home.running("worker", *options), home.running("worker", *options):
            ran = home.run(*run_arguments(store_text, "--credentials", "credentials.yaml"), timeout_s=80.0)
    assert ran.exit_code == 0, ran.err
    assert Counter(line["outcome"] for line in home.results("run")) == {
        "succeeded": 2 * len(echoes(key)) + 2 * len(echoes(key, "json"))
    }
    stored = everything_in(store_text)
    assert b"echo-0" in stored, "the dump has the items"
    assert found_in(stored, key) == []
    dump = dumped(store_text)
    assert b"echo-0" in dump
    assert found_in(dump, key) == []
    exported = [path for path in (home.folder / "run").rglob("*") if path.is_file()]
    assert {str(path): found for path in exported if (found := found_in(path.read_bytes(), key))} == {}
