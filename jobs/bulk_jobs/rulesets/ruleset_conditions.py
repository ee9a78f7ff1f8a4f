"""The conditions of a ruleset, and the actors who may bypass its rules.

Types refuse wrong values while an item is decoded; rules about several fields together are checked here. The
conditions hold `ref_name` and exactly one of `repository_name`, `repository_id` and `repository_property`: the pairing
names of the specification are labels, not keys. Source: specification, Rulesets; open-points.md (conditions).
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from bulk.operation import ItemFlaw
from bulk_jobs.rulesets.ruleset_rules import Part, Text
from bulk_jobs.shared import names

Target = Literal["branch", "tag", "push"]


class BypassActor(Part, frozen=True, kw_only=True):
    """One actor that may pass the rules by."""

    actor_id: (
        Annotated[int, Meta(description="needed for Integration, RepositoryRole and Team, null for DeployKey")]
        | UnsetType
        | None
    ) = UNSET
    actor_type: Annotated[
        Literal[
            "Integration",
            "OrganizationAdmin",
            "RepositoryRole",
            "Team",
            "DeployKey",
            "EnterpriseOwner",
            "EnterpriseRole",
        ],
        Meta(description="what actor_id is the id of"),
    ]
    bypass_mode: Annotated[
        Literal["always", "pull_request", "exempt"],
        Meta(description="pull_request not for DeployKey, and only in rulesets for branches"),
    ] = "always"


class Names(Part, frozen=True, kw_only=True):
    """Names that are meant, by patterns."""

    include: Annotated[list[Text], Meta(description="patterns; ~DEFAULT_BRANCH or ~ALL")] | UnsetType = UNSET
    exclude: Annotated[list[Text], Meta(description="patterns")] | UnsetType = UNSET


class RepositoryNames(Part, frozen=True, kw_only=True):
    """Repositories that are meant, by patterns of their names."""

    include: Annotated[list[Text], Meta(description="patterns; ~ALL")] | UnsetType = UNSET
    exclude: Annotated[list[Text], Meta(description="patterns")] | UnsetType = UNSET
    protected: Annotated[bool, Meta(description="whether they can't be renamed out of it")] | UnsetType = UNSET


class RepositoryIds(Part, frozen=True, kw_only=True):
    """Repositories that are meant, one by one."""

    repository_ids: list[int] | UnsetType = UNSET


class Property(Part, frozen=True, kw_only=True):
    """A property that repositories have."""

    name: Text
    property_values: Annotated[list[Text], Meta(description="one of these")]
    source: Annotated[Literal["custom", "system"], Meta(description="who defined it")] = "custom"


class RepositoryProperties(Part, frozen=True, kw_only=True):
    """Repositories that are meant, by their properties."""

    include: list[Property] | UnsetType = UNSET
    exclude: list[Property] | UnsetType = UNSET


class Conditions(Part, frozen=True, kw_only=True):
    """Says where the rules apply: ref_name, and exactly one of the others. Rulesets for pushes need no ref_name."""

    ref_name: Annotated[Names, Meta(description="branches or tags")] | None = None
    repository_name: Annotated[RepositoryNames, Meta(description="repositories, by name")] | None = None
    repository_id: Annotated[RepositoryIds, Meta(description="repositories, by id")] | None = None
    repository_property: Annotated[RepositoryProperties, Meta(description="repositories, by property")] | None = None


_REPOSITORIES = ("repository_name", "repository_id", "repository_property")
_ACTORS_WITH_ID = ("Integration", "RepositoryRole", "Team")


def flaws_of_conditions(conditions: Conditions | None, target: str) -> Iterator[ItemFlaw]:
    """Yield what is wrong with the conditions of a ruleset for `target`."""
    if conditions is None:
        if target != "push":
            yield ItemFlaw("conditions", f"is missing; a ruleset for the target {target} needs it")
        return
    if sum(getattr(conditions, name) is not None for name in _REPOSITORIES) != 1:
        yield ItemFlaw("conditions", f"expected exactly one of {', '.join(_REPOSITORIES)}")
    if target != "push" and conditions.ref_name is None:
        yield ItemFlaw("conditions.ref_name", f"is missing; a ruleset for the target {target} needs it")
    for field, meant, special in (
        ("ref_name", conditions.ref_name, ("~DEFAULT_BRANCH", "~ALL")),
        ("repository_name", conditions.repository_name, ("~ALL",)),
    ):
        included = meant.include if meant is not None else UNSET
        for place, name in enumerate(included if isinstance(included, list) else ()):
            if name.startswith("~") and name not in special:
                expected = f"expected a pattern or {' or '.join(special)}; got {name!r}"
                yield ItemFlaw(f"conditions.{field}.include[{place}]", expected)


def flaws_of_actors(actors: list[BypassActor], target: str) -> Iterator[ItemFlaw]:
    """Yield what is wrong with the actors who may bypass a ruleset for `target`."""
    for place, actor in enumerate(actors):
        field, kind = f"bypass_actors[{place}]", actor.actor_type
        if kind in _ACTORS_WITH_ID and not isinstance(actor.actor_id, int):
            yield ItemFlaw(f"{field}.actor_id", f"is missing; an actor of the type {kind} needs it")
        if kind == "DeployKey" and isinstance(actor.actor_id, int):
            yield ItemFlaw(f"{field}.actor_id", "expected null for an actor of the type DeployKey")
        if actor.bypass_mode == "pull_request" and (kind == "DeployKey" or target != "branch"):
            yield ItemFlaw(f"{field}.bypass_mode", "pull_request is only for branches, and not for DeployKey")


def flaws_of_texts(field: str, value: Any) -> Iterator[ItemFlaw]:
    """Yield the texts in `value`, a part of a body in JSON, that can't be sent. A pattern may hold line breaks."""
    match value:
        case str():
            allowed = "\t\n\r" if field.endswith(".pattern") else ""
            flaw = names.flaw_of_text(value, allowed=allowed) or (
                "" if value.strip() else "expected a text with more than blanks"
            )
            if flaw:
                yield ItemFlaw(field, flaw)
        case list():
            for place, entry in enumerate(value):
                yield from flaws_of_texts(f"{field}[{place}]", entry)
        case dict():
            for name, member in value.items():
                yield from flaws_of_texts(f"{field}.{name}" if field else name, member)
