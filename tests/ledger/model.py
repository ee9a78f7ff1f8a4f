"""A ledger against a dict: whatever is committed, made to-do again and taken over, both say the same."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bulk.ledger.protocol import RunLedger
from bulk.ledger.records import Entry, Intent, Record, Withdrawn
from bulk.model import ErrorCode, OutcomeKind
from tests.ledger.samples import JOBS, finished, intent

ITEMS = 12
KINDS = st.sampled_from(OutcomeKind)
TAKEN_BACK = "its write did not leave"
KEYS = st.tuples(st.integers(0, 1), st.integers(0, ITEMS - 1))
GROUPS = st.lists(
    st.tuples(KEYS, st.none() | st.just(TAKEN_BACK) | KINDS), max_size=8, unique_by=lambda entry: entry[0]
)


class LedgerModel(RuleBasedStateMachine):
    """What a ledger should say, whoever keeps it; who derives from this opens `ledger`."""

    ledger: RunLedger

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0
        self.done: dict[tuple[int, int], tuple[OutcomeKind, str]] = {}
        self.sent: dict[tuple[int, int], Intent] = {}

    def group(self, entries) -> list[Entry]:
        made: list[Entry] = []
        for (job, index), kind in entries:
            self.writes += 1
            if kind == TAKEN_BACK:
                made.append(Withdrawn(job, index))
            elif kind is None:
                made.append(intent(index, job=job, before={"n": self.writes}))
            else:
                made.append(Record(job, finished(index, kind, job=job, result=f"{self.writes}" * (self.writes % 200))))
        return made

    def apply(self, group) -> None:
        """What a durable group means."""
        for entry in group:
            if isinstance(entry, Withdrawn):
                self.sent.pop((entry.job, entry.index), None)
                continue
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

    @invariant()
    def both_say_the_same(self) -> None:
        view = self.ledger.view()
        lines = [(JOBS.index(line["job"]), line["index"], line["outcome"], line["result"]) for line in view.finished()]
        assert lines == [(*key, *self.done[key]) for key in sorted(self.done)]
        assert self.ledger.open_intents() == {key: sent for key, sent in self.sent.items() if key not in self.done}
        counts: dict[int, dict[str, int]] = {}
        for (job, _), (kind, _) in self.done.items():
            counts.setdefault(job, {}).setdefault(kind.value, 0)
            counts[job][kind.value] += 1
        assert self.ledger.counts() == counts
        assert sum(items for _, _, items in view.error_counts()) == sum(
            kind not in (OutcomeKind.SUCCEEDED, OutcomeKind.UNCHANGED) for kind, _ in self.done.values()
        )
        assert {code for _, code, _ in view.error_counts()} <= set(ErrorCode)
        for job in (0, 1):
            bits = self.ledger.done_bits(job, 1100)
            assert {index for index in range(1100) if bits[index >> 3] >> (index & 7) & 1} == {
                index for at, index in self.done if at == job
            }
