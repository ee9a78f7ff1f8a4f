"""Code security configurations of an enterprise: list, create, defaults, get.

Names are unique within the enterprise, so a creation that is repeated makes at most one. A refusal (400) may hide that
the name is taken: the list tells. Source: specification, Code security configurations, enterprise; operations.md.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType

from bulk.capabilities import Returns
from bulk.model import Effect, ErrorCode, Lost, Outcome, Reply, Request, Undecided, failed, succeeded, unchanged
from bulk.operation import Item, ItemFlaw, Operation, Settling, Steps
from bulk.proof import Proof
from bulk_jobs import accesses
from bulk_jobs.result_types import Configuration, DefaultConfiguration
from bulk_jobs.shared import configuration_fields as fields
from bulk_jobs.shared import creations, enterprises, normal_forms, pages, proofs, refusals

_CREATED_OR_REFUSED = frozenset((201, 400, 409, 422))
_DEFAULTS = proofs.listing({"default_for_new_repos": str})


class EnterpriseItem(Item, frozen=True, kw_only=True):
    """Names an enterprise."""

    enterprise: enterprises.Enterprise


class EnterpriseConfigurationItem(EnterpriseItem, frozen=True, kw_only=True):
    """Names a configuration of an enterprise."""

    configuration_id: Annotated[fields.ConfigurationId, Meta(examples=[1001])]


class CreateConfigurationItem(EnterpriseItem, frozen=True, kw_only=True):
    """Says how a configuration is called and what it does.

    Attributes:
        name: unique within the enterprise.
        description: what it is for.
        advanced_security: disabled where it is not given; code_security and secret_protection are deprecated values.
        code_security: licensed product.
        secret_protection: licensed product.
        dependency_graph: enabled where it is not given.
        dependency_graph_autosubmit_action: automatic submission of dependencies; disabled where it is not given.
        dependency_graph_autosubmit_action_options: options of the automatic submission.
        dependabot_alerts: alerts on vulnerable dependencies; disabled where it is not given.
        dependabot_security_updates: pull requests that mend them; disabled where it is not given.
        code_scanning_options: options of code scanning, or null.
        code_scanning_default_setup: disabled where it is not given.
        code_scanning_default_setup_options: options of the default setup, or null.
        code_scanning_delegated_alert_dismissal: disabled where it is not given.
        secret_scanning: disabled where it is not given.
        secret_scanning_push_protection: disabled where it is not given.
        secret_scanning_validity_checks: disabled where it is not given.
        secret_scanning_non_provider_patterns: disabled where it is not given.
        secret_scanning_generic_secrets: disabled where it is not given.
        secret_scanning_delegated_alert_dismissal: disabled where it is not given.
        secret_scanning_extended_metadata: disabled where it is not given.
        private_vulnerability_reporting: disabled where it is not given.
        enforcement: whether repositories can't change their settings by themselves; enforced where it is not given.
        if_exists: what one of the same name that is as asked for counts as.
    """

    name: fields.Name
    description: str | UnsetType = UNSET
    advanced_security: fields.AdvancedSecurity | UnsetType = UNSET
    code_security: fields.Enablement | UnsetType = UNSET
    secret_protection: fields.Enablement | UnsetType = UNSET
    dependency_graph: fields.Enablement | UnsetType = UNSET
    dependency_graph_autosubmit_action: fields.Enablement | UnsetType = UNSET
    dependency_graph_autosubmit_action_options: fields.AutosubmitOptions | UnsetType = UNSET
    dependabot_alerts: fields.Enablement | UnsetType = UNSET
    dependabot_security_updates: fields.Enablement | UnsetType = UNSET
    code_scanning_options: fields.CodeScanningOptions | UnsetType | None = UNSET
    code_scanning_default_setup: fields.Enablement | UnsetType = UNSET
    code_scanning_default_setup_options: fields.DefaultSetupOptions | UnsetType | None = UNSET
    code_scanning_delegated_alert_dismissal: fields.Enablement | UnsetType = UNSET
    secret_scanning: fields.Enablement | UnsetType = UNSET
    secret_scanning_push_protection: fields.Enablement | UnsetType = UNSET
    secret_scanning_validity_checks: fields.Enablement | UnsetType = UNSET
    secret_scanning_non_provider_patterns: fields.Enablement | UnsetType = UNSET
    secret_scanning_generic_secrets: fields.Enablement | UnsetType = UNSET
    secret_scanning_delegated_alert_dismissal: fields.Enablement | UnsetType = UNSET
    secret_scanning_extended_metadata: fields.Enablement | UnsetType = UNSET
    private_vulnerability_reporting: fields.Enablement | UnsetType = UNSET
    enforcement: fields.Enforcement | UnsetType = UNSET
    if_exists: Literal["fail", "unchanged"] = "fail"


class ListEnterpriseConfigurations(Operation[EnterpriseItem], Returns[list[Configuration]]):
    """Read all code security configurations of an enterprise.

    Requests:  1 for every 100 configurations.
    Category:  core. Lane: none.
    Result:    the configurations, as an array.
    Lost answer: a read is repeated.
    Source:    Code security configurations, GET /enterprises/{enterprise}/code-security/configurations.
    """

    name = "enterprise-configuration.list"
    access = accesses.ENTERPRISE_READ
    Item = EnterpriseItem
    example: ClassVar = {"enterprise": "acme"}

    def check(self, item: EnterpriseItem) -> Iterator[ItemFlaw]:
        return enterprises.flaws_of_enterprise(item.enterprise)

    def steps(self, item: EnterpriseItem) -> Steps:
        return pages.outcome_of((yield from pages.read_all(_path(item), _proof_of_list(item))))


class ListEnterpriseDefaults(Operation[EnterpriseItem], Returns[list[DefaultConfiguration]]):
    """Read which code security configurations new repositories of an enterprise get.

    Requests:  1.
    Category:  core. Lane: none.
    Result:    default_for_new_repos and configuration of each, as an array.
    Lost answer: a read is repeated.
    Source:    Code security configurations, GET /enterprises/{enterprise}/code-security/configurations/defaults.
    """

    name = "enterprise-configuration.defaults"
    access = accesses.ENTERPRISE_READ
    Item = EnterpriseItem
    example: ClassVar = {"enterprise": "acme"}

    def check(self, item: EnterpriseItem) -> Iterator[ItemFlaw]:
        return enterprises.flaws_of_enterprise(item.enterprise)

    def steps(self, item: EnterpriseItem) -> Steps:
        reply = yield Request(method="GET", path=f"{_path(item)}/defaults", proof=_DEFAULTS)
        found = [entry for place, entry in enumerate(reply.body) if entry not in reply.body[:place]]
        return unchanged(found) if reply.is_unchanged else succeeded(found)


class GetEnterpriseConfiguration(Operation[EnterpriseConfigurationItem], Returns[Configuration]):
    """Read one code security configuration of an enterprise.

    Requests:  1.
    Category:  core. Lane: none.
    Result:    the configuration.
    Lost answer: a read is repeated.
    Source:    Code security configurations, GET /enterprises/{enterprise}/code-security/configurations/{id}.
    """

    name = "enterprise-configuration.get"
    access = accesses.ENTERPRISE_READ
    Item = EnterpriseConfigurationItem
    example: ClassVar = {"enterprise": "acme", "configuration_id": 1001}

    def check(self, item: EnterpriseConfigurationItem) -> Iterator[ItemFlaw]:
        return enterprises.flaws_of_enterprise(item.enterprise)

    def steps(self, item: EnterpriseConfigurationItem) -> Steps:
        proof = proofs.entry(
            fields.CONFIGURATION,
            proofs.naming(id=item.configuration_id),
            proofs.of_kind("enterprises", item.enterprise),
        )
        reply = yield Request(method="GET", path=f"{_path(item)}/{item.configuration_id}", proof=proof)
        return unchanged(reply.body) if reply.is_unchanged else succeeded(reply.body)


class CreateEnterpriseConfiguration(creations.RefusesItsLike[CreateConfigurationItem], Returns[Configuration]):
    """Create a code security configuration in an enterprise. The specification has no way to change or delete one.

    Requests:  2: the list, of which every 100 configurations are one request, then the creation; 1 where it exists.
    Category:  core. Lane: the enterprise.
    Result:    the configuration.
    Lost answer: the list is read and every field that was sent compared. The only one that is new and as asked for was
               created by the request; where none is new it is repeated, and the name is unique. Where another one is
               new, nobody knows.
    Source:    Code security configurations, POST /enterprises/{enterprise}/code-security/configurations.
    """

    name = "enterprise-configuration.create"
    access = accesses.ENTERPRISE_WRITE
    Item = CreateConfigurationItem
    is_read = False
    most_requests = 2
    settled_by = (
        "The enterprise's configurations are listed: the only one that was not there before the request, and is as "
        "asked for in the platform's normal form, was created by it. Where none is new the request is sent again; "
        "names are unique, so at most one can be made. Where another one is new, the outcome is unknown."
    )
    example: ClassVar = {
        "enterprise": "acme",
        "name": "Acme strict",
        "description": "For what is shipped.",
        "advanced_security": "enabled",
        "dependabot_alerts": "enabled",
        "secret_scanning": "enabled",
        "secret_scanning_push_protection": "enabled",
    }

    def check(self, item: CreateConfigurationItem) -> Iterator[ItemFlaw]:
        yield from enterprises.flaws_of_enterprise(item.enterprise)
        yield from fields.flaws_of_texts(item.name, item.description)

    def lanes(self, item: CreateConfigurationItem) -> tuple[str, ...]:
        return (item.enterprise,)

    def collection(self, item: CreateConfigurationItem) -> str:
        return _path(item)

    def steps(self, item: CreateConfigurationItem) -> Steps:
        listing = yield from pages.read_all(_path(item), _proof_of_list(item))
        if listing.flaw is not None:
            return listing.flaw
        found = _named(item.name, listing)
        if found is not None:
            return _exists_already(item, found, None)
        body, ids = fields.body_of(item, fields.CREATED_FIELDS), creations.ids(listing.entries)
        reply = yield Request(
            method="POST",
            path=_path(item),
            body=body,
            effect=Effect.CREATE_UNIQUE,
            accept=_CREATED_OR_REFUSED,
            before=ids,
            proof=proofs.entry(
                fields.CONFIGURATION,
                proofs.of_kind("enterprises", item.enterprise),
                creations.new(ids),
                partial(fields.flaw_of_new, body),
            ),
        )
        if reply.status == 201:
            return succeeded(reply.body)
        listing = yield from pages.read_all(_path(item), _proof_of_list(item), is_fresh=True)
        found = _named(item.name, listing) if listing.flaw is None else None
        return refusals.refused(reply) if found is None else _exists_already(item, found, reply)

    def settle(self, item: CreateConfigurationItem, lost: Lost) -> Settling:
        listing = yield from pages.read_all(_path(item), _proof_of_list(item), is_fresh=True)
        if listing.flaw is not None:
            return Undecided(listing.why, is_unseen=True)
        asked = fields.body_of(item, fields.CREATED_FIELDS)
        return creations.settled(
            "a configuration",
            self.collection(item),
            listing.entries,
            lost,
            lambda found: fields.differences_of_new(asked, found),
            lambda found: [
                field for field in ("name", "description") if field in asked and found.get(field) != asked[field]
            ],
            dict,
        )


def _path(item: EnterpriseItem) -> str:
    return f"{enterprises.enterprise_path(item.enterprise)}/code-security/configurations"


def _proof_of_list(item: EnterpriseItem) -> Proof:
    return proofs.listing(fields.CONFIGURATION, proofs.of_kind("enterprises", item.enterprise))


def _named(name: str, listing: pages.Listing) -> dict[str, Any] | None:
    """Return the configuration of that name: the one with exactly this name, else one with the name in another case."""
    form = normal_forms.name(name)
    alike = [each for each in listing.entries if normal_forms.name(each["name"]) == form]
    return next((each for each in alike if each["name"] == name), alike[0] if alike else None)


def _differences(item: CreateConfigurationItem, found: Mapping[str, Any]) -> list[str]:
    return fields.differences_of_new(fields.body_of(item, fields.CREATED_FIELDS), found)


def _exists_already(item: CreateConfigurationItem, found: dict[str, Any], refusal: Reply | None) -> Outcome:
    differing = _differences(item, found)
    if differing:
        return _differs(item, differing, refusal)
    if item.if_exists == "unchanged":
        return unchanged(found)
    status = refusal.status if refusal is not None else None
    message = f"a configuration {item.name!r} exists already, and is as asked for"
    return failed(ErrorCode.CONFLICT, message, http_status=status)


def _differs(item: CreateConfigurationItem, differing: list[str], refusal: Reply | None) -> Outcome:
    status = refusal.status if refusal is not None else None
    message = f"a configuration {item.name!r} exists already and differs in {', '.join(differing)}"
    return failed(ErrorCode.CONFLICT, message, http_status=status)
