"""`organization-ruleset.*` and `enterprise-ruleset.*`: looks before and after a creation, and what is compared."""

import msgspec
import pytest

from bulk.model import UNSEEN, Effect, ErrorCode, Lost, OutcomeKind
from bulk_jobs.rulesets.rulesets import (
    CreateOrganizationRuleset,
    GetRulesetVersion,
    ListOrganizationRulesets,
    ListRulesetHistory,
)
from tests.jobs.driver import drive, flaws, item_of, reply, run, settle

CREATE, LIST = CreateOrganizationRuleset(), ListOrganizationRulesets()
HISTORY, VERSION = ListRulesetHistory(), GetRulesetVersion()
CONDITIONS = {"ref_name": {"include": ["~ALL"], "exclude": []}, "repository_name": {"include": ["~ALL"], "exclude": []}}
NEW = {
    "org": "acme-eng",
    "name": "Protect main",
    "enforcement": "active",
    "conditions": CONDITIONS,
    "rules": [{"type": "deletion"}, {"type": "creation"}],
}
BODY = {**{name: value for name, value in NEW.items() if name != "org"}, "target": "branch"}
LOOK = "GET /orgs/acme-eng/rulesets?per_page=100"
FILTERED = "GET /orgs/acme-eng/rulesets?targets=branch&per_page=100"
WHOLE = "GET /orgs/acme-eng/rulesets/7"
TAKEN = {"message": "Validation Failed", "errors": ["Name must be unique"]}


def summary(number=7, name="Protect main", enforcement="active", source="acme-eng"):
    """A ruleset as a list shows it."""
    return {
        "id": number,
        "name": name,
        "source_type": "Organization",
        "source": source,
        "enforcement": enforcement,
        "node_id": "x",
        "_links": {},
        "created_at": "2026-11-21T08:00:00Z",
        "updated_at": "2026-11-21T08:00:00Z",
    }


def whole(**changed):
    """The ruleset as its creation answers, more complete than what was asked for."""
    rules = [{"type": "creation"}, {"type": "deletion", "parameters": {}}]
    conditions = {**CONDITIONS, "repository_name": {"include": ["~ALL"], "exclude": [], "protected": False}}
    return {
        **summary(),
        "target": "branch",
        "bypass_actors": [],
        "conditions": conditions,
        "rules": rules,
        **changed,
    }


SHOWN = {
    name: value for name, value in whole().items() if name not in ("_links", "bypass_actors", "conditions", "rules")
}
OTHERS = reply(body=[summary(3, "Other"), summary(5, "protect")])
NONE = reply(body=[])
THERE = reply(body=[summary(3, "Other"), summary()])


# -- create


def test_create_looks_first_and_remembers_what_was_there():
    """A fresh list of all rulesets, then the creation with their ids as what was there."""
    driven = run(CREATE, NEW, OTHERS, reply(201, whole()))
    assert driven.shown() == [LOOK, "POST /orgs/acme-eng/rulesets"]
    look, post = driven.requests
    assert look.is_fresh
    assert post.effect is Effect.CREATE
    assert post.before == [3, 5]
    assert post.body == BODY
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert driven.outcome.result == SHOWN


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({}, {"rules": []}),
        ({}, {"rules": [{"type": "creation"}, {"type": "update"}]}),
        ({}, {"conditions": {**CONDITIONS, "ref_name": {"include": ["refs/heads/x"], "exclude": []}}}),
        ({"bypass_actors": [{"actor_type": "Team", "actor_id": 7}]}, {"bypass_actors": []}),
    ],
)
def test_a_new_one_with_other_rules_is_looked_at(asked, shown):
    """An answer with other rules, conditions or actors than were asked for is not a success: the ruleset itself
    decides, and where that is no better, or not shown, nobody knows. It is never created a second time."""
    made = whole(**shown)
    for looked in (reply(body=made), reply(404)):
        driven = run(CREATE, {**NEW, **asked}, NONE, reply(201, made), looked)
        assert driven.shown() == [LOOK, "POST /orgs/acme-eng/rulesets", WHOLE]
        assert (driven.outcome.kind, "otherwise" in driven.error.message) == (OutcomeKind.UNKNOWN, True)
        assert driven.outcome.result["found"] == shown
    right = reply(body=whole(**asked))
    assert run(CREATE, {**NEW, **asked}, NONE, reply(201, made), right).outcome.kind is OutcomeKind.SUCCEEDED


def test_the_ids_of_some_actors_mean_nothing():
    """The platform ignores them, and shows none or one of its own (specification, Rulesets)."""
    asked = [{"actor_type": "OrganizationAdmin", "actor_id": 5}, {"actor_type": "Team", "actor_id": 7}]
    shown = [
        {"actor_type": "Team", "actor_id": 7, "bypass_mode": "always"},
        {"actor_type": "OrganizationAdmin", "actor_id": None, "bypass_mode": "always"},
    ]
    driven = run(CREATE, {**NEW, "bypass_actors": asked}, NONE, reply(201, whole(bypass_actors=shown)))
    assert (driven.outcome.kind, "note" in driven.outcome.result) == (OutcomeKind.SUCCEEDED, False)
    unasked = run(CREATE, NEW, NONE, reply(201, whole(bypass_actors=shown))).outcome
    assert (unasked.kind, "none were asked for" in unasked.result["note"]) == (OutcomeKind.SUCCEEDED, True)


def test_an_id_of_the_users_own_is_not_sent():
    """Nor are the organization and what an existing one counts as."""
    post = run(CREATE, {**NEW, "id": "mine", "if_exists": "unchanged"}, NONE, reply(201, whole())).requests[1]
    assert post.body == BODY


def test_one_of_that_name_is_a_conflict():
    """Unless asked otherwise nothing is compared and nothing is sent."""
    driven = run(CREATE, NEW, THERE)
    assert driven.error.code is ErrorCode.CONFLICT
    assert driven.shown() == [LOOK]


def test_one_that_is_as_asked_for_is_unchanged():
    """The whole ruleset is compared: order and the platform's own additions say nothing."""
    driven = run(CREATE, {**NEW, "if_exists": "unchanged"}, THERE, reply(body=whole()))
    assert driven.shown() == [LOOK, WHOLE]
    assert driven.outcome.kind is OutcomeKind.UNCHANGED
    assert driven.outcome.result == SHOWN


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"enforcement": "disabled"}, "enforcement"),
        ({"target": "tag"}, "target"),
        ({"rules": [{"type": "deletion"}]}, "rules"),
        ({"conditions": {}, "rules": []}, "conditions, rules"),
    ],
)
def test_one_that_differs_is_a_conflict(changed, said):
    """A ruleset of that name that differs is a conflict, whose message names what differs."""
    driven = run(CREATE, {**NEW, "if_exists": "unchanged"}, THERE, reply(body=whole(**changed)))
    assert driven.error.code is ErrorCode.CONFLICT
    assert driven.error.message.endswith(f"not as asked for: {said}")


def test_what_a_whole_ruleset_hides_is_not_compared():
    """Those who may pass are shown to few; the result says that they were not compared."""
    fields = {**NEW, "if_exists": "unchanged", "bypass_actors": [{"actor_type": "OrganizationAdmin"}]}
    shown = whole()
    del shown["bypass_actors"]
    driven = run(CREATE, fields, THERE, reply(body=shown))
    assert driven.outcome.kind is OutcomeKind.UNCHANGED
    assert "bypass_actors" in driven.outcome.result["note"]


def test_where_no_single_ruleset_is_shown_the_summary_is_compared():
    """The target by what `targets` filters, the enforcement by the summary; the result says what was not compared."""
    fields = {**NEW, "if_exists": "unchanged"}
    driven = run(CREATE, fields, THERE, reply(404), THERE)
    assert driven.shown() == [LOOK, WHOLE, FILTERED]
    assert driven.outcome.kind is OutcomeKind.UNCHANGED
    assert "not compared" in driven.outcome.result["note"]
    other_target = run(CREATE, fields, THERE, reply(404), NONE)
    assert other_target.error.message.endswith(": target")
    disabled = reply(body=[summary(enforcement="disabled")])
    assert run(CREATE, fields, disabled, reply(404), disabled).error.message.endswith(": enforcement")


def test_one_that_was_created_between_the_two_requests():
    """Refused as taken and now visible: the same as if it had been there before."""
    fail = run(CREATE, NEW, NONE, reply(422, TAKEN), THERE)
    assert (fail.error.code, fail.outcome.http_status) == (ErrorCode.CONFLICT, 422)
    kept = run(CREATE, {**NEW, "if_exists": "unchanged"}, NONE, reply(422, TAKEN), THERE, reply(body=whole()))
    assert kept.outcome.kind is OutcomeKind.UNCHANGED


def test_a_name_that_something_hidden_has_is_a_conflict():
    """Taken by what no list shows: never unchanged, and a conflict where a code says so."""
    by_code = {"message": "x", "errors": [{"field": "name", "code": "already_exists"}]}
    driven = run(CREATE, {**NEW, "if_exists": "unchanged"}, NONE, reply(422, by_code), NONE)
    assert driven.error.code is ErrorCode.CONFLICT
    in_words = run(CREATE, {**NEW, "if_exists": "unchanged"}, NONE, reply(422, TAKEN), NONE)
    assert in_words.error.code is ErrorCode.VALIDATION_FAILED


def test_another_422_is_what_the_platform_says():
    """A rule that the platform does not take is a failed validation."""
    driven = run(CREATE, NEW, NONE, reply(422, {"message": "Validation Failed", "errors": ["Invalid rule"]}), NONE)
    assert driven.error.code is ErrorCode.VALIDATION_FAILED
    assert "Invalid rule" in driven.error.message


# -- a lost answer


def test_a_new_one_was_created():
    """One that was not there before, with the same name and enforcement, in the list for the target: applied."""
    for looked in (reply(404), reply(body=whole())):
        driven = settle(CREATE, NEW, [3, 5], THERE, reply(body=[summary()]), looked, method="POST")
    assert driven.shown() == [LOOK, FILTERED, WHOLE]
    otherwise = settle(CREATE, NEW, [3, 5], THERE, THERE, reply(body=whole(rules=[])), method="POST")
    assert (otherwise.is_undecided, otherwise.ended.found["found"]) == (True, {"rules": []})
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert (driven.outcome.result["id"], "lost" in driven.outcome.result["note"]) == (7, True)
    assert "not compared" not in driven.outcome.result["note"]
    hidden = settle(CREATE, NEW, [3, 5], THERE, THERE, reply(404), method="POST")
    assert "rules, so they are not compared" in hidden.outcome.result["note"]


@pytest.mark.parametrize(
    "listed",
    [
        [summary(3, "Other")],
        [summary(5)],
        [summary(5), {**summary(9), "source_type": "Enterprise", "source": "acme"}],
    ],
)
def test_no_new_one(listed):
    """Nothing new, or something new that is not the organization's own: not applied."""
    assert settle(CREATE, NEW, [3, 5], reply(body=listed), method="POST").is_undone


def test_a_list_without_what_was_there_proves_nothing():
    """For half a minute a gateway answered all requests with `[]`: the creation was sent three times, and done."""
    assert settle(CREATE, NEW, [3, 5], reply(body=[]), method="POST").is_undecided
    assert settle(CREATE, NEW, [], reply(body=[]), method="POST").is_undone


@pytest.mark.parametrize("new", [summary(9, "Other"), summary(9, enforcement="disabled"), summary(9, "Protect mai")])
def test_a_new_one_that_differs(new):
    """It may be ours, shown otherwise: nobody knows, and nothing is sent again. What this run has made is explained."""
    driven = settle(CREATE, NEW, [3, 5], reply(body=[summary(3), new]), method="POST")
    assert driven.is_undecided
    assert [each["id"] for each in driven.ended.found] == [9]
    lost = Lost(
        method="POST",
        path="/x",
        before=[3, 5],
        sent_at=1_000.0,
        made=frozenset(("/orgs/acme-eng/rulesets/9",)),
    )
    assert drive(CREATE.settle(item_of(CREATE, **NEW), lost), reply(body=[summary(3), new])).is_undone


def test_a_new_one_for_another_target():
    """A summary does not tell the target: one that the list for the target lacks may be ours or not."""
    driven = settle(CREATE, NEW, [3], reply(body=[summary(7)]), NONE, method="POST")
    assert driven.is_undecided


@pytest.mark.parametrize("name", [" Protect main", "PROTECT MAIN\n"])
def test_a_name_in_the_platform_s_own_form(name):
    """Trimmed, or in another case, it is the same name: before a creation and after a lost answer."""
    found = reply(body=[summary(7, name)])
    assert run(CREATE, NEW, found).error.code is ErrorCode.CONFLICT
    driven = settle(CREATE, NEW, [], found, found, reply(404), method="POST")
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert "a form of its own" in driven.outcome.result["note"]


def test_two_new_ones():
    """Which of them is ours can't be told; both are named."""
    listed = reply(body=[summary(7), summary(8)])
    driven = settle(CREATE, NEW, [3], listed, method="POST")
    assert driven.is_undecided
    assert "7 and 8" in driven.ended.why


def test_without_a_before_image():
    """One that is there may have been there before."""
    assert settle(CREATE, NEW, UNSEEN, THERE, method="POST").is_undecided


def test_the_new_one_may_be_on_a_later_page():
    """Every page is read before "not there" is said."""
    first = reply(body=[summary(3)], headers={"link": '<https://x/orgs/acme-eng/rulesets?page=2>; rel="next"'})
    later = reply(body=[summary(7)])
    assert settle(CREATE, NEW, [3], first, later, later, reply(404), method="POST").outcome.result["id"] == 7


# -- lanes


def test_create_lane():
    """One creation at a time in each organization."""
    assert CREATE.lanes(item_of(CREATE, **NEW)) == ("acme-eng",)


# -- reads


def test_list():
    """All pages, with the targets that were asked for."""
    first = reply(
        body=[summary(1, source="Acme-Ops")], headers={"link": '<https://x/orgs/acme-ops/rulesets?page=2>; rel="next"'}
    )
    driven = run(LIST, {"org": "acme-ops", "targets": "branch,tag"}, first, reply(body=[summary(2, source="acme-ops")]))
    assert driven.shown()[0] == "GET /orgs/acme-ops/rulesets?targets=branch%2Ctag&per_page=100"
    assert [entry["id"] for entry in driven.outcome.result] == [1, 2]
    assert run(LIST, {"org": "acme-ops"}, NONE).shown() == ["GET /orgs/acme-ops/rulesets?per_page=100"]


@pytest.mark.parametrize("targets", ["branch, tag", "Branch", "branch,", ","])
def test_targets_are_names_with_commas(targets):
    """Anything else would find nothing, silently."""
    assert set(flaws(LIST, {"org": "acme-ops", "targets": targets})) == {"targets"}
    assert not flaws(LIST, {"org": "acme-ops", "targets": "branch,push"})


def test_history():
    """The versions of one ruleset, all pages of them."""
    driven = run(
        HISTORY, {"enterprise": "acme", "ruleset_id": 3001}, reply(body=[{"version_id": 33, "state": {"id": 3001}}])
    )
    assert driven.shown() == ["GET /enterprises/acme/rulesets/3001/history?per_page=100"]
    assert driven.outcome.result == [{"version_id": 33, "state": {"id": 3001}}]


def test_version():
    """One version is the result as it stands; what is not an object can't be used."""
    fields = {"enterprise": "acme", "ruleset_id": 3001, "version_id": 33}
    driven = run(VERSION, fields, reply(body={"version_id": 33, "state": {"id": 3001}}))
    assert driven.shown() == ["GET /enterprises/acme/rulesets/3001/history/33"]
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    stored = run(VERSION, fields, reply(body={"version_id": 33, "state": {"id": 3001}}, is_unchanged=True))
    assert stored.outcome.kind is OutcomeKind.UNCHANGED
    assert run(VERSION, fields, reply(body=[])).is_disbelieved


@pytest.mark.parametrize("operation", [HISTORY, VERSION])
def test_enterprises_have_slugs(operation):
    """A slug with a slash is refused, and ids begin with 1."""
    fields = {"enterprise": "a/b", "ruleset_id": 1, "version_id": 1}
    given = {name: value for name, value in fields.items() if name in operation.Item.__struct_fields__}
    assert set(flaws(operation, given)) == {"enterprise"}
    with pytest.raises(msgspec.ValidationError):
        item_of(operation, **{**given, "ruleset_id": 0})
