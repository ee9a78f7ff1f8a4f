"""When a reading is believed: what each kind of write may do after an answer was lost, second by second.

The decision needs no platform: the readings are given, pauses move a clock. The same with a platform and in whole runs
is in `test_item_runner.py` and `tests/simulation`.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.execute.requests.context import ItemTally, RequestContext, Tried
from bulk.execute.writes.lost_write import LostWrite, lost_again
from bulk.execute.writes.recent_writes import CREATES
from bulk.execute.writes.settle import Settler, inferred
from bulk.govern.permits.accounts import PermitQueue
from bulk.model import (
    UNSEEN,
    Effect,
    ErrorCode,
    Lost,
    NotApplied,
    Outcome,
    OutcomeKind,
    Reply,
    Request,
    Undecided,
    failed,
    succeeded,
)
from bulk.platform.bodies.body_values import A_PAGE
from tests.execute.writes.settling import (
    NOT_THERE,
    SETTLE_S,
    HandClock,
    Read,
    Settled,
    Thing,
    ThingItem,
    lost_write,
)

CONFLICT = failed(ErrorCode.CONFLICT, "it is there")
TAKEN = failed(ErrorCode.CONFLICT, "it is there", gives_codes=True)

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("effect", [each for each in Effect if each is not Effect.READ])
@pytest.mark.parametrize("refusal", [None, CONFLICT])
def test_a_trace_is_the_outcome_at_once(effect: Effect, refusal: Outcome | None) -> None:
    """A trace that two readings find ends the doubt, whatever the write was, and is counted once."""
    operation = Thing([succeeded({"sha": "1"})])
    settled = Settled(operation, lost_write(effect), refusal)
    assert (settled.outcome, operation.readings) == (succeeded({"sha": "1"}), 2)
    assert (settled.pauses, settled.tally.settled, settled.sender.settled) == ([], 1, 1)


@pytest.mark.parametrize("effect", [each for each in Effect if each is not Effect.READ])
@pytest.mark.parametrize("then", [NotApplied(), Undecided("it can't be seen")])
def test_a_trace_that_one_reading_alone_shows(effect: Effect, then: Any) -> None:
    """One answer may be a gateway's: what no second reading finds is not a trace; and what a copy that lags does not
    show is not sent again before the settle time."""
    settled = Settled(Thing([succeeded(1), then]), lost_write(effect))
    assert settled.outcome is None or settled.outcome.kind is OutcomeKind.UNKNOWN
    assert settled.took_s >= SETTLE_S
    assert Settled(Thing([succeeded(1), then, succeeded(2), then]), lost_write(effect)).outcome == succeeded(2)


@pytest.mark.parametrize("refusal", [None, CONFLICT])
def test_somebody_else_is_blamed_only_after_the_settle_time(refusal: Outcome | None) -> None:
    """operations.md, Settle: what looks like a third value may be an old one, which the next reading corrects."""
    third = failed(ErrorCode.CONFLICT, "it is another")
    corrected = Settled(Thing([third, third, succeeded(None)]), lost_write(Effect.COMPARE_AND_SWAP), refusal)
    assert corrected.outcome == succeeded(None)
    assert (corrected.pauses, corrected.tally.settled) == ([0.1, 0.2], 1)
    stays = Settled(Thing([third]), lost_write(Effect.COMPARE_AND_SWAP), refusal)
    assert (stays.outcome, stays.tally.settled, stays.sender.settled) == (third, 1, 1)
    assert SETTLE_S <= stays.took_s < 2 * SETTLE_S


@pytest.mark.parametrize(
    ("stale_until", "pauses"), [(100.0, []), (100.05, [0.1]), (100.1, [0.1]), (100.2, [0.1, 0.2]), (90.0, [])]
)
def test_a_trace_that_may_be_older_is_not_believed(stale_until: float, pauses: list[float]) -> None:
    """A reading from before an earlier write of this run shows everywhere can look as if this one was applied."""
    settled = Settled(Thing([succeeded(None)]), lost_write(Effect.COMPARE_AND_SWAP), stale_until=stale_until)
    assert (settled.outcome, settled.pauses, settled.tally.settled) == (succeeded(None), pauses, 1)


@pytest.mark.parametrize("effect", [each for each in Effect if each is not Effect.READ])
def test_no_trace_is_believed_at_once_only_where_twice_can_not_happen(effect: Effect) -> None:
    """Without a trace: at once where the platform refuses a second one, else after the settle time, and after twice
    that where the platform would make a second one: lists show late what was just made."""
    operation = Thing([NotApplied()])
    settled = Settled(operation, lost_write(effect))
    assert settled.outcome is None
    if effect.may_repeat_at_once:
        assert (settled.took_s, operation.readings) == (0.0, 1)
    else:
        assert settled.took_s >= SETTLE_S * (2 if effect is Effect.CREATE else 1)
        assert settled.pauses == [0.1, 0.2, 0.4, 0.8, 1.6, *[3.0] * 10][: len(settled.pauses)]
    assert settled.tally.settled == 0


@pytest.mark.parametrize("effect", [each for each in Effect if each is not Effect.READ])
def test_what_no_reading_can_tell(effect: Effect) -> None:
    """Undecided: what sets something is simply sent again; everything else is unknown after the settle time."""
    settled = Settled(Thing([Undecided("nobody may see it")]), lost_write(effect))
    if effect in (Effect.SET, Effect.ORDERED):
        assert (settled.outcome, settled.took_s) == (None, 0.0)
    else:
        assert settled.outcome is not None
        assert settled.outcome.kind is OutcomeKind.UNKNOWN
        assert settled.outcome.error is not None
        assert settled.outcome.error.message == "nobody may see it"
        assert settled.took_s >= SETTLE_S


@pytest.mark.parametrize("effect", [each for each in Effect if each is not Effect.READ])
@pytest.mark.parametrize("found", [NotApplied(), Undecided("can't tell")])
def test_after_a_refused_repeat_nothing_is_sent_again(effect: Effect, found: Any) -> None:
    """A repeat was refused: it stands, once the settle time is over, where no trace came; or nothing can be known."""
    settled = Settled(Thing([found]), lost_write(effect), CONFLICT)
    assert settled.took_s >= SETTLE_S
    assert settled.outcome is not None
    expected = OutcomeKind.FAILED if isinstance(found, NotApplied) else OutcomeKind.UNKNOWN
    assert settled.outcome.kind is expected


@pytest.mark.parametrize("effect", CREATES)
def test_nothing_is_created_again_where_everything_is_shown(effect: Effect) -> None:
    """A gateway answers any request with an empty list: what nobody has is asked for before it is sent again. One that
    answers that with a page did not give the list."""
    for status, body, is_known in (
        (200, [], False),
        (200, {}, False),
        (200, A_PAGE, True),
        (401, {}, True),
        (0, 0, True),
    ):
        reply = Reply(status=status, headers={}, body=body) if status else None
        settled = Settled(Thing([NotApplied()]), lost_write(effect), absent=Tried(reply))
        assert (settled.outcome is None) is is_known
        assert settled.outcome is None or settled.outcome.kind is OutcomeKind.UNKNOWN
        assert settled.sender.probes > 0


def test_a_stale_reading_is_corrected() -> None:
    """A trace that appears within the settle time is found (reads may be stale)."""
    settled = Settled(Thing([NotApplied(), NotApplied(), succeeded(1)]), lost_write(Effect.CREATE))
    assert settled.outcome == succeeded(1)
    assert settled.took_s < SETTLE_S


def test_two_readings_at_least() -> None:
    """However long ago it was lost: one reading is not believed where a second one could make two."""
    operation = Thing([NotApplied()])
    settled = Settled(operation, lost_write(Effect.CREATE, since=-1_000.0))
    assert (settled.outcome, operation.readings, settled.pauses) == (None, 2, [0.1])


@pytest.mark.parametrize(("late_s", "readings"), [(0.0, 2), (0.1, 3)])
def test_the_settle_time_is_over_when_the_reading_began(late_s: float, readings: int) -> None:
    """A reading counts from its first request, and from exactly the settle time on."""
    operation = Thing([NotApplied()])
    Settled(operation, lost_write(Effect.MOVE, since=100.1 + late_s - SETTLE_S))
    assert operation.readings == readings


@pytest.mark.parametrize("since", [-5.0, 90.0])
def test_an_answer_in_the_end_counts(since: float) -> None:
    """Not only what was found: also what was not, and what was found after that, ends once."""
    settled = Settled(Thing([NotApplied(), succeeded(2)]), lost_write(Effect.CREATE, since=since))
    assert settled.outcome == succeeded(2)


@pytest.mark.parametrize(
    ("operation", "answer", "why"),
    [
        (Thing([KeyError("sha")]), None, "reading back failed (KeyError: 'sha')"),
        (Thing([None]), None, "reading back failed (it ended with NoneType instead of an outcome)"),
        (Thing([NotApplied()], Request(method="PUT", path="/t", body={}, effect=Effect.SET)), None,
         "thing.put tried to write while reading back"),
        (Thing([NotApplied()]), failed(ErrorCode.FORBIDDEN, "no rights"), "reading back failed: no rights"),
        (Thing([NotApplied()]), Outcome(kind=OutcomeKind.FAILED), "reading back failed: no answer"),
    ],
)  # fmt: skip
def test_a_reading_that_fails_decides_nothing(operation: Thing, answer: Outcome | None, why: str) -> None:
    """A bug, a write, a refusal while reading back: the outcome is unknown, with the reason; generators are closed."""
    settled = Settled(operation, lost_write(Effect.CREATE), answer=answer)
    assert settled.outcome is not None
    assert settled.outcome.error is not None
    assert (settled.outcome.error.code, settled.outcome.error.message) == (ErrorCode.UNKNOWN_OUTCOME, why)
    is_left = answer is not None or "write" in why
    assert operation.closed == (operation.readings if is_left else 0)


@given(
    effect=st.sampled_from([each for each in Effect if each is not Effect.READ]),
    found=st.lists(st.sampled_from([NotApplied(), Undecided("?")]), min_size=1, max_size=6),
    since=st.floats(0.0, 100.0),
    is_refused=st.booleans(),
)
def test_repeats_only_where_they_are_safe(effect: Effect, found: list[Any], since: float, is_refused: bool) -> None:
    """Whatever the readings: a repeat (None) comes early only for what is the same twice, and never after a refusal."""
    settled = Settled(Thing(found), lost_write(effect, since), CONFLICT if is_refused else None)
    if settled.outcome is None:
        assert not is_refused
        is_safe = effect.may_repeat_at_once or effect in (Effect.SET, Effect.ORDERED)
        assert is_safe or 100.0 + settled.took_s - since >= SETTLE_S
    assert max(settled.pauses, default=0.0) <= 3.0


@pytest.mark.parametrize(
    ("about", "refusal", "is_ours"),
    [
        (lost_write(Effect.CREATE_UNIQUE, before=None), TAKEN, True),
        (lost_write(Effect.CREATE_UNIQUE, before={"login": "acme"}), TAKEN, False),
        (lost_write(Effect.CREATE_UNIQUE), TAKEN, False),
        (lost_write(Effect.CREATE, before=None), TAKEN, False),
        (lost_write(Effect.CREATE_UNIQUE, before=None), failed(ErrorCode.FORBIDDEN, "no"), False),
        (lost_write(Effect.CREATE_UNIQUE, before=None), succeeded(None), False),
    ],
)
def test_a_name_that_was_free_and_is_taken_is_ours(about: LostWrite, refusal: Outcome, is_ours: bool) -> None:
    """operations.md, `applied_inferred`: only a unique name, free before, of which a code says that it is taken."""
    found = inferred(about, refusal)
    if is_ours:
        assert found.kind is OutcomeKind.SUCCEEDED
        assert found.result["note"].startswith("inferred: ")
    else:
        assert found is refusal


def test_a_conflict_without_a_code_need_not_be_about_the_name() -> None:
    """A gateway has conflicts of its own, such as 412 and 423: whether the lost request was done, nobody knows."""
    assert inferred(lost_write(Effect.CREATE_UNIQUE, before=None), CONFLICT).kind is OutcomeKind.UNKNOWN


@pytest.mark.parametrize(
    ("code", "gives_codes", "status", "is_known"),
    [
        (ErrorCode.VALIDATION_FAILED, True, None, True),
        (ErrorCode.VALIDATION_FAILED, False, None, False),
        (ErrorCode.VALIDATION_FAILED, False, 502, False),
        (ErrorCode.VALIDATION_FAILED, False, 429, True),
        (ErrorCode.NOT_FOUND, False, None, False),
        (ErrorCode.NOT_FOUND, False, 403, True),
        (ErrorCode.FORBIDDEN, False, None, True),
        (ErrorCode.TOO_LARGE, False, None, True),
    ],
)
def test_a_refusal_that_does_not_say_why_may_be_about_what_was_done(
    code: ErrorCode, gives_codes: bool, status: int | None, is_known: bool
) -> None:
    """What a lost write has left refuses its repeat, although no copy shows it yet: only a refusal whose codes say why,
    or that is about something else, proves that nothing was done."""
    refusal = failed(code, "no", http_status=422, gives_codes=gives_codes)
    for effect in (Effect.COMPARE_AND_SWAP, Effect.MOVE, Effect.CREATE_UNIQUE):
        about = lost_write(effect, before=None)
        found = inferred(LostWrite(replace(about.lost, status=status), effect, about.since), refusal)
        assert found is refusal if is_known else found.kind is OutcomeKind.UNKNOWN


def test_the_first_loss_of_a_write_is_remembered() -> None:
    """Its before-image is from before any of them; the time is the newest's. Another write is another doubt."""
    first, second = lost_write(Effect.CREATE, 1.0, before="old"), lost_write(Effect.CREATE, 9.0, before="new")
    assert lost_again(None, second) is second
    again = lost_again(first, second)
    assert (again.lost, again.effect, again.since) == (first.lost, first.effect, 9.0)
    for method, path in (("POST", "/thing"), ("PUT", "/other")):
        other = LostWrite(Lost(method=method, path=path, before=UNSEEN, sent_at=0.0), Effect.CREATE, 9.0)
        assert lost_again(first, other) is other


def test_an_item_alone_remembers_what_it_saw_itself() -> None:
    """Of a write that could have been combined too; one that nobody looked before stays so."""
    write = Request(method="POST", path="/t", effect=Effect.SET, before=[["a"]], shared_by=(0,))
    blind = Request(method="POST", path="/t", effect=Effect.SET, shared_by=(0,))
    alone = Request(method="PUT", path="/t", effect=Effect.SET, before=["a"])
    assert [each.own_before for each in (write, blind, alone)] == [["a"], UNSEEN, ["a"]]


def looked_for(operation: Thing, effect: Effect, refusal: Outcome) -> tuple[Outcome | None, float]:
    """How a refused write of that effect ended, and how long it was looked for (seconds)."""
    clock = HandClock()
    settler = Settler(Read(clock, Reply(status=200, headers={}, body={}), NOT_THERE), clock, SETTLE_S)
    queue: PermitQueue = PermitQueue(account=None, category="core")  # type: ignore[arg-type]  # nobody asks it for a permit
    about = lost_write(effect)
    refused = LostWrite(replace(about.lost, method="DELETE", status=422), effect, about.since)
    context = RequestContext(queue, None, ItemTally())
    steps = settler.done_all_the_same(operation, ThingItem(), refused, refusal, context, (0, 0))
    try:
        steps.send(None)
    except StopIteration as end:
        return end.value, clock.at - 100.0
    raise AssertionError("it waits for something")


MISSING = failed(ErrorCode.NOT_FOUND, "it is not there")


@pytest.mark.parametrize(
    ("effect", "refusal", "looks_s"),
    [
        (Effect.CREATE, CONFLICT, 2 * SETTLE_S),
        (Effect.CREATE_UNIQUE, CONFLICT, SETTLE_S),
        (Effect.CREATE_UNIQUE, failed(ErrorCode.VALIDATION_FAILED, "no"), SETTLE_S),
        (Effect.MOVE, MISSING, SETTLE_S),
        (Effect.COMPARE_AND_SWAP, MISSING, SETTLE_S),
        (Effect.CREATE, failed(ErrorCode.VALIDATION_FAILED, "no", gives_codes=True), 0.0),
        (Effect.CREATE, failed(ErrorCode.FORBIDDEN, "no"), 0.0),
        (Effect.COMPARE_AND_SWAP, CONFLICT, SETTLE_S),
        (Effect.COMPARE_AND_SWAP, failed(ErrorCode.VALIDATION_FAILED, "no"), SETTLE_S),
        (Effect.COMPARE_AND_SWAP, failed(ErrorCode.VALIDATION_FAILED, "no", gives_codes=True), 0.0),
        (Effect.COMPARE_AND_SWAP, failed(ErrorCode.CONFLICT, "no", gives_codes=True), 0.0),
        (Effect.SET, CONFLICT, 0.0),
    ],
)
def test_only_a_refusal_that_may_be_about_its_own_effect_is_waited_out(
    effect: Effect, refusal: Outcome, looks_s: float
) -> None:
    """Its effect may show late; a refusal for another reason costs one look; each stands where there is no trace."""
    outcome, took_s = looked_for(Thing([NotApplied()]), effect, refusal)
    assert outcome is None
    assert looks_s <= took_s <= looks_s + 3.0
    late = Thing([NotApplied(), NotApplied(), succeeded({})])
    assert (looked_for(late, effect, refusal)[0] is not None) is (looks_s > 0.0)


def test_something_new_that_is_not_as_asked_for_makes_a_refused_creation_unknown() -> None:
    """The platform may show ours otherwise: it is neither failed nor sent again, and the result has what was found."""
    found = Undecided("5 is new and not as asked for", found=[{"id": 5}])
    for effect in (Effect.CREATE, Effect.CREATE_UNIQUE):
        outcome, _ = looked_for(Thing([found]), effect, CONFLICT)
        assert outcome is not None
        assert (outcome.kind, outcome.result) == (OutcomeKind.UNKNOWN, [{"id": 5}])
        for refusal in (failed(ErrorCode.FORBIDDEN, "no"), failed(ErrorCode.VALIDATION_FAILED, "", gives_codes=True)):
            assert looked_for(Thing([found]), effect, refusal)[0] is None
