"""Rulesets: list and create those of an organization, and read the history of those of an enterprise.

Nothing in the specification says that a ruleset's name is unique, so every creation looks first, remembers the ids that
it saw, and after a lost answer looks for a new id. A list shows neither target nor rules: `targets` filters the list by
target, and the rules are compared where the platform shows a single ruleset, which the specification leaves open.
Source: specification, Rulesets; operations.md, POST org ruleset; open-points.md.
"""

import re
from collections.abc import Generator, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bulk.capabilities import Returns
from bulk.model import (
    Effect,
    ErrorCode,
    Lost,
    Outcome,
    Reply,
    Request,
    Undecided,
    failed,
    succeeded,
    unchanged,
    unknown,
)
from bulk.operation import Item, ItemFlaw, Operation, Settling, Steps
from bulk_jobs import accesses
from bulk_jobs.result_types import Ruleset, RulesetVersion
from bulk_jobs.rulesets import ruleset_comparison as comparison
from bulk_jobs.rulesets.ruleset_conditions import (
    BypassActor,
    Conditions,
    Target,
    flaws_of_actors,
    flaws_of_conditions,
    flaws_of_texts,
)
from bulk_jobs.rulesets.ruleset_rules import Rule
from bulk_jobs.shared import creations, enterprises, names, normal_forms, pages, proofs, refusals
from bulk_jobs.shared.presence import flaw_of_source, is_of_organization, rulesets_of, rulesets_path

_are_targets = re.compile(r"[a-z_]+(?:,[a-z_]+)*").fullmatch
_SHOWN = ("id", "name", "target", "source_type", "source", "enforcement", "node_id", "created_at", "updated_at")
_BODY = ("name", "target", "enforcement", "bypass_actors", "conditions", "rules")
_NOT_SHOWN = "the platform does not show its conditions and rules, so they are not compared"
_NOT_COMPARED = f"it exists; {_NOT_SHOWN}"

_MORE_ACTORS = "the platform shows bypass_actors, and none were asked for"

_VERSIONS = proofs.listing({"version_id": int})

RulesetId = Annotated[int, Meta(ge=1, description="id of the ruleset")]


class RulesetItem(Item, frozen=True, kw_only=True):
    """Names a ruleset of an enterprise."""

    enterprise: enterprises.Enterprise
    ruleset_id: RulesetId


class ListRulesetHistory(Operation[RulesetItem], Returns[list[RulesetVersion]]):
    """Read the versions that a ruleset of an enterprise has had.

    Requests:  1 for every 100 versions.
    Category:  core. Lane: none.
    Result:    the versions (version_id, actor, updated_at), as an array.
    Lost answer: a read is repeated.
    Source:    Rulesets, GET /enterprises/{enterprise}/rulesets/{ruleset_id}/history.
    """

    name = "enterprise-ruleset.history"
    access = accesses.ENTERPRISE_READ
    Item = RulesetItem
    example: ClassVar = {"enterprise": "acme", "ruleset_id": 3001}

    def check(self, item: RulesetItem) -> Iterator[ItemFlaw]:
        return enterprises.flaws_of_enterprise(item.enterprise)

    def steps(self, item: RulesetItem) -> Steps:
        return pages.outcome_of((yield from pages.read_all(_history(item), _VERSIONS)))


class RulesetVersionItem(RulesetItem, frozen=True, kw_only=True):
    """Names a version of a ruleset of an enterprise."""

    version_id: Annotated[int, Meta(ge=1, description="id of the version, as the history shows it")]


class GetRulesetVersion(Operation[RulesetVersionItem], Returns[RulesetVersion]):
    """Read one version of a ruleset of an enterprise, with the state that the ruleset had then.

    Requests:  1.
    Category:  core. Lane: none.
    Result:    the version: version_id, actor, updated_at, state.
    Lost answer: a read is repeated.
    Source:    Rulesets, GET /enterprises/{enterprise}/rulesets/{ruleset_id}/history/{version_id}.
    """

    name = "enterprise-ruleset.version"
    access = accesses.ENTERPRISE_READ
    Item = RulesetVersionItem
    example: ClassVar = {"enterprise": "acme", "ruleset_id": 3001, "version_id": 32}

    def check(self, item: RulesetVersionItem) -> Iterator[ItemFlaw]:
        return enterprises.flaws_of_enterprise(item.enterprise)

    def steps(self, item: RulesetVersionItem) -> Steps:
        proof = proofs.entry(
            {"version_id": int, "state": dict},
            proofs.naming(version_id=item.version_id),
            partial(_flaw_of_state, item.ruleset_id),
        )
        reply = yield Request(method="GET", path=f"{_history(item)}/{item.version_id}", proof=proof)
        return unchanged(reply.body) if reply.is_unchanged else succeeded(reply.body)


class OrganizationRulesetsItem(Item, frozen=True, kw_only=True):
    """Names an organization, and says for which targets its rulesets are listed."""

    org: names.Organization
    targets: (
        Annotated[
            str,
            Meta(
                min_length=1,
                description="targets with commas between them; without it rulesets for any target",
                examples=["branch,tag"],
                extra_json_schema={"pattern": "^[a-z_]+(?:,[a-z_]+)*$"},
            ),
        ]
        | None
    ) = None


class ListOrganizationRulesets(Operation[OrganizationRulesetsItem], Returns[list[Ruleset]]):
    """Read summaries of all rulesets of an organization.

    Requests:  1 for every 100 rulesets.
    Category:  core. Lane: none.
    Result:    the summaries, as an array.
    Lost answer: a read is repeated.
    Source:    Rulesets, GET /orgs/{org}/rulesets.
    """

    name = "organization-ruleset.list"
    access = accesses.RULESETS_READ
    Item = OrganizationRulesetsItem
    example: ClassVar = {"org": "acme-ops", "targets": "branch,tag"}

    def check(self, item: OrganizationRulesetsItem) -> Iterator[ItemFlaw]:
        yield from _flaws_of_organization(item.org)
        if item.targets is not None and not _are_targets(item.targets):
            yield ItemFlaw("targets", f"expected targets with commas between them, as branch,tag; got {item.targets!r}")

    def steps(self, item: OrganizationRulesetsItem) -> Steps:
        return pages.outcome_of(
            (yield from pages.read_all(rulesets_path(item.org), rulesets_of(item.org), targets=item.targets))
        )


class CreateRulesetItem(Item, frozen=True, kw_only=True):
    """Names an organization, and gives a ruleset in the platform's own form."""

    org: names.Organization
    name: Annotated[str, Meta(min_length=1, description="of the ruleset", examples=["Protect main"])]
    target: Annotated[Target, Meta(description="what it protects")] = "branch"
    enforcement: Annotated[
        Literal["disabled", "active", "evaluate"], Meta(description="evaluate: report, and refuse nothing")
    ]
    bypass_actors: Annotated[list[BypassActor], Meta(description="who may pass its rules by")] | UnsetType = UNSET
    conditions: (
        Annotated[Conditions, Meta(description="where it applies; needed for branches and tags")] | UnsetType
    ) = UNSET
    rules: (
        Annotated[list[Rule], Meta(description="each with its type, and parameters where the type has any")] | UnsetType
    ) = UNSET
    if_exists: Annotated[
        Literal["fail", "unchanged"],
        Meta(description="what one of that name counts as that is as asked for; another one fails"),
    ] = "fail"


class CreateOrganizationRuleset(creations.RefusesItsLike[CreateRulesetItem], Returns[Ruleset]):
    """Create a ruleset in an organization.

    Requests:  2: a look at the organization's rulesets, then the creation; 1 to 3 where it exists, 3 where it is shown
               otherwise than asked for.
    Category:  core. Lane: the organization.
    Result:    id, name, target, source_type, source, enforcement, node_id, created_at, updated_at.
    Lost answer: the list is read again, and the ruleset where the platform shows it: the only one that was not there
               before, and is as asked for, was created. If none is new, still after the settle time, the request is
               repeated; if another one is, nobody knows.
    Source:    Rulesets, POST /orgs/{org}/rulesets.
    """

    name = "organization-ruleset.create"
    access = accesses.RULESETS_WRITE
    Item = CreateRulesetItem
    is_read = False
    most_requests = 3
    settled_by = (
        "The organization's rulesets are listed, and those for the target. The only one that was not there before the "
        "request, with the same name and enforcement in the platform's normal form, was created by it. Where none is "
        "new, still after the settle time, the request is sent again; where another one is new, or several equal ones, "
        "which of them is ours can't be told, and the outcome is unknown."
    )
    example: ClassVar = {
        "org": "acme-eng",
        "name": "Protect main",
        "target": "branch",
        "enforcement": "active",
        "bypass_actors": [{"actor_type": "OrganizationAdmin"}],
        "conditions": {
            "ref_name": {"include": ["~DEFAULT_BRANCH"], "exclude": []},
            "repository_name": {"include": ["~ALL"], "exclude": []},
        },
        "rules": [
            {"type": "deletion"},
            {
                "type": "pull_request",
                "parameters": {
                    "dismiss_stale_reviews_on_push": True,
                    "require_code_owner_review": True,
                    "require_last_push_approval": False,
                    "required_approving_review_count": 1,
                    "required_review_thread_resolution": False,
                },
            },
        ],
    }

    def check(self, item: CreateRulesetItem) -> Iterator[ItemFlaw]:
        yield from _flaws_of_organization(item.org)
        yield from flaws_of_conditions(item.conditions or None, item.target)
        yield from flaws_of_actors(item.bypass_actors or [], item.target)
        yield from flaws_of_texts("", _body(item))

    def lanes(self, item: CreateRulesetItem) -> tuple[str, ...]:
        return (item.org,)

    def collection(self, item: CreateRulesetItem) -> str:
        return rulesets_path(item.org)

    def steps(self, item: CreateRulesetItem) -> Steps:
        listing = yield from _list(item)
        if listing.flaw is not None:
            return listing.flaw
        found = _of_name(item, listing)
        if found:
            return (yield from _exists(item, found, None))
        ids = creations.ids(listing.entries)
        reply = yield Request(
            method="POST",
            path=rulesets_path(item.org),
            body=_body(item),
            effect=Effect.CREATE,
            accept=frozenset((200, 201, 422)),
            before=ids,
            proof=proofs.entry(
                {"id": int, "name": str, "enforcement": str},
                partial(flaw_of_source, item.org),
                creations.new(ids),
                partial(_flaw_of_created, item),
            ),
        )
        if reply.status != 422:
            return (yield from _created(item, reply.body))
        found = _of_name(item, (yield from _list(item)))
        return (yield from _exists(item, found, reply)) if found else refusals.refused(reply)

    def settle(self, item: CreateRulesetItem, lost: Lost) -> Settling:
        listing = yield from _list(item)
        if listing.flaw is not None:
            return Undecided(listing.why, is_unseen=True)
        asked = {"name": item.name, "enforcement": item.enforcement}
        ended = creations.settled(
            "a ruleset",
            self.collection(item),
            [entry for entry in listing.entries if is_of_organization(entry)],
            lost,
            lambda entry: normal_forms.differences(asked, entry, comparison.FORMS),
            lambda entry: [field for field, value in asked.items() if entry.get(field) != value],
            _shown,
        )
        if isinstance(ended, Outcome):
            # a summary does not show its target, but the list was filtered by it
            filtered = yield from _list(item, targets=item.target)
            if all(entry["id"] != ended.result["id"] for entry in filtered.entries):
                why = filtered.why or f"the new ruleset {item.name} is not listed for the target {item.target}"
                return Undecided(why, found=ended.result)
            whole = yield from comparison.whole(item.org, ended.result["id"])
            if whole is None:
                return succeeded(ended.result, note=f"{ended.result['note']}; {_NOT_SHOWN}")
            why, both = comparison.otherwise(_body(item), whole)
            if why:
                return Undecided(why, found=both)
        return ended


def _list(item: CreateRulesetItem, targets: str | None = None) -> Generator[Request, Reply, pages.Listing]:
    return pages.read_all(rulesets_path(item.org), rulesets_of(item.org), is_fresh=True, targets=targets)


def _created(item: CreateRulesetItem, body: dict[str, Any]) -> Generator[Request, Reply, Outcome]:
    """Return the outcome of a creation with that answer, which names a new ruleset: where its rules, conditions or
    actors are not as asked for, the ruleset itself decides, as far as the platform shows it."""
    shown = body
    if comparison.differences(_body(item), body):
        shown = (yield from comparison.whole(item.org, body["id"])) or body
    why, both = comparison.otherwise(_body(item), shown)
    if why:
        return unknown(why, http_status=201, result=both)
    has_more = item.bypass_actors is UNSET and bool(shown.get("bypass_actors"))
    return succeeded(_shown(shown), note=_MORE_ACTORS if has_more else None)


def _exists(
    item: CreateRulesetItem, found: list[dict[str, Any]], refusal: Reply | None
) -> Generator[Request, Reply, Outcome]:
    """Return the outcome of an item if these rulesets have its name already."""
    status = refusal.status if refusal is not None else None
    why = f"a ruleset {item.name} exists already in {item.org}"
    if item.if_exists == "fail":
        return failed(ErrorCode.CONFLICT, why, http_status=status)
    differences = ""
    for entry in found:
        whole = yield from comparison.whole(item.org, entry.get("id"))
        if whole is None:
            listing = yield from _list(item, targets=item.target)
            differences = _differences_of_summary(item, entry, listing)
            if not differences and listing.flaw is not None:
                return listing.flaw  # whether it is as asked for can't be told
            if not differences:
                return unchanged(_shown(entry), note=_NOT_COMPARED)
            continue
        differences = ", ".join(comparison.differences(_body(item), whole))
        if not differences:
            hidden = ", ".join(name for name in _body(item) if name not in whole)
            return unchanged(_shown(whole), note=f"the platform does not show {hidden}" if hidden else None)
    return failed(ErrorCode.CONFLICT, f"{why}, and is not as asked for: {differences}", http_status=status)


def _differences_of_summary(item: CreateRulesetItem, entry: dict[str, Any], listing: pages.Listing) -> str:
    """Return the fields of a summary that are not as asked for: its enforcement, or the target, by which `listing` is
    filtered, as far as that can be used."""
    differences = normal_forms.differences({"enforcement": item.enforcement}, entry, comparison.FORMS)
    if listing.flaw is None and all(other.get("id") != entry.get("id") for other in listing.entries):
        differences.insert(0, "target")
    return ", ".join(differences)


def _body(item: CreateRulesetItem) -> dict[str, Any]:
    """Return the ruleset as it is sent: always with the target, and with all other fields only where they are given."""
    given: dict[str, Any] = {**msgspec.to_builtins(item), "target": item.target}
    return {name: given[name] for name in _BODY if name in given}


def _of_name(item: CreateRulesetItem, listing: pages.Listing) -> list[dict[str, Any]]:
    name = normal_forms.name(item.name)
    return [entry for entry in listing.entries if normal_forms.name(entry["name"]) == name]


def _shown(body: Any) -> dict[str, Any]:
    return {name: body[name] for name in _SHOWN if name in body} if isinstance(body, dict) else {}


def _history(item: RulesetItem) -> str:
    return f"{enterprises.enterprise_path(item.enterprise)}/rulesets/{item.ruleset_id}/history"


def _flaw_of_created(item: CreateRulesetItem, shown: Mapping[str, Any]) -> str:
    """Return what is wrong with the target or the enforcement in an answer to the creation, where it shows them."""
    asked = {"name": item.name, "target": item.target, "enforcement": item.enforcement}
    told = {field: value for field, value in asked.items() if shown.get(field) is not None}
    differing = normal_forms.differences(told, shown, comparison.FORMS)
    return f"its {differing[0]} is not what was asked for" if differing else ""


def _flaw_of_state(ruleset_id: int, version: Mapping[str, Any]) -> str:
    shown = version["state"].get("id")
    return "" if shown is None or shown == ruleset_id else f"its state is not that of ruleset {ruleset_id}"


def _flaws_of_organization(org: str) -> Iterator[ItemFlaw]:
    flaw = names.flaw_of_owner(org)
    if flaw:
        yield ItemFlaw("org", flaw)
