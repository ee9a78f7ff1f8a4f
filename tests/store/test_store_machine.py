"""The ledger of a store against a dict: taken over, cut off, fenced, its server restarted; both say the same."""

import shutil
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

from bulk.errors import RunStopped
from bulk.model import OutcomeKind
from bulk.store import schema
from bulk.store.connections import ShardsLost
from bulk.store.ledger import StoreLedger
from bulk.store.server.private_server import Server
from tests.ledger.model import GROUPS, LedgerModel
from tests.ledger.samples import STATUS, record
from tests.store.places import EVERYTHING, StorePlace, connection_to, ranges
from tests.store.proxy import Cut, link_to

SHARDS = ranges(((0, 0, 5), (0, 5, EVERYTHING), (1, 0, EVERYTHING)))
CUTS = st.sampled_from([Cut.REQUEST, Cut.ANSWER])


class StoreMachine(LedgerModel):
    """A worker's ledger; `store`: the address of the store."""

    store: str
    ledger: StoreLedger

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.place = StorePlace(self.store, self.folder, shards=SHARDS)
        self.links = link_to(self.store)
        self.link, self.text = self.links.__enter__()
        self.ledger = self.open()

    def open(self) -> StoreLedger:
        """Another worker takes everything over, and reaches the store through a link that can be cut."""
        direct = self.place.opened()
        made = StoreLedger(connection_to(self.text), self.place.run, direct.worker, self.folder, direct.holding)
        self.place.in_use.append(made)
        return made

    @rule(entries=GROUPS, more=GROUPS, cut=CUTS, is_between=st.booleans())
    def lose_the_connection(self, entries, more, cut: Cut, is_between: bool) -> None:
        group = self.group(self.to_do(entries))
        if not group:
            return
        self.link.next_cut = cut
        with pytest.raises(RunStopped):
            self.ledger.commit(group)
        if is_between:  # what other items have to say may come first
            mine = {key for key, _ in entries}
            other = self.group(self.to_do([entry for entry in more if entry[0] not in mine]))
            self.ledger.commit(other)
            self.apply(other)
        self.ledger.commit(group)
        self.apply(group)

    @rule(entries=GROUPS)
    def die(self, entries) -> None:
        """The one before goes on after another worker has taken everything over."""
        zombie, self.ledger = self.ledger, self.open()
        group = self.group(self.to_do(entries))
        if group:
            with pytest.raises(ShardsLost):
                zombie.commit(group)
        zombie.close()

    @rule(entries=GROUPS, shard=st.sampled_from(SHARDS))
    def lose_one_shard(self, entries, shard) -> None:
        """Somebody else had one of the shards for a while: what touches it is refused as a whole."""
        self.place.opened(shard.no)
        group = self.group(self.to_do(entries))
        held = self.ledger.holding
        touched = {held.shard_of(*key) for key, _ in self.to_do(entries)}
        if shard.no in touched:
            with pytest.raises(ShardsLost):
                self.ledger.commit(group)
        else:
            self.ledger.commit(group)
            self.apply(group)
        self.ledger = self.open()

    @rule(exit_code=st.sampled_from([0, 3, 130]))
    def finish_and_resume(self, exit_code: int) -> None:
        self.ledger.finish(exit_code, "", STATUS)
        self.ledger.close()
        self.ledger = self.open()

    def teardown(self) -> None:
        self.place.close()
        self.links.__exit__(None, None, None)
        shutil.rmtree(self.folder)


def run(machine: type[StoreMachine], store: str, examples: int, steps: int) -> None:
    """Try it with a store."""
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )
    run_state_machine_as_test(type("OfThisStore", (machine,), {"store": store}), settings=chosen)


def test_the_ledger_of_a_store_keeps_what_it_promises(shared_store):
    """Whatever is cut, fenced and taken over, what was kept is there once, and nothing else."""
    run(StoreMachine, shared_store, 8, 8)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_ledger_of_a_store_keeps_what_it_promises_for_long(shared_store):
    """The same, two hundred times."""
    run(StoreMachine, shared_store, 200, 20)


@pytest.fixture
def own_server():
    """A server that may be killed; it keeps its promises to the disk."""
    server = Server()
    server.start()
    yield server
    server.remove()


@pytest.mark.parametrize(
    "how", [signal.SIGINT, pytest.param(signal.SIGQUIT, marks=pytest.mark.soak)], ids=["restarted", "crashed"]
)
def test_a_server_may_start_anew_between_any_two_calls(own_server, tmp_path, how):
    """Each call after a restart finds what was kept; one that finds no server says so (failures.md row 81)."""
    text = own_server.store()
    with connection_to(text) as store:
        schema.init(store)
    place = StorePlace(text, tmp_path)
    leases = place.leases(ttl_s=600.0)
    ledger = place.opened(leases=leases)
    calls: list[Callable[[], object]] = [
        lambda: ledger.commit([record(1), record(2)], STATUS),
        ledger.open_intents,
        lambda: ledger.done_bits(0, 9),
        ledger.counts,
        lambda: list(ledger.view().finished()),
        lambda: ledger.reopen({OutcomeKind.FAILED}),
        leases.claimable,
        lambda: ledger.finish(3, "", STATUS),
    ]
    for call in calls:
        own_server.stop(how)
        with pytest.raises(RunStopped, match=r"can't be reached|terminat|closed|shutting"):
            call()
        own_server.start()
        call()
    assert ledger.counts() == {0: {"succeeded": 2}}
    place.close()
