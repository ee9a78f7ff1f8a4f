"""Code security configurations: the values of their fields, the bodies of requests, and the comparison with an item.

A field that an item does not give is not sent; a null is sent, where the platform takes it. Source: specification, Code
security configurations, Body fields.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bulk import urls
from bulk.model import Reply
from bulk.operation import ItemFlaw
from bulk.proof import Proof
from bulk_jobs.shared import names, normal_forms, proofs

Enablement: TypeAlias = Literal["enabled", "disabled", "not_set"]
AdvancedSecurity: TypeAlias = Literal["enabled", "disabled", "code_security", "secret_protection"]
Enforcement: TypeAlias = Literal["enforced", "unenforced"]
DefaultFor: TypeAlias = Literal["all", "none", "private_and_internal", "public"]

Name = Annotated[str, Meta(min_length=1, max_length=255, examples=["Acme strict"])]
ConfigurationId = Annotated[int, Meta(ge=1, le=2**53, description="id of the configuration", examples=[2002])]


class AutosubmitOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Options of the automatic submission of dependencies.

    Attributes:
        labeled_runners: whether it runs on runners with the label dependency-submission.
    """

    labeled_runners: bool


class CodeScanningOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Options of code scanning.

    Attributes:
        allow_advanced: whether repositories with an advanced setup may have the configuration, or null.
    """

    allow_advanced: bool | UnsetType | None = UNSET


class DefaultSetupOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Options of the default setup of code scanning.

    Attributes:
        runner_type: on which runners it runs.
        runner_label: label of the runners, or null; used where runner_type is labeled.
    """

    runner_type: Literal["standard", "labeled", "not_set"] | UnsetType = UNSET
    runner_label: str | UnsetType | None = UNSET


class Reviewer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One who may let a push with a secret pass.

    Attributes:
        reviewer_id: of the team or role.
        mode: ALWAYS where it is not given.
    """

    reviewer_id: Annotated[int, Meta(ge=1, le=2**53)]
    reviewer_type: Literal["TEAM", "ROLE"]
    mode: Literal["ALWAYS", "EXEMPT"] | UnsetType = UNSET


class BypassOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Options of the delegated bypass of push protection."""

    reviewers: list[Reviewer]


_NOT_SET, _OFF = "not_set", "disabled"

CREATED_FIELDS = (
    "name",
    "description",
    "advanced_security",
    "code_security",
    "secret_protection",
    "dependency_graph",
    "dependency_graph_autosubmit_action",
    "dependency_graph_autosubmit_action_options",
    "dependabot_alerts",
    "dependabot_security_updates",
    "code_scanning_options",
    "code_scanning_default_setup",
    "code_scanning_default_setup_options",
    "code_scanning_delegated_alert_dismissal",
    "secret_scanning",
    "secret_scanning_push_protection",
    "secret_scanning_validity_checks",
    "secret_scanning_non_provider_patterns",
    "secret_scanning_generic_secrets",
    "secret_scanning_delegated_alert_dismissal",
    "secret_scanning_extended_metadata",
    "private_vulnerability_reporting",
    "enforcement",
)
"""The fields that the body of a creation may have."""

CONFIGURATION: proofs.Kinds = {"id": int, "name": str}
"""The fields that every configuration has."""

UPDATED_FIELDS = (
    *CREATED_FIELDS,
    "dependabot_delegated_alert_dismissal",
    "secret_scanning_delegated_bypass",
    "secret_scanning_delegated_bypass_options",
)
"""The fields that the body of an update may have."""

_FORMS: Mapping[str, normal_forms.Form] = {
    **dict.fromkeys(UPDATED_FIELDS, normal_forms.name),
    "description": normal_forms.text,
}
"""The forms that compare the fields: all but the description are names, or words of a set, in any case."""

_MEMBERS = {"runner_label": normal_forms.text}
"""The forms of members of options; all others are words, numbers and switches."""

_NULLABLE = frozenset(("code_scanning_options", "code_scanning_default_setup_options"))
"""The fields of which the platform takes null for a value."""


def body_of(item: msgspec.Struct, fields: Iterable[str]) -> dict[str, Any]:
    """Return the values of those `fields` that the item gives, as JSON values."""
    given = ((field, getattr(item, field)) for field in fields)
    return {field: msgspec.to_builtins(value) for field, value in given if value is not UNSET}


def sendable(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are shown with a value, or whose null can be sent, as they are sent: reviewers are shown
    with more than that."""
    found = {field: value for field, value in shown.items() if value is not None or field in _NULLABLE}
    options = found.get("secret_scanning_delegated_bypass_options")
    if isinstance(options, dict) and isinstance(options.get("reviewers"), list):
        reviewers = [
            {name: value for name, value in each.items() if name in Reviewer.__struct_fields__}
            for each in options["reviewers"]
            if isinstance(each, dict)
        ]
        found["secret_scanning_delegated_bypass_options"] = {**options, "reviewers": reviewers}
    return found


def differences(asked: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Return the fields of a body that are not as asked for in a configuration; empty: all are. What has no value may
    be shown as `not_set`, as null, as an object of such members, or not at all."""
    differing = normal_forms.differences(asked, found, _FORMS, _MEMBERS)
    return [field for field in differing if not (_is_unset(asked[field]) and _is_unset(found.get(field)))]


def differences_of_new(asked: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Return the fields of the body of a creation that are not as asked for in a configuration. What is off is shown as
    null, or not at all, by a platform that does not know it."""
    return [field for field in differences(asked, found) if found.get(field) is not None or not _is_off(asked[field])]


def _is_unset(value: Any) -> bool:
    return (
        all(map(_is_unset, value.values()))
        if isinstance(value, dict)
        else normal_forms.name(value) in (None, "", _NOT_SET)
    )


def _is_off(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_off, value.values()))
    return value is False or normal_forms.name(value) == _OFF or _is_unset(value)


def flaws_of_texts(name: str | UnsetType, description: str | UnsetType) -> Iterator[ItemFlaw]:
    """Yield what is wrong with the name and the description of a configuration."""
    if isinstance(name, str):
        flaw = names.flaw_of_text(name)
        if flaw or not name.strip():
            yield ItemFlaw("name", flaw or "expected a text with more than blanks")
    if isinstance(description, str):
        flaw = names.flaw_of_text(description, allowed="\t\n\r")
        if flaw:
            yield ItemFlaw("description", flaw)


def flaws_of_organization(org: str) -> Iterator[ItemFlaw]:
    """Yield what is wrong with the name of an organization."""
    flaw = names.flaw_of_owner(org)
    if flaw:
        yield ItemFlaw("org", flaw)


def note_on(asked: Mapping[str, Any], shown: Mapping[str, Any]) -> str | None:
    """Return a note on fields that were asked for and an answer does not show; None: it shows all."""
    hidden = ", ".join(field for field, value in asked.items() if value is not None and field not in shown)
    return f"the platform does not show {hidden}" if hidden else None


def flaw_of_new(asked: Mapping[str, Any], shown: Mapping[str, Any]) -> str:
    """Return which field of the answer to a creation is not what was asked for; empty: all are."""
    return _flaw_of(differences_of_new(asked, shown))


def _flaw_of(differing: list[str]) -> str:
    return f"its {differing[0]} is not what was asked for" if differing else ""


def proof_of_update(org: str, configuration_id: int, asked: Mapping[str, Any], before: Mapping[str, Any]) -> Proof:
    """Return the proof that an answer is this configuration as asked for, or says rightly (204) that it is so already.

    Args:
        before: the configuration as it was shown. What neither this nor the answer shows can't be compared.
    """
    told = {field: value for field, value in asked.items() if field in before}
    proof = proof_in_organization(org, configuration_id, partial(_flaw_of_change, asked, told))
    return Proof(partial(_flaw_of_no_change, proof, differences(told, before)), proof.identity)


def _flaw_of_change(asked: Mapping[str, Any], told: Mapping[str, Any], shown: Mapping[str, Any]) -> str:
    left_out = {field: value for field, value in told.items() if field not in shown}
    differing = normal_forms.differences(left_out, shown, _FORMS, _MEMBERS)
    return _flaw_of(differing or differences({field: asked[field] for field in asked if field in shown}, shown))


def _flaw_of_no_change(proof: Proof, differing: list[str], reply: Reply) -> str:
    if reply.status == 204 and differing:
        return f"it says that nothing had to be changed, and {differing[0]} was not as asked for"
    return proof.shape(reply)


def proof_in_organization(org: str, configuration_id: int, *about: proofs.About) -> Proof:
    """Return the proof that an answer is this configuration, with the further checks of `about`."""
    return proofs.entry(CONFIGURATION, proofs.naming(id=configuration_id), proofs.of_kind("orgs", org), *about)


def path_in_organization(org: str, configuration_id: int) -> str:
    """Return the path of a configuration in an organization."""
    return f"/orgs/{urls.segment(org)}/code-security/configurations/{configuration_id}"


def things_in_organization(org: str, configuration_id: int) -> tuple[str, ...]:
    """Return the place of the configuration that an item changes."""
    return (path_in_organization(org, configuration_id).casefold(),)
