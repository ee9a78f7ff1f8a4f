"""The ledger against a dict: whatever is committed, made to-do again, killed, torn and resumed, both say the same."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bulk.errors import RunStopped
from bulk.ledger.ledger import Ledger
from bulk.ledger.records import Intent, Point, Record
from bulk.ledger.view import LedgerView
from bulk.model import ErrorCode, OutcomeKind
from tests.ledger.samples import JOBS, STATUS, as_killed, finished, intent, opened

ITEMS = 12
KINDS = st.sampled_from(OutcomeKind)
KEYS = st.tuples(st.integers(0, 1), st.integers(0, ITEMS - 1))
GROUPS = st.lists(st.tuples(KEYS, st.none() | KINDS), max_size=8, unique_by=lambda entry: entry[0])


class LedgerMachine(RuleBasedStateMachine):
    """A ledger, and what it should say."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.lives = 0
        self.writes = 0
        self.killed_at: Point | None = None
        self.copy: Path | None = None
        self.done: dict[tuple[int, int], tuple[OutcomeKind, str]] = {}
        self.sent: dict[tuple[int, int], Intent] = {}

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

    def group(self, entries) -> list[Intent | Record]:
        made: list[Intent | Record] = []
        for (job, index), kind in entries:
            self.writes += 1
            if kind is None:
                made.append(intent(index, job=job, before={"n": self.writes}))
            else:
                made.append(Record(job, finished(index, kind, job=job, result=f"{self.writes}" * (self.writes % 200))))
        return made

    def apply(self, group) -> None:
        """What a durable group means."""
        for entry in group:
            if isinstance(entry, Intent):
                self.sent[entry.job, entry.index] = entry
                continue
            key = (entry.job, entry.finished.index)
            self.done[key] = (entry.finished.outcome, entry.finished.result)
            if entry.finished.outcome is not OutcomeKind.UNKNOWN:
                self.sent.pop(key, None)

    def to_do(self, entries):
        return [entry for entry in entries if entry[0] not in self.done]

    @rule(entries=GROUPS)
    def commit(self, entries) -> None:
        group = self.group(self.to_do(entries))
        self.ledger.commit(group)
        self.apply(group)

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

    @precondition(lambda self: self.done)
    @rule(entry=st.data())
    def end_one_twice(self, entry) -> None:
        (job, index) = entry.draw(st.sampled_from(sorted(self.done)))
        with pytest.raises(ValueError, match="already"):
            self.ledger.commit(self.group([((job, index), OutcomeKind.FAILED)]))

    @rule(kinds=st.sets(KINDS))
    def reopen(self, kinds: set[OutcomeKind]) -> None:
        again = [key for key, (kind, _) in self.done.items() if kind in kinds]
        assert self.ledger.reopen(kinds) == len(again)
        for key in again:
            del self.done[key]

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

    @invariant()
    def both_say_the_same(self) -> None:
        view = LedgerView(self.run_dir)
        lines = [(JOBS.index(line["job"]), line["index"], line["outcome"], line["result"]) for line in view.finished()]
        assert lines == [(*key, *self.done[key]) for key in sorted(self.done)]
        assert self.ledger.open_intents() == {key: sent for key, sent in self.sent.items() if key not in self.done}
        counts: dict[int, dict[str, int]] = {}
        for (job, _), (kind, _) in self.done.items():
            counts.setdefault(job, {}).setdefault(kind.value, 0)
            counts[job][kind.value] += 1
        assert self.ledger.counts() == view.counts() == counts
        assert sum(items for _, _, items in view.error_counts()) == sum(
            kind not in (OutcomeKind.SUCCEEDED, OutcomeKind.UNCHANGED) for kind, _ in self.done.values()
        )
        assert {code for _, code, _ in view.error_counts()} <= set(ErrorCode)
        for job in (0, 1):
            bits = self.ledger.done_bits(job, 1100)
            assert {index for index in range(1100) if bits[index >> 3] >> (index & 7) & 1} == {
                index for at, index in self.done if at == job
            }

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
