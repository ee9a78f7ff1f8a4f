"""Credentials as maps: every mistake has its line, and shows no value."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bulk.engine.origin import Origin
from bulk.errors import CredentialMissing, ManifestError, UsageError
from bulk.manifest.credential_specs import AppSpec, PoolSpec, TokenSpec, spec_of, written
from bulk.manifest.reading import Overrides, read_manifest
from bulk.platform.auth.app_keys import AppSigner

HEAD = """version: 1
platform:
  base_url: https://code.example.com/api/v3
  credentials:
"""
JOBS = """
jobs:
  r: {operation: readme.get, items: [{owner: acme, repo: api}]}
"""


def read(tmp_path: Path, credentials: str, jobs: str = JOBS, **options: Any):
    """The manifest."""
    (tmp_path / "m.yaml").write_text(HEAD + "".join(f"    {line}\n" for line in credentials.splitlines()) + jobs)
    return read_manifest(tmp_path / "m.yaml", Overrides(**options), {})


def test_what_maps_become(tmp_path: Path) -> None:
    """Paths are seen from the manifest; an App may be named by its number and have several keys; a file of its own
    beats the manifest."""
    (tmp_path / "c.yaml").write_text("bot: {token: 'env:BOT', identity: robot}\n")
    found = read(
        tmp_path,
        "default: {app: {app_id: 12, private_key: [file:a.pem, env:B], installation: 5}}\n"
        "bot: env:OTHER\nreaders: {pool: [bot]}",
        credentials_file=tmp_path / "c.yaml",
    ).platform.credentials
    assert spec_of(found["default"], AppSpec) == AppSpec("12", (f"file:{tmp_path}/a.pem", "env:B"), installation=5)
    assert spec_of(found["bot"], TokenSpec) == TokenSpec("env:BOT", "robot")
    assert spec_of(found["readers"], PoolSpec) == PoolSpec(("bot",))


def test_a_file_of_credentials_begins_with_their_names(tmp_path: Path) -> None:
    """Who writes the part as it stands in a manifest is told what to leave out; one may still be called so."""
    (tmp_path / "c.yaml").write_text("credentials:\n  bot: env:BOT\n")
    with pytest.raises(ManifestError, match=r"c\.yaml:1: credentials: names of credentials stand at the top of this f"):
        read(tmp_path, "default: env:X", credentials_file=tmp_path / "c.yaml")
    (tmp_path / "c.yaml").write_text("credentials: {token: 'env:BOT'}\n")
    assert read(tmp_path, "default: env:X", credentials_file=tmp_path / "c.yaml").platform.credentials["credentials"]


def test_what_is_written_is_read_as_the_same(tmp_path: Path) -> None:
    """A manifest that is made from another one's credentials has the same; a program runs where it did."""
    found = read(
        tmp_path,
        "default: {app: {client_id: Iv1.a, private_key: [file:a.pem, env:B], installation: 5, permissions: all}}\n"
        "signed: {app: {app_id: 12, sign: 'command:./sign -k \"a b\"'}}\n"
        "bot: {token: 'env:BOT', identity: robot}\nme: {login: alice}\nplain: file:token\n"
        "readers: {pool: [bot, plain]}\nwriters: {pool: [bot], writes: true}",
    ).platform.credentials
    again = "\n".join(f"{name}: {json.dumps(written(source))}" for name, source in found.items())
    assert read(tmp_path, again).platform.credentials == found
    command = written("command:./token 'a b'", tmp_path / "it's here")
    assert isinstance(command, str)
    (tmp_path / "it's here").mkdir()
    program = tmp_path / "it's here" / "token"
    program.write_text('#!/bin/sh\necho "$PWD" "$1"\n')
    program.chmod(0o700)
    ran = subprocess.run(shlex.split(command.partition(":")[2]), capture_output=True, text=True, check=True)
    assert ran.stdout == f"{tmp_path}/it's here a b\n"


def test_pools_of_members_elsewhere(tmp_path: Path) -> None:
    """A pool in a file of its own has members of the manifest, and one of the manifest members in the file."""
    (tmp_path / "c.yaml").write_text("b: env:B\nboth: {pool: [a, b, default]}\n")
    found = read(tmp_path, "a: env:A\nreaders: {pool: [a]}", credentials_file=tmp_path / "c.yaml").platform.credentials
    assert spec_of(found["both"], PoolSpec) == PoolSpec(("a", "b", "default"))


def test_names_of_the_command_line(tmp_path: Path) -> None:
    """A `--credential` has to be one of the manifest's, of the file's, or one that a job names; what a run directory
    remembers need not be."""
    jobs = JOBS + "  w: {operation: readme.get, credential: writer, items: [{owner: acme, repo: api}]}\n"
    (tmp_path / "m.yaml").write_text(HEAD + "    a: env:A\n    writer: env:W\n" + jobs)

    def given(name: str) -> Overrides:
        return Overrides(credentials={name: "env:X"}, named=frozenset({name}))

    for name in ("a", "writer", "default"):
        found = read_manifest(tmp_path / "m.yaml", given(name), {}).platform.credentials
        assert found[name] == "env:X"
    with pytest.raises(UsageError, match="--credential writr: unknown credential; did you mean writer"):
        read_manifest(tmp_path / "m.yaml", given("writr"), {})
    (tmp_path / "m.yaml").write_text(HEAD + "    a: env:A\n" + jobs)
    remembered = Origin.of(read_manifest(tmp_path / "m.yaml", given("writer"), {}))
    assert remembered.overrides(given("writr")).named == {"writr"}
    assert not remembered.overrides(given("writer")).named


def test_a_token_of_the_environment_keeps_its_identity(tmp_path: Path) -> None:
    """Where the manifest names `env:BULK_TOKEN` itself, setting it does not take the identity away; any other source
    is beaten by it, and its identity with it."""
    for source, identity in (("env:BULK_TOKEN", "robot"), ("env:OTHER", "")):
        credentials = f"    default: {{token: '{source}', identity: robot}}\n"
        (tmp_path / "m.yaml").write_text(HEAD + credentials + JOBS)
        found = read_manifest(tmp_path / "m.yaml", Overrides(), {"BULK_TOKEN": "x"}).platform.credentials["default"]
        spec = spec_of(found, TokenSpec)
        assert (spec.identity if spec else "") == identity
        assert (spec.source if spec else found) == "env:BULK_TOKEN"


@pytest.mark.parametrize("kind", ["pool", "app"])
def test_a_token_of_the_environment_in_the_place_of_more_than_a_token(tmp_path: Path, kind: str) -> None:
    """A note tells that a pool or an App is not used, in whichever file it stands, where a job would have used it."""
    (tmp_path / "key.pem").write_text("-")
    maps = {"pool": "{pool: [a]}", "app": "{app: {client_id: x, private_key: 'file:key.pem'}}"}
    set_, named = {"BULK_TOKEN": "x"}, {"default": "env:A"}
    (tmp_path / "c.yaml").write_text(f"default: {maps[kind]}\n")

    def notes(default: str, jobs: str, environ: dict[str, str], **options: Any) -> tuple[str, ...]:
        (tmp_path / "m.yaml").write_text(f"{HEAD}    a: env:A\n    {default}\n{jobs}")
        return read_manifest(tmp_path / "m.yaml", Overrides(**options), environ).notes

    own, others = f"default: {maps[kind]}", JOBS.replace("operation", "credential: a, operation")
    for told in (notes(own, JOBS, set_), notes("", JOBS, set_, credentials_file=tmp_path / "c.yaml")):
        assert len(told) == 1
        assert "BULK_TOKEN is set" in told[0]
        assert f"'default' ({kind})" in told[0]
    assert notes(own, JOBS, {}) == notes(own, others, set_) == notes(own, JOBS, set_, credentials=named) == ()
    assert notes("default: env:OTHER", JOBS, set_) == ()


@pytest.mark.parametrize(
    ("credentials", "message"),
    [
        ("a: {}", "m.yaml:5: platform.credentials.a: expected a place of a token"),
        ("a: {app: {client_id: x}}", "5: platform.credentials.a.app: expected private_key"),
        ("a: {app: {private_key: file:x}}", "an App is named by client_id, or by app_id"),
        ("a: {app: {client_id: x, private_key: ghp_abcdefgh}}", "never the token itself"),
        ("a: {app: {client_id: x, sign: env:KEY}}", "expected command:PROGRAM"),
        ("a: {app: {client_id: x, private_key: file:x, installation: 0}}", "the number of an installation"),
        ("a: {app: {client_id: x, private_kez: file:x}}", "did you mean private_key?"),
        ("a: {pool: []}", "expected at least one"),
        ("a: {pool: [b]}", "its member b: unknown credential; expected one of a"),
        ("b: {pool: [default]}\na: {pool: [b]}", "is a pool or an App"),
        ("a: {token: env:X, login: y}", "not both"),
    ],
)
def test_mistakes(tmp_path: Path, credentials: str, message: str) -> None:
    """Each is told with its place, and what was expected; the value is not shown."""
    with pytest.raises(ManifestError) as refused:
        read(tmp_path, credentials)
    assert message in str(refused.value)
    assert "ghp_abcdefgh" not in str(refused.value)


def test_what_a_credential_is_not_for(tmp_path: Path) -> None:
    """An App reads no license, and a pool writes nothing unless that is insisted on."""
    app = "default: {app: {client_id: x, private_key: file:x}}"
    with pytest.raises(ManifestError, match=r"takes no tokens of Apps for license\.get"):
        read(tmp_path, app, "\njobs:\n  r: {operation: license.get, items: [{}]}\n")
    write = (
        "\njobs:\n  r: {operation: contents.delete, credential: p, items: [{owner: a, repo: b, path: c, message: d}]}\n"
    )
    with pytest.raises(ManifestError, match="the pool 'p' is for reads"):
        read(tmp_path, "p: {pool: [default]}", write)
    assert read(tmp_path, "p: {pool: [default], writes: true}", write).jobs


def test_the_vendors_terms(tmp_path: Path) -> None:
    """A pool on the vendor's own hosts gets a note, elsewhere none."""
    text = (HEAD + "    p: {pool: [default]}\n" + JOBS).replace("code.example.com/api/v3", "api.github.com")
    (tmp_path / "m.yaml").write_text(text)
    assert any("terms forbid" in note for note in read_manifest(tmp_path / "m.yaml", Overrides(), {}).notes)
    assert not any("terms" in note for note in read(tmp_path, "p: {pool: [default]}").notes)


def test_what_signs_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A private key is refused with the way out, there and by whoever is handed the source alone; a program signs."""
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ManifestError, match=r"m\.yaml:5: .*fleet\.app\.private_key: .*pip install 'bulkops\[app\]'"):
        read(tmp_path, "fleet: {app: {client_id: x, private_key: file:x}}")
    with pytest.raises(CredentialMissing, match="pip install"):
        AppSigner("fleet", AppSpec("x", ("file:x",)), {}, tmp_path).check()
    assert read(tmp_path, "fleet: {app: {client_id: x, sign: command:x}}").platform.credentials
