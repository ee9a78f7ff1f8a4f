"""`enterprise-configuration.*`: lists by cursors, a creation that looks first, and what a lost answer means."""

import msgspec
import pytest

from bulk.model import UNSEEN, Effect, ErrorCode, OutcomeKind
from bulk_jobs.configurations.enterprise_configurations import (
    CreateEnterpriseConfiguration,
    GetEnterpriseConfiguration,
    ListEnterpriseConfigurations,
    ListEnterpriseDefaults,
)
from tests.jobs.driver import flaws, item_of, reply, run, settle

CREATE = CreateEnterpriseConfiguration()
ALL = "/enterprises/acme/code-security/configurations"
SETUP, AUTOSUBMIT = "code_scanning_default_setup_options", "dependency_graph_autosubmit_action_options"
NEW = {
    "enterprise": "acme",
    "name": "Strict",
    "secret_scanning": "enabled",
    "code_scanning_options": None,
    "code_scanning_default_setup_options": {"runner_type": "labeled", "runner_label": "big"},
}
BODY = {field: value for field, value in NEW.items() if field != "enterprise"}
BASELINE = {"id": 1001, "name": "Acme baseline"}
MADE = {"id": 1002, "description": "", "dependabot_alerts": "disabled", **BODY}
OTHER = {**MADE, "secret_scanning": "disabled", "code_scanning_default_setup_options": None}
FREE, THERE, DIFFERENT = reply(body=[BASELINE]), reply(body=[BASELINE, MADE]), reply(body=[BASELINE, OTHER])
REFUSED = reply(400, {"message": "Validation Failed"})


def test_lists_follow_every_page():
    """The cursor of the link is followed on the path that was asked; the result is all of it, each once."""
    header = {"link": f'<https://x/api/v3{ALL}?per_page=100&after=c1>; rel="next"'}
    driven = run(ListEnterpriseConfigurations(), {"enterprise": "acme"}, reply(body=[BASELINE], headers=header), THERE)
    assert driven.shown() == [f"GET {ALL}?per_page=100", f"GET {ALL}?per_page=100&after=c1"]
    assert driven.outcome.result == [BASELINE, MADE]


def test_defaults():
    """What new repositories get, as the platform says it."""
    entries = [{"default_for_new_repos": "public", "configuration": BASELINE}]
    driven = run(ListEnterpriseDefaults(), {"enterprise": "acme"}, reply(body=entries))
    assert driven.shown() == [f"GET {ALL}/defaults"]
    assert (driven.outcome.kind, driven.outcome.result) == (OutcomeKind.SUCCEEDED, entries)
    twice = run(ListEnterpriseDefaults(), {"enterprise": "acme"}, reply(body=entries * 2))
    assert twice.outcome.result == entries
    assert run(ListEnterpriseDefaults(), {"enterprise": "acme"}, reply(body={})).is_disbelieved


def test_get():
    """One configuration; one that did not change since it was last read is unchanged."""
    fields = {"enterprise": "acme", "configuration_id": 1001}
    driven = run(GetEnterpriseConfiguration(), fields, reply(body=BASELINE))
    assert (driven.shown(), driven.outcome.result) == ([f"GET {ALL}/1001"], BASELINE)
    again = run(GetEnterpriseConfiguration(), fields, reply(body=BASELINE, is_unchanged=True))
    assert (again.outcome.kind, again.outcome.result) == (OutcomeKind.UNCHANGED, BASELINE)


# -- create


def test_create_looks_first():
    """The list, then the creation with exactly the fields that were given, null included; it remembers what it saw."""
    driven = run(CREATE, NEW, FREE, reply(201, MADE))
    assert driven.shown() == [f"GET {ALL}?per_page=100", f"POST {ALL}"]
    post = driven.requests[1]
    assert (post.effect, post.body, post.before) == (Effect.CREATE_UNIQUE, BODY, [1001])
    assert (driven.outcome.kind, driven.outcome.result) == (OutcomeKind.SUCCEEDED, MADE)


def test_one_that_exists_as_asked():
    """`if_exists` decides; nothing is sent."""
    fail = run(CREATE, NEW, THERE)
    assert fail.error.code is ErrorCode.CONFLICT
    kept = run(CREATE, {**NEW, "if_exists": "unchanged"}, THERE)
    assert (kept.outcome.kind, kept.outcome.result) == (OutcomeKind.UNCHANGED, MADE)


@pytest.mark.parametrize("if_exists", ["fail", "unchanged"])
def test_one_that_exists_and_differs(if_exists):
    """Another configuration of that name is a conflict in any case, and says which fields differ."""
    driven = run(CREATE, {**NEW, "if_exists": if_exists}, DIFFERENT)
    assert driven.error.code is ErrorCode.CONFLICT
    assert "differs in code_scanning_default_setup_options, secret_scanning" in driven.error.message


def test_only_given_fields_are_compared():
    """What an item does not give may be as it likes."""
    driven = run(CREATE, {"enterprise": "acme", "name": "Strict", "if_exists": "unchanged"}, DIFFERENT)
    assert driven.outcome.kind is OutcomeKind.UNCHANGED


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"code_security": "not_set"}, {"code_security": None}),
        ({"secret_scanning": "disabled"}, {}),
        ({"secret_scanning": "disabled"}, {"secret_scanning": None}),
        ({"code_scanning_options": None}, {"code_scanning_options": {"allow_advanced": None}}),
        ({SETUP: {"runner_type": "not_set", "runner_label": None}}, {SETUP: None}),
        ({SETUP: None}, {SETUP: {"runner_type": "not_set", "runner_label": ""}}),
        ({AUTOSUBMIT: {"labeled_runners": False}}, {AUTOSUBMIT: None}),
    ],
)
def test_what_has_no_value_or_is_off_may_be_shown_otherwise(asked, shown):
    """The answer proves the creation, it is settled, and a second run finds it as asked for; what is on must show."""
    item, made = {"enterprise": "acme", "name": "Strict", **asked}, {"id": 1002, "name": "Strict", **shown}
    assert run(CREATE, item, FREE, reply(201, made)).outcome.kind is OutcomeKind.SUCCEEDED
    there = reply(body=[BASELINE, made])
    assert run(CREATE, {**item, "if_exists": "unchanged"}, there).outcome.kind is OutcomeKind.UNCHANGED
    assert settle(CREATE, item, [1001], there, method="POST").outcome.kind is OutcomeKind.SUCCEEDED
    on = {
        **item,
        "secret_scanning": "enabled",
        SETUP: {"runner_type": "standard"},
        AUTOSUBMIT: {"labeled_runners": True},
    }
    assert run(CREATE, on, FREE, reply(201, made)).is_disbelieved


def test_a_name_in_another_case():
    """A platform that compares without case has it; exactly this name is preferred."""
    shouting = {**OTHER, "name": "STRICT", "id": 7}
    assert run(CREATE, NEW, reply(body=[shouting])).error.code is ErrorCode.CONFLICT
    both = run(CREATE, {**NEW, "if_exists": "unchanged"}, reply(body=[shouting, MADE]))
    assert both.outcome.result["id"] == 1002


def test_refused_because_somebody_was_faster():
    """A 400 may hide that the name is taken: the list is read again, past the store."""
    driven = run(CREATE, {**NEW, "if_exists": "unchanged"}, FREE, REFUSED, THERE)
    assert driven.requests[2].is_fresh
    assert driven.outcome.kind is OutcomeKind.UNCHANGED
    lost = run(CREATE, NEW, FREE, REFUSED, DIFFERENT)
    assert (lost.error.code, lost.outcome.http_status) == (ErrorCode.CONFLICT, 400)


def test_refused_for_another_reason():
    """Where the name is still free, the platform's words are the reason."""
    driven = run(CREATE, NEW, FREE, reply(400, {"message": "secret_scanning is not licensed"}), FREE)
    assert (driven.error.code, driven.error.message) == (
        ErrorCode.VALIDATION_FAILED,
        "secret_scanning is not licensed",
    )
    taken = {"message": "x", "errors": [{"field": "name", "code": "already_exists"}]}
    for refusal in (reply(422, taken), reply(409, {})):
        assert run(CREATE, NEW, FREE, refusal, FREE).error.code is ErrorCode.CONFLICT


def test_a_list_that_can_t_be_used():
    """Nothing is sent where the list makes no sense."""
    assert run(CREATE, NEW, reply(body={})).is_disbelieved


def test_create_settled():
    """As asked for and new: applied. Nothing new: not applied. New and otherwise, or unreadable: undecided."""
    before = [1001]
    applied = settle(CREATE, NEW, before, THERE, method="POST")
    assert (applied.outcome.kind, applied.outcome.result["id"]) == (OutcomeKind.SUCCEEDED, 1002)
    assert "lost" in applied.outcome.result["note"]
    assert settle(CREATE, NEW, before, FREE, method="POST").is_undone
    other = settle(CREATE, NEW, before, DIFFERENT, method="POST")
    assert (other.is_undecided, other.ended.found) == (True, [OTHER])
    named_otherwise = settle(CREATE, NEW, before, reply(body=[BASELINE, {**MADE, "name": "Stri"}]), method="POST")
    assert named_otherwise.is_undecided
    assert settle(CREATE, NEW, [1002], THERE, method="POST").is_undecided
    assert settle(CREATE, NEW, UNSEEN, THERE, method="POST").is_undecided
    assert settle(CREATE, NEW, before, reply(body=None), method="POST").is_disbelieved


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"enterprise": "a/b"}, "enterprise"),
        ({"name": " "}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"description": "a\x00"}, "description"),
    ],
)
def test_create_checks(change, field):
    """Each flaw names its field; a description may have several lines."""
    assert set(flaws(CREATE, {**NEW, **change})) == {field}
    assert not flaws(CREATE, {**NEW, "description": "two\nlines"})


@pytest.mark.parametrize(
    "change",
    [
        {"advanced_security": "not_set"},
        {"secret_scanning": None},
        {"secret_scanning": "on"},
        {"enforcement": "enabled"},
        {"secret_scanning_delegated_bypass": "enabled"},
        {"code_scanning_default_setup_options": {"runner_type": "fast"}},
        {"dependency_graph_autosubmit_action_options": None},
        {"name": ""},
    ],
)
def test_types_refuse(change):
    """Other values, null where it means nothing, and what only an update takes are refused while decoding."""
    with pytest.raises(msgspec.ValidationError):
        item_of(CREATE, **{**NEW, **change})


def test_create_lane():
    """One creation at a time in each enterprise, so that what is new there is explained."""
    assert CREATE.lanes(item_of(CREATE, **NEW)) == ("acme",)
