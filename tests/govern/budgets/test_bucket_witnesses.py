"""Properties of a bucket under witnesses that may be late or lie, and single steps of who is believed."""

import math
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bulk.govern.budgets import probes
from bulk.govern.budgets.buckets import Bucket
from bulk.govern.budgets.witnesses import MOST_RAISED, Witness

LIMIT, WINDOW_S, T0 = 7, 10.0, 1_000.0


@dataclass
class Truth:
    """A platform with windows on a grid, requests on their way to it, and what it once showed.

    Attributes:
        arrived: moments at which requests counted. travelling, answered: (window, mark, is_look) of requests.
        refused: requests beyond the limit (count); `looks_refused` of them went to see.
        ahead_s: how much later it is for the run, until an answer shows that the clock was set back (seconds).
    """

    now: float = T0
    ahead_s: float = 0.0
    arrived: list[float] = field(default_factory=list)
    refused: int = 0
    looks_refused: int = 0
    travelling: list[tuple[int, int, bool]] = field(default_factory=list)
    answered: list[tuple[int, int, bool, bool, float]] = field(default_factory=list)

    def used(self, moment: float) -> int:
        """In the window that holds `moment`, until then (count)."""
        begin = moment // WINDOW_S * WINDOW_S
        return sum(begin <= at <= moment for at in self.arrived)

    def arrive(self, pick: int) -> None:
        """One of those on their way is there, and is answered."""
        window, mark, is_probe = self.travelling.pop(pick % len(self.travelling))
        is_served = self.used(self.now) < LIMIT
        if is_served:
            self.arrived.append(self.now)
        self.refused += not is_served
        self.looks_refused += is_probe and not is_served
        self.answered.append((window, mark, is_probe, is_served, self.now))

    @property
    def believed(self) -> float:
        """What time it is for the run."""
        return self.now + self.ahead_s

    def word(self, late_s: float) -> tuple[int, int, float]:
        """Limit, remaining, reset as they were a while ago."""
        moment = max(T0, self.now - late_s)
        return LIMIT, LIMIT - self.used(moment), moment // WINDOW_S * WINDOW_S + WINDOW_S


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "send", "send", "arrive", "arrive", "hear", "hear", "ask", "wait", "end"]),
        st.integers(0, 9),
        st.floats(0.0, 5.0),
    ),
    max_size=120,
)


LOOK = ("send", "arrive", "hear")
MORE_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "send", "send", "arrive", "hear", "lose", "ask", "wait", "set back"]),
        st.integers(0, 9),
        st.floats(0.0, 5.0),
    ),
    max_size=120,
)


def step(one: Bucket, truth: Truth, verb: str, pick: int, seconds: float) -> None:
    """One step of a run against it."""
    if verb == "wait":
        truth.now += seconds
    elif verb == "end":
        truth.now = truth.now // WINDOW_S * WINDOW_S + WINDOW_S + seconds / 10
    elif verb == "send":
        one.pass_time(truth.believed)
        if one.available:
            one.reserve_one()
            truth.travelling.append((one.window, one.mark, False))
        elif probes.probe_at(one, truth.believed) <= truth.believed:
            probes.probe(one, truth.believed)
            truth.travelling.append((one.window, one.mark, True))
    elif verb == "arrive" and truth.travelling:
        truth.arrive(pick)
    elif verb == "hear" and truth.answered:
        hear(one, truth, pick, seconds)
    elif verb == "ask":
        truth.ahead_s = 0.0
        one.observe(*truth.word(seconds), one.in_flight, truth.now, is_asked=True)
    else:
        disturb(one, truth, verb, pick, seconds)


def hear(one: Bucket, truth: Truth, pick: int, seconds: float) -> None:
    """One of the answers is heard, with headers or without."""
    window, mark, is_probe, is_served, made_at = truth.answered.pop(pick % len(truth.answered))
    one.pass_time(truth.believed)
    one.in_flight -= 1
    one.counted_before(window, math.floor(made_at) + 1.0)
    if is_probe:
        probes.date(one, window, math.floor(made_at) + 1.0)
    truth.ahead_s = 0.0
    if pick % 2:
        one.observe(*truth.word(seconds), one.overlap(mark), truth.now)
    if is_probe:
        probes.saw(one, window, is_served, truth.now, truth.now)
    elif not is_served and window == one.window:
        one.exhaust()


def disturb(one: Bucket, truth: Truth, verb: str, pick: int, seconds: float) -> None:
    """One request of those that did not go to see is lost on its way, or the platform's clock is set back."""
    if verb == "set back":
        truth.now, truth.ahead_s = max(truth.now, one.reset_at - seconds / 10), seconds / 5
    elif verb == "lose" and truth.travelling and not truth.travelling[pick % len(truth.travelling)][2]:
        truth.travelling.pop(pick % len(truth.travelling))
        one.pass_time(truth.believed)
        one.in_flight -= 1


ALL_AT_THE_END = [*[("send", 0, 0.0)] * LIMIT, ("end", 0, 0.0), *[("arrive", 0, 0.0)] * LIMIT]
"""All of a window is under way when it ends, and counts in the next one."""


@settings(max_examples=200, deadline=None)
@given(steps=STEPS)
@example(steps=[*ALL_AT_THE_END, ("wait", 0, 1.0), ("send", 0, 0.0), ("arrive", 0, 0.0)])
@example(steps=[*ALL_AT_THE_END, *[("hear", 0, 0.0)] * LIMIT, ("wait", 0, 1.0), ("send", 0, 0.0), ("arrive", 0, 0.0)])
def test_no_interleaving_of_late_witnesses_lets_out_too_much(steps: list[tuple[str, int, float]]) -> None:
    """T2: headers and `/rate_limit` up to 5 s late, answers in any order, requests that take long: none of them ever
    meets the limit of a window, not even one that went to see."""
    one, truth = Bucket(LIMIT, LIMIT, T0 + WINDOW_S, WINDOW_S), Truth()
    for verb, pick, seconds in steps:
        step(one, truth, verb, pick, seconds)
        assert 0 <= one.free <= max(0, one.limit - one.own)
    assert truth.refused == 0


@settings(max_examples=200, deadline=None)
@given(lost=st.integers(0, LIMIT), back_s=st.floats(0.3, 5.0), steps=MORE_STEPS)
def test_who_comes_too_early_opens_no_window(lost: int, back_s: float, steps: list[tuple[str, int, float]]) -> None:
    """failures.md row 34: requests get lost on their way, and the platform's clock is set back: what goes to see may be
    refused then, or served out of the old window; nothing else meets the limit because of that."""
    one, truth = Bucket(LIMIT, LIMIT, T0 + WINDOW_S, WINDOW_S), Truth()
    spent = ["send"] * LIMIT + ["lose"] * lost + ["arrive", "hear"] * (LIMIT - lost)
    first = [(verb, 0, 0.0) for verb in spent]
    for verb, pick, seconds in [*first, ("set back", 0, back_s), *[(verb, 0, 0.0) for verb in LOOK], *steps]:
        step(one, truth, verb, pick, seconds)
    assert truth.refused == truth.looks_refused


WORDS = st.lists(
    st.tuples(
        st.integers(2, 2 * LIMIT), st.integers(-3, 100), st.floats(-100.0, 100.0) | st.floats(-1e9, 1e9), st.booleans(),
        st.floats(0.0, 8.0),
    ),
    max_size=40,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(words=WORDS, sent=st.integers(0, LIMIT))
def test_no_words_stop_a_bucket_for_good(words: list[tuple[int, int, float, bool, float]], sent: int) -> None:
    """T1: whatever was said, a request may go and see within the window that was named, and where the platform serves
    each that does, others follow."""
    one, now = Bucket(LIMIT, LIMIT, T0 + WINDOW_S, WINDOW_S), T0
    for limit, remaining, end, is_asked, pause_s in words:
        now += pause_s
        one.pass_time(now)
        one.observe(limit, remaining, now + end if abs(end) < 3_700.0 else None, 0, now, is_asked=is_asked)
        for _ in range(min(sent, one.available)):
            one.reserve_one()
            one.in_flight -= 1
    for _ in range(8):
        if one.available:
            return
        at = probes.probe_at(one, now)
        assert at <= max(now, one.reset_at) + 70.0
        now = max(now, at)
        one.pass_time(now)
        probes.probe(one, now)
        one.in_flight -= 1
        probes.saw(one, one.window, True, now, now)
    pytest.fail("requests are served one after the other, and still only one at a time goes")


def empty(**more: float) -> Bucket:
    """All of it was sent, and answered."""
    one = Bucket(LIMIT, LIMIT, T0 + WINDOW_S, WINDOW_S, **more)  # type: ignore[arg-type]  # counts are ints
    for _ in range(LIMIT):
        one.reserve_one()
    one.in_flight = 0
    return one


def seen(one: Bucket, at: float, was_served: bool | None) -> None:
    """One request goes to see at that moment, and this comes of it."""
    one.pass_time(at)
    probes.probe(one, at)
    one.in_flight -= 1
    probes.saw(one, one.window, was_served, at, at)


def test_one_request_opens_the_next_window() -> None:
    """T1: nobody names the new window: after the end of the old one a request goes, alone; served, the limit is as it
    was, less that request, for as long as the window before."""
    one = empty()
    end = T0 + WINDOW_S
    assert probes.probe_at(one, T0 + 5.0) == pytest.approx(end + 0.2)
    one.pass_time(end + 0.2)
    probes.probe(one, end + 0.2)
    assert probes.probe_at(one, end + 0.2) == math.inf
    one.in_flight -= 1
    probes.saw(one, 1, True, end + 0.25, end + 0.25)
    assert (one.window, one.own, one.available, one.is_assumed) == (2, 1, LIMIT - 1, True)
    assert one.reset_at == pytest.approx(end + 0.25 + WINDOW_S)


@pytest.mark.parametrize(("shown", "asked", "limit"), [(3, 3, 3), (3, None, 3), (3, LIMIT, LIMIT), (9, 9, 9)])
def test_the_window_that_a_look_opens_has_the_limit_that_was_named(shown: int, asked: int | None, limit: int) -> None:
    """A limit that was lowered in the middle of a window, when more than that had been spent, holds for the next one,
    if all who have spoken name it: all of the old limit left at once."""
    one, end = empty(), T0 + WINDOW_S
    one.observe(shown, 0, end, 0, T0 + 2.0)
    if asked is not None:
        one.observe(asked, 0, end, 0, T0 + 2.0, is_asked=True)
    seen(one, end + 0.2, True)
    assert (one.window, one.limit) == (2, limit)
    assert one.free <= limit - 1


def test_looks_in_vain_come_less_and_less_often() -> None:
    """Refused, the next goes after 0.5 s, then after twice as long each time, up to a minute; where nothing can be told
    from the answer likewise. How much later the window ended is remembered."""
    one, now, pauses = empty(), T0 + WINDOW_S + 0.2, []
    for number in range(9):
        seen(one, now, False if number % 2 else None)
        pauses.append(probes.probe_at(one, now) - now)
        now += pauses[-1]
    assert pauses == pytest.approx([0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0])
    late = empty()
    for at, was_served in ((0.2, False), (0.7, True)):
        seen(late, T0 + WINDOW_S + at, was_served)
    assert late.window == 2
    assert late.window_s == pytest.approx(WINDOW_S)


def test_a_look_that_is_served_refutes_who_said_that_nothing_is_left() -> None:
    """`/rate_limit` says 0, headers say that most is left: after a second a request goes; served, the word of 0 is not
    believed again; refused, the other one is believed less."""
    outcomes = []
    for was_served in (True, False):
        one = Bucket(LIMIT, LIMIT, T0 + WINDOW_S, WINDOW_S)
        one.observe(LIMIT, 0, T0 + WINDOW_S, 0, T0 + 1.0, is_asked=True)
        assert probes.probe_at(one, T0 + 1.0) > T0 + 2.1
        one.observe(LIMIT, LIMIT - 1, T0 + WINDOW_S, 0, T0 + 1.1)
        assert probes.probe_at(one, T0 + 1.1) == pytest.approx(T0 + 2.0)
        seen(one, T0 + 2.1, was_served)
        one.observe(LIMIT, 0, T0 + WINDOW_S, 0, T0 + 2.2, is_asked=True)
        outcomes.append((one.available, one.asked.too_little, one.shown.too_much))
    assert outcomes == [(LIMIT - 2, 1, 0), (0, 0, 1)]


def test_a_second_makes_no_other_end_and_vague_ends_give_way() -> None:
    """Ends a second apart are one, the later; what was said before a window began gives way to who knows it."""
    one = Bucket(LIMIT, LIMIT, T0 + WINDOW_S, WINDOW_S)
    one.observe(LIMIT, LIMIT, T0 + WINDOW_S, 0, T0, is_asked=True)
    one.reserve_one()
    one.observe(LIMIT, LIMIT - 1, T0 + WINDOW_S + 1.0, 0, T0 + 1.0)
    assert (one.window, one.reset_at) == (1, T0 + WINDOW_S + 1.0)
    one.observe(LIMIT, LIMIT - 1, T0 + WINDOW_S + 4.0, 0, T0 + 1.0)
    assert (one.window, one.reset_at) == (1, T0 + WINDOW_S + 4.0)


def test_a_witness_that_contradicts_itself_is_taken_at_its_newest_word() -> None:
    """It said 0, and later that something is left, and a request was served: it is not blamed."""
    witness = Witness()
    witness.say(5, 0, 0, T0)
    witness.say(5, 3, 1, T0)
    assert (witness.ceiling, witness.newest, witness.left(6)) == (5, 7, 1)
    witness.said = witness.latest
    witness.was_too_low(5, Witness(), 6)
    assert (witness.ceiling, witness.too_little, witness.is_blamed) == (7, 0, False)
    witness.was_too_low(8, Witness(), 9)
    assert (witness.too_little, witness.is_blamed) == (1, True)


def test_what_got_lost_on_the_way_blames_no_witness() -> None:
    """It said that something is left of what this run took for spent, and all of that may have been counted late."""
    witness = Witness()
    witness.say(0, 54, 0, T0)
    witness.say(54, 3, 1, T0)
    witness.said = witness.latest
    witness.say(55, 2, 2, T0)
    witness.was_too_low(54, Witness(), 55)
    assert (witness.ceiling, witness.left(55), witness.is_blamed) == (55, 0, False)


@pytest.mark.parametrize(("counted", "is_blamed"), [(30, True), (29, False)])
def test_nothing_got_lost_where_the_other_witness_has_counted_it(counted: int, is_blamed: bool) -> None:
    """One speaks of a smaller limit of which nothing is ever spent: whoever names another limit, and has counted all
    that this run has spent, is right."""
    idle, other = Witness(limit=30), Witness(limit=100)
    idle.say(0, 30, 0, T0)
    idle.say(30, 30, 0, T0)
    idle.said = idle.latest
    other.say(31, 100 - counted - 1, 0, T0)
    idle.was_too_low(30, other, 31)
    assert idle.is_blamed is is_blamed


@pytest.mark.parametrize(("promised", "is_blamed"), [(1, False), (3, True)])
def test_witnesses_that_promised_the_same_are_not_wrong(promised: int, is_blamed: bool) -> None:
    """Some of what was sent never arrived, and looks are served as often as both said: neither is blamed."""
    one, other = Witness(), Witness()
    one.say(32, 0, 0, T0)
    one.say(32, promised, 1, T0)
    other.say(32, 1, 0, T0)
    one.said, other.said, one.raised = one.latest, other.latest, MOST_RAISED
    one.was_too_low(32, other, 33)
    assert one.is_blamed is is_blamed
