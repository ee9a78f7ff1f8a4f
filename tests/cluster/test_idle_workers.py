"""A worker that has nothing to do is known to be there, and one whose process has gone is known not to be."""

import fcntl
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bulk.cli.app import main
from tests.e2e.support.platform import Home
from tests.serve.conftest import Asker, asking
from tests.store.places import comes_true
from tests.store.postgres import new_store

PAST = "UPDATE bulk.worker SET seen_at = clock_timestamp() - interval '5 minutes'"


@pytest.fixture(scope="module")
def store(postgres: str) -> str:
    """One without runs."""
    return new_store(postgres)


def worker_of(asker: Asker) -> dict[str, Any]:
    """The only worker, as the page has it; nothing before it has come."""
    found = asker.get("/cluster").data["workers"]
    return dict(found[0]) if found else {"state": ""}


def make_old(store: str) -> None:
    """As if nobody had been heard of for minutes."""
    with psycopg.connect(store, autocommit=True) as connection:
        connection.execute(PAST)


def is_heard(store: str) -> bool:
    """Whether somebody has been heard of within a minute."""
    with psycopg.connect(store, autocommit=True) as connection:
        query = "SELECT bool_or(seen_at > clock_timestamp() - interval '1 minute') FROM bulk.worker"
        return bool((connection.execute(query).fetchone() or (False,))[0])


def test_a_worker_without_work_shows_that_it_lives(store: str, tmp_path: Path) -> None:
    """It tells the store by itself that it is there: it is `idle`; killed, it is `gone` once it was silent for long."""
    with asking(tmp_path, cache=tmp_path / "cache", store=store) as asker:
        arguments = ("worker", "--store", store, "--base-url", "http://127.0.0.1:9/api/v3")
        with Home(tmp_path).running(*arguments) as process:
            assert comes_true(lambda: worker_of(asker)["state"] == "idle")
            make_old(store)
            assert comes_true(lambda: is_heard(store)), "it says nothing by itself"
            assert comes_true(lambda: worker_of(asker)["state"] == "idle")
            process.kill()
            process.wait(60)
        make_old(store)
        assert comes_true(lambda: worker_of(asker)["state"] == "gone")


@pytest.mark.parametrize("name", ["mine", "file", "file/below", "project"])
def test_each_worker_has_a_folder_of_its_own(
    store: str, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose folder is another worker's, holds something else, or can't be, ends before it works (exit 5)."""
    monkeypatch.setenv("BULK_TOKEN", "token")
    (tmp_path / "file").touch()
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "manifest.yaml").touch()
    (tmp_path / "mine").mkdir()
    folder = str(tmp_path / name)
    with open(tmp_path / "mine" / "worker.lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert main(["worker", "--store", store, "--base-url", "http://127.0.0.1:9/api/v3", "--dir", folder]) == 5
    shown = capsys.readouterr().err
    assert {
        "mine": f"--dir: another worker has {folder}; give each",
        "project": f"--dir: {folder} is not a worker's: it holds 'manifest.yaml' and no worker.lock; name an empty or",
    }.get(name, f"--dir: {folder}: ") in shown
    assert "waits for runs" not in shown


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--lease", "nan", "nan is not a number"),
        ("--lease", "inf", "not in the range 2.0<=x<=3600.0"),
        ("--lease", "1", "not in the range"),
        ("--base-url", "http://code.example.com/api/v3", "use https:; no worker sends one so"),
    ],
)
def test_what_a_worker_can_not_be_told(
    store: str, option: str, value: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lease without an end would never be taken over; a way out that is none is not named (exit 2)."""
    where = store if option == "--base-url" else "postgresql://127.0.0.1:1/bulk"  # there no worker could begin
    assert main(["worker", "--store", where, "--base-url", "http://127.0.0.1:9/api/v3", option, value]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--credential", "env:MISSING"), "'default' (env:MISSING): the environment variable MISSING is not set"),
        ((), "'default' (env:BULK_TOKEN): the environment variable BULK_TOKEN is not set"),
        (("--credential", "admin=file:none"), "'admin' (file): "),
        (("--credentials", "app.yaml"), "'fleet' (env:APP_KEY): the environment variable APP_KEY is not set"),
        (("--credentials", "user.yaml"), "'alice' (env:ALICE): the environment variable ALICE is not set"),
    ],
)
def test_a_worker_without_its_token_says_so(
    store: str,
    tmp_path: Path,
    given: tuple[str, ...],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would leave every run to others and say nothing: it ends before it begins (exit 2)."""
    monkeypatch.chdir(tmp_path)
    for name in ("BULK_TOKEN", "MISSING", "APP_KEY", "ALICE"):
        monkeypatch.delenv(name, raising=False)
    Path("app.yaml").write_text("fleet: {app: {client_id: Iv1.a, private_key: 'env:APP_KEY'}}\n")
    Path("user.yaml").write_text("readers: {pool: [alice]}\nalice: {token: 'env:ALICE', identity: alice}\n")
    assert main(["worker", "--store", store, "--base-url", "http://127.0.0.1:9/api/v3", *given]) == 2
    shown = capsys.readouterr().err
    assert words in shown
    assert "Traceback" not in shown
