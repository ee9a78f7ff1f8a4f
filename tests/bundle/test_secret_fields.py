"""Secrets of items: where they are, what is refused, and that no message shows one."""

import contextlib
import os
import sqlite3

import msgspec
import pytest

from bulk.bundle.secret_fields import MOST_BYTES, SecretPlaces, load_secrets
from bulk.capabilities import FileError
from bulk_jobs.webhook_updates import UpdateWebhookConfig
from bulk_jobs.webhooks import CreateWebhook
from tests.manifest.making import a_job, check_in

CREATE, CONFIGURE = CreateWebhook(), UpdateWebhookConfig()
SECRET = "s3cret-of-the-hook"
ENVIRON = {"HOOK_SECRET": SECRET, "EMPTY": "", "MASK": "********"}


def item(**config):
    """A webhook to be made."""
    fields = {"org": "acme-eng", "config": {"url": "https://hooks.example.com", **config}}
    return msgspec.convert(fields, CREATE.Item)


def loaded(folder, given):
    """The item with its secrets, and what was remembered."""
    remembered: list[str] = []
    return load_secrets(SecretPlaces(folder, ENVIRON), CREATE, given, remembered.append), remembered


@pytest.fixture
def private(tmp_path):
    """Makes a file that is closed to others."""

    def make(content, mode=0o600):
        path = tmp_path / "secret"
        path.write_bytes(content)
        path.chmod(mode)
        return path

    return make


def test_from_the_environment(tmp_path):
    """`env:NAME` becomes the variable's value; the given item stays as it was."""
    given = item(secret="env:HOOK_SECRET", password="env:HOOK_SECRET", username="someone")
    found, remembered = loaded(tmp_path, given)
    assert (found.config.secret, found.config.password) == (SECRET, SECRET)
    assert found.config.username == "someone"
    assert remembered == [SECRET, SECRET]
    assert given.config.secret == "env:HOOK_SECRET"


@pytest.mark.parametrize("content", [b"%s\n", b"%s\r\n", b"%s"])
def test_from_a_file(tmp_path, private, content):
    """`file:PATH` is seen from the manifest's folder; a line end after the secret is not part of it."""
    private(content % SECRET.encode())
    for place in ("file:secret", f"file:{tmp_path}/secret"):
        assert loaded(tmp_path, item(secret=place))[0].config.secret == SECRET


def test_itself(tmp_path):
    """A secret that stands in an items file itself is remembered too."""
    found, remembered = loaded(tmp_path, item(secret=SECRET))
    assert (found.config.secret, remembered) == (SECRET, [SECRET])


@pytest.mark.parametrize("operation", [CREATE, CONFIGURE])
def test_what_python_shows(operation):
    """An item that holds a secret does not show it."""
    config = {"url": "https://hooks.example.com", "secret": SECRET}
    fields = {"config": config} if operation is CREATE else {**config, "hook_id": 7}
    given = msgspec.convert({"org": "acme-eng", **fields}, operation.Item)
    assert SECRET not in f"{given} {given!r}"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("env:hook", ""),
        ("file:sub/hook", ""),
        ("env:missing", "can't be read"),
        ("env:../hook", "is not a name below the folder"),
        ("file:../outside", "is not a name below the folder"),
        ("file:sub/../../outside", "is not a name below the folder"),
        ("file:/etc/hostname", "is not a name below the folder"),
        ("file:~/hook", "can't be read"),
        ("env:", "is not a name below the folder"),
    ],
)
def test_what_somebody_else_wrote_reaches_one_folder_alone(tmp_path, monkeypatch, given, words):
    """On a worker, `env:NAME` and `file:NAME` are files of a folder that it was given, and nothing else is."""
    monkeypatch.setenv("hook", "of the worker's own environment")
    folder = tmp_path / "secrets"
    (folder / "sub").mkdir(parents=True)
    for place in (folder / "hook", folder / "sub" / "hook", tmp_path / "outside", tmp_path / "hook"):
        place.write_text(SECRET if folder in place.parents else "another's")
        place.chmod(0o600)
    with pytest.raises(FileError, match=words) if words else contextlib.nullcontext():
        made = load_secrets(SecretPlaces(folder, None), CREATE, item(secret=given), lambda _: None)
        assert msgspec.to_builtins(made)["config"]["secret"] == SECRET


def test_none(tmp_path):
    """Where none is given nothing changes, and a field of the item itself may be one."""
    given = item()
    assert loaded(tmp_path, given) == (given, [])
    plain = msgspec.convert({"org": "acme-eng", "hook_id": 7, "secret": "env:HOOK_SECRET"}, CONFIGURE.Item)
    made = load_secrets(SecretPlaces(tmp_path, ENVIRON), CONFIGURE, plain, lambda _: None)
    assert msgspec.to_builtins(made)["secret"] == SECRET


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("env:MISSING", "MISSING is not set"),
        ("env:EMPTY", "EMPTY is not set"),
        ("file:missing", "can't be read"),
        ("file:.", "not a regular file"),
        ("file:a\0b", "not a file name"),
        ("env:MASK", "mask"),
    ],
)
def test_places_without_one(tmp_path, place, words):
    """A variable that is not set, a file that is none, or the platform's own mask: the field is named, and why."""
    with pytest.raises(FileError, match=words) as refused:
        loaded(tmp_path, item(secret=place))
    assert str(refused.value).startswith("config.secret: ")


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (b"x", 0o644, "chmod 600"),
        (b"x", 0o620, "chmod 600"),
        (b"\n", 0o600, "empty"),
        (b"x" * (MOST_BYTES + 1), 0o600, "more than"),
        (b"abc\xff", 0o600, "UTF-8"),
    ],
)
def test_files_that_are_refused(tmp_path, private, content, mode, words):
    """Open to others, empty, too long, no text."""
    private(content, mode)
    with pytest.raises(FileError, match=words) as refused:
        loaded(tmp_path, item(secret="file:secret"))
    assert content.decode(errors="replace").strip() not in str(refused.value) or content in (b"x", b"\n")


def test_a_pipe_is_not_waited_for(tmp_path):
    """What is not a regular file is refused at once."""
    os.mkfifo(tmp_path / "secret", 0o600)
    with pytest.raises(FileError, match="not a regular file"):
        loaded(tmp_path, item(secret="file:secret"))


def test_the_index_says_nothing_about_a_secret(tmp_path):
    """Not even a hash that guesses could be compared with; items that ask for the same are found all the same."""
    fields = {"org": "acme-eng", "config": {"url": "https://hooks.example.com", "secret": "hunter2"}}
    kept = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        checked, workspace = check_in(tmp_path / name, a_job(CREATE, [fields, fields]))
        assert len(checked.notes) == 1
        with contextlib.closing(sqlite3.connect(workspace / "index.db")) as database:
            kept.append(database.execute("SELECT payload FROM entries").fetchall())
        assert b"hunter2" not in (workspace / "index.db").read_bytes()
    assert kept[0] != kept[1]
