"""A state machine over the whole engine: what users, networks, platforms and operating systems do, in any order.

Each rule is one of those doings, and lets some virtual time pass. After each rule the platform's journal, its git
history, the wire and the ledger are looked at (`Witness`, `invariants`); at the end the weather is fine and the run is
resumed until nothing is left.
"""

import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bulk.errors import CredentialRefused, Interrupted, RunDirectoryError, RunStopped
from bulk.ledger.records import Finished
from bulk.ledger.view import LedgerView
from bulk.sandbox.settings import ExtraToken, RateLimit
from bulk.sandbox.store.state import digest_of
from tests.simulation import invariants
from tests.simulation.conftest import MEMORY
from tests.simulation.model import LANES, Kind, Model, Planned, jobs_of, name_of
from tests.simulation.schedules import SETTLE_S, TIMEOUT_S, Expected
from tests.simulation.stage import Stage
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, DROP_BEFORE, FINE, MUTE, TRUNCATE, Fate, answer, late
from tests.simulation.witness import Witness
from tests.simulation.world import World

FATES: Final = {
    "dropped before": DROP_BEFORE,
    "dropped after": DROP_AFTER,
    "502 after": answer(502, is_passed_on=True),
    "503 before": answer(503),
    "late": late(TIMEOUT_S + 6.0),
    "no answer": MUTE,
    "half a body": TRUNCATE,
    "slow body": Fate(kind="drip", drip_s=0.01),
    "limited": answer(429, b'{"message": "a secondary rate limit"}', "application/json", Retry_After="2"),
}
MOST_IN_A_ROW = 3
"""A request is spared after this many misfortunes."""
TOKENS = tuple(f"token-{number}" for number in range(12))
MOST_RESUMES = 12
ITEMS = st.lists(st.tuples(st.sampled_from(Kind), st.integers(0, LANES - 1)), min_size=6, max_size=16)
BUDGETS = {"core": RateLimit(60, 20), "dependency_snapshots": RateLimit(6, 20)}


@dataclass(slots=True)
class Running:
    """A run of a manifest, from its first start on.

    Attributes:
        expected: by (job, index). is_complete: every item has an outcome.
    """

    manifest: Path
    jobs: dict[str, list[Planned]]
    expected: dict[tuple[str, int], Expected] = field(default_factory=dict)
    is_complete: bool = False


class Machine(RuleBasedStateMachine):
    """Its rules are what can happen; its invariants are the promises of docs/guarantees.md."""

    def __init__(self) -> None:
        super().__init__()
        place = MEMORY if MEMORY.is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="bulk-machine-", dir=place))
        self.stage = Stage(
            self.folder,
            fate_of=self._fate_of,
            limits=BUDGETS,
            tokens=[ExtraToken(token, "octoadmin") for token in TOKENS],
        )
        self.made: World = self.stage.world
        invariants.watch(self.made)
        self.witness = Witness(self.made)
        self.model = Model()
        self.fates: list[tuple[bool, Fate]] = []
        self.in_a_row: dict[tuple[str, str], int] = {}
        self.token = 0
        self.is_token_good, self.has_token_ended = True, False
        self.sent_before = 0
        self.run: Running | None = None
        self.runs = 0
        self.rivals = 0

    # -- what befalls requests

    def _fate_of(self, exchange: Exchange) -> Fate:
        key = (exchange.method, exchange.path.partition("?")[0].casefold())
        for number, (is_for_write, fate) in enumerate(self.fates):
            if is_for_write == exchange.is_write and self.in_a_row.get(key, 0) < MOST_IN_A_ROW:
                del self.fates[number]
                self.in_a_row[key] = self.in_a_row.get(key, 0) + 1
                return fate
        self.in_a_row[key] = 0
        return FINE

    @rule(kinds=st.lists(st.sampled_from(sorted(FATES)), min_size=1, max_size=6), is_for_write=st.booleans())
    def misfortunes(self, kinds: list[str], is_for_write: bool) -> None:
        """The next reads or writes meet them, one each."""
        self.fates += [(is_for_write, FATES[kind]) for kind in kinds]

    # -- time

    @precondition(lambda self: self.stage.is_running)
    @rule(turns=st.integers(1, 300))
    def turns(self, turns: int) -> None:
        """Some turns of the loop: whatever comes next comes at an arbitrary await."""
        self.stage.pass_turns(turns)
        self._look_at_end()

    @rule(seconds=st.sampled_from((0.003, 0.05, 1.0, 6.0, 25.0)))
    def time(self, seconds: float) -> None:
        """Some time."""
        self.stage.pass_time(seconds)
        self._look_at_end()

    # -- the user

    @property
    def is_idle(self) -> bool:
        """Nothing runs, and nothing is left to do."""
        return not self.stage.is_running and (self.run is None or self.run.is_complete)

    @initialize(kinds=ITEMS, fates=st.lists(st.sampled_from(sorted(FATES)), max_size=6))
    def first(self, kinds: list[tuple[Kind, int]], fates: list[str]) -> None:
        """There are a manifest and bad weather from the start on."""
        self.misfortunes(fates, is_for_write=True)
        self.begin(kinds)

    @precondition(lambda self: self.is_idle)
    @rule(kinds=ITEMS)
    def begin(self, kinds: list[tuple[Kind, int]]) -> None:
        """Run a new manifest."""
        jobs = jobs_of(self.model.plan(kinds))
        written = {
            name: {"operation": planned[0].kind.value.strip(), "items": [each.item() for each in planned]}
            for name, planned in jobs.items()
        }
        self._hold_token()
        self.runs += 1
        limits = {"request_timeout": TIMEOUT_S, "settle": SETTLE_S, "concurrency": 6}
        credentials = {"default": f"file:{self.folder / 'token.txt'}"}
        manifest = self.made.write(f"run-{self.runs}", written, limits, credentials=credentials)
        self._start(Running(manifest, jobs))

    @precondition(lambda self: self.is_idle and self.run is not None)
    @rule()
    def again(self) -> None:
        """Run the same manifest in a new run directory."""
        assert self.run is not None
        self.runs += 1
        manifest = self.run.manifest.with_name(f"run-{self.runs}.yaml")
        shutil.copy(self.run.manifest, manifest)
        self._start(Running(manifest, self.run.jobs))

    def _start(self, run: Running) -> None:
        self._hold_token()
        self.run = run
        run.expected = {
            (job, index): self.model.expect(each)
            for job, planned in run.jobs.items()
            for index, each in enumerate(planned)
        }
        self.stage.start(lambda: self.made.run(run.manifest))

    @precondition(lambda self: self.is_idle and self.run is not None and self._failed())
    @rule()
    def retry(self) -> None:
        """Run what failed again."""
        assert self.run is not None
        for job, index in self._failed():
            self.run.expected[job, index] = self.model.expect(self.run.jobs[job][index])
        manifest, self.run.is_complete = self.run.manifest, False
        self.made.told.clear()
        self.made.told_items.clear()
        self._hold_token()
        self.stage.start(lambda: self.made.retry(manifest))

    def _failed(self) -> list[tuple[str, int]]:
        assert self.run is not None
        return [key for key, expected in self.run.expected.items() if expected.outcome == "failed"]

    @precondition(lambda self: not self.stage.is_running and self.run is not None and not self.run.is_complete)
    @rule()
    def resume(self) -> None:
        """Give the same command again."""
        assert self.run is not None
        manifest = self.run.manifest
        self._hold_token()
        self.stage.start(lambda: self.made.run(manifest))

    @precondition(lambda self: self.stage.is_running)
    @rule()
    def second_process(self) -> None:
        """Give it again although it runs: kept out, unless the first one ends in this very turn."""
        assert self.run is not None
        manifest, runs, refused = self.run.manifest, len(self.made.runs), ""
        try:
            self.stage.do(lambda: self.made.run(manifest))
        except RunDirectoryError as error:
            refused = str(error)
        if self.stage.is_running:
            assert "is in use by process" in refused, "two processes in one run directory"
            assert len(self.made.runs) <= runs + 1, "only the first one runs"
        self._look_at_end()

    # -- ends before the end

    @precondition(lambda self: self.stage.is_running)
    @rule()
    def interrupt(self) -> None:
        """SIGINT: what is under way ends."""
        self.stage.signal()
        self._look_at_end()

    @precondition(lambda self: self.stage.is_running)
    @rule(turns=st.integers(0, 300))
    def cancel(self, turns: int) -> None:
        """The run is cancelled at an arbitrary await."""
        self.stage.pass_turns(turns)
        if self.stage.is_running:
            self.stage.cancel()
        self._look_at_end()

    @precondition(lambda self: self.stage.is_running)
    @rule(turns=st.integers(0, 300), arrives_s=st.sampled_from((0.0, 0.001, 0.005)))
    def kill(self, turns: int, arrives_s: float) -> None:
        """SIGKILL at an arbitrary await: the disk keeps what it has."""
        assert self.run is not None
        self.stage.pass_turns(turns)
        if self.stage.is_running:
            self.stage.kill(self.made.run_dir(self.run.manifest), arrives_s)
            self.stage.pass_time(2 * arrives_s + 0.01)
        self._look_at_end()

    def _look_at_end(self) -> None:
        """Where the run has ended by itself: it is complete, or says why not."""
        run, report, error = self.run, self.stage.report, self.stage.error
        if self.stage.is_running or run is None or run.is_complete:
            return
        if error is not None:
            assert isinstance(error, (RunStopped, CredentialRefused, Interrupted)), error
        if report is None or report.exit_code not in (0, 1, 6):
            if report is not None:
                assert report.exit_code in (3, 4, 130), report.exit_code
                assert report.exit_code != 4 or self.has_token_ended
            return
        run.is_complete = True
        is_unknown = any(line["outcome"] == "unknown" for line in self.made.lines(run.manifest))
        assert report.exit_code == (6 if is_unknown else 1 if self._failed() else 0)
        invariants.every_item_ended_once_and_right(self.made, run.manifest, run.expected)
        invariants.nothing_leaked(self.made, self.made.runs[-1])
        if not self.has_token_ended:
            invariants.budgets_are_accounted(self.made, self.made.runs[-1], self.sent_before)
        self.witness.look(self.model)
        self.witness.has_all(self.model)

    # -- others

    def _hold_token(self) -> None:
        path, self.has_token_ended = self.folder / "token.txt", False
        self.sent_before = len(self.made.network.exchanges)
        if not self.is_token_good:
            self.token, self.is_token_good = self.token + 1, True
        path.write_text(TOKENS[self.token])
        path.chmod(0o600)

    @precondition(lambda self: self.token + 1 < len(TOKENS))
    @rule(is_renewed=st.booleans())
    def token_ends(self, is_renewed: bool) -> None:
        """The token ends; a new one is in its place before, or when somebody next gives a command."""
        state, text = self.made.sandbox.context.state, TOKENS[self.token]
        ended = state.token(text)
        assert ended is not None
        if not self.is_token_good:
            return
        self.is_token_good, self.has_token_ended = False, True
        if is_renewed:
            self._hold_token()
            self.has_token_ended = True
        state._tokens[digest_of(text)] = replace(ended, ends_at=self.stage.call(self.made.platform_clock.now))

    @rule(repo=st.integers(0, LANES - 1), pick=st.integers(0, 100))
    def rival_write(self, repo: int, pick: int) -> None:
        """Somebody else commits to a repository: to a file of their own, or, while nothing runs, to one of ours."""
        self.rivals += 1
        looked_at = [
            (each.repo, each.about)
            for planned in (self.run.jobs.values() if self.run else ())
            for each in planned
            if each.kind in (Kind.LOOK, Kind.PUT)
        ]
        path, text = f"rival-{self.rivals}", f"rival {self.rivals}"
        if self.is_idle and looked_at and pick % 3:
            repo, path = looked_at[pick % len(looked_at)]
            self.model.files[repo, path] = text
        self.stage.call(lambda: self.witness.write(name_of(repo), path, text))

    # -- the promises

    @invariant()
    def promises_hold(self) -> None:
        """By the journal, the git history, the wire and the ledger."""
        self.witness.look(self.model)
        made = self.made
        invariants.lanes_never_overlap(made)
        for token in TOKENS[: self.token + 1]:
            invariants.nothing_after_the_first_401(made, token)
        assert not made.violations, made.violations[:5]
        if self.run is not None:
            self._told_is_durable_and_true(self.run)

    def _told_is_durable_and_true(self, run: Running) -> None:
        told: list[Finished] = self.made.told
        for each in told:
            expected = run.expected[each.job, each.index]
            code = each.error.code.value if each.error else None
            assert expected.is_met(each.outcome.value, code), (each, expected)
            assert not expected.effect or self.witness.effects[expected.effect], f"{expected.effect} is not there"
        if told and not self.stage.is_running:
            known = sum(sum(kinds.values()) for kinds in LedgerView(self.made.run_dir(run.manifest)).counts().values())
            assert known >= len(self.made.told_items), f"{known} outcomes kept of {len(self.made.told_items)} told"

    def teardown(self) -> None:
        """The weather is fine: every item gets its one outcome."""
        try:
            self._to_the_end()
        finally:
            self.stage.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _to_the_end(self) -> None:
        self.fates.clear()
        for _ in range(MOST_RESUMES):
            self.stage.wait_end()
            self._look_at_end()
            self.promises_hold()
            if self.is_idle:
                return
            self.resume()
        raise AssertionError(f"not at the end after {MOST_RESUMES} resumes: {self.stage.report}, {self.stage.error}")
