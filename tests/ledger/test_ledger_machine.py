"""The ledger against a dict: whatever is committed, made to-do again, killed, torn and resumed, both say the same."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from bulk.errors import RunStopped
from bulk.ledger.ledger import Ledger
from bulk.ledger.records import Point
from bulk.ledger.view import LedgerView
from bulk.model import OutcomeKind
from tests.ledger.model import GROUPS, LedgerModel
from tests.ledger.samples import STATUS, as_killed, opened


class LedgerMachine(LedgerModel):
    """A ledger in a run directory."""

    ledger: Ledger

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.lives = 0
        self.killed_at: Point | None = None
        self.copy: Path | None = None

    @initialize()
    def begin(self) -> None:
        self.run_dir = self.folder / "0"
        self.ledger = self.open()

    def open(self) -> Ledger:
        return opened(self.run_dir, reached=self.reached)

    def reached(self, point: Point) -> None:
        """A process that is killed here leaves what is on disk now."""
        if point == self.killed_at:
            self.lives += 1
            self.copy, self.killed_at = as_killed(self.run_dir, self.folder / str(self.lives)), None

    def revive(self, copy: Path, torn: bytes) -> None:
        """Go on as the next process, with what the killed one left."""
        self.ledger.close()
        with (copy / "results.jsonl").open("ab") as file:
            file.write(torn)
        self.run_dir, self.copy = copy, None
        self.ledger = self.open()

    @rule(entries=GROUPS, point=st.sampled_from([Point.APPENDED, Point.COMMITTED]), torn=st.binary(max_size=9))
    def die_while_committing(self, entries, point: Point, torn: bytes) -> None:
        group = self.group(self.to_do(entries))
        self.killed_at = point
        self.ledger.commit(group)
        self.killed_at = None
        if self.copy is None:
            self.apply(group)
        else:
            if point is Point.COMMITTED:
                self.apply(group)
            self.revive(self.copy, torn)

    @rule(entries=GROUPS, more=GROUPS)
    def commit_on_a_full_disk(self, entries, more) -> None:
        filler = [((1, index), OutcomeKind.FAILED) for index in range(1000, 1100)]
        group = self.group(self.to_do([*entries, *filler]))
        (pages,) = self.ledger._connection.execute("PRAGMA page_count").fetchone()
        self.ledger._connection.execute(f"PRAGMA max_page_count = {pages}")
        try:
            self.ledger.commit(group)
        except RunStopped:
            other = self.group(self.to_do(more))  # another group may come first, when there is space again
            self.ledger._connection.execute("PRAGMA max_page_count = 1000000")
            self.ledger.commit(other)
            self.apply(other)
            group = self.group(self.to_do([*entries, *filler]))
            self.ledger.commit(group)
        self.apply(group)
        self.ledger._connection.execute("PRAGMA max_page_count = 1000000")

    @rule(exit_code=st.sampled_from([0, 3, 130]))
    def finish_and_resume(self, exit_code: int) -> None:
        self.ledger.finish(exit_code, "", STATUS)
        self.ledger.close()
        if exit_code == 0:
            self.each_line_is_there_once()
        self.ledger = self.open()

    @rule(torn=st.binary(max_size=9))
    def die(self, torn: bytes) -> None:
        self.lives += 1
        self.revive(as_killed(self.run_dir, self.folder / str(self.lives)), torn)

    @rule(point=st.sampled_from([Point.REWRITTEN, Point.SWITCHED, Point.RENAMED, Point.ENDED]))
    def die_while_finishing(self, point: Point) -> None:
        self.killed_at = point
        self.ledger.finish(1, "", STATUS)
        self.killed_at = None
        if self.copy is not None:
            self.revive(self.copy, b"")

    def each_line_is_there_once(self) -> None:
        """The file of a run that is complete has the current lines and no others."""
        with (self.run_dir / "results.jsonl").open("rb") as file:
            assert sorted(file) == sorted(LedgerView(self.run_dir).lines())

    def teardown(self) -> None:
        self.ledger.finish(0, "", STATUS)
        self.ledger.close()
        self.each_line_is_there_once()
        shutil.rmtree(self.folder)


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(
    max_examples=16,
    stateful_step_count=12,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # each example is short; shrinking takes minutes
)
