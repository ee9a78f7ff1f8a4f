"""Rulesets that exist, compared with one that was asked for.

A list and a summary show neither target nor rules, and that a single ruleset can be read the specification leaves open.
So only the fields that are shown are compared, each in its normal form. Source: specification, Rulesets.
"""

from collections.abc import Generator, Mapping
from typing import Any

from bulk.model import Reply, Request
from bulk_jobs.shared import normal_forms, proofs
from bulk_jobs.shared.presence import rulesets_path

FORMS = {"name": normal_forms.name, "target": normal_forms.name, "enforcement": normal_forms.name}
"""The forms that compare the fields which every list or answer may show; all others are compared as texts."""

_WORDS = (
    "type",
    "operator",
    "allowed_merge_methods",
    "alerts_threshold",
    "security_alerts_threshold",
    "source",
    "actor_type",
    "bypass_mode",
)
_MEMBERS = dict.fromkeys(_WORDS, normal_forms.name)
"""The forms of members of rules, conditions and actors that are words of a set, which may be shown in another case."""

_WITHOUT_ID = ("OrganizationAdmin", "EnterpriseOwner")
"""Kinds of actors whose ids the platform ignores."""


def differences(body: Mapping[str, Any], shown: Mapping[str, Any]) -> list[str]:
    """Return the fields of the body of a creation that a ruleset shows otherwise."""
    asked = {name: value for name, value in body.items() if shown.get(name) is not None}
    if "bypass_actors" in asked:
        asked["bypass_actors"] = [_actor(actor) for actor in asked["bypass_actors"]]
    return normal_forms.differences(asked, shown, FORMS, _MEMBERS)


def _actor(actor: Mapping[str, Any]) -> dict[str, Any]:
    has_id = actor["actor_type"] not in _WITHOUT_ID
    return {name: value for name, value in actor.items() if has_id or name != "actor_id"}


def otherwise(body: Mapping[str, Any], shown: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return how a new ruleset differs from what was asked for: in words, empty where it does not, and both values of
    each field."""
    fields = differences(body, shown)
    both = {"wanted": {name: body[name] for name in fields}, "found": {name: shown[name] for name in fields}}
    why = f"ruleset {shown['id']} is new, and the platform shows its {', '.join(fields)} otherwise than asked for"
    return why if fields else "", both


def whole(org: str, number: Any) -> Generator[Request, Reply, dict[str, Any] | None]:
    """Return a ruleset of an organization with its rules, where the platform shows it; else None."""
    if not isinstance(number, int):
        return None
    path = f"{rulesets_path(org)}/{number}"
    proof = proofs.entry({"id": int, "name": str}, proofs.naming(id=number))
    reply = yield Request(method="GET", path=path, accept=frozenset((200, 404)), is_fresh=True, proof=proof)
    return reply.body if reply.status == 200 and "rules" in reply.body else None
