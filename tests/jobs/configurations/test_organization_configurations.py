"""`organization-configuration.get`, `.update`, `.delete`, `.set-default`, `.repositories`."""

import pytest

from bulk.model import UNSEEN, Effect, ErrorCode, OutcomeKind
from bulk.undo import Undo
from bulk_jobs.configurations.organization_configurations import (
    DeleteOrganizationConfiguration,
    GetOrganizationConfiguration,
    ListConfigurationRepositories,
    SetDefaultConfiguration,
    UpdateOrganizationConfiguration,
)
from bulk_jobs.shared.configuration_fields import differences
from tests.jobs.driver import flaws, item_of, reply, run, settle

GET, REPOSITORIES = GetOrganizationConfiguration(), ListConfigurationRepositories()
UPDATE, DELETE, DEFAULT = (
    UpdateOrganizationConfiguration(),
    DeleteOrganizationConfiguration(),
    SetDefaultConfiguration(),
)
ONE = {"org": "acme-eng", "configuration_id": 2001}
PATH = "/orgs/acme-eng/code-security/configurations/2001"
CANARY = "GET /orgs/acme-eng/rulesets?per_page=1"
REVIEWERS = {"reviewers": [{"reviewer_id": 5, "reviewer_type": "TEAM"}, {"reviewer_id": 6, "reviewer_type": "ROLE"}]}
CHANGE = {
    **ONE,
    "description": "New.",
    "secret_scanning_delegated_bypass_options": REVIEWERS,
    "code_scanning_default_setup_options": {"runner_label": None},
}
SETUP = "code_scanning_default_setup_options"
BODY = {field: value for field, value in CHANGE.items() if field not in ONE}
BEFORE = {"id": 2001, "name": "Eng default", "description": "", "code_scanning_default_setup_options": None}
SHOWN = {
    "reviewers": [
        {"security_configuration_id": 2001, **reviewer, "mode": "ALWAYS"} for reviewer in REVIEWERS["reviewers"][::-1]
    ]
}
AFTER = {
    **BEFORE,
    "description": "New.",
    "secret_scanning_delegated_bypass_options": SHOWN,
    "code_scanning_default_setup_options": {"runner_type": "not_set", "runner_label": None},
}
ABSENT, VISIBLE, HIDDEN = reply(404), reply(body=[]), reply(404)


def test_get():
    """The configuration; what is not an object is unusable."""
    driven = run(GET, ONE, reply(body=BEFORE))
    assert (driven.shown(), driven.outcome.result) == ([f"GET {PATH}"], BEFORE)
    assert run(GET, ONE, reply(body=BEFORE, is_unchanged=True)).outcome.kind is OutcomeKind.UNCHANGED
    assert run(GET, ONE, reply(body=[])).is_disbelieved


def test_repositories_follow_every_page():
    """The result is every entry of every page, as the platform writes them."""
    header = {"link": f'<https://x/api/v3{PATH}/repositories?per_page=100&after=c1>; rel="next"'}
    first, second = {"status": "attached", "repository": {"id": 1}}, {"status": "failed", "repository": {"id": 2}}
    driven = run(REPOSITORIES, ONE, reply(body=[first], headers=header), reply(body=[second]))
    assert driven.shown()[1] == f"GET {PATH}/repositories?per_page=100&after=c1"
    assert driven.outcome.result == [first, second]


# -- update


def test_update_sends_what_is_given():
    """A look, whose values of these fields are remembered; then exactly the fields of the item, null included. The
    platform's answer is the result."""
    driven = run(UPDATE, CHANGE, reply(body=BEFORE), reply(200, AFTER))
    look, patch = driven.requests
    assert (look.method, look.path, look.is_fresh) == ("GET", PATH, True)
    assert patch.before == {field: BEFORE.get(field) for field in BODY}
    assert (patch.method, patch.path, patch.effect, patch.body) == ("PATCH", PATH, Effect.SET, BODY)
    assert (driven.outcome.kind, driven.outcome.result) == (OutcomeKind.SUCCEEDED, AFTER)


def test_204_means_unchanged():
    """The platform says that nothing had to be changed, which is believed where the look has not shown otherwise."""
    driven = run(UPDATE, CHANGE, reply(body=AFTER), reply(204))
    assert (driven.outcome.kind, driven.outcome.result) == (OutcomeKind.UNCHANGED, {"id": 2001})
    assert run(UPDATE, CHANGE, reply(body=BEFORE), reply(204)).is_disbelieved
    unshown = {name: value for name, value in AFTER.items() if name not in BODY}
    assert run(UPDATE, CHANGE, reply(body=unshown), reply(204)).outcome.kind is OutcomeKind.UNCHANGED


def test_what_no_answer_shows_is_told():
    """A platform that does not know a setting shows it nowhere: the change is believed, with a note. Where a look has
    shown the setting, a short answer proves nothing."""
    item, plain = {**ONE, "description": "x"}, {"id": 2001, "name": "Strict"}
    hidden = run(UPDATE, item, reply(body=plain), reply(200, plain)).outcome
    assert hidden.result == {**plain, "note": "the platform does not show description"}
    assert run(UPDATE, item, reply(body={**plain, "description": "y"}), reply(200, plain)).is_disbelieved


def test_what_has_no_value_may_be_shown_as_another_nothing():
    """`not_set`, null and an object of these are the same; what is off, and was shown as on, has to be shown."""
    item, shown = {**ONE, "code_security": "not_set", SETUP: None}, {SETUP: {"runner_type": "not_set"}}
    before, after = {"id": 2001, "name": "x", "code_security": None}, {"id": 2001, "name": "x", **shown}
    for then in (reply(200, {**after, "code_security": None}), reply(204)):
        assert run(UPDATE, item, reply(body=before), then).outcome is not None
    on = {**before, "code_security": "enabled"}
    assert run(UPDATE, item, reply(body=on), reply(204)).is_disbelieved
    assert run(UPDATE, item, reply(body=on), reply(200, after)).is_disbelieved
    assert settle(UPDATE, item, on, reply(body=after), method="PATCH").outcome.kind is OutcomeKind.SUCCEEDED
    off = {**ONE, "code_security": "disabled"}
    assert run(UPDATE, off, reply(body=on), reply(200, after)).is_disbelieved
    assert settle(UPDATE, off, {"code_security": "enabled"}, reply(body=after), method="PATCH").is_undecided


def test_update_settled():
    """Every sent field as asked for, whatever the order: applied. One differs: not applied. Unreadable: undecided."""
    applied = settle(UPDATE, CHANGE, UNSEEN, reply(body=AFTER), method="PATCH")
    assert applied.outcome.kind is OutcomeKind.SUCCEEDED
    assert "lost" in applied.outcome.result["note"]
    assert settle(UPDATE, CHANGE, UNSEEN, reply(body=BEFORE), method="PATCH").is_undone
    fewer = {**AFTER, "secret_scanning_delegated_bypass_options": {"reviewers": SHOWN["reviewers"][:1]}}
    assert settle(UPDATE, CHANGE, UNSEEN, reply(body=fewer), method="PATCH").is_undone
    more = {**AFTER, "secret_scanning_delegated_bypass_options": {"reviewers": [*SHOWN["reviewers"], {}]}}
    assert settle(UPDATE, CHANGE, UNSEEN, reply(body=more), method="PATCH").is_undone
    assert settle(UPDATE, CHANGE, UNSEEN, ABSENT, method="PATCH").is_undecided


@pytest.mark.parametrize("result", [AFTER, {"id": 2001}, {"id": 2001, "note": "an earlier send had already done it"}])
def test_an_update_is_taken_back_only_where_it_is_as_it_was_left(result):
    """Also where no answer said what was left: then that is what was sent."""
    before = {field: BEFORE.get(field) for field in BODY}
    undo = UPDATE.undo(item_of(UPDATE, **CHANGE), before, result)
    assert isinstance(undo, Undo)
    assert not differences(undo.item["expect"], AFTER)
    assert undo.item["expect"].keys() == BODY.keys()


def test_an_update_settled_beside_somebody_elses():
    """As before the request: not applied. Neither as before nor as asked for: undecided, with all three."""
    before = {field: BEFORE.get(field) for field in BODY}
    assert settle(UPDATE, CHANGE, before, reply(body={**BEFORE, "name": "Other"}), method="PATCH").is_undone
    assert settle(UPDATE, CHANGE, before, reply(body=AFTER), method="PATCH").outcome.kind is OutcomeKind.SUCCEEDED
    theirs = {**AFTER, "secret_scanning_delegated_bypass_options": {"reviewers": []}}
    driven = settle(UPDATE, CHANGE, before, reply(body=theirs), method="PATCH")
    assert driven.is_undecided
    assert driven.ended.found == {
        "wanted": BODY,
        "before": before,
        "found": {field: theirs.get(field) for field in BODY},
    }


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        (ONE, "name"),
        ({**CHANGE, "org": "a/b"}, "org"),
        ({**CHANGE, "name": " "}, "name"),
        (
            {**CHANGE, "dependabot_delegated_alert_dismissal": "enabled", "dependabot_alerts": "disabled"},
            "dependabot_delegated_alert_dismissal",
        ),
    ],
)
def test_update_checks(fields, field):
    """Nothing to change, bad words, and dismissal without alerts are refused before anything is sent."""
    assert set(flaws(UPDATE, fields)) == {field}
    assert not flaws(UPDATE, {**CHANGE, "dependabot_delegated_alert_dismissal": "enabled"})


@pytest.mark.parametrize(
    "reviewer", [{"reviewer_type": "TEAM"}, {"reviewer_id": 1}, {"reviewer_id": 1, "reviewer_type": "USER"}]
)
def test_a_reviewer_has_an_id_and_a_type(reviewer):
    """Both are required, and a type is TEAM or ROLE."""
    with pytest.raises(ValueError, match="reviewer"):
        item_of(UPDATE, **ONE, secret_scanning_delegated_bypass_options={"reviewers": [reviewer]})


# -- delete


def test_delete_looks_first():
    """One that is there is deleted, with a write that a conflict makes look again."""
    driven = run(DELETE, ONE, reply(body=BEFORE), reply(204))
    assert driven.shown() == [f"GET {PATH}", f"DELETE {PATH}"]
    assert driven.requests[1].effect is Effect.COMPARE_AND_SWAP
    assert (driven.outcome.kind, driven.outcome.result) == (OutcomeKind.SUCCEEDED, {"id": 2001})


@pytest.mark.parametrize("answers", [(ABSENT, ABSENT), (reply(body=BEFORE), ABSENT, ABSENT, ABSENT)])
def test_delete_of_what_is_not_there(answers):
    """Unchanged, but only where the organization can be seen, and a second 404 says so: one alone proves nothing."""
    gone = run(DELETE, ONE, *answers, VISIBLE)
    assert gone.shown()[-1] == CANARY
    assert gone.outcome.kind is OutcomeKind.UNCHANGED
    assert run(DELETE, ONE, *answers, HIDDEN).error.code is ErrorCode.NOT_FOUND


def test_a_single_404_does_not_say_that_it_is_not_there():
    """What a second look shows is deleted."""
    driven = run(DELETE, ONE, ABSENT, reply(body=BEFORE), reply(204))
    assert [request.is_fresh for request in driven.requests[:2]] == [False, True]
    assert (driven.requests[2].method, driven.outcome.kind) == ("DELETE", OutcomeKind.SUCCEEDED)


def test_a_404_while_the_configuration_is_there():
    """Who may read it and not delete it is told 404: it is looked at once more before that is believed."""
    driven = run(DELETE, ONE, reply(body=BEFORE), ABSENT, reply(body=BEFORE))
    assert (driven.error.code, "is there" in driven.error.message) == (ErrorCode.NOT_FOUND, True)
    assert driven.requests[2].is_fresh


def test_delete_settled():
    """Gone, and the organization can be seen: applied. Still there: not applied. Hidden: undecided."""
    applied = settle(DELETE, ONE, UNSEEN, ABSENT, ABSENT, VISIBLE, method="DELETE")
    assert applied.outcome.kind is OutcomeKind.SUCCEEDED
    assert settle(DELETE, ONE, UNSEEN, reply(body=BEFORE), method="DELETE").is_undone
    assert settle(DELETE, ONE, UNSEEN, ABSENT, ABSENT, HIDDEN, method="DELETE").is_undecided


def test_deletion_is_irreversible_and_says_so():
    """The plan warns of it: which repositories had it can't be restored."""
    assert DELETE.is_irreversible
    assert not UPDATE.is_irreversible


# -- set-default


def test_set_default():
    """One request, and the platform's echo."""
    late_write = {"default_for_new_repos": "all", "configuration": BEFORE}
    driven = run(DEFAULT, {**ONE, "default_for_new_repos": "all"}, reply(200, late_write))
    (put,) = driven.requests
    assert (put.method, put.path, put.effect) == ("PUT", f"{PATH}/defaults", Effect.ORDERED)
    assert put.body == {"default_for_new_repos": "all"}
    assert driven.outcome.result == late_write


@pytest.mark.parametrize("shown", [{}, {"configuration": None}])
def test_the_default_of_nothing_may_show_no_configuration(shown):
    """Where it is to be not a default any more, an answer without it is believed, and one with another is not."""
    for value, is_enough in (("none", True), ("all", False)):
        answer = reply(200, {"default_for_new_repos": value, **shown})
        assert run(DEFAULT, {**ONE, "default_for_new_repos": value}, answer).is_disbelieved is not is_enough
    other = reply(200, {"default_for_new_repos": "none", "configuration": {"id": 2002}})
    assert run(DEFAULT, {**ONE, "default_for_new_repos": "none"}, other).is_disbelieved


def test_set_default_settled():
    """No read shows an organization's defaults, so nothing is read and it is undecided: the engine repeats it."""
    driven = settle(DEFAULT, {**ONE, "default_for_new_repos": "all"}, UNSEEN)
    assert driven.is_undecided
    assert driven.requests == []


def test_lanes():
    """Writes to one configuration go one after the other; a default concerns the whole organization too."""
    assert UPDATE.lanes(item_of(UPDATE, **CHANGE)) == ("acme-eng/2001",)
    assert DELETE.lanes(item_of(DELETE, **ONE)) == ("acme-eng/2001",)
    assert DEFAULT.lanes(item_of(DEFAULT, **ONE, default_for_new_repos="all")) == ("acme-eng", "acme-eng/2001")


@pytest.mark.parametrize("operation", [GET, REPOSITORIES, DELETE])
def test_checks(operation):
    """An organization's name must be one."""
    assert set(flaws(operation, {**ONE, "org": "a b"})) == {"org"}
    assert not flaws(operation, ONE)
