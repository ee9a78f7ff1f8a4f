"""`bulk run --workers N`: workers and a PostgreSQL of this machine for one run; any of it may be killed."""

import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import psycopg
import pytest

from bulk.cluster.local import local_workers
from bulk.cluster.local.local_workers import LocalWorkers, Told
from bulk.errors import RunStopped
from bulk.store.address import StoreAddress
from bulk.store.connections import StoreConnection
from bulk.store.server.shared_server import looked_at
from tests.cluster.cluster import Cluster, cluster
from tests.crash.work import Work, nothing_lost_or_doubled, nothing_misreported, saved_files_are_whole
from tests.e2e.support.platform import Process, wait_for
from tests.store.places import comes_true

WORK = Work(files=70, organizations=10, snapshots=10, refused=3)
FAULTS = ("--fault", "drop-after=0.1", "--fault", "error-after=0.05", "--latency", "60")
RUN = ("run", "manifest.yaml", "--workers", "2", "--run-dir", "run", "--yes", "--progress", "none")


@contextmanager
def here(folder: Path) -> Iterator[Cluster]:
    """A sandbox and a manifest; no store, no worker."""
    with cluster("", folder, WORK, *FAULTS, workers=0) as made:
        yield made


def processes(made: Cluster) -> dict[str, list[int]]:
    """What lives for the run beside the command: its workers, the keeper of its server, and the server."""
    listed = subprocess.run(["ps", "-ewwo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    beside = made.home.folder / "run.store"
    kept = beside / "kept.json"
    data = json.loads(kept.read_text()) if kept.is_file() else "none"
    found: dict[str, list[int]] = {"workers": [], "keeper": [], "server": []}
    for line in listed.splitlines():
        pid, _, arguments = line.strip().partition(" ")
        if f"shared_server {beside} " in arguments:
            found["keeper"].append(int(pid))
        elif f"-D {data} " in arguments:
            found["server"].append(int(pid))
        elif "local_worker" in arguments and _environment_of(int(pid), made):
            found["workers"].append(int(pid))
    return found


def _environment_of(pid: int, made: Cluster) -> bool:
    shown = subprocess.run(["ps", "ewwww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return f"XDG_CACHE_HOME={made.home.folder / 'cache'}" in shown.stdout


def kill(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def ended(command: Process) -> tuple[int | None, str]:
    _, err = command.communicate(timeout=240.0)
    assert "Traceback" not in err, err
    return command.returncode, err


def test_whatever_is_killed_the_same_command_goes_on(tmp_path: Path) -> None:
    """A worker is killed, then all processes of the run at once, then Ctrl-C: every effect happens once, the results
    come home, and nothing is left of server and workers."""
    with here(tmp_path) as made:
        with made.home.running(*RUN) as command:
            made.wait_for_effects(8)
            kill(processes(made)["workers"][0])
            made.wait_for_effects(22)
            shown = made.home.run("status", "run", "--store", "run.store")
            assert "run running" in shown.out, shown.err
            alive = processes(made)
            assert [len(alive[kind]) for kind in ("workers", "keeper", "server")] == [2, 1, 1], alive
            kill(command.pid, *alive["workers"], *alive["keeper"], *alive["server"])
            assert "was ended by signal 9; another one takes its place" in (ended(command)[1])
        with made.home.running(*RUN) as command:
            made.wait_for_effects(42)
            wait_for(lambda: len(processes(made)["workers"]) == 2, command)  # what was killed may have had 42 already
            command.send_signal(signal.SIGINT)
            code, err = ended(command)
            assert code == 130, err
            assert err.splitlines()[-1] == "bulk " + " ".join(RUN)
        with made.home.running(*RUN) as command:
            code, err = ended(command)
            assert code in (1, 6), err
        nothing_lost_or_doubled(WORK, made.sandbox.journal(), made.sandbox.folder / "state")
        nothing_misreported(WORK, made.home, made.sandbox)
        saved_files_are_whole(WORK, made.home.folder / "run")
        assert not any(processes(made).values())
        assert not (made.home.folder / "run.store").exists()


def test_the_same_command_has_a_duration_of_its_own(tmp_path: Path) -> None:
    """A run that was killed, and goes on after its `max_duration`, is not stopped for that (failures.md row 101)."""
    command_line = (*RUN, "--max-duration", "1h")
    with here(tmp_path) as made:
        with made.home.running(*command_line) as command:
            made.wait_for_effects(4)
            kill(command.pid)
            ended(command)
        assert comes_true(lambda: not any(processes(made).values()))
        with looked_at(made.home.folder / "run.store") as place:
            assert place is not None
            with psycopg.connect(place.store()) as admin:
                admin.execute("UPDATE bulk.run SET began_at = began_at - interval '2 hours'")
        ran = made.home.run(*command_line)
        assert ran.exit_code in (1, 6), ran.err


def test_without_a_database_nothing_begins(tmp_path: Path) -> None:
    """Exit 2 before anything is sent, and nothing is left."""
    with here(tmp_path) as made:
        made.home.variables["BULK_POSTGRES_BIN"] = str(tmp_path)
        ran = made.home.run(*RUN)
        assert ran.exit_code == 2
        assert "BULK_POSTGRES_BIN" in ran.err
        both = made.home.run(*RUN, "--store", "service=x")
        assert (both.exit_code, "give one of them" in both.err) == (2, True)
        assert not (made.home.folder / "run.store").exists()
        assert made.sandbox.journal() == []


def test_a_worker_that_does_not_end_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of an earlier command that stands still: the message says what holds it up, and nothing is started; a signal
    meanwhile ends the wait."""
    monkeypatch.setattr(local_workers, "OTHERS_S", 0.3)
    lock, told = tmp_path / "workers", [Told(store="", base_url="", credentials={}, folder="", secrets="")]
    with open(lock, "ab") as held, StoreConnection(StoreAddress("", ""), "tests") as store:
        fcntl.flock(held, fcntl.LOCK_SH)
        workers = LocalWorkers(["/nowhere"], told, store, lock, lambda _: None)
        with pytest.raises(RunStopped, match=f"has not ended within 0 s, which holds {lock}"):
            anyio.run(workers.run)
        workers.end()
        anyio.run(workers.run)
        assert store.made == 0
