"""Who opens the waves of a run in a store, and when: what one machine does, whoever dies."""

import random
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.bundle.checked import Checked
from bulk.check.checking import check
from bulk.clock import Clock
from bulk.cluster.assignment import Assigning
from bulk.cluster.engine_tag import engine_tag
from bulk.cluster.stored_waves import Found, JobWaves, StoredWaves, WaveErrors, decide, open_waves
from bulk.cluster.submission import next_command, submit_manifest
from bulk.engine.agreement.gates import WaveBudgets
from bulk.ledger.records import Record
from bulk.manifest.manifest import Limits
from bulk.manifest.reading import Overrides, read_manifest
from bulk.model import ErrorCode, OutcomeKind
from bulk.quantities import NOTHING, Share
from bulk.report.wave_gates import Gates, closed_gate
from bulk.schedule.job_progress import JobProgress
from bulk.status import Silence
from bulk.store import runs
from bulk.store.holding import Holding
from bulk.store.leases import Ended, Lease, Leases
from bulk.store.ledger import StoreLedger
from tests.ledger.samples import opened, record
from tests.schedule.test_inherited_waves import a_job
from tests.store.places import connection_to

ITEMS = 24
MANIFEST = """
version: 1
platform: {base_url: https://code.example.com/api/v3}
limits: LIMITS
jobs:
  readmes: {operation: organization.create, items: orgs.csv}
"""


def written(folder: Path, limits: str) -> Path:
    """The manifest, with an items file of its own, so that no other test's run is the same."""
    (folder / "orgs.csv").write_text(
        "login,admin\n" + "".join(f"{folder.name.replace('_', '-')}-{n},me\n" for n in range(ITEMS))
    )
    path = folder / "manifest.yaml"
    path.write_text(MANIFEST.replace("LIMITS", limits))
    return path


class InStore:
    """The manifest as a run in a store, and workers of it."""

    def __init__(self, store: str, manifest: Path, checked: Checked, workspace: Path) -> None:
        self.text, self.checked, self.workspace = store, checked, workspace
        self.stack = ExitStack()
        self.store = self.stack.enter_context(connection_to(store))
        submit = partial(
            submit_manifest, manifest, self.store, overrides=Overrides(), environ={}, display=Silence(), approve=None
        )
        self.name = anyio.run(submit).name
        self.waves = StoredWaves(checked, self.run.id)

    @property
    def run(self) -> runs.StoredRun:
        """As it stands."""
        return runs.find(self.store, self.name)

    def worker(self) -> Leases:
        """Another one."""
        return Leases(self.stack.enter_context(connection_to(self.text)), "worker", engine_tag(), Clock().elapsed)

    def offered(self) -> "Shift":
        """All that a worker can have now."""
        return Shift(self, self.worker())

    def __enter__(self) -> "InStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()


class Shift:
    """What one worker has claimed; `items` are those without an outcome."""

    def __init__(self, run: InStore, leases: Leases) -> None:
        self.run, self.leases, self.holding = run, leases, Holding()
        _, shards = leases.claim(run.run.id, 1_000)
        self.held = [Lease(shard.run, shard.no, shard.epoch) for shard in shards]
        connection = run.stack.enter_context(connection_to(run.text))
        self.ledger = StoreLedger(connection, run.run.id, leases.worker, run.workspace, self.holding)
        assigning = Assigning(run.checked, run.workspace, run.store, [0])
        taken = [assigning.take(shard, self.ledger, 0.0) for shard in shards]
        self.waves = {shard.wave for shard in shards}
        self.items = sorted(index for each in taken for index in each.joined.items.get(0, ()))

    def end(self, ended: list[Record]) -> None:
        """Write these outcomes, finish what is done, and give the rest back."""
        if ended:
            self.ledger.commit(ended)
        left = [lease for lease in self.held if self.leases.finish(lease) is not Ended.DONE]
        self.leases.release(left)


@pytest.mark.parametrize("seed", range(25))
def test_a_store_does_what_one_machine_does(shared_store: str, tmp_path: Path, seed: int) -> None:
    """Random waves, gates, budgets and outcomes: the same items are offered at each step, the same wave is stopped or
    waited for in the same words, and the same decisions let it go on.
    """
    dice = random.Random(seed)
    sizes = [dice.choice(["1", "2", "5", "10%", "30%"]) for _ in range(dice.randrange(1, 5))]
    budget = dice.choice(["0", "1", "10%", "60%"])
    gate = dice.choice(["auto", "manual"])
    path = written(tmp_path, f"{{waves: [{', '.join(sizes)}], errors: {{not_found: {budget}}}, gate: {gate}}}")
    manifest = read_manifest(path, Overrides(), {})
    (tmp_path / "check").mkdir()
    checked = check(manifest, tmp_path / "check")
    gates, steps = Gates(), 0
    with opened(tmp_path / "run") as alone, InStore(shared_store, path, checked, tmp_path / "check") as stored:
        while stored.run.state != runs.COMPLETE:
            steps += 1
            assert steps < 200
            progress = [JobProgress(ITEMS, alone.done_bits(0, ITEMS))]
            budgets = WaveBudgets(manifest.jobs, manifest.limits, gates, alone.run_dir)
            budgets.begin(progress, alone.view())
            mine = [index for index in range(ITEMS) if progress[0].next_offered(index) == index]
            reason = budgets.reason or (None if mine else budgets.closed(progress))
            stored.waves.judge(stored.store)
            if reason is not None:
                run = stored.run
                assert (run.state, run.why.partition(": ")[0]) == ("stopped", str(reason).partition(": ")[0])
                assert stored.offered().items == []
                closed = closed_gate(str(reason))
                assert closed is not None
                wave = closed.wave
                if closed.is_over:
                    assert next_command(run, "s").endswith(f"--accept-wave {wave}")
                    gates = Gates(opened=gates.opened, accepted=gates.accepted | {wave})
                    open_waves(stored.store, run, "me", accepted=frozenset((wave,)))
                else:
                    gates = Gates(opened=gates.opened + 1, accepted=gates.accepted)
                    assert f"--wave {gates.opened} " in next_command(run, "s")
                    open_waves(stored.store, run, "me", opened=gates.opened)
                continue
            shift = stored.offered()
            assert shift.items == mine
            chosen = sorted(dice.sample(mine, dice.randrange(1, len(mine) + 1)))
            kinds = [dice.choice([OutcomeKind.SUCCEEDED] * 5 + [OutcomeKind.FAILED]) for _ in chosen]
            ended = [record(index, kind) for index, kind in zip(chosen, kinds, strict=True)]
            alone.commit(ended)
            shift.end(ended)


def test_whoever_decides_may_die(shared_store: str, tmp_path: Path) -> None:
    """failures.md row 93: a worker ends a wave and dies before it opens the next one: another one finds that the run
    waits for it, and nothing of it can be claimed before. A retry begins in the first wave that has something left.
    """
    path = written(tmp_path, "{waves: [1, 3]}")
    manifest = read_manifest(path, Overrides(), {})
    (tmp_path / "check").mkdir()
    with InStore(shared_store, path, check(manifest, tmp_path / "check"), tmp_path / "check") as stored:
        first = stored.offered()
        assert (first.items, first.waves) == ([0], {1})
        first.end([record(0)])
        other = stored.worker()
        assert stored.offered().items == []
        assert other.claimable()[stored.run.id] == 0
        stored.waves.judge(stored.store)
        stored.waves.judge(stored.store)
        assert other.claimable()[stored.run.id] > 0
        second = stored.offered()
        assert (second.items, second.waves) == ([1, 2, 3], {2})
        second.end([record(1), record(2), record(3)])
        stored.waves.judge(stored.store)
        third = stored.offered()
        assert third.waves == {3}
        third.end([])
        assert runs.reopen(stored.store, stored.run, frozenset({OutcomeKind.SUCCEEDED}), "me") == 4
        assert stored.offered().items == [0], "a retry begins in the first wave"


def test_a_store_without_gates_is_seen(store_text: str, tmp_path: Path) -> None:
    """A planted bug: where shards of waves that are not open can be claimed, a worker has items of all of them."""
    path = written(tmp_path, "{waves: [1, 3]}")
    manifest = read_manifest(path, Overrides(), {})
    (tmp_path / "check").mkdir()
    with InStore(store_text, path, check(manifest, tmp_path / "check"), tmp_path / "check") as stored:
        with stored.store.using() as connection:
            connection.execute(
                "CREATE OR REPLACE VIEW turn AS SELECT s.run, s.no, s.lease_until FROM shard s WHERE NOT s.done"
            )
        shift = stored.offered()
        assert (shift.waves, len(shift.items)) == ({1, 2, 3}, ITEMS)


JOB_WAVES = st.builds(
    lambda items, of, open_, wait, skip: JobWaves(
        0, items, of, min(open_, of), wait, None if skip or open_ >= of else min(open_, of) + 1
    ),
    st.integers(4, 100),
    st.integers(1, 4),
    st.integers(1, 4),
    st.none() | st.floats(-5, 5),
    st.booleans(),
)


@given(
    JOB_WAVES,
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), max_size=3),
    st.integers(1, 5),
    st.sets(st.integers(1, 4)),
    st.booleans(),
    st.floats(0, 5),
)
def test_a_decision_is_never_more_than_one_wave(one, errors, may_open, accepted, has_turn, after_s) -> None:
    """Opened is the next wave alone, which may be, whose time has come, and after which nothing is over a budget; a run
    is stopped for a gate only where nothing else can be done.
    """
    path = ErrorCode.NOT_FOUND.value
    limits = replace(Limits(), waves=(Share(count=1),) * 3, errors={path: NOTHING}, gate_after_s=after_s)
    ends = [*range(1, one.of), one.items]
    found = Found(
        [one], [WaveErrors(0, wave, path, count) for wave, count in errors if wave <= one.of], may_open,
        sorted(accepted), has_turn,
    )  # fmt: skip
    decision = decide(found, [a_job(0)], {0: ends}, limits)
    is_over = any(each.wave <= one.open and each.wave not in accepted for each in found.errors)
    assert ("stopped" in decision.stop) == is_over
    for wave in decision.opening.values():
        assert not is_over
        assert wave == one.next
        assert wave <= may_open
        assert one.opens_in_s is not None if after_s else True
        assert (one.opens_in_s or 0.0) <= 0.0
    if "waits to be opened" in decision.stop:
        assert one.next is not None
        assert one.next > may_open
        assert not has_turn
