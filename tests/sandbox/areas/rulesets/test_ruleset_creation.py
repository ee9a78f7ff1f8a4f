"""Creating rulesets in an organization: what is kept, what is refused, who may."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from bulk.sandbox.areas.organizations import organizations
from bulk.sandbox.areas.rulesets import rulesets
from bulk.sandbox.areas.rulesets.ruleset_rules import MOST_FAULTS, PARAMETERS, completed, faults

if TYPE_CHECKING:
    from tests.sandbox.conftest import HandClock, Start

TEST_AREAS = (organizations.AREA, rulesets.AREA)
PATH = "/orgs/acme-eng/rulesets"
CONDITIONS: dict[str, Any] = {
    "ref_name": {"include": ["~DEFAULT_BRANCH", "refs/heads/release/*"], "exclude": ["refs/heads/tmp"]},
    "repository_name": {"include": ["~ALL"], "exclude": ["scratch-*"], "protected": True},
}
BODY: dict[str, Any] = {
    "name": "Protect main",
    "target": "branch",
    "enforcement": "active",
    "bypass_actors": [{"actor_id": 7, "actor_type": "Team", "bypass_mode": "pull_request"}],
    "conditions": CONDITIONS,
    "rules": [{"type": "deletion"}],
}
REVIEWERS = [{"file_patterns": ["*.py"], "minimum_approvals": 0, "reviewer": {"id": 1, "type": "Team"}}]
PULL_REQUEST: dict[str, Any] = {
    "allowed_merge_methods": ["merge"],
    "dismiss_stale_reviews_on_push": True,
    "require_code_owner_review": True,
    "require_last_push_approval": False,
    "required_review_thread_resolution": False,
    "required_approving_review_count": 0,
    "required_reviewers": REVIEWERS,
}
PATTERN = {"name": "x", "negate": True, "operator": "regex", "pattern": "^x"}
TOOLS = [{"tool": "t", "alerts_threshold": "errors", "security_alerts_threshold": "high_or_higher"}]
CHECKS = {"required_status_checks": [{"context": "ci", "integration_id": 5}, {"context": "lint"}]}
RULES: dict[str, Any] = {
    "creation": None,
    "deletion": None,
    "required_linear_history": None,
    "required_signatures": None,
    "non_fast_forward": None,
    "update": {"update_allows_fetch_and_merge": True},
    "required_deployments": {"required_deployment_environments": ["production"]},
    "pull_request": PULL_REQUEST,
    "required_status_checks": {
        **CHECKS,
        "strict_required_status_checks_policy": True,
        "do_not_enforce_on_create": True,
    },
    "commit_message_pattern": PATTERN,
    "commit_author_email_pattern": {"operator": "contains", "pattern": "@"},
    "committer_email_pattern": PATTERN,
    "branch_name_pattern": {"operator": "starts_with", "pattern": "feature/"},
    "tag_name_pattern": {"operator": "ends_with", "pattern": "-rc"},
    "file_path_restriction": {"restricted_file_paths": ["secrets/**"]},
    "max_file_path_length": {"max_file_path_length": 200},
    "file_extension_restriction": {"restricted_file_extensions": [".exe"]},
    "max_file_size": {"max_file_size": 50},
    "workflows": {"workflows": [{"path": "ci.yml", "repository_id": 1001, "ref": "main"}]},
    "code_scanning": {"code_scanning_tools": TOOLS},
}


def changed(path: str, value: object, of: dict[str, Any] = BODY) -> dict[str, Any]:
    """The body with one member set; `...` removes it."""
    body = deepcopy(of)
    *parents, last = path.split("/")
    holder: Any = body
    for parent in parents:
        holder = holder[int(parent) if parent.isdigit() else parent]
    if value is ...:
        del holder[last]
    else:
        holder[last] = value
    return body


def with_rule(kind: object, parameters: object = None) -> dict[str, Any]:
    """The body with one rule."""
    return {**BODY, "rules": [{"type": kind, **({} if parameters is None else {"parameters": parameters})}]}


async def test_created(start: Start, clock: HandClock) -> None:
    """201 with the whole ruleset; it is listed with the same summary, and its effect names it."""
    platform = await start(clock=clock)
    reply = await platform.ask("POST", PATH, body=BODY)
    assert reply.status == 201
    made = reply.json()
    assert {name: made[name] for name in BODY} == BODY
    assert (made["id"], made["source_type"], made["source"]) == (3102, "Organization", "acme-eng")
    assert made["created_at"] == made["updated_at"] == "2027-01-15T08:00:00Z"
    (summary,) = (await platform.ask("GET", PATH)).json()
    assert summary == {name: made[name] for name in summary}
    assert not {"target", "conditions", "rules", "bypass_actors"} & set(summary)
    assert platform.journal()[0]["effect"] == "ruleset Protect main of acme-eng created"


async def test_the_whole_ruleset_is_where_its_summary_says(start: Start) -> None:
    """`_links.self` of a summary leads to the ruleset as its creation answered; of another organization's to none."""
    platform = await start()
    made = (await platform.ask("POST", PATH, body=BODY)).json()
    assert (await platform.ask("GET", made["_links"]["self"]["href"])).json() == made
    assert (await platform.ask("GET", f"/orgs/acme-ops/rulesets/{made['id']}")).status == 404


async def test_defaults(start: Start) -> None:
    """What is not given: a ruleset for branches, always for those who may pass, custom properties, no rules."""
    platform = await start()
    properties = {"include": [{"name": "tier", "property_values": ["one"]}], "exclude": []}
    body = {
        "name": "Least",
        "enforcement": "disabled",
        "bypass_actors": [{"actor_type": "OrganizationAdmin"}],
        "conditions": {"ref_name": {"include": ["~ALL"]}, "repository_property": properties},
    }
    made = (await platform.ask("POST", PATH, body=body)).json()
    assert (made["target"], made["rules"]) == ("branch", [])
    assert made["bypass_actors"] == [{"actor_id": None, "actor_type": "OrganizationAdmin", "bypass_mode": "always"}]
    included = made["conditions"]["repository_property"]["include"]
    assert included == [{"name": "tier", "property_values": ["one"], "source": "custom"}]


async def test_targets_of_new_ones(start: Start) -> None:
    """`targets` finds a ruleset by the target that it was created with."""
    platform = await start()
    for target in ("branch", "tag"):
        body = {**BODY, "name": target, "target": target, "bypass_actors": []}
        assert (await platform.ask("POST", PATH, body=body)).status == 201
    push = {"name": "push", "target": "push", "enforcement": "active"}
    assert (await platform.ask("POST", PATH, body=push)).status == 201
    for targets, names in (("tag", ["tag"]), ("push,branch", ["branch", "push"])):
        listed = (await platform.ask("GET", f"{PATH}?targets={targets}")).json()
        assert [summary["name"] for summary in listed] == names


async def test_a_name_is_unique(start: Start) -> None:
    """A second ruleset of a name is 422 and changes nothing; another organization may have the same."""
    platform = await start()
    await platform.ask("POST", PATH, body=BODY)
    reply = await platform.ask("POST", PATH, body={**BODY, "enforcement": "disabled"})
    assert reply.status == 422
    assert reply.json()["errors"] == [
        {"resource": "Ruleset", "field": "name", "code": "already_exists", "message": "Name must be unique"}
    ]
    assert (await platform.ask("POST", "/orgs/acme-labs/rulesets", body=BODY)).status == 201
    assert [bool(line["effect"]) for line in platform.journal()] == [True, False, True]


async def test_refused(start: Start) -> None:
    """A malformed body is 422 with a sentence for each fault, 20 at most; nothing is kept."""
    platform = await start()
    reply = await platform.ask("POST", PATH, body={"rules": [{}] * 50})
    assert reply.status == 422
    assert reply.json()["errors"][:2] == ["name is missing", "enforcement is missing"]
    assert len(reply.json()["errors"]) == MOST_FAULTS
    assert (await platform.ask("GET", PATH)).json() == []
    assert (await platform.ask("POST", PATH, raw=b"[]")).status == 400


@pytest.mark.parametrize(
    ("token", "path", "status"),
    [
        (None, PATH, 401),
        ("sbx-org-owner", PATH, 201),
        ("sbx-fine-grained", PATH, 201),
        ("sbx-member", PATH, 404),
        ("sbx-read-only", PATH, 404),
        ("sbx-installation", "/orgs/acme-ops/rulesets", 404),
        ("sbx-site-admin", "/orgs/missing/rulesets", 404),
    ],
)
async def test_who_may(start: Start, token: str | None, path: str, status: int) -> None:
    """Owners with a token that may write the organization's administration; for everybody else there is nothing."""
    platform = await start()
    assert (await platform.ask("POST", path, token=token, body=BODY)).status == status


def test_every_rule() -> None:
    """Every type of rule that the specification names is taken with all its parameters, and is kept as it was given."""
    assert set(RULES) == set(PARAMETERS)
    rules = [{"type": kind, **({"parameters": given} if given else {})} for kind, given in RULES.items()]
    body = {**BODY, "rules": rules}
    assert faults(body) == []
    assert completed(body)["rules"] == rules


@pytest.mark.parametrize("kind", [kind for kind, given in RULES.items() if given])
def test_parameters_are_needed(kind: str) -> None:
    """A rule whose type has parameters that are required can't do without them, nor without one of them."""
    assert faults(with_rule(kind)) == ["rules[0].parameters is missing"]
    required = {name for name, member in PARAMETERS[kind].items() if member.is_required}
    assert required
    for name in required:
        parameters = {other: value for other, value in RULES[kind].items() if other != name}
        assert faults(with_rule(kind, parameters)) == [f"rules[0].parameters.{name} is missing"]


WRONG: list[tuple[str, object, str]] = [
    ("name", ..., "name is missing"),
    ("name", " ", "name must be a string with more than blanks"),
    ("enforcement", ..., "enforcement is missing"),
    ("enforcement", "on", "enforcement must be one of disabled, active, evaluate"),
    ("target", "repository", "target must be one of branch, tag, push"),
    ("conditions", ..., "conditions is missing: a ruleset for the target branch needs it"),
    ("conditions", [], "conditions must be an object"),
    ("conditions/ref_name", ..., "conditions.ref_name is missing"),
    ("conditions/ref_name/include", "~ALL", "conditions.ref_name.include must be an array"),
    (
        "conditions/ref_name/include",
        ["~NONE"],
        "conditions.ref_name.include[0] must be a pattern or ~DEFAULT_BRANCH or",
    ),
    ("conditions/repository_name", ..., "conditions must have exactly one of repository_name, repository_id"),
    ("conditions/repository_id", {"repository_ids": [1]}, "conditions must have exactly one of"),
    ("conditions/repository_name/include", ["~DEFAULT_BRANCH"], "repository_name.include[0] must be a pattern or ~ALL"),
    ("conditions/repository_name/protected", "yes", "conditions.repository_name.protected must be a boolean"),
    ("conditions/repository_name_and_ref_name", {}, "conditions.repository_name_and_ref_name is not known here"),
    ("bypass_actors", {}, "bypass_actors must be an array"),
    ("bypass_actors/0/actor_type", "User", "bypass_actors[0].actor_type must be one of Integration, RepositoryRole,"),
    ("bypass_actors/0/actor_type", ..., "bypass_actors[0].actor_type is missing"),
    ("bypass_actors/0/actor_id", None, "bypass_actors[0].actor_id is missing: an actor of the type Team needs it"),
    ("bypass_actors/0/actor_id", True, "bypass_actors[0].actor_id must be an integer"),
    (
        "bypass_actors/0/bypass_mode",
        "never",
        "bypass_actors[0].bypass_mode must be one of always, pull_request, exempt",
    ),
    ("target", "tag", "bypass_actors[0].bypass_mode must not be pull_request for deploy keys, nor in rulesets for tag"),
    ("rules", {}, "rules must be an array"),
    ("rules", ["deletion"], "rules[0] must be an object"),
    ("rules", [{}], "rules[0].type is missing"),
    ("rules", [{"type": "imaginary"}], "rules[0].type must be one of creation, deletion"),
    ("rules", [{"type": []}], "rules[0].type must be one of creation, deletion"),
    ("rules", [{"type": "deletion", "parameters": {"x": 1}}], "rules[0].parameters.x is not known here"),
]


@pytest.mark.parametrize(("path", "value", "said"), WRONG)
def test_malformed(path: str, value: object, said: str) -> None:
    """Each fault of a body is one sentence that names its place."""
    (fault,) = faults(changed(path, value))
    assert said in fault


@pytest.mark.parametrize(
    ("kind", "path", "value", "said"),
    [
        ("pull_request", "allowed_merge_methods", [], "must have at least 1 entry"),
        ("pull_request", "allowed_merge_methods", ["fast"], "must be one of merge, squash, rebase"),
        ("pull_request", "required_approving_review_count", -1, "must be an integer of at least 0"),
        ("pull_request", "required_reviewers/0/reviewer/type", "User", "type must be one of Team"),
        ("pull_request", "required_reviewers/0/minimum_approvals", ..., "minimum_approvals is missing"),
        ("required_status_checks", "required_status_checks/0/context", ..., "[0].context is missing"),
        ("commit_message_pattern", "operator", "equals", "must be one of starts_with, ends_with, contains, regex"),
        ("max_file_size", "max_file_size", 0, "must be an integer of at least 1"),
        ("max_file_path_length", "max_file_path_length", "9", "must be an integer of at least 1"),
        ("workflows", "workflows/0/repository_id", ..., "[0].repository_id is missing"),
        ("code_scanning", "code_scanning_tools/0/alerts_threshold", "some", "must be one of none, errors,"),
    ],
)
def test_malformed_parameters(kind: str, path: str, value: object, said: str) -> None:
    """Each fault of a rule's parameters is one sentence that names its place."""
    (fault,) = faults(with_rule(kind, changed(path, value, RULES[kind])))
    assert fault.startswith("rules[0].parameters.")
    assert said in fault


def test_deploy_keys() -> None:
    """An actor of the type DeployKey has no id, and passes by no pull request."""
    said = faults(
        {**BODY, "bypass_actors": [{"actor_id": 1, "actor_type": "DeployKey", "bypass_mode": "pull_request"}]}
    )
    assert [fault.partition(" ")[0] for fault in said] == ["bypass_actors[0].actor_id", "bypass_actors[0].bypass_mode"]
    assert faults({**BODY, "bypass_actors": [{"actor_id": None, "actor_type": "DeployKey"}]}) == []


@pytest.mark.parametrize(
    "conditions",
    [None, {"repository_id": {"repository_ids": [1]}}, {"repository_name": {}, "ref_name": {"include": ["~ALL"]}}],
)
def test_rulesets_for_pushes(conditions: object) -> None:
    """A ruleset for pushes needs no ref_name, and no conditions."""
    assert faults({"name": "x", "target": "push", "enforcement": "evaluate", "conditions": conditions}) == []
