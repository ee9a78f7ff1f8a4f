"""Secrets that tests use, and the search for them in every byte that the suite writes.

A token or a hook secret belongs into memory and onto the wire. When a session ends, everything below its temporary
folder is read, free pages and logs of databases included; simulations, which keep their files in memory, are read when
each ends; so is what pytest captured of each test: output, logs, tracebacks. Left out is what a test writes as the user
who owns the secrets (`OWN`), and the state of a sandbox, which signs with hook secrets (`FOLDERS`).

`tests/conftest.py` takes the fixture and the hook from here. Source: failures.md row 62.
"""

import base64
import html
import json
import urllib.parse
from collections.abc import Generator, Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

TOKEN = "sbx-site-admin"
"""Nearly every run uses this one."""
HOOK_SECRET = "a-s3cret-of-many-words"
STORE_PASSWORD = "hunter2-of-the-store"
SECRETS = (TOKEN, HOOK_SECRET, STORE_PASSWORD, "canary+7f3a/9c51d2e84b0", "told-to-the-receiver")

OWN = ("token.txt", "open.txt", "secret", "*.items.jsonl", "*.py", "*.pyc")
"""Names of files that hold a secret because a test wrote it there, for the engine to read."""
FOLDERS = frozenset(("state", "platform", "items", "jobs"))
"""Folders of sandboxes, of items that hold a secret because it is written so, and of copies of our sources."""
LARGE_BYTES = 16 * 1024 * 1024
WRITTEN = (".db", ".db-wal", "results.jsonl")
"""Larger files are read only if the product writes them: the others are what tests of size feed it."""

_captured: list[str] = []


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


def found_in(data: bytes, secrets: Iterable[str] = SECRETS) -> list[str]:
    """The forms of a secret that `data` holds."""
    return [form.decode() for secret in secrets for form in forms(secret) if form in data]


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
