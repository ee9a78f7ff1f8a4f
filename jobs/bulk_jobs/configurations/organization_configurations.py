"""Code security configurations in an organization: get, update, delete, set as default, the repositories of one.

`configuration_attachments.py` attaches them. A 404 alone proves nothing about a configuration, because it also means
that the credential may not see it; the organization's rulesets beside it do. Source: specification, Code security
configurations, organization; operations.md, 404 rule.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from msgspec import UNSET, UnsetType

from bulk.capabilities import ChangesThings, LooksBack, Returns
from bulk.model import Effect, ErrorCode, Lost, NotApplied, Outcome, Request, Undecided, failed, succeeded, unchanged
from bulk.operation import Item, ItemFlaw, Operation, Settling, Steps
from bulk.proof import Proof
from bulk.undo import Irreversible, Undo, Undoable
from bulk_jobs import accesses
from bulk_jobs.result_types import AttachedRepository, Configuration, DefaultConfiguration, Numbered
from bulk_jobs.shared import configuration_fields as fields
from bulk_jobs.shared import names, normal_forms, pages, presence, proofs, refusals
from bulk_jobs.shared.undos import settings

_FOUND_OR_NOT = frozenset((200, 404))
REPOSITORIES = proofs.listing({})
"""The proof that an answer is a list of repositories; the specification leaves the fields of its entries open."""


class ConfigurationItem(Item, frozen=True, kw_only=True):
    """Names a configuration of an organization."""

    org: names.Organization
    configuration_id: fields.ConfigurationId


class UpdateConfigurationItem(ConfigurationItem, frozen=True, kw_only=True):
    """Says what is changed; what is not given stays as it is.

    Attributes:
        name: unique within the organization.
        description: what it is for.
        advanced_security: code_security and secret_protection are deprecated values.
        code_security: licensed product.
        secret_protection: licensed product.
        dependency_graph_autosubmit_action: automatic submission of dependencies.
        dependency_graph_autosubmit_action_options: options of the automatic submission.
        dependabot_alerts: alerts on vulnerable dependencies.
        dependabot_security_updates: pull requests that mend them.
        dependabot_delegated_alert_dismissal: requires dependabot_alerts to be enabled.
        code_scanning_options: options of code scanning, or null.
        code_scanning_default_setup_options: options of the default setup, or null.
        secret_scanning_delegated_bypass: whether named reviewers may let a push with a secret pass.
        secret_scanning_delegated_bypass_options: who they are.
        enforcement: whether repositories can't change their settings by themselves.
    """

    name: fields.Name | UnsetType = UNSET
    description: str | UnsetType = UNSET
    advanced_security: fields.AdvancedSecurity | UnsetType = UNSET
    code_security: fields.Enablement | UnsetType = UNSET
    secret_protection: fields.Enablement | UnsetType = UNSET
    dependency_graph: fields.Enablement | UnsetType = UNSET
    dependency_graph_autosubmit_action: fields.Enablement | UnsetType = UNSET
    dependency_graph_autosubmit_action_options: fields.AutosubmitOptions | UnsetType = UNSET
    dependabot_alerts: fields.Enablement | UnsetType = UNSET
    dependabot_security_updates: fields.Enablement | UnsetType = UNSET
    dependabot_delegated_alert_dismissal: fields.Enablement | UnsetType = UNSET
    code_scanning_options: fields.CodeScanningOptions | UnsetType | None = UNSET
    code_scanning_default_setup: fields.Enablement | UnsetType = UNSET
    code_scanning_default_setup_options: fields.DefaultSetupOptions | UnsetType | None = UNSET
    code_scanning_delegated_alert_dismissal: fields.Enablement | UnsetType = UNSET
    secret_scanning: fields.Enablement | UnsetType = UNSET
    secret_scanning_push_protection: fields.Enablement | UnsetType = UNSET
    secret_scanning_delegated_bypass: fields.Enablement | UnsetType = UNSET
    secret_scanning_delegated_bypass_options: fields.BypassOptions | UnsetType = UNSET
    secret_scanning_validity_checks: fields.Enablement | UnsetType = UNSET
    secret_scanning_non_provider_patterns: fields.Enablement | UnsetType = UNSET
    secret_scanning_generic_secrets: fields.Enablement | UnsetType = UNSET
    secret_scanning_delegated_alert_dismissal: fields.Enablement | UnsetType = UNSET
    secret_scanning_extended_metadata: fields.Enablement | UnsetType = UNSET
    private_vulnerability_reporting: fields.Enablement | UnsetType = UNSET
    enforcement: fields.Enforcement | UnsetType = UNSET
    expect: refusals.Expect | None = None


class SetDefaultItem(ConfigurationItem, frozen=True, kw_only=True):
    """Names a configuration, and says for which new repositories it is the default.

    Attributes:
        default_for_new_repos: which new repositories get it; none: it is not a default any more.
    """

    default_for_new_repos: fields.DefaultFor


class GetOrganizationConfiguration(Operation[ConfigurationItem], Returns[Configuration]):
    """Read one code security configuration that is available in an organization.

    Requests:  1.
    Category:  core. Lane: none.
    Result:    the configuration.
    Lost answer: a read is repeated.
    Source:    Code security configurations, GET /orgs/{org}/code-security/configurations/{configuration_id}.
    """

    name = "organization-configuration.get"
    access = accesses.ORGANIZATION_READ
    Item = ConfigurationItem
    example: ClassVar = {"org": "acme-eng", "configuration_id": 2001}

    def check(self, item: ConfigurationItem) -> Iterator[ItemFlaw]:
        return fields.flaws_of_organization(item.org)

    def steps(self, item: ConfigurationItem) -> Steps:
        reply = yield Request(method="GET", path=_path(item), proof=_proof(item))
        return unchanged(reply.body) if reply.is_unchanged else succeeded(reply.body)


class ListConfigurationRepositories(Operation[ConfigurationItem], Returns[list[AttachedRepository]]):
    """Read all repositories of an organization that have a code security configuration.

    Requests:  1 for every 100 repositories.
    Category:  core. Lane: none.
    Result:    the platform's entries, as an array: status and repository of each.
    Lost answer: a read is repeated.
    Source:    Code security configurations, GET …/configurations/{configuration_id}/repositories.
    """

    name = "organization-configuration.repositories"
    access = accesses.ORGANIZATION_READ
    Item = ConfigurationItem
    example: ClassVar = {"org": "acme-eng", "configuration_id": 2001}

    def check(self, item: ConfigurationItem) -> Iterator[ItemFlaw]:
        return fields.flaws_of_organization(item.org)

    def steps(self, item: ConfigurationItem) -> Steps:
        return pages.outcome_of((yield from pages.read_all(f"{_path(item)}/repositories", REPOSITORIES)))


class UpdateOrganizationConfiguration(
    ChangesThings[UpdateConfigurationItem],
    LooksBack[UpdateConfigurationItem],
    Undoable[UpdateConfigurationItem],
    Returns[Configuration],
):
    """Change a code security configuration of an organization, and with it the repositories that have it.

    Requests:  2: a look, then the change. Where it is as asked for already, the platform says so (204).
    Category:  core. Lane: the configuration.
    Result:    the configuration; its id alone where nothing had to be changed.
    Lost answer: the configuration is read and every field that was sent compared; where all are as before the request
               is repeated, and a 204 proves that nothing was left to change; where they are otherwise, nobody knows.
    Source:    Code security configurations, PATCH /orgs/{org}/code-security/configurations/{configuration_id}.
    """

    name = "organization-configuration.update"
    access = accesses.ORGANIZATION_WRITE
    Item = UpdateConfigurationItem
    is_read = False
    least_requests = 2
    most_requests = 2
    settled_by = (
        "The configuration is read: where every field that was sent is as asked for, the change was made. Where all of "
        "them are as before, the request is sent again; changing twice is changing once. Where they are otherwise, "
        "once the settle time is over, nobody knows whether it was changed before somebody else changed it: it ends as "
        "unknown, with what was found, and a retry does not overwrite that."
    )
    example: ClassVar = {"org": "acme-eng", "configuration_id": 2003, "secret_scanning": "enabled"}

    def check(self, item: UpdateConfigurationItem) -> Iterator[ItemFlaw]:
        yield from fields.flaws_of_organization(item.org)
        yield from fields.flaws_of_texts(item.name, item.description)
        if not fields.body_of(item, fields.UPDATED_FIELDS):
            yield ItemFlaw("name", "expected at least one field to change")
        if item.dependabot_delegated_alert_dismissal == "enabled" and item.dependabot_alerts in ("disabled", "not_set"):
            yield ItemFlaw("dependabot_delegated_alert_dismissal", "expected dependabot_alerts to be enabled with it")

    def lanes(self, item: UpdateConfigurationItem) -> tuple[str, ...]:
        return (lane_of(item),)

    def things(self, item: UpdateConfigurationItem) -> tuple[str, ...]:
        return fields.things_in_organization(item.org, item.configuration_id)

    def steps(self, item: UpdateConfigurationItem) -> Steps:
        body = fields.body_of(item, fields.UPDATED_FIELDS)
        before = yield Request(method="GET", path=_path(item), is_fresh=True, proof=_proof(item))
        if item.expect is not None:
            differing = fields.differences(item.expect, before.body)
            as_wanted = body.keys() - fields.differences(body, before.body)
            conflict = refusals.unexpected(f"configuration {item.configuration_id}", differing, as_wanted)
            if conflict is not None:
                return conflict
        reply = yield Request(
            method="PATCH",
            path=_path(item),
            body=body,
            effect=Effect.SET,
            accept=frozenset((200, 204)),
            before=_image(body, before.body),
            proof=fields.proof_of_update(item.org, item.configuration_id, body, before.body),
        )
        if reply.status == 204:
            return unchanged({"id": item.configuration_id})
        return succeeded(reply.body, note=fields.note_on(body, reply.body))

    def steps_to_look_back(self, item: UpdateConfigurationItem) -> Steps:
        body = fields.body_of(item, fields.UPDATED_FIELDS)
        shown = yield Request(method="GET", path=_path(item), is_fresh=True, proof=_proof(item))
        differing = fields.differences(body, shown.body)
        if not differing:
            return unchanged({"id": item.configuration_id})
        return refusals.not_as_left(f"configuration {item.configuration_id}", differing)

    def settle(self, item: UpdateConfigurationItem, lost: Lost) -> Settling:
        reply = yield _look(item, is_fresh=True)
        if reply.status == 404:
            return Undecided("the configuration can't be read", is_unseen=True)
        body = fields.body_of(item, fields.UPDATED_FIELDS)
        differing = fields.differences(body, reply.body)
        if differing:
            return _not_as_asked_for(differing, body, reply.body, lost)
        return succeeded(reply.body, note="the answer was lost; the configuration is as asked for")

    def undo(self, item: UpdateConfigurationItem, before: Any, result: Any) -> Undo | Irreversible:
        if not isinstance(before, dict) or not isinstance(result, dict):
            return Irreversible("what was set before is not known")
        kept = fields.sendable(before)
        gone = ", ".join(field for field in before if field not in kept)
        if not kept:
            return Irreversible(f"{gone} had no value before, and none can be given")
        sent = fields.body_of(item, fields.UPDATED_FIELDS)  # all that is known if an earlier send has done it
        left = {field: result.get(field, sent[field]) for field in before}
        place, loses = {"org": item.org, "configuration_id": item.configuration_id}, gone and f"that {gone} was unset"
        return Undo(operation=self.name, item={**place, **kept, "expect": left}, loses=loses)

    def joined(self, way: Undo, later: Undo) -> Sequence[Undo]:
        return settings.of_items(way, later, fields.differences)

    def before_both(self, item: UpdateConfigurationItem, first: Any, later: Any) -> Any:
        others = fields.differences(fields.body_of(item, fields.UPDATED_FIELDS), later)
        return {field: value if field in others else first.get(field) for field, value in later.items()}


class DeleteOrganizationConfiguration(ChangesThings[ConfigurationItem], Undoable[ConfigurationItem], Returns[Numbered]):
    """Delete a code security configuration of an organization. Its repositories keep their settings.

    Requests:  2: a look, then the deletion. Where it is not there 3: the organization's rulesets, and a second look.
    Category:  core. Lane: the configuration.
    Result:    id of the configuration.
    Lost answer: the configuration is read; where it is gone and the organization can be seen, it was deleted. One that
               is being attached is refused (409) and tried again a few times.
    Source:    Code security configurations, DELETE /orgs/{org}/code-security/configurations/{configuration_id}.
    """

    name = "organization-configuration.delete"
    access = accesses.ORGANIZATION_WRITE
    Item = ConfigurationItem
    is_read = False
    is_irreversible = True
    least_requests = 2
    most_requests = 3
    settled_by = (
        "The configuration is read: where it is gone, and the organization's rulesets can be listed, it was deleted. "
        "Where it is there, the request is sent again; ids are never given twice."
    )
    example: ClassVar = {"org": "acme-eng", "configuration_id": 2002}

    def check(self, item: ConfigurationItem) -> Iterator[ItemFlaw]:
        return fields.flaws_of_organization(item.org)

    def lanes(self, item: ConfigurationItem) -> tuple[str, ...]:
        return (lane_of(item),)

    def things(self, item: ConfigurationItem) -> tuple[str, ...]:
        return fields.things_in_organization(item.org, item.configuration_id)

    def steps(self, item: ConfigurationItem) -> Steps:
        found = yield from presence.look_surely(_look(item))
        if found.status == 200:
            reply = yield Request(
                method="DELETE",
                path=_path(item),
                effect=Effect.COMPARE_AND_SWAP,
                accept=frozenset((204, 404)),
                before=_image(dict.fromkeys(fields.UPDATED_FIELDS), found.body),
            )
            if reply.status != 404:
                return succeeded({"id": item.configuration_id})
            if (yield from presence.look_surely(_look(item, is_fresh=True))).status == 200:
                message = f"configuration {item.configuration_id} is there, and this credential may not delete it"
                return failed(ErrorCode.NOT_FOUND, message, http_status=404)
        if (yield from presence.can_see(item.org)):
            return unchanged({"id": item.configuration_id}, note="it is not there")
        return _not_there(item)

    def settle(self, item: ConfigurationItem, lost: Lost) -> Settling:
        found = yield from presence.look_surely(_look(item, is_fresh=True))
        if found.status == 200:
            return NotApplied("the configuration is still there")
        if not (yield from presence.can_see(item.org)):
            return Undecided("the organization can't be seen any more", is_unseen=True)
        return succeeded({"id": item.configuration_id}, note="the answer was lost; the configuration is gone")

    def undo(self, item: ConfigurationItem, before: Any, result: Any) -> Undo | Irreversible:
        return Irreversible("nothing in the platform's interface takes it back", removes=True)


class SetDefaultConfiguration(Operation[SetDefaultItem], Returns[DefaultConfiguration]):
    """Make a code security configuration the default for new repositories of an organization.

    Requests:  1.
    Category:  core. Lane: the organization, and the configuration.
    Result:    default_for_new_repos and configuration, as the platform repeats them.
    Lost answer: nothing shows an organization's defaults, so the request is repeated; setting twice is setting once.
    Source:    Code security configurations, PUT …/configurations/{configuration_id}/defaults.
    """

    name = "organization-configuration.set-default"
    access = accesses.ORGANIZATION_WRITE
    Item = SetDefaultItem
    is_read = False
    settled_by = (
        "No read shows the defaults of an organization: the request is sent again, before anything later of its lane."
    )
    example: ClassVar = {"org": "acme-eng", "configuration_id": 2001, "default_for_new_repos": "all"}

    def check(self, item: SetDefaultItem) -> Iterator[ItemFlaw]:
        return fields.flaws_of_organization(item.org)

    def lanes(self, item: SetDefaultItem) -> tuple[str, ...]:
        return (item.org, lane_of(item))

    def steps(self, item: SetDefaultItem) -> Steps:
        reply = yield Request(
            method="PUT",
            path=f"{_path(item)}/defaults",
            body={"default_for_new_repos": item.default_for_new_repos},
            effect=Effect.ORDERED,
            proof=proofs.entry(
                {"default_for_new_repos": str},
                proofs.naming(default_for_new_repos=item.default_for_new_repos),
                partial(_flaw_of_default, item),
            ),
        )
        return succeeded(reply.body)

    def settle(self, item: SetDefaultItem, lost: Lost) -> Settling:
        yield from ()
        return Undecided("nothing shows which configurations are an organization's defaults")


def lane_of(item: ConfigurationItem) -> str:
    """Return the lane of all items that write the same configuration."""
    return f"{item.org}/{item.configuration_id}"


def _path(item: ConfigurationItem) -> str:
    return fields.path_in_organization(item.org, item.configuration_id)


def _image(body: Mapping[str, Any], shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a body as a configuration shows them."""
    return {field: shown.get(field) for field in body}


def _not_as_asked_for(
    differing: list[str], body: Mapping[str, Any], shown: Mapping[str, Any], lost: Lost
) -> NotApplied | Undecided:
    """Return how a change is settled whose answer was lost, and after which these fields are not as asked for."""
    before, found = lost.before, _image(body, shown)
    if not isinstance(before, dict) or not (fields.differences(before, found) or fields.differences(found, before)):
        return NotApplied(f"{', '.join(differing)} not as asked for")
    return Undecided(
        f"the answer of the {lost.method} was lost, and {', '.join(differing)} not as asked for, nor is all as before: "
        "whether it was changed before somebody else changed it can't be told",
        found={"wanted": dict(body), "before": before, "found": found},
    )


def _flaw_of_default(item: SetDefaultItem, shown: Mapping[str, Any]) -> str:
    is_left_out = item.default_for_new_repos == "none" and shown.get("configuration") is None
    is_it = is_left_out or normal_forms.name(shown["configuration"].get("id")) == str(item.configuration_id)
    return "" if is_it else f"its configuration is not {item.configuration_id}"


def _proof(item: ConfigurationItem) -> Proof:
    return fields.proof_in_organization(item.org, item.configuration_id)


def _look(item: ConfigurationItem, *, is_fresh: bool = False) -> Request:
    """Return the request that reads one configuration: its status is 200 where the configuration exists."""
    return Request(method="GET", path=_path(item), accept=_FOUND_OR_NOT, is_fresh=is_fresh, proof=_proof(item))


def _not_there(item: ConfigurationItem) -> Outcome:
    message = f"neither configuration {item.configuration_id} nor organization {item.org} can be seen"
    return failed(ErrorCode.NOT_FOUND, message, http_status=404)
