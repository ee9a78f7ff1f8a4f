"""Writes that were refused: their effects are looked for, and many that are refused for a reason cost few looks."""

from pathlib import Path
from typing import Any

import pytest

from bulk.execute.writes.recent_writes import CREATES
from bulk.execute.writes.refused_writes import LOOKS_FIRST, LOOKS_THEN, TWICE_FIRST, RefusedWrites
from bulk.model import Effect, ErrorCode, NotApplied, OutcomeKind, Undecided, failed, succeeded
from tests.execute.test_item_runner import JSON, play, sends
from tests.execute.writes.settling import SETTLE_S, Thing
from tests.execute.writes.test_settle import CONFLICT, looked_for
from tests.simulation.schedules import put
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer
from tests.simulation.world import World

KIND = ("contents.put", 422)


def test_the_first_refusals_of_a_kind_are_looked_into_and_a_part_of_the_others():
    """The first ones twice or once, then one in so many; another status is another kind."""
    refused = RefusedWrites()
    looks = [refused.looks(KIND) for _ in range(10 * LOOKS_THEN)]
    assert looks[:TWICE_FIRST] == [2] * TWICE_FIRST
    assert looks[TWICE_FIRST:LOOKS_FIRST] == [1] * (LOOKS_FIRST - TWICE_FIRST)
    assert sum(looks[LOOKS_FIRST:]) == 9
    assert refused.looks(("contents.put", 404)) == 2


def test_a_kind_that_has_lied_is_always_looked_into():
    """Once a write was done that was refused so, no refusal of its kind is believed without a look."""
    refused = RefusedWrites()
    for _ in range(LOOKS_FIRST):
        refused.looks(KIND)
    assert refused.looks(KIND) == 0
    refused.was_done(KIND)
    assert [refused.looks(KIND) for _ in range(5)] == [1] * 5


@pytest.mark.interpreted
@pytest.mark.parametrize("seen", [Undecided("can't be read"), NotApplied(), Undecided("gone", found=1)])
@pytest.mark.parametrize("effect", list(Effect))
def test_a_look_that_sees_nothing_is_repeated(effect: Effect, seen: NotApplied | Undecided) -> None:
    """A write was done and refused with 404, and the look behind it met another 404: it was `failed`. Of the first few
    refusals of a kind a look that shows nothing, or could not read, is followed by another one."""
    refusal = failed(ErrorCode.FORBIDDEN, "no", gives_codes=True)
    outcome, _ = looked_for(Thing([seen, succeeded({})]), effect, refusal)
    assert outcome is not None
    assert outcome.kind is OutcomeKind.SUCCEEDED
    never = Thing([seen])
    assert looked_for(never, effect, refusal)[0] is None
    assert never.readings == 2


FILE = {"owner": "acme-eng", "repo": "hello-world", "path": "README.md", "message": "Away"}
RULESET = {
    "org": "acme-eng",
    "name": "Protect main",
    "enforcement": "active",
    "conditions": {"ref_name": {"include": ["~ALL"], "exclude": []}, "repository_name": {"include": ["~ALL"]}},
}
TAKEN = (
    b'{"message": "Validation Failed", "errors": [{"resource": "Thing", "field": "name", "code": "already_exists"}]}'
)
SAID_NOTHING = b'{"message": "Validation Failed", "errors": ["Name must be unique"]}'
GONE = b'{"message": "Not Found"}'


@pytest.mark.parametrize(
    ("operation", "item", "status", "body"),
    [
        ("organization.create", {"login": "acme-web", "admin": "octoadmin"}, 422, TAKEN),
        ("organization.create", {"login": "acme-web", "admin": "octoadmin"}, 422, SAID_NOTHING),
        ("webhook.create", {"org": "acme-eng", "config": {"url": "http://127.0.0.1:9/new"}}, 422, SAID_NOTHING),
        ("organization-ruleset.create", RULESET, 422, SAID_NOTHING),
        ("webhook.delete", {"org": "acme-ops", "hook_id": 4001}, 404, GONE),
        ("contents.delete", FILE, 404, GONE),
        ("organization.rename", {"org": "acme-labs", "login": "acme-research"}, 404, GONE),
    ],
)
def test_a_refusal_that_may_be_about_its_own_effect_is_waited_out(
    folder: Path, operation: str, item: dict[str, Any], status: int, body: bytes
) -> None:
    """A proxy sends a write twice and passes on the refusal of the second one, while a copy of the platform shows for
    seconds what was there before: the item has succeeded, and the note names the refusal."""
    refusal = answer(status, body, JSON, is_passed_on=True)

    def meet(exchange: Exchange) -> Fate:
        return refusal if exchange.is_write else Fate(kind="stale", stale_s=3.0)

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        (line,) = lines
        assert (line["outcome"], code, sends(made)) == ("succeeded", 0, 1), line
        assert f"status {status}" in line["result"]["note"]

    play(folder, operation, [item], meet, check, is_stale=True)


@pytest.mark.parametrize("status", [403, 422])
def test_many_that_are_refused_for_a_reason_cost_few_looks(folder: Path, status: int) -> None:
    """Of 220 writes that are refused and not done, 101 are looked into; each ends as it was refused."""
    refusal = answer(status, b'{"message": "Not for you, and this says why"}', JSON)

    def meet(exchange: Exchange) -> Fate:
        return refusal if exchange.is_write else FINE

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        assert (sends(made), code) == (220, 1)
        assert {(line["outcome"], line["http_status"], line["attempts"]) for line in lines} == {("failed", status, 1)}
        reads = sum("/contents/" in each.path and not each.is_write for each in made.network.exchanges)
        its_own = 440 if status == 422 else 220  # a 422 is looked into by the operation itself, too
        # the first ones with a 422 may be about what they have left themselves: they are looked at until that shows
        more = reads - (its_own + LOOKS_FIRST + 1 + TWICE_FIRST)
        assert 0 <= more <= (10 * TWICE_FIRST if status == 422 else 0)

    items = [put("repo-00000", f"docs/many/{number}.md", "a") for number in range(220)]
    play(folder, "contents.put", items, meet, check)


@pytest.mark.interpreted  # what stands in for the sender inherits from a class that is compiled
def test_only_what_a_creation_finds_is_looked_at_again() -> None:
    """A copy that lags may list what is new and not yet show it as asked for; a blob of somebody else's stays one."""
    found = Undecided("5 is new and not as asked for", found=[{"id": 5}])
    for effect, is_waited_for in ((Effect.CREATE_UNIQUE, True), (Effect.COMPARE_AND_SWAP, False)):
        outcome, took_s = looked_for(Thing([found, found, succeeded({})]), effect, CONFLICT)
        assert ((outcome is not None), took_s > 0.0) == (is_waited_for, is_waited_for)


@pytest.mark.interpreted
@pytest.mark.parametrize("effect", [Effect.MOVE, Effect.ORDERED])
def test_what_has_begun_although_it_was_refused_is_waited_for(effect: Effect) -> None:
    """Neither name of an organization is there while the platform renames it: that is not as before, so that nobody
    may call it failed, whatever the refusal says."""
    begun = Undecided("neither name can be seen", is_begun=True)
    done, took_s = looked_for(Thing([begun, begun, succeeded({})]), effect, CONFLICT)
    assert (done is not None and done.kind, took_s > 0.0) == (OutcomeKind.SUCCEEDED, True)
    never, took_s = looked_for(Thing([begun]), effect, CONFLICT)
    assert (never is not None and never.kind) is OutcomeKind.UNKNOWN
    assert SETTLE_S <= took_s <= SETTLE_S + 3.0


@pytest.mark.interpreted
@pytest.mark.parametrize("effect", CREATES)
def test_looks_for_a_refused_creation_that_contradict_each_other(effect: Effect) -> None:
    """Each answer was the one before: looks showed everything, also what nobody has, and then nothing."""
    everything = Undecided("any organization is shown", is_begun=True)
    for found in ([everything, NotApplied()], [NotApplied(), everything, NotApplied()]):
        outcome, _ = looked_for(Thing(found), effect, CONFLICT)
        assert (outcome is not None and outcome.kind) is OutcomeKind.UNKNOWN


@pytest.mark.interpreted
def test_settings_that_were_refused_and_are_a_third_value_are_unknown() -> None:
    """A platform may have done a part of what it refused: unless it says what was wrong with the content, nobody can
    tell."""
    found = Undecided("neither as before nor as asked for", found={"wanted": 1})
    for refusal in (CONFLICT, failed(ErrorCode.VALIDATION_FAILED, "no")):
        outcome, _ = looked_for(Thing([found]), Effect.SET, refusal)
        assert outcome is not None
        assert (outcome.kind, outcome.result) == (OutcomeKind.UNKNOWN, {"wanted": 1})
    coded = failed(ErrorCode.VALIDATION_FAILED, "no", gives_codes=True)
    assert looked_for(Thing([found]), Effect.SET, coded)[0] is None
