"""What `organization-ruleset.create` refuses before anything is sent: types, and what fields say together."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.sandbox.areas.rulesets.ruleset_rules import PARAMETERS, faults
from bulk_jobs.rulesets.ruleset_rules import Rule
from bulk_jobs.rulesets.rulesets import CreateOrganizationRuleset
from tests.jobs.driver import flaws, item_of

CREATE = CreateOrganizationRuleset()
NEW = {
    "org": "acme-eng",
    "name": "Protect main",
    "enforcement": "active",
    "conditions": {"ref_name": {"include": ["~ALL"]}, "repository_name": {"include": ["~ALL"], "exclude": []}},
    "rules": [{"type": "deletion"}, {"type": "creation"}],
}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"org": "a b"}, "org"),
        ({"name": "  "}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"conditions": None}, ""),
        ({"conditions": {"ref_name": {}}}, "conditions"),
        ({"conditions": {"ref_name": {}, "repository_name": {}, "repository_id": {}}}, "conditions"),
        ({"conditions": {"repository_name": {}}}, "conditions.ref_name"),
        ({"conditions": {"ref_name": {"include": ["~NONE"]}, "repository_id": {}}}, "conditions.ref_name.include[0]"),
        (
            {"conditions": {"ref_name": {}, "repository_name": {"include": ["~DEFAULT_BRANCH"]}}},
            "conditions.repository_name.include[0]",
        ),
        ({"bypass_actors": [{"actor_type": "Team"}]}, "bypass_actors[0].actor_id"),
        ({"bypass_actors": [{"actor_type": "Integration", "actor_id": None}]}, "bypass_actors[0].actor_id"),
        ({"bypass_actors": [{"actor_type": "DeployKey", "actor_id": 1}]}, "bypass_actors[0].actor_id"),
        (
            {"bypass_actors": [{"actor_type": "DeployKey", "bypass_mode": "pull_request"}]},
            "bypass_actors[0].bypass_mode",
        ),
        (
            {"target": "tag", "bypass_actors": [{"actor_type": "EnterpriseRole", "bypass_mode": "pull_request"}]},
            "bypass_actors[0].bypass_mode",
        ),
        (
            {"rules": [{"type": "tag_name_pattern", "parameters": {"operator": "regex", "pattern": "\x00"}}]},
            "rules[0].parameters.pattern",
        ),
    ],
)
def test_create_checks(change, field):
    """What the platform would refuse, and the types allow, is named by its field before anything is sent."""
    if field:
        assert set(flaws(CREATE, {**NEW, **change})) == {field}
    else:
        with pytest.raises(msgspec.ValidationError, match="conditions"):
            item_of(CREATE, **{**NEW, **change})
    assert not flaws(CREATE, NEW)


def test_conditions_are_needed_but_for_pushes():
    """Rulesets for branches and tags say where they apply."""
    bare = {name: value for name, value in NEW.items() if name != "conditions"}
    assert set(flaws(CREATE, bare)) == {"conditions"}
    assert not flaws(CREATE, {**bare, "target": "push"})
    assert not flaws(CREATE, {**bare, "target": "push", "conditions": {"repository_id": {"repository_ids": [1]}}})


@pytest.mark.parametrize(
    "rule",
    [
        {"type": "imaginary"},
        {},
        {"type": "deletion", "parameters": {}},
        {"type": "update"},
        {"type": "update", "parameters": {}},
        {"type": "update", "parameters": {"update_allows_fetch_and_merge": 1}},
        {"type": "max_file_size", "parameters": {"max_file_size": 0}},
        {"type": "file_path_restriction", "parameters": {"restricted_file_paths": [""]}},
        {"type": "branch_name_pattern", "parameters": {"operator": "equals", "pattern": "x"}},
    ],
)
def test_rules_that_no_platform_takes(rule):
    """A rule of an unknown type, or with other parameters than its type has, is not an item."""
    with pytest.raises(msgspec.ValidationError, match=r"rules\[0\]"):
        item_of(CREATE, **{**NEW, "rules": [rule]})


def test_every_rule_is_there():
    """The types know the same rules as the sandbox, which follows the same specification on its own."""
    tags = {variant.__struct_config__.tag for variant in Rule.__args__}
    assert tags == set(PARAMETERS)


RULES = st.builds(lambda kind: {"type": kind}, st.sampled_from(["creation", "deletion", "required_signatures"]))
PATTERNS = st.lists(st.sampled_from(["~ALL", "~DEFAULT_BRANCH", "~NONE", "main"]), max_size=2)
MEANT = st.fixed_dictionaries({}, optional={"include": PATTERNS, "exclude": PATTERNS})
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "ref_name": MEANT,
        "repository_name": MEANT,
        "repository_id": st.just({"repository_ids": [1]}),
    },
)
ACTORS = st.fixed_dictionaries(
    {"actor_type": st.sampled_from(["Team", "DeployKey", "OrganizationAdmin"])},
    optional={"actor_id": st.sampled_from([1, None]), "bypass_mode": st.sampled_from(["always", "pull_request"])},
)


@given(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["x", " "]), "enforcement": st.just("active")},
        optional={
            "target": st.sampled_from(["branch", "tag", "push"]),
            "conditions": PARTS,
            "bypass_actors": st.lists(ACTORS, max_size=2),
            "rules": st.lists(RULES, max_size=2),
        },
    )
)
def test_what_the_check_takes_the_sandbox_takes(fields):
    """Both follow the specification on their own: they refuse the same rulesets, and no other."""
    item = {"org": "acme-eng", **fields}
    assert bool(flaws(CREATE, item)) == bool(faults(fields)), (flaws(CREATE, item), faults(fields))
