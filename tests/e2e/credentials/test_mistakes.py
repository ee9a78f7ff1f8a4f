"""Mistakes of somebody who sets credentials up: each is told with the way out and its exit code, and no secret."""

from __future__ import annotations

import functools
import http.server
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from tests.canaries import watched
from tests.e2e.support.platform import Home, Ran, Served, served, wait_for


@functools.cache
def key_of(place: int) -> rsa.RSAPrivateKey:
    """One of the keys, made where it is needed: every process collects."""
    return watched(rsa.generate_private_key(public_exponent=65537, key_size=2048))


PEM, PKCS1, PKCS8, OPEN = Encoding.PEM, PrivateFormat.TraditionalOpenSSL, PrivateFormat.PKCS8, NoEncryption()
TOKEN, ENDED = "a-members-own-token-9f31", "a-token-that-ended-0b77"
APP = {"app": {"client_id": "Iv1.fleet", "private_key": "file:app.pem"}}
SEED = {
    "users": [{"login": "dora"}],
    "tokens": [{"token": TOKEN, "user": "dora", "scopes": ["repo"]}],
    "apps": [
        {
            "slug": "fleet",
            "client_id": "Iv1.fleet",
            "public_keys": ["app.pub"],
            "installations": [{"prefix": "org-", "count": 1, "each": 1}],
        }
    ],
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A folder to work in."""
    return Home(tmp_path / "home")


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A platform that knows the App and one member."""
    folder = tmp_path_factory.mktemp("mistakes") / "platform"
    folder.mkdir()
    (folder / "app.pub").write_bytes(key_of(0).public_key().public_bytes(PEM, PublicFormat.SubjectPublicKeyInfo))
    with served(folder, "--vendor", "github", seed=SEED) as served_there:
        yield served_there


def tried(home: Home, platform: Served, credentials: Mapping[str, object], *command: str) -> tuple[Ran, list[str]]:
    """The command, with these credentials for one read; and the paths that were asked for."""
    before = len(platform.journal())
    job = {"operation": "readme.get", "credential": "fleet", "items": [{"owner": "org-1", "repo": "repo-00000"}]}
    about = {"base_url": platform.base_url, "vendor": "github", "credentials": credentials}
    home.manifest(platform.base_url, {"reads": job}, platform=about)
    ran = home.run(*(command or ("run", "manifest.yaml", "--run-dir", "run", "--no-cache")))
    assert "Traceback" not in ran.err
    for secret in (TOKEN, ENDED):
        assert secret not in ran.err + ran.out
    return ran, [str(line["path"]) for line in platform.journal()[before:]]


KEYS: dict[str, tuple[Callable[[], bytes], str]] = {
    "locked, PKCS 8": (lambda: key_of(0).private_bytes(PEM, PKCS8, BestAvailableEncryption(b"x")), "openssl rsa -in"),
    "locked, PKCS 1": (lambda: key_of(0).private_bytes(PEM, PKCS1, BestAvailableEncryption(b"x")), "openssl rsa -in"),
    "EC, PKCS 8": (lambda: ec.generate_private_key(ec.SECP256R1()).private_bytes(PEM, PKCS8, OPEN), "signs with RSA"),
    "EC": (lambda: ec.generate_private_key(ec.SECP256R1()).private_bytes(PEM, PKCS1, OPEN), "signs with RSA"),
    "OpenSSH": (lambda: key_of(0).private_bytes(PEM, PrivateFormat.OpenSSH, OPEN), "ssh-keygen -p -m PEM"),
    "public": (lambda: key_of(0).public_key().public_bytes(PEM, PublicFormat.SubjectPublicKeyInfo), "is a public key"),
    "cut off": (lambda: key_of(0).private_bytes(PEM, PKCS1, OPEN)[:600], "damaged or not whole"),
    "DER": (lambda: key_of(0).private_bytes(Encoding.DER, PKCS8, OPEN), "is not a private key in PEM"),
    "empty": (lambda: b"", "is not a private key in PEM"),
}


@pytest.mark.parametrize("what", KEYS)
def test_a_key_that_nothing_can_be_signed_with(home: Home, platform: Served, what: str) -> None:
    """failures.md row 58: the file is named, with what is wrong about it and what to do; nothing is sent; exit 2."""
    made, told = KEYS[what]
    home.write("app.pem", made()).chmod(0o600)
    for command in ((), ("credentials", "check", "manifest.yaml")):
        ran, asked = tried(home, platform, {"fleet": APP}, *command)
        assert (ran.exit_code, asked) == (2, []), ran.err
        assert f"{home.folder / 'app.pem'} " in ran.err
        assert told in ran.err


@pytest.mark.parametrize("form", [PKCS1, PKCS8])
@pytest.mark.parametrize("spell", [bytes, lambda pem: b"\xef\xbb\xbf" + pem, lambda pem: pem.replace(b"\n", b"\r\n")])
def test_keys_in_every_form_of_pem_sign(
    home: Home, platform: Served, form: PrivateFormat, spell: Callable[[bytes], bytes]
) -> None:
    """As the platform gives it, converted, saved by an editor with a byte order mark or with other line ends."""
    home.write("app.pem", spell(key_of(0).private_bytes(PEM, form, OPEN))).chmod(0o600)
    ran, _ = tried(home, platform, {"fleet": APP})
    assert ran.exit_code == 0, ran.err


def test_one_installation_is_counted_as_one(home: Home, platform: Served) -> None:
    """`check` says who pays, also where an App is installed in one place."""
    home.write("app.pem", key_of(0).private_bytes(PEM, PKCS8, OPEN)).chmod(0o600)
    ran, _ = tried(home, platform, {"fleet": APP}, "credentials", "check", "manifest.yaml")
    assert (ran.exit_code, "  1 installation  " in ran.out) == (0, True), ran.out


def test_another_app_and_another_key(home: Home, platform: Served) -> None:
    """A client id that the platform does not know is not an App without installations: both are said as what they are,
    and stop everything at once; `check` has a row for each."""
    home.write("app.pem", key_of(0).private_bytes(PEM, PKCS1, OPEN)).chmod(0o600)
    unknown = {"app": {"client_id": "Iv1.other", "private_key": "file:app.pem"}}
    ran, asked = tried(home, platform, {"fleet": unknown})
    assert (ran.exit_code, asked) == (4, ["/api/v3/app/installations"])
    assert "has no App 'Iv1.other'" in ran.err
    assert "look at its client_id" in ran.err
    ran, _ = tried(home, platform, {"fleet": unknown}, "credentials", "check", "manifest.yaml", "--json")
    (row,) = json.loads(ran.out)
    assert ran.exit_code == 1
    assert row["may"].startswith("no: the platform has no App 'Iv1.other'")
    elsewhere = {"app": APP["app"] | {"installation": 1}}
    ran, _ = tried(home, platform, {"fleet": elsewhere}, "credentials", "check", "manifest.yaml")
    assert (ran.exit_code, "no: the App has no installation 1" in ran.out) == (1, True), ran.out
    ran, _ = tried(home, platform, {"fleet": elsewhere}, "run", "manifest.yaml", "--run-dir", "elsewhere")
    assert (ran.exit_code, "`installation: auto` finds it" in ran.err) == (2, True), ran.err
    home.write("app.pem", key_of(1).private_bytes(PEM, PKCS1, OPEN)).chmod(0o600)
    ran, _ = tried(home, platform, {"fleet": APP}, "credentials", "check", "manifest.yaml")
    assert ran.exit_code == 1
    assert "refused the App" in ran.out


PROGRAMS = {
    "false": "false ended with exit code 1",
    "echo hello": "what echo prints is not an RSA signature in Base64; it has to sign its standard input",
    "true": "what true prints is not an RSA signature in Base64",
    "no-such-program": "no-such-program can't be started",
    "head -c 50000000 /dev/zero": "what head prints is not an RSA signature",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_does_not_sign(home: Home, platform: Served, program: str) -> None:
    """It is named with what it did; nothing is sent; exit 2. What it prints is read no further than a key is long."""
    ran, asked = tried(home, platform, {"fleet": {"app": {"client_id": "Iv1.fleet", "sign": f"command:{program}"}}})
    assert (ran.exit_code, asked) == (2, [])
    assert PROGRAMS[program] in ran.err


TOKENS = {
    f'"{TOKEN}"': "stands in quotation marks",
    f"'{TOKEN}": "stands in quotation marks",
    f"Bearer {TOKEN}": "give the token alone",
    f"token {TOKEN}": "give the token alone",
    f"{TOKEN}\nmore": "has more than one line",
    f"{TOKEN} ": "printable ASCII without spaces",
    "": "NEW_TOKEN is empty",
}


@pytest.mark.parametrize("value", TOKENS, ids=range(len(TOKENS)))
def test_what_a_variable_holds_beside_the_token(
    home: Home, platform: Served, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quotation marks, a word of a header, a second line, nothing: said without showing it, and nothing is sent."""
    monkeypatch.setitem(os.environ, "NEW_TOKEN", value)
    ran, asked = tried(home, platform, {"fleet": "env:NEW_TOKEN"})
    assert (ran.exit_code, asked) == (2, [])
    assert TOKENS[value] in ran.err


def test_an_ended_token_in_a_pool_hides_no_other(home: Home, platform: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """`check` has a row for the one that the platform refuses, and for the other; a run reads with the other."""
    monkeypatch.setitem(os.environ, "ENDED_TOKEN", ENDED)
    monkeypatch.setitem(os.environ, "GOOD_TOKEN", TOKEN)
    pool = {"ended": "env:ENDED_TOKEN", "good": "env:GOOD_TOKEN", "fleet": {"pool": ["ended", "good"]}}
    ran, _ = tried(home, platform, pool, "credentials", "check", "manifest.yaml", "--json")
    rows = {row["credential"]: row["may"] for row in json.loads(ran.out)}
    assert ran.exit_code == 1
    assert rows["fleet/ended"].startswith("no: the platform refused it (401)")
    assert rows["fleet/good"] == "yes"
    assert tried(home, platform, pool)[0].exit_code == 0


def test_a_member_of_a_pool_is_named_once(home: Home, platform: Served) -> None:
    """A pool with a member twice is a slip."""
    ran, asked = tried(home, platform, {"a": "env:A_TOKEN", "fleet": {"pool": ["a", "a"]}})
    assert (ran.exit_code, asked) == (2, [])
    assert "named 2 times; once is enough" in ran.err


class _Odd(http.server.BaseHTTPRequestHandler):
    """A site that begins a login without saying where."""

    def do_POST(self) -> None:
        body = b'{"device_code": "d", "interval": "often"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_a_login_that_can_not_be_kept_begins_not(home: Home, platform: Served) -> None:
    """Nobody types a code for tokens that have no place: exit 2, and the site is not asked."""
    home.variables["BULK_LOGINS"] = str(home.write("file", ""))
    asked = len(platform.requests(path="/login"))
    ran = home.run("login", "bob", "--client-id", "Iv1.fleet", "--base-url", platform.base_url)
    assert ran.exit_code == 2, ran.err
    assert "the login can't be kept in" in ran.err
    assert len(platform.requests(path="/login")) == asked


def test_a_login_that_can_not_begin(home: Home, platform: Served) -> None:
    """An unknown client id, a site that is not there, one that answers something else: exit 2, with what to look at."""
    home.write("empty", "")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}/api/v3"
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Odd) as odd:
            threading.Thread(target=odd.serve_forever, daemon=True).start()
            strange = f"http://127.0.0.1:{odd.server_port}/api/v3"
            for client_id, base_url, told in (
                ("Iv1.unknown", platform.base_url, "look at the client id, whether the device flow of the App is on"),
                ("Iv1.fleet", nowhere, "can't be reached: Connection refused"),
                ("Iv1.fleet", strange, "begins no login for Iv1.fleet"),
            ):
                ran = home.run("login", "bob", "--client-id", client_id, "--base-url", base_url)
                assert ran.exit_code == 2, ran.err
                assert told in ran.err
                assert "Traceback" not in ran.err
            odd.shutdown()


def test_limits_of_a_named_credential_alone(home: Home, platform: Served) -> None:
    """`bulk rate-limit --credential NAME=SOURCE` asks for that one, whether or not BULK_TOKEN is there."""
    home.folder.mkdir()
    home.variables = {"MEMBER": TOKEN, "BULK_TOKEN": ""}
    for name in ("dora", "default"):
        ran = home.run("rate-limit", "--base-url", platform.base_url, "--credential", f"{name}=env:MEMBER", "--json")
        assert ran.exit_code == 0, ran.err
        assert {row["credential"] for row in json.loads(ran.out)} == {name}


def test_a_locked_out_credential_is_said_to_be_locked_out(home: Home, tmp_path: Path) -> None:
    """failures.md row 18: whoever showed a bad token too often waits for at least 15 minutes, and reads for what."""
    with served(tmp_path / "platform", "--vendor", "github", seed=SEED) as platform:
        home.folder.mkdir()
        home.variables = {"MEMBER": ENDED}
        asking = ("rate-limit", "--base-url", platform.base_url, "--credential", "env:MEMBER")
        for _ in range(5):
            assert home.run(*asking).exit_code == 4
        job = {"operation": "readme.get", "credential": "dora", "items": [{"owner": "org-1", "repo": "repo-00000"}]}
        about = {"base_url": platform.base_url, "vendor": "github", "credentials": {"dora": "env:MEMBER"}}
        home.manifest("", {"reads": job}, platform=about)
        with home.running("run", "manifest.yaml", "--run-dir", "run") as process:
            wait_for(lambda: "credential dora locked out" in home.run("status", "run").out, process, 30.0)


COMMANDS = {
    "run": (("run", "manifest.yaml", "--run-dir", "run", "--no-cache"), 4),
    "plan": (("plan", "manifest.yaml"), 4),
    "limits": (("rate-limit",), 4),
    "probe": (("credentials", "check", "manifest.yaml", "--probe"), 4),
    "check": (("credentials", "check", "manifest.yaml"), 1),  # as for one that the platform refuses
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_token_that_its_own_program_calls_ended(home: Home, platform: Served, command: str) -> None:
    """failures.md row 35: nothing is sent with it, not even to ask for limits; the end and the way out are said."""
    arguments, exit_code = COMMANDS[command]
    source = f"command:printf '%s\\n' {TOKEN} 2020-01-01T00:00:00Z"
    if command == "limits":
        arguments += ("--credential", source, "--base-url", platform.base_url)
    ran, asked = tried(home, platform, {"fleet": source}, *arguments)
    assert (ran.exit_code, asked) == (exit_code, []), ran.err + ran.out
    said = " ".join((ran.err + ran.out).split())
    assert "gave a token that had already ended, at 2020-01-01T00:00:00.000Z" in said
    assert "Have its source give a token that lasts" in said
    assert "401" not in said
