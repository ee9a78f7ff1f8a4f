"""`enterprise-security.*`: settings that can be read back, and enablements that can't."""

import pytest

from bulk.model import UNSEEN, Effect, ErrorCode, NotApplied, OutcomeKind
from bulk.undo import Irreversible, Undo
from bulk_jobs.configurations.enterprise_security import (
    SETTINGS,
    EnableSecurityProduct,
    GetEnterpriseSecurity,
    UpdateEnterpriseSecurity,
)
from bulk_jobs.configurations.security_states import LINK, UNREADABLE
from bulk_jobs.shared import polling
from tests.jobs.driver import drive, flaws, item_of, reply, run, settle

GET, UPDATE, ENABLE = GetEnterpriseSecurity(), UpdateEnterpriseSecurity(), EnableSecurityProduct()
URL = "/enterprises/acme/code_security_and_analysis"
ACME = {"enterprise": "acme"}
SCANNING = "secret_scanning_enabled_for_new_repositories"
PATTERNS = "secret_scanning_non_provider_patterns_enabled_for_new_repositories"
OFF = {SCANNING: False, PATTERNS: False, LINK: None}
ON = {**OFF, SCANNING: True}
ASKED = {**ACME, SCANNING: True}


def test_get():
    """One read; the settings are the result."""
    driven = run(GET, ACME, reply(body=OFF))
    assert (driven.shown(), driven.outcome.result) == ([f"GET {URL}"], OFF)
    assert run(GET, ACME, reply(body=OFF, is_unchanged=True)).outcome.kind is OutcomeKind.UNCHANGED
    assert run(GET, ACME, reply(body=[])).is_disbelieved


def test_update_sends_what_was_given_and_no_more():
    """A look, then the given settings alone; being started is enough, and that is said."""
    driven = run(UPDATE, ASKED, reply(body=OFF), reply(204))
    assert driven.shown() == [f"GET {URL}", f"PATCH {URL}"]
    assert (driven.requests[1].body, driven.requests[1].effect) == ({SCANNING: True}, Effect.SET)
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert driven.outcome.result[SCANNING] is True
    assert "background" in driven.outcome.result["note"]


def test_update_of_what_is_so():
    """Nothing is written where the settings are as asked for; a null switch is one that is off."""
    for fields in (ASKED, {**ASKED, PATTERNS: None}, {**ASKED, LINK: None}):
        driven = run(UPDATE, fields, reply(body=ON))
        assert (len(driven.requests), driven.outcome.kind) == (1, OutcomeKind.UNCHANGED)


@pytest.mark.parametrize(("shown", "is_on"), [("true", True), ("False", False), (1, True), ("0", False), (None, False)])
def test_a_switch_may_be_shown_in_another_form(shown, is_on):
    """A text or a number that says on or off is read so, and nothing is written where it is as asked for."""
    shows = reply(body={**OFF, SCANNING: shown})
    same, other = {**ACME, SCANNING: is_on}, {**ACME, SCANNING: not is_on}
    assert run(UPDATE, same, shows).outcome.kind is OutcomeKind.UNCHANGED
    assert run(UPDATE, other, shows, reply(204)).outcome.kind is OutcomeKind.SUCCEEDED
    assert settle(UPDATE, same, UNSEEN, shows, method="PATCH").outcome.kind is OutcomeKind.SUCCEEDED
    assert settle(UPDATE, other, UNSEEN, shows, method="PATCH").is_undone
    undo = UPDATE.undo(item_of(UPDATE, **other), {SCANNING: shown}, None)
    assert isinstance(undo, Undo)
    assert undo.item[SCANNING] is is_on


@pytest.mark.parametrize("is_on", [True, False])
def test_a_switch_that_is_shown_as_neither_proves_nothing(is_on):
    """It is sent; a lost answer stays undecided, and an undo can't bring it back."""
    shows, asked = reply(body={**OFF, SCANNING: "disabled"}), {**ACME, SCANNING: is_on}
    assert run(UPDATE, asked, shows, reply(204)).outcome.kind is OutcomeKind.SUCCEEDED
    settled = settle(UPDATE, asked, UNSEEN, shows, method="PATCH")
    assert not settled.is_undone
    assert settled.is_undecided
    assert isinstance(UPDATE.undo(item_of(UPDATE, **asked), {SCANNING: "disabled"}, None), Irreversible)


@pytest.mark.parametrize(
    ("asked", "shown"),
    [("https://Docs.Example.com:443/x%c3", "https://docs.example.com/x%C3"), (None, "")],
)
def test_a_link_may_be_shown_in_another_form(asked, shown):
    """A link with its host in lower case and without a default port is the same; an empty one is none, and comes back
    as none."""
    shows, fields = reply(body={**ON, LINK: shown}), {**ACME, LINK: asked}
    assert run(UPDATE, fields, shows).outcome.kind is OutcomeKind.UNCHANGED
    followed = run(UPDATE, {**fields, "wait": True}, reply(body={**ON, LINK: "https://x"}), reply(204), shows)
    assert followed.outcome.kind is OutcomeKind.SUCCEEDED
    assert settle(UPDATE, fields, UNSEEN, shows, method="PATCH").outcome.kind is OutcomeKind.SUCCEEDED
    assert run(UPDATE, {**fields, LINK: "https://docs.example.com"}, shows, reply(204)).requests[1].method == "PATCH"
    back = {**ACME, SCANNING: False, "expect": {LINK: asked}}
    assert run(UPDATE, back, shows, reply(204)).outcome.kind is OutcomeKind.SUCCEEDED
    undo = UPDATE.undo(item_of(UPDATE, **{**ACME, LINK: "https://x"}), {LINK: shown}, {})
    assert isinstance(undo, Undo)
    assert undo.item[LINK] == (shown or None)


def test_a_slash_that_the_platform_adds_to_a_link_is_no_change_of_somebody_else():
    """A link that shows with a slash more counts as done once it was another one before: while it is followed, after a
    lost answer, for an undo and for a look back. Where only the slash was to change, it counts."""
    asked, shown = {**ACME, LINK: "https://x/help"}, reply(body={**ON, LINK: "https://x/help/"})
    before = reply(body={**ON, LINK: "https://x"})
    followed = run(UPDATE, {**asked, "wait": True}, before, reply(204), shown)
    assert "a slash more or less" in followed.outcome.result["note"]
    settled = settle(UPDATE, asked, {LINK: "https://x"}, shown, method="PATCH")
    assert "a slash more or less" in settled.outcome.result["note"]
    back = {**ACME, LINK: None, "expect": {LINK: "https://x/help"}}
    assert run(UPDATE, back, shown, reply(204)).outcome.kind is OutcomeKind.SUCCEEDED
    assert drive(UPDATE.steps_to_look_back(item_of(UPDATE, **asked)), shown).outcome.kind is OutcomeKind.UNCHANGED
    assert run(UPDATE, asked, shown, reply(204)).requests[1].body == {LINK: "https://x/help"}
    assert settle(UPDATE, asked, {LINK: "https://x/help/"}, shown, method="PATCH").is_undone


def test_a_link_of_somebody_else_is_left():
    """After a lost answer a link that is neither as before nor as asked for may have been written over ours."""
    asked, theirs = {**ACME, LINK: "https://ours", SCANNING: True}, reply(body={**ON, LINK: "https://theirs"})
    settled = settle(UPDATE, asked, {LINK: None, SCANNING: False}, theirs, method="PATCH")
    assert settled.is_undecided
    assert settled.ended.found[LINK] == {"wanted": "https://ours", "before": None, "found": "https://theirs"}
    assert settle(UPDATE, asked, UNSEEN, theirs, method="PATCH").is_undone


def test_a_look_back_takes_what_can_not_be_read_as_it_was_sent():
    """A setting that nobody can read has not moved because of that; another one that is otherwise has."""
    item = item_of(UPDATE, **{**ASKED, UNREADABLE: True})
    assert drive(UPDATE.steps_to_look_back(item), reply(body=ON)).outcome.kind is OutcomeKind.UNCHANGED
    assert drive(UPDATE.steps_to_look_back(item), reply(body=OFF)).error.code is ErrorCode.CONFLICT


def test_null_is_sent_as_null():
    """What is given as null is sent; what is not given is not."""
    driven = run(UPDATE, {**ACME, LINK: None}, reply(body={**OFF, LINK: "https://x"}), reply(204))
    assert driven.requests[1].body == {LINK: None}


def test_a_setting_that_can_not_be_read_is_always_sent():
    """It may differ from what nobody can see, so it is sent, and the result says that it is unverified."""
    driven = run(UPDATE, {**ASKED, UNREADABLE: True}, reply(body=ON), reply(204))
    assert driven.requests[1].body == {SCANNING: True, UNREADABLE: True}
    assert UNREADABLE in driven.outcome.result["note"]


def test_update_is_followed_until_it_shows():
    """With `wait`: fresh looks with growing pauses, until all settings are as asked for."""
    driven = run(UPDATE, {**ASKED, "wait": True}, *map(reply, (200, 204, 200, 200, 200), (OFF, None, OFF, OFF, ON)))
    looks = driven.requests[2:]
    assert [request.is_fresh for request in looks] == [True] * 3
    assert [request.pause_s for request in looks] == list(polling.pauses())[:3]
    assert (driven.outcome.kind, driven.outcome.result) == (OutcomeKind.SUCCEEDED, {SCANNING: True})


def test_update_that_never_shows_is_unknown():
    """After ten minutes of looking the outcome is unknown (failures.md row 14)."""
    looks = [reply(body=OFF)] * len(list(polling.pauses()))
    driven = run(UPDATE, {**ASKED, "wait": True}, reply(body=OFF), reply(204), *looks)
    assert driven.error.code is ErrorCode.UNKNOWN_OUTCOME


def test_settings_are_things_of_their_own():
    """An update waits for what an item before it has started with the same setting, or with one that it expects."""
    item = item_of(UPDATE, **{**ACME, SCANNING: False, "expect": {LINK: None}})
    path = "/enterprises/acme/code_security_and_analysis"
    assert UPDATE.things(item) == (f"{path}/{SCANNING}", f"{path}/{LINK}")


def test_what_is_expected_may_be_as_wanted_already():
    """A setting that the item would only make what it is stops nothing; one that somebody else changed does."""
    expect = {SCANNING: True, LINK: "https://ours"}
    back = {**ACME, SCANNING: False, LINK: None, "expect": expect}
    assert run(UPDATE, back, reply(body={**ON, LINK: None}), reply(204)).outcome.kind is OutcomeKind.SUCCEEDED
    assert run(UPDATE, back, reply(body={**ON, LINK: "https://theirs"})).error.code is ErrorCode.CONFLICT
    assert run(UPDATE, {**ACME, SCANNING: False, "expect": expect}, reply(body=ON)).error.code is ErrorCode.CONFLICT


def test_update_settled():
    """As asked for: applied. Otherwise: not applied. What can't be read: undecided."""
    applied = settle(UPDATE, ASKED, UNSEEN, reply(body=ON), method="PATCH")
    assert "lost" in applied.outcome.result["note"]
    assert settle(UPDATE, ASKED, UNSEEN, reply(body=OFF), method="PATCH").is_undone
    assert settle(UPDATE, ASKED, UNSEEN, reply(body=None), method="PATCH").is_disbelieved
    assert settle(UPDATE, {**ACME, PATTERNS: False}, UNSEEN, reply(body={SCANNING: False}), method="PATCH").is_undone
    assert settle(UPDATE, {**ASKED, UNREADABLE: True}, UNSEEN, reply(body=ON), method="PATCH").is_undecided


def test_a_part_that_was_done_is_told():
    """A setting that is as asked for, and was not before, is a part; one that was so before is none."""
    asked = {**ACME, SCANNING: True, PATTERNS: True}
    for before, part in (({SCANNING: False, PATTERNS: False}, {SCANNING: True}), ({SCANNING: True}, None)):
        settled = settle(UPDATE, asked, before, reply(body={SCANNING: True, PATTERNS: False}), method="PATCH")
        assert settled.ended == NotApplied("the settings are not as asked for", part)


def test_settings_may_all_be_shown_as_numbers_or_texts():
    """An answer of which no switch is a JSON boolean is still one that shows the settings; one without any is not."""
    shown = {SCANNING: 1, PATTERNS: "false"}
    assert run(UPDATE, {**ACME, SCANNING: True}, reply(body=shown)).outcome.kind is OutcomeKind.UNCHANGED
    assert settle(UPDATE, ASKED, UNSEEN, reply(body={SCANNING: "enabled"}), method="PATCH").is_disbelieved


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        (ACME, SETTINGS[0]),
        ({**ACME, "wait": True}, SETTINGS[0]),
        ({**ACME, LINK: "docs.example.com"}, LINK),
        ({**ACME, LINK: "http://[::1"}, LINK),
        ({**ACME, LINK: "https://x/\n"}, LINK),
        ({**ASKED, "enterprise": "a b"}, "enterprise"),
    ],
)
def test_update_checks(fields, field):
    """At least one setting, and a link that is a URL; each flaw names its field."""
    assert set(flaws(UPDATE, fields)) == {field}
    assert not flaws(UPDATE, ASKED)
    assert not flaws(UPDATE, {**ACME, LINK: "https://docs.example.com/secrets"})


def test_settings_are_the_specifications():
    """The seven fields of the legacy settings, under their own names."""
    assert len(SETTINGS) == 7
    assert {SCANNING, PATTERNS, LINK, UNREADABLE} < set(SETTINGS)


def test_enable():
    """One ordered write; that nothing shows when it is done is said."""
    driven = run(ENABLE, ENABLE.example, reply(204))
    assert driven.shown() == ["POST /enterprises/acme/dependabot_alerts/enable_all"]
    assert driven.requests[0].effect is Effect.ORDERED
    assert driven.requests[0].body is None
    assert "nothing that can be read" in driven.outcome.result["note"]


def test_enable_settled():
    """Nothing that can be read shows it: undecided, without a request."""
    driven = settle(ENABLE, ENABLE.example, UNSEEN, method="POST")
    assert (driven.is_undecided, driven.requests) == (True, [])


def test_lanes():
    """Everything of an enterprise goes one at a time: the platform refuses a second action while one runs."""
    assert UPDATE.lanes(item_of(UPDATE, **ASKED)) == ("acme",)
    assert ENABLE.lanes(item_of(ENABLE, **ENABLE.example)) == ("acme", "acme/dependabot_alerts")


def test_enable_checks():
    """The enterprise is a slug; the example is fine."""
    assert set(flaws(ENABLE, {**ENABLE.example, "enterprise": "a/b"})) == {"enterprise"}
    assert not flaws(ENABLE, ENABLE.example)
