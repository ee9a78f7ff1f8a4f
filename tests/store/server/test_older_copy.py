"""An older copy of a store takes the place of the store: who has recorded more than the copy has says so."""

import psycopg
import pytest

from bulk.model import OutcomeKind
from bulk.store.ledger import StoreLedger, StoreWentBack
from tests.ledger.samples import STATUS, record
from tests.store.places import StorePlace, connection_to


@pytest.fixture
def place(store_text, tmp_path):
    """A run with a shard for each of its jobs."""
    made = StorePlace(store_text, tmp_path)
    yield made
    made.close()


class Copy:
    """A copy of a store, as it stood when this was made; nobody may use the store meanwhile."""

    def __init__(self, text: str, postgres: str) -> None:
        self._name, self._postgres = text.rpartition("/")[2], postgres
        self._do(self._hang_up(), f"CREATE DATABASE {self._name}_copy TEMPLATE {self._name}")

    def restore(self) -> None:
        """Put the copy in the store's place."""
        moved = (f"ALTER DATABASE {self._name} RENAME TO {self._name}_gone",)
        self._do(self._hang_up(), *moved, f"ALTER DATABASE {self._name}_copy RENAME TO {self._name}")

    def _hang_up(self) -> str:
        return f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{self._name}'"

    def _do(self, *statements: str) -> None:
        with psycopg.connect(self._postgres, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


@pytest.mark.parametrize("calls", ["commit", "finish"])
def test_a_worker_notices_that_its_records_are_gone(place, postgres, calls):
    """Nothing more is recorded then, as nobody knows what else was sent; it says so again whenever it is asked
    (failures.md row 97)."""
    ledger = place.opened()
    ledger.commit([record(0)])
    copy = Copy(place.text, postgres)
    ledger.commit([record(1)])
    copy.restore()
    for _ in range(2):
        with pytest.raises(StoreWentBack, match="older copy"):
            ledger.commit([record(2)]) if calls == "commit" else ledger.finish(0, "", STATUS)
    assert place.sql("SELECT idx FROM outcome") == [(0,)]


def test_a_worker_that_the_copy_does_not_know_notices_it(place, postgres):
    """It has come after the copy was made."""
    ledger = place.opened()
    copy = Copy(place.text, postgres)
    with connection_to(place.text) as store:
        other = StoreLedger(store, place.run, ledger.worker + 1, place.folder, ledger.holding)
        other.commit([record(0)])
        copy.restore()
        with pytest.raises(StoreWentBack):
            other.commit([record(1)])


def test_a_copy_that_lacks_nothing_is_as_good_as_the_store(place, postgres):
    """What this worker has recorded is there, also a group of which the answer was lost."""
    ledger = place.opened()
    ledger.commit([record(0)])
    copy = Copy(place.text, postgres)
    copy.restore()
    ledger.commit([record(1, OutcomeKind.UNCHANGED)])
    ledger.commit([], STATUS)
    assert ledger.counts() == {0: {"succeeded": 1, "unchanged": 1}}
