"""Secrets that tests use, and the search for them in every byte that the suite writes.

A token or a hook secret belongs into memory and onto the wire. When a session ends, everything below its temporary
folder is read, free pages and logs of databases included; simulations, which keep their files in memory, are read when
each ends; so is what pytest captured of each test: output, logs, tracebacks. Left out is what a test writes as the user
who owns the secrets (`OWN`), and the state of a sandbox, which signs with hook secrets (`FOLDERS`).

`tests/conftest.py` takes the fixture and the hook from here. Source: failures.md row 62.
"""

import base64
import functools
import html
import json
import urllib.parse
from collections.abc import Generator, Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

TOKEN = "sbx-site-admin"
"""Nearly every run uses this one."""
HOOK_SECRET = "a-s3cret-of-many-words"
STORE_PASSWORD = "hunter2-of-the-store"
JWT_HEAD = "eyJhbGciOiJSUzI1NiIs"
"""How every JSON web token of ours begins: none is in any file, whatever it says."""
SECRETS = (TOKEN, HOOK_SECRET, STORE_PASSWORD, "canary+7f3a/9c51d2e84b0", "told-to-the-receiver", JWT_HEAD)

KEY_LINES: list[bytes] = []
"""Lines of private keys of Apps that tests have made, as PEM has them; `watched` adds those of a key."""
PIECE = 18
"""A piece of a key that is this long is in a file by no coincidence (characters)."""

OWN = ("token.txt", "*.pem", "open.txt", "secret", "*.items.jsonl", "*.py", "*.pyc")
"""Names of files that hold a secret because a test wrote it there, for the engine to read."""
FOLDERS = frozenset(("state", "platform", "items", "jobs"))
"""Folders of sandboxes, of items that hold a secret because it is written so, and of copies of our sources."""
LARGE_BYTES = 16 * 1024 * 1024
WRITTEN = (".db", ".db-wal", "results.jsonl")
"""Larger files are read only if the product writes them: the others are what tests of size feed it."""

_captured: list[str] = []


@functools.cache
def forms(secret: str) -> list[bytes]:
    """As it is, in Base64 at each of three offsets, in hex, percent-encoded, as entities and in JSON."""
    raw = secret.encode()
    every = [
        "".join(way.format(ord(char)) for char in secret)
        for way in ("%{:02x}", "%{:02X}", "\\u{:04x}", "&#{};", "&#x{:x};")
    ]
    whole = [*every, raw.hex(), raw.hex().upper(), secret.replace("/", "\\/"), html.escape(secret)]
    shifted = [base64.b64encode(b"\0" * shift + raw)[4:-4] for shift in range(3)]
    quoted = [urllib.parse.quote(secret, safe=""), urllib.parse.quote_plus(secret), json.dumps(secret)[1:-1]]
    return list(dict.fromkeys([raw, *shifted, *(text.encode() for text in (*quoted, *whole))]))


def watched(key: RSAPrivateKey) -> RSAPrivateKey:
    """Have lines of a key searched for when the session ends; its own file has to be called `*.pem`."""
    for form in (PrivateFormat.TraditionalOpenSSL, PrivateFormat.PKCS8):
        lines = key.private_bytes(Encoding.PEM, form, NoEncryption()).splitlines()
        KEY_LINES.append(lines[len(lines) // 2])
    return key


def spellings_of(key: RSAPrivateKey) -> dict[str, bytes]:
    """A key as somebody may write it, in both of its forms."""
    found: dict[str, bytes] = {}
    for name, form in (("PKCS 1", PrivateFormat.TraditionalOpenSSL), ("PKCS 8", PrivateFormat.PKCS8)):
        pem, der = (key.private_bytes(way, form, NoEncryption()) for way in (Encoding.PEM, Encoding.DER))
        text = pem.decode()
        written = {"PEM": text, "one line": text.replace("\n", "\\n"), "DER": base64.b64encode(der).decode()}
        written |= {"CRLF": text.replace("\n", "\r\n"), "CR": text.replace("\n", "\r")}
        written |= {"JSON": json.dumps(text)[1:-1], "JSON twice": json.dumps(json.dumps(text))[1:-1]}
        written |= {"percent": urllib.parse.quote(text, safe=""), "plus": urllib.parse.quote_plus(text)}
        written |= {"entities": "".join(f"&#{ord(char)};" for char in text), "hex": pem.hex(), "HEX": der.hex().upper()}
        written |= {"DER lines": "\n".join(written["DER"][at : at + 60] for at in range(0, len(written["DER"]), 60))}
        written |= {"DER for URLs": base64.urlsafe_b64encode(der).decode().rstrip("=")}
        for shift in range(3):
            whole = base64.b64encode(b"x" * shift + pem).decode()
            written[f"Base64 {shift}"] = whole
            written[f"Base64 {shift} lines"] = "\n".join(whole[at : at + 76] for at in range(0, len(whole), 76))
        found |= {f"{name}, {way}": said.encode() for way, said in written.items()}
    return found


@functools.lru_cache(maxsize=100)
def pieces_of(key: RSAPrivateKey) -> tuple[bytes, ...]:
    """Pieces of what is private in a key, as each of its spellings has it when lines and escapes are undone."""
    middle = key.private_numbers().p.to_bytes(key.key_size // 16)
    found = [middle[:PIECE], middle.hex()[:PIECE].encode(), middle.hex()[:PIECE].upper().encode()]
    for spelling in spellings_of(key).values():
        plain = spelling.translate(None, b"\r\n")
        size = PIECE * (5 if plain.startswith(b"&") else 1)  # of an entity one character counts
        found += [plain[at : at + size] for at in (len(plain) // 3, len(plain) // 2, 4 * len(plain) // 5)]
    return tuple(dict.fromkeys(found))


def keys_in(data: bytes, keys: Iterable[RSAPrivateKey]) -> list[str]:
    """The pieces of these keys that `data` holds, also where lines, real or escaped, break them."""
    views = (data, data.replace(b"\\n", b"").replace(b"\\r", b"").translate(None, b"\r\n"))
    every = dict.fromkeys(piece for key in keys for piece in pieces_of(key))
    return [repr(piece) for piece in every if any(piece in view for view in views)]


def found_in(data: bytes, secrets: Iterable[str] = SECRETS) -> list[str]:
    """The forms of a secret that `data` holds, and lines of keys."""
    every = (*(form for secret in secrets for form in forms(secret)), *KEY_LINES)
    return [form.decode() for form in every if form in data]


def files_below(folder: Path) -> Iterator[Path]:
    """Every file to be read."""
    for path in folder.iterdir():
        if path.is_symlink():
            continue
        if path.is_dir():
            if path.name not in FOLDERS:
                yield from files_below(path)
        elif path.is_file() and not any(fnmatch(path.name, own) for own in OWN):
            is_input = path.stat().st_size > LARGE_BYTES and not path.name.endswith(WRITTEN)
            if not is_input:
                yield path


def leaks(folder: Path, secrets: Iterable[str] = SECRETS) -> list[str]:
    """Where a secret is: a line for each file and form."""
    secrets = tuple(secrets)
    return [f"{path}: {form}" for path in files_below(folder) for form in found_in(path.read_bytes(), secrets)]


@pytest.fixture(scope="session", autouse=True)
def _no_secret_is_written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """When all tests of this process are over, no secret is in any file, nor in what they printed and logged."""
    yield
    found = leaks(tmp_path_factory.getbasetemp()) + _captured
    assert not found, "secrets were written:\n" + "\n".join(found[:20])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What was captured of a test: its output, its logs, and its traceback where it failed."""
    report = yield
    for name, text in (*report.sections, ("traceback", report.longreprtext)):
        _captured.extend(f"{item.nodeid}, {name}: {form}" for form in found_in(text.encode("utf-8", "replace")))
    return report
