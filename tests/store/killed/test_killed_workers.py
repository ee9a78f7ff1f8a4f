"""Real workers are killed, and stand still beyond their leases: each effect happens once, each item ends once."""

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from tests.ledger.samples import ROOT
from tests.store.places import StorePlace, comes_true, ranges

SHARD_ITEMS = 6


class Crew:
    """Workers of one run, each a process of its own."""

    def __init__(self, place: StorePlace, folder: Path) -> None:
        self.place, self.journal = place, folder / "journal"
        self.journal.touch()
        self.workers: list[subprocess.Popen[bytes]] = []

    def hire(self, *options: str) -> subprocess.Popen[bytes]:
        """One more."""
        command = [sys.executable, "-m", "tests.store.killed.killed_worker", self.place.text, str(self.place.run)]
        worker = subprocess.Popen([*command, str(self.journal), *options], cwd=ROOT)
        self.workers.append(worker)
        return worker

    def effects(self) -> list[str]:
        """What the platform was asked for so far."""
        return self.journal.read_text().splitlines()

    def has_done(self, effects: int) -> bool:
        """Whether there are `effects` effects."""
        return len(self.effects()) >= effects

    def dismiss(self) -> None:
        """Whoever is left is killed."""
        for worker in self.workers:
            with contextlib.suppress(ProcessLookupError):
                worker.kill()
            worker.wait()

    def is_complete(self) -> bool:
        """Whether the run is."""
        return self.place.sql("SELECT state FROM run WHERE id = %s", self.place.run) == [("complete",)]

    def each_item_ended_once(self, items: int) -> None:
        """One effect and one outcome for each, and the sums are right."""
        assert comes_true(self.is_complete, 60)
        assert Counter(self.effects()) == Counter(str(index) for index in range(items))
        assert self.place.sql("SELECT count(*) FROM outcome WHERE run = %s", self.place.run) == [(items,)]
        assert self.place.sql("SELECT sum(items) FROM count WHERE run = %s", self.place.run) == [(items,)]
        assert self.place.sql("SELECT count(*) FROM intent WHERE run = %s", self.place.run) == [(0,)]


@pytest.fixture
def crew(shared_store, tmp_path, request):
    """Workers to come, of a run with the number of items that the test names."""
    items = request.param
    shards = ranges([(0, first, first + SHARD_ITEMS) for first in range(0, items, SHARD_ITEMS)])
    place = StorePlace(shared_store, tmp_path, shards=shards)
    made = Crew(place, tmp_path)
    yield made
    made.dismiss()
    place.close()


def kill_while_they_work(crew: Crew, items: int, kills: int) -> None:
    """Kill workers one after the other, each at some effect, and hire another one."""
    chance = random.Random(7)
    for _ in range(2):
        crew.hire()
    for kill in range(1, kills + 1):
        due = items * kill // (kills + 1)
        assert comes_true(partial(crew.has_done, due), 60)
        victim = chance.choice([worker for worker in crew.workers if worker.poll() is None])
        victim.kill()
        crew.hire()
    crew.each_item_ended_once(items)
    assert max(row[0] for row in crew.place.sql("SELECT epoch FROM shard WHERE run = %s", crew.place.run)) > 1


@pytest.mark.parametrize("crew", [60], indirect=True)
def test_workers_are_killed(crew):
    """Whoever takes over settles what was in doubt: three of five workers die (failures.md row 84)."""
    kill_while_they_work(crew, 60, 3)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("crew", [6000], indirect=True)
def test_workers_are_killed_a_hundred_times(crew):
    """The same for a hundred of them."""
    kill_while_they_work(crew, 6000, 100)


def a_worker_stands_still(crew: Crew, *options: str) -> None:
    """It wakes up with an open intent when its shard is another's, and all is done."""
    sleeper = crew.hire("freeze", *options)
    assert comes_true(lambda: os.waitpid(sleeper.pid, os.WUNTRACED | os.WNOHANG)[0] == sleeper.pid)
    crew.hire()
    assert comes_true(crew.is_complete, 30)
    before = crew.effects()
    sleeper.send_signal(signal.SIGCONT)
    assert comes_true(lambda: sleeper.poll() is not None)
    assert sleeper.returncode == 0
    assert crew.effects() == before, "it has sent"


@pytest.mark.parametrize("crew", [12], indirect=True)
def test_a_worker_that_stood_still_sends_nothing(crew):
    """After more than its lease it looks at the deadline and sends nothing (failures.md row 83)."""
    a_worker_stands_still(crew)
    crew.each_item_ended_once(12)


@pytest.mark.parametrize("crew", [6], indirect=True)
def test_without_a_deadline_it_would_send(crew):
    """A worker that does not look at the deadline sends what the other has settled already (planted bug)."""
    with pytest.raises(AssertionError, match="it has sent"):
        a_worker_stands_still(crew, "careless")
