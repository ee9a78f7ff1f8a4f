"""The settings of a code security configuration: the fields of a body, their values and defaults.

Pure. A configuration keeps only the settings that differ from the defaults of creation; `complete` gives every field.
Other fields of a body are ignored. Source: specification, Body fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from bulk.sandbox.http.refusals import problem

Settings = dict[str, object]

RESOURCE: Final = "CodeSecurityConfiguration"
ENABLEMENT: Final = ("enabled", "disabled", "not_set")
MOST_NAME_CHARS: Final = 255

VALUES: Final[dict[str, tuple[str, ...]]] = {
    "advanced_security": ("enabled", "disabled", "code_security", "secret_protection"),
    "code_security": ENABLEMENT,
    "secret_protection": ENABLEMENT,
    "dependency_graph": ENABLEMENT,
    "dependency_graph_autosubmit_action": ENABLEMENT,
    "dependabot_alerts": ENABLEMENT,
    "dependabot_security_updates": ENABLEMENT,
    "dependabot_delegated_alert_dismissal": ENABLEMENT,
    "code_scanning_default_setup": ENABLEMENT,
    "code_scanning_delegated_alert_dismissal": ENABLEMENT,
    "secret_scanning": ENABLEMENT,
    "secret_scanning_push_protection": ENABLEMENT,
    "secret_scanning_delegated_bypass": ENABLEMENT,
    "secret_scanning_validity_checks": ENABLEMENT,
    "secret_scanning_non_provider_patterns": ENABLEMENT,
    "secret_scanning_generic_secrets": ENABLEMENT,
    "secret_scanning_delegated_alert_dismissal": ENABLEMENT,
    "secret_scanning_extended_metadata": ENABLEMENT,
    "private_vulnerability_reporting": ENABLEMENT,
    "enforcement": ("enforced", "unenforced"),
}
DEFAULTS: Final[Mapping[str, object]] = {
    "advanced_security": "disabled",
    "code_security": "not_set",
    "secret_protection": "not_set",
    "dependency_graph": "enabled",
    "dependency_graph_autosubmit_action": "disabled",
    "dependency_graph_autosubmit_action_options": {"labeled_runners": False},
    "dependabot_alerts": "disabled",
    "dependabot_security_updates": "disabled",
    "dependabot_delegated_alert_dismissal": "disabled",
    "code_scanning_options": None,
    "code_scanning_default_setup": "disabled",
    "code_scanning_default_setup_options": None,
    "code_scanning_delegated_alert_dismissal": "disabled",
    "secret_scanning": "disabled",
    "secret_scanning_push_protection": "disabled",
    "secret_scanning_delegated_bypass": "disabled",
    "secret_scanning_delegated_bypass_options": {"reviewers": []},
    "secret_scanning_validity_checks": "disabled",
    "secret_scanning_non_provider_patterns": "disabled",
    "secret_scanning_generic_secrets": "disabled",
    "secret_scanning_delegated_alert_dismissal": "disabled",
    "secret_scanning_extended_metadata": "disabled",
    "private_vulnerability_reporting": "disabled",
    "enforcement": "enforced",
}
"""Every setting, in the order in which a configuration shows them. Where the table of the specification names no
default, the default here is the value that stands for no choice."""

UPDATE_ONLY: Final = (
    "dependabot_delegated_alert_dismissal",
    "secret_scanning_delegated_bypass",
    "secret_scanning_delegated_bypass_options",
)
LICENSED: Final = ("advanced_security", "code_security", "secret_protection")


def complete(kept: Mapping[str, object]) -> Settings:
    """Return all settings of a configuration that keeps only those that differ from the defaults."""
    return {field: kept.get(field, default) for field, default in DEFAULTS.items()}


def differing(settings: Mapping[str, object]) -> Settings:
    """Return those `settings` that differ from the defaults, which a configuration keeps."""
    return {field: value for field, value in settings.items() if value != DEFAULTS[field]}


def needs_licenses(settings: Mapping[str, object]) -> bool:
    """Return whether complete `settings` ask for features that take seats of advanced security."""
    return any(settings[field] not in ("disabled", "not_set") for field in LICENSED)


def name_of(body: Mapping[str, object], *, is_new: bool) -> tuple[str | None, list[dict[str, object]]]:
    """Return the body's `name` (None: not given) and what is wrong with it."""
    name = body.get("name")
    if "name" not in body or (name is None and is_new):
        return None, [problem(RESOURCE, "name", "missing_field")] if is_new else []
    if not isinstance(name, str) or not name.strip() or len(name) > MOST_NAME_CHARS:
        expected = f"name must be a string with more than blanks, of at most {MOST_NAME_CHARS} characters"
        return None, [problem(RESOURCE, "name", "invalid", expected)]
    return name, []


def description_of(body: Mapping[str, object]) -> tuple[str | None, list[dict[str, object]]]:
    """Return the body's `description` (None: not given) and what is wrong with it."""
    description = body.get("description")
    if "description" not in body or isinstance(description, str):
        return description if isinstance(description, str) else None, []
    return None, [problem(RESOURCE, "description", "invalid", "description must be a string")]


def settings_of(body: Mapping[str, object], *, is_new: bool) -> tuple[Settings, list[dict[str, object]]]:
    """Return the settings that the body gives, with options completed, and all faults of these settings."""
    given: Settings = {}
    problems: list[dict[str, object]] = []
    for field in DEFAULTS:
        if field not in body:
            continue
        value = body[field]
        if is_new and field in UPDATE_ONLY:
            problems.append(problem(RESOURCE, field, "invalid", f"{field} can be set only by an update"))
        elif field in VALUES:
            if value in VALUES[field]:
                given[field] = value
            else:
                expected = f"{field} must be one of {', '.join(VALUES[field])}"
                problems.append(problem(RESOURCE, field, "invalid", expected))
        else:
            wrong = list(_flaws_of_options(field, value))
            problems += wrong
            if not wrong:
                given[field] = _completed(field, value)
    return given, problems


def contradictions(settings: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """Yield the contradictions between settings, which must be complete."""
    field = "dependabot_delegated_alert_dismissal"
    if settings[field] == "enabled" and settings["dependabot_alerts"] != "enabled":
        yield problem(RESOURCE, field, "invalid", f"{field} requires dependabot_alerts to be enabled")


def _flaws_of_options(field: str, value: object) -> Iterator[dict[str, object]]:
    if value is None and DEFAULTS[field] is None:
        return
    if not isinstance(value, dict):
        kind = "an object or null" if DEFAULTS[field] is None else "an object"
        yield problem(RESOURCE, field, "invalid", f"{field} must be {kind}")
        return
    match field:
        case "dependency_graph_autosubmit_action_options":
            if not isinstance(value.get("labeled_runners", False), bool):
                yield problem(RESOURCE, f"{field}.labeled_runners", "invalid", "labeled_runners must be a boolean")
        case "code_scanning_options":
            if not isinstance(value.get("allow_advanced"), bool | None):
                yield problem(
                    RESOURCE, f"{field}.allow_advanced", "invalid", "allow_advanced must be a boolean or null"
                )
        case "code_scanning_default_setup_options":
            if value.get("runner_type", "not_set") not in ("standard", "labeled", "not_set"):
                expected = "runner_type must be one of standard, labeled, not_set"
                yield problem(RESOURCE, f"{field}.runner_type", "invalid", expected)
            if not isinstance(value.get("runner_label"), str | None):
                yield problem(RESOURCE, f"{field}.runner_label", "invalid", "runner_label must be a string or null")
        case "secret_scanning_delegated_bypass_options":
            yield from _flaws_of_reviewers(field, value.get("reviewers", []))


def _flaws_of_reviewers(field: str, reviewers: object) -> Iterator[dict[str, object]]:
    if not isinstance(reviewers, list):
        yield problem(RESOURCE, f"{field}.reviewers", "invalid", "reviewers must be an array")
        return
    for place, reviewer in enumerate(reviewers):
        where = f"{field}.reviewers[{place}]"
        if not isinstance(reviewer, dict):
            yield problem(RESOURCE, where, "invalid", "a reviewer must be an object")
            continue
        number = reviewer.get("reviewer_id")
        if not isinstance(number, int) or isinstance(number, bool):
            code = "missing_field" if number is None else "invalid"
            yield problem(RESOURCE, f"{where}.reviewer_id", code, "reviewer_id must be an integer")
        if reviewer.get("reviewer_type") not in ("TEAM", "ROLE"):
            code = "missing_field" if reviewer.get("reviewer_type") is None else "invalid"
            yield problem(RESOURCE, f"{where}.reviewer_type", code, "reviewer_type must be one of TEAM, ROLE")
        if reviewer.get("mode", "ALWAYS") not in ("ALWAYS", "EXEMPT"):
            yield problem(RESOURCE, f"{where}.mode", "invalid", "mode must be one of ALWAYS, EXEMPT")


def _completed(field: str, value: object) -> object:
    """Return options as they are kept and shown: with every attribute of theirs, and no others."""
    if not isinstance(value, dict):
        return None
    match field:
        case "dependency_graph_autosubmit_action_options":
            return {"labeled_runners": value.get("labeled_runners", False)}
        case "code_scanning_options":
            return {"allow_advanced": value.get("allow_advanced")}
        case "code_scanning_default_setup_options":
            return {"runner_type": value.get("runner_type", "not_set"), "runner_label": value.get("runner_label")}
    return {
        "reviewers": [
            {
                "reviewer_id": reviewer["reviewer_id"],
                "reviewer_type": reviewer["reviewer_type"],
                "mode": reviewer.get("mode", "ALWAYS"),
            }
            for reviewer in value.get("reviewers", [])
        ]
    }
