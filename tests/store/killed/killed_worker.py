"""A worker without an engine, for tests that kill it; its arguments: STORE RUN JOURNAL [freeze [careless]].

Its platform is a file to which each write adds a line. A lost write is settled by reading that file. With `freeze` it
stands still once, between the intent of a write and the look at its lease, until somebody wakes it up; with `careless`
it does not look.
"""

import os
import signal
import sys
import threading
from pathlib import Path

from bulk.clock import Clock
from bulk.model import OutcomeKind
from bulk.store.connections import ShardsLost
from bulk.store.holding import Holding
from bulk.store.leases import Ended, Lease, Leases, Shard
from bulk.store.ledger import StoreLedger
from tests.ledger.samples import intent, record
from tests.store.places import ENGINE, connection_to, hold

TTL_S, TAKES_S = 1.0, 0.2


class Worker:
    """Claims shards of one run until it is complete."""

    def __init__(self, text: str, run: int, journal: Path, *, is_to_freeze: bool, is_careless: bool) -> None:
        self.run, self.journal, self.is_to_freeze, self.is_careless = run, journal, is_to_freeze, is_careless
        self.leases = Leases(connection_to(text), f"worker {os.getpid()}", ENGINE, Clock().elapsed, ttl_s=TTL_S)
        self.holding = Holding()
        self.ledger = StoreLedger(connection_to(text), run, self.leases.worker, journal.parent, self.holding)
        self.certain_until: dict[Lease, float] = {}
        threading.Thread(target=self.renew, daemon=True).start()

    def renew(self) -> None:
        """Prolong what is held, four times while a lease is good."""
        pause = threading.Event()
        while not pause.wait(TTL_S / 4):
            held = list(self.certain_until)
            renewed = self.leases.renew(held)
            for lease in held:
                if lease in self.certain_until:
                    lost = lease in renewed.lost
                    self.certain_until[lease] = float("-inf") if lost else renewed.asked_at + TTL_S

    def may_send(self, lease: Lease) -> bool:
        """Whether what is sent now is through while nobody else can have the shard."""
        return self.leases.now() + TAKES_S < self.certain_until[lease]

    def work(self) -> None:
        """Go on until nothing of the run is left."""
        pause = threading.Event()
        while True:
            asked_at, shards = self.leases.claim(self.run, 2)
            held = [hold(self.holding, shard) for shard in shards]
            self.certain_until.update(dict.fromkeys(held, asked_at + TTL_S))
            self.ledger.took([shard.no for shard in shards])
            for shard, lease in zip(shards, held, strict=True):
                self.do(shard, lease)
            if not shards:
                if self.leases.renew([Lease(self.run, 0, 0)]).states[self.run][0] == "complete":
                    return
                pause.wait(0.05)

    def do(self, shard: Shard, lease: Lease) -> None:
        """Do what of a shard is left, as long as it is this worker's."""
        try:
            doubts = self.ledger.open_intents([shard.no])
            bits = self.ledger.done_bits(shard.job_group, shard.behind)
            for index in range(shard.first, shard.behind):
                if bits[index >> 3] >> (index & 7) & 1:
                    continue
                if (shard.job_group, index) in doubts and str(index) in self.journal.read_text().splitlines():
                    self.ledger.commit([record(index, OutcomeKind.UNCHANGED, job=shard.job_group)])
                elif not self.write(shard, lease, index):
                    break
            else:
                assert self.leases.finish(lease) is not Ended.WORK_LEFT
        except ShardsLost:
            pass  # somebody else settles what is open
        del self.certain_until[lease]
        self.holding.let_go(shard.no)

    def write(self, shard: Shard, lease: Lease, index: int) -> bool:
        """Send one write, unless the lease may be over before it is through."""
        self.ledger.commit([intent(index, job=shard.job_group)])
        if self.is_to_freeze:
            self.is_to_freeze = False
            os.kill(os.getpid(), signal.SIGSTOP)
        if not self.is_careless and not self.may_send(lease):
            return False
        with self.journal.open("a") as file:
            file.write(f"{index}\n")
        self.ledger.commit([record(index, job=shard.job_group)])
        return True


if __name__ == "__main__":
    _, store, run, journal, *options = sys.argv
    Worker(store, int(run), Path(journal), is_to_freeze="freeze" in options, is_careless="careless" in options).work()
