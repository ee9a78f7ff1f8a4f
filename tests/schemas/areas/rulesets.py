"""Rulesets of organizations, and the history of those of an enterprise."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Union

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tests.schemas.words import Count, Id, Shape, Text, Timestamp, Url


class Link(Shape, kw_only=True):
    """One link."""

    href: Url


class Links(Shape, rename={"self_": "self"}, kw_only=True):
    """Where a ruleset is."""

    self_: Link
    html: Link


class Summary(Shape, rename={"links": "_links"}, kw_only=True):
    """A ruleset of an organization in a list."""

    id: Id
    name: Text
    source_type: Literal["Organization"]
    source: Text
    enforcement: Literal["disabled", "active", "evaluate"]
    node_id: Text
    links: Links
    created_at: Timestamp
    updated_at: Timestamp


class BypassActor(Shape, kw_only=True):
    """Who may pass the rules by."""

    actor_id: int | None
    actor_type: Literal[
        "Integration", "OrganizationAdmin", "RepositoryRole", "Team", "DeployKey", "EnterpriseOwner", "EnterpriseRole"
    ]
    bypass_mode: Literal["always", "pull_request", "exempt"]


class Names(Shape, kw_only=True):
    """Patterns of names."""

    include: list[Text] | UnsetType = UNSET
    exclude: list[Text] | UnsetType = UNSET


class RepositoryNames(Names, kw_only=True):
    """Patterns of repositories' names."""

    protected: bool | UnsetType = UNSET


class RepositoryIds(Shape, kw_only=True):
    """Repositories one by one."""

    repository_ids: list[int]


class Property(Shape, kw_only=True):
    """A property that repositories have."""

    name: Text
    property_values: list[Text]
    source: Literal["custom", "system"]


class RepositoryProperties(Shape, kw_only=True):
    """Repositories by their properties."""

    include: list[Property] | UnsetType = UNSET
    exclude: list[Property] | UnsetType = UNSET


class Conditions(Shape, kw_only=True):
    """Where a ruleset applies."""

    ref_name: Names | UnsetType = UNSET
    repository_name: RepositoryNames | UnsetType = UNSET
    repository_id: RepositoryIds | UnsetType = UNSET
    repository_property: RepositoryProperties | UnsetType = UNSET

    def __post_init__(self) -> None:
        """At most one condition says which repositories."""
        if sum(each is not UNSET for each in (self.repository_name, self.repository_id, self.repository_property)) > 1:
            raise ValueError("conditions must have one of repository_name, repository_id, repository_property")


def _shape(title: str, /, **members: Any) -> Any:
    """A struct of these members; those whose type is an `Optional_` may be left out."""
    fields = [
        (member, kind.kind | UnsetType, UNSET) if isinstance(kind, Optional_) else (member, kind)
        for member, kind in members.items()
    ]
    return msgspec.defstruct(title, fields, bases=(Shape,), kw_only=True)


class Optional_:  # noqa: N801 - told apart from typing's
    """A member that may be left out."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind


def _array(kind: Any) -> Any:
    return list[kind]


_TEXTS = _array(Text)
_PATTERN = {
    "name": Optional_(str),
    "negate": Optional_(bool),
    "operator": Literal["starts_with", "ends_with", "contains", "regex"],
    "pattern": Text,
}
_REVIEWER = _shape("Reviewer", id=int, type=Literal["Team"])
_REQUIRED_REVIEWER = _shape("RequiredReviewer", file_patterns=_TEXTS, minimum_approvals=Count, reviewer=_REVIEWER)
_CHECK = _shape("StatusCheck", context=Text, integration_id=Optional_(int))
_WORKFLOW = _shape("Workflow", path=Text, repository_id=int, ref=Optional_(str), sha=Optional_(str))
_TOOL = _shape(
    "Tool",
    tool=Text,
    alerts_threshold=Literal["none", "errors", "errors_and_warnings", "all"],
    security_alerts_threshold=Literal["none", "critical", "high_or_higher", "medium_or_higher", "all"],
)
PARAMETERS: dict[str, dict[str, Any]] = {
    "creation": {},
    "deletion": {},
    "required_linear_history": {},
    "required_signatures": {},
    "non_fast_forward": {},
    "update": {"update_allows_fetch_and_merge": bool},
    "required_deployments": {"required_deployment_environments": _TEXTS},
    "pull_request": {
        "allowed_merge_methods": Optional_(
            Annotated[list[Literal["merge", "squash", "rebase"]], Meta(min_length=1)],
        ),
        "dismiss_stale_reviews_on_push": bool,
        "require_code_owner_review": bool,
        "require_last_push_approval": bool,
        "required_review_thread_resolution": bool,
        "required_approving_review_count": Count,
        "required_reviewers": Optional_(_array(_REQUIRED_REVIEWER)),
    },
    "required_status_checks": {
        "required_status_checks": _array(_CHECK),
        "strict_required_status_checks_policy": bool,
        "do_not_enforce_on_create": Optional_(bool),
    },
    "commit_message_pattern": _PATTERN,
    "commit_author_email_pattern": _PATTERN,
    "committer_email_pattern": _PATTERN,
    "branch_name_pattern": _PATTERN,
    "tag_name_pattern": _PATTERN,
    "file_path_restriction": {"restricted_file_paths": _TEXTS},
    "max_file_path_length": {"max_file_path_length": Id},
    "file_extension_restriction": {"restricted_file_extensions": _TEXTS},
    "max_file_size": {"max_file_size": Id},
    "workflows": {"do_not_enforce_on_create": Optional_(bool), "workflows": _array(_WORKFLOW)},
    "code_scanning": {"code_scanning_tools": _array(_TOOL)},
}


def _rule(kind: str, members: dict[str, Any]) -> Any:
    parameters = _shape(f"Parameters_{kind}", **members)
    field: Any = ("parameters", parameters) if members else ("parameters", parameters | UnsetType, UNSET)
    return msgspec.defstruct(f"Rule_{kind}", [field], bases=(Shape,), kw_only=True, tag_field="type", tag=kind)


RULE: Any = Union[tuple(_rule(kind, members) for kind, members in PARAMETERS.items())]  # noqa: UP007
RULESET: Any = msgspec.defstruct(
    "Ruleset",
    [
        ("target", Literal["branch", "tag", "push"]),
        ("bypass_actors", list[BypassActor]),
        ("conditions", Conditions),
        ("rules", _array(RULE)),
    ],
    bases=(Summary,),
    kw_only=True,
)
"""A whole ruleset of an organization."""


class Actor(Shape, kw_only=True):
    """Who changed a ruleset."""

    id: Id
    type: Text


class Version(Shape, kw_only=True):
    """An entry of a ruleset's history."""

    version_id: Id
    actor: Actor
    updated_at: Timestamp


class Included(Shape, kw_only=True):
    """Names that are meant."""

    include: list[Text]


class StateConditions(Shape, kw_only=True):
    """Where a ruleset of an enterprise applies."""

    organization_name: Included
    repository_name: Included


class StateRule(Shape, kw_only=True):
    """A rule of an enterprise's ruleset."""

    type: Text


class State(Shape, kw_only=True):
    """A ruleset of an enterprise as it was."""

    id: Id
    name: Text
    target: Text
    source_type: Literal["Enterprise"]
    source: Text
    enforcement: Literal["disabled", "active", "evaluate"]
    conditions: StateConditions
    rules: list[StateRule]


class VersionWithState(Version, kw_only=True):
    """One version of a ruleset."""

    state: State
