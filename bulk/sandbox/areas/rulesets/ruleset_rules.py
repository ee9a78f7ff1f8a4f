"""The checks of a ruleset's body. Pure; a fault is a sentence that begins with its place (`rules[0].type is missing`).

A body has `ref_name` and exactly one of `repository_name`, `repository_id`, `repository_property` in its conditions:
the pairing names of the specification are labels, not keys. Push rulesets need no conditions. A member that is null
counts as not given. Source: specification, Rulesets; open-points.md (conditions, code_scanning).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

MOST_FAULTS: Final = 20

Check: TypeAlias = Callable[[object, str], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object: how it is checked, and whether it must be there."""

    check: Check
    is_required: bool = True


def _boolean(value: object, where: str) -> Iterator[str]:
    if not isinstance(value, bool):
        yield f"{where} must be a boolean"


def _text(value: object, where: str) -> Iterator[str]:
    if not isinstance(value, str) or not value.strip():
        yield f"{where} must be a string with more than blanks"


def _integer(least: int | None = None) -> Check:
    def check(value: object, where: str) -> Iterator[str]:
        if not isinstance(value, int) or isinstance(value, bool) or (least is not None and value < least):
            yield f"{where} must be an integer" + ("" if least is None else f" of at least {least}")

    return check


def _one_of(*allowed: str) -> Check:
    def check(value: object, where: str) -> Iterator[str]:
        if value not in allowed:
            yield f"{where} must be one of {', '.join(allowed)}"

    return check


def _array(entry: Check, least: int = 0) -> Check:
    def check(value: object, where: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield f"{where} must be an array"
            return
        if len(value) < least:
            yield f"{where} must have at least {least} entry"
        for place, each in enumerate(value):
            yield from entry(each, f"{where}[{place}]")

    return check


def _object(members: Mapping[str, Member]) -> Check:
    def check(value: object, where: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield f"{where} must be an object"
            return
        for name in value:
            if name not in members:
                yield f"{where}.{name} is not known here"
        for name, member in members.items():
            found = value.get(name)
            if found is not None:
                yield from member.check(found, f"{where}.{name}")
            elif member.is_required:
                yield f"{where}.{name} is missing"

    return check


def _optional(check: Check) -> Member:
    return Member(check, is_required=False)


_FLAG, _TEXT, _TEXTS = Member(_boolean), Member(_text), Member(_array(_text))
_PATTERN: Final = {
    "name": _optional(_text),
    "negate": _optional(_boolean),
    "operator": Member(_one_of("starts_with", "ends_with", "contains", "regex")),
    "pattern": _TEXT,
}
_REVIEWER = _object({"id": Member(_integer()), "type": Member(_one_of("Team"))})
_TOOL: Final = {
    "tool": _TEXT,
    "alerts_threshold": Member(_one_of("none", "errors", "errors_and_warnings", "all")),
    "security_alerts_threshold": Member(_one_of("none", "critical", "high_or_higher", "medium_or_higher", "all")),
}
PARAMETERS: Final[Mapping[str, Mapping[str, Member]]] = {
    "creation": {},
    "deletion": {},
    "required_linear_history": {},
    "required_signatures": {},
    "non_fast_forward": {},
    "update": {"update_allows_fetch_and_merge": _FLAG},
    "required_deployments": {"required_deployment_environments": _TEXTS},
    "pull_request": {
        "allowed_merge_methods": _optional(_array(_one_of("merge", "squash", "rebase"), least=1)),
        "dismiss_stale_reviews_on_push": _FLAG,
        "require_code_owner_review": _FLAG,
        "require_last_push_approval": _FLAG,
        "required_review_thread_resolution": _FLAG,
        "required_approving_review_count": Member(_integer(0)),
        "required_reviewers": _optional(
            _array(
                _object(
                    {"file_patterns": _TEXTS, "minimum_approvals": Member(_integer(0)), "reviewer": Member(_REVIEWER)}
                )
            )
        ),
    },
    "required_status_checks": {
        "required_status_checks": Member(_array(_object({"context": _TEXT, "integration_id": _optional(_integer())}))),
        "strict_required_status_checks_policy": _FLAG,
        "do_not_enforce_on_create": _optional(_boolean),
    },
    "commit_message_pattern": _PATTERN,
    "commit_author_email_pattern": _PATTERN,
    "committer_email_pattern": _PATTERN,
    "branch_name_pattern": _PATTERN,
    "tag_name_pattern": _PATTERN,
    "file_path_restriction": {"restricted_file_paths": _TEXTS},
    "max_file_path_length": {"max_file_path_length": Member(_integer(1))},
    "file_extension_restriction": {"restricted_file_extensions": _TEXTS},
    "max_file_size": {"max_file_size": Member(_integer(1))},
    "workflows": {
        "do_not_enforce_on_create": _optional(_boolean),
        "workflows": Member(
            _array(
                _object(
                    {
                        "path": _TEXT,
                        "ref": _optional(_text),
                        "repository_id": Member(_integer()),
                        "sha": _optional(_text),
                    }
                )
            )
        ),
    },
    "code_scanning": {"code_scanning_tools": Member(_array(_object(_TOOL)))},
}
"""The parameters of every type of rule."""

_PROPERTIES = _optional(
    _array(
        _object({"name": _TEXT, "property_values": _TEXTS, "source": _optional(_one_of("custom", "system"))}),
    )
)
_NAMES = _optional(_array(_text))
REPOSITORIES: Final[Mapping[str, Mapping[str, Member]]] = {
    "repository_name": {"include": _NAMES, "exclude": _NAMES, "protected": _optional(_boolean)},
    "repository_id": {"repository_ids": _optional(_array(_integer()))},
    "repository_property": {"include": _PROPERTIES, "exclude": _PROPERTIES},
}
"""The conditions of which there is exactly one."""
_CONDITIONS = _object(
    {
        "ref_name": _optional(_object({"include": _NAMES, "exclude": _NAMES})),
        **{name: _optional(_object(members)) for name, members in REPOSITORIES.items()},
    }
)
_SPECIAL: Final = {"ref_name": ("~DEFAULT_BRANCH", "~ALL"), "repository_name": ("~ALL",)}
_ACTORS_WITH_ID: Final = ("Integration", "RepositoryRole", "Team")
_ACTOR: Final = {
    "actor_id": _optional(_integer()),
    "actor_type": Member(
        _one_of(*_ACTORS_WITH_ID, "OrganizationAdmin", "DeployKey", "EnterpriseOwner", "EnterpriseRole")
    ),
    "bypass_mode": _optional(_one_of("always", "pull_request", "exempt")),
}
_BODY: Final[Mapping[str, Member]] = {
    "name": _TEXT,
    "target": _optional(_one_of("branch", "tag", "push")),
    "enforcement": Member(_one_of("disabled", "active", "evaluate")),
    "bypass_actors": _optional(_array(_object(_ACTOR))),
    "conditions": _optional(_CONDITIONS),
}


def faults(body: Mapping[str, object]) -> list[str]:
    """Return the faults of a body, at most 20 sentences; empty: there are none."""
    found: list[str] = []
    for fault in _ruleset(body):
        found.append(fault)
        if len(found) == MOST_FAULTS:
            break
    return found


def completed(body: Mapping[str, object]) -> dict[str, object]:
    """Return a body without faults in the form in which it is kept: with every member, defaults included."""
    return {
        "name": body["name"],
        "target": body.get("target") or "branch",
        "enforcement": body["enforcement"],
        "bypass_actors": [
            {
                "actor_id": actor.get("actor_id"),
                "actor_type": actor["actor_type"],
                "bypass_mode": actor.get("bypass_mode") or "always",
            }
            for actor in _objects(body.get("bypass_actors"))
        ],
        "conditions": {
            name: _with_sources(_given(condition)) for name, condition in _given(body.get("conditions")).items()
        },
        "rules": [_given(rule) for rule in _objects(body.get("rules"))],
    }


def _ruleset(body: Mapping[str, object]) -> Iterator[str]:
    for name, member in _BODY.items():
        value = body.get(name)
        if value is not None:
            yield from member.check(value, name)
        elif member.is_required:
            yield f"{name} is missing"
    target = body.get("target") or "branch"
    yield from _pairing(body.get("conditions"), target)
    for place, actor in enumerate(_objects(body.get("bypass_actors"))):
        yield from _actor(actor, target, f"bypass_actors[{place}]")
    if body.get("rules") is not None:
        yield from _array(_rule)(body["rules"], "rules")


def _pairing(conditions: object, target: object) -> Iterator[str]:
    if conditions is None:
        if target != "push":
            yield f"conditions is missing: a ruleset for the target {target} needs it"
        return
    if not isinstance(conditions, dict):
        return
    given = _given(conditions)
    if sum(name in given for name in REPOSITORIES) != 1:
        yield f"conditions must have exactly one of {', '.join(REPOSITORIES)}"
    if target != "push" and "ref_name" not in given:
        yield "conditions.ref_name is missing"
    for name, special in _SPECIAL.items():
        included = _given(given.get(name)).get("include")
        for place, each in enumerate(included if isinstance(included, list) else ()):
            if isinstance(each, str) and each.startswith("~") and each not in special:
                yield f"conditions.{name}.include[{place}] must be a pattern or {' or '.join(special)}"


def _actor(actor: Mapping[str, object], target: object, where: str) -> Iterator[str]:
    kind, number, mode = actor.get("actor_type"), actor.get("actor_id"), actor.get("bypass_mode")
    if kind in _ACTORS_WITH_ID and number is None:
        yield f"{where}.actor_id is missing: an actor of the type {kind} needs it"
    if kind == "DeployKey" and number is not None:
        yield f"{where}.actor_id must be null for an actor of the type DeployKey"
    if mode == "pull_request" and (kind == "DeployKey" or target in ("tag", "push")):
        yield f"{where}.bypass_mode must not be pull_request for deploy keys, nor in rulesets for {target}"


def _rule(rule: object, where: str) -> Iterator[str]:
    if not isinstance(rule, dict):
        yield f"{where} must be an object"
        return
    kind = rule.get("type")
    if kind is None:
        yield f"{where}.type is missing"
        return
    members = PARAMETERS.get(kind) if isinstance(kind, str) else None
    if members is None:
        yield f"{where}.type must be one of {', '.join(PARAMETERS)}"
        return
    is_needed = any(member.is_required for member in members.values())
    yield from _object({"type": _TEXT, "parameters": Member(_object(members), is_needed)})(rule, where)


def _objects(value: object) -> list[dict[str, object]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _given(value: object) -> dict[str, object]:
    """Return the members of an object that are not null; empty for a value that is not an object."""
    return {name: member for name, member in value.items() if member is not None} if isinstance(value, dict) else {}


def _with_sources(condition: dict[str, object]) -> dict[str, object]:
    """Return a condition whose properties say where they come from."""
    return {
        name: [
            {**each, "source": each.get("source") or "custom"} if isinstance(each, dict) else each for each in entries
        ]
        if isinstance(entries, list)
        else entries
        for name, entries in condition.items()
    }
